"""The deviations of float types: other digits, other rounding, and special values that are lost."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from eltwise.conformance import formulas
from eltwise.conformance.arithmetic import FORMULAS, Deviation
from eltwise.conformance.number_arrays import Change, Mode, Values, clamped, flushed, largest_finite, rounded
from eltwise.conformance.steps import Keep
from eltwise.core.dtypes import BFLOAT16, FLOAT16, FLOAT32, FLOAT64, ElementType
from eltwise.ops.expression import expression_of
from eltwise.oracle.numbers import FLOAT_LAYOUTS

_OTHERS = (FLOAT32, FLOAT16, BFLOAT16, FLOAT64)
_MODES: dict[Mode, str] = {
    "toward zero": "rounding toward zero",
    "away from zero": "rounding away from zero",
    "half away": "rounding ties away from zero",
    "up": "rounding up",
    "down": "rounding down",
}


def float_deviations(formula: str, element_type: ElementType) -> Iterator[Deviation]:
    """The deviations of a float type, simplest first."""
    yield from _special_values(formula, element_type)
    yield from _subnormals(formula, element_type)
    yield from _rounding(formula, element_type)
    others = [other for other in _OTHERS if other is not element_type]
    for other in others:
        yield from _in_floats(element_type, other)
    if element_type in (FLOAT32, FLOAT64):
        yield from _prepared_for_bfloat16()
    for operand in ("A", "B"):
        yield _of_operand(
            operand, f"{operand} flushed", "has its subnormal numbers flushed to zero", _flush(element_type)
        )
        for other in others:
            yield from _of_one_operand(element_type, other, operand)


def _flush(element_type: ElementType) -> Change:
    return partial(flushed, element_type=element_type)


def _round_to(element_type: ElementType, mode: Mode = "nearest") -> Change:
    return partial(rounded, element_type=element_type, mode=mode)


def _clamp_to(element_type: ElementType) -> Change:
    largest = largest_finite(element_type)
    return partial(clamped, low=-largest, high=largest)


def _has_less(other: ElementType, element_type: ElementType) -> bool:
    """Whether a type has fewer digits than another, or a smaller largest number."""
    digits, of_type = FLOAT_LAYOUTS[other].mantissa_bits, FLOAT_LAYOUTS[element_type].mantissa_bits
    return digits < of_type or largest_finite(other) < largest_finite(element_type)


def _special_values(formula: str, element_type: ElementType) -> Iterator[Deviation]:
    compute = FORMULAS[formula]
    yield Deviation("sign of zero lost", "zero results are always +0", result=(_without_sign_of_zero,))
    yield Deviation("NaN becomes 0", "results that must be NaN are 0", result=(_nan_to(0.0),))
    yield Deviation("NaN becomes infinity", "results that must be NaN are infinity", result=(_nan_to(np.inf),))
    yield Deviation(
        "overflow clamped",
        f"finite operands never give infinity: results are clamped to the largest finite {element_type}",
        compute=formulas.finite_stays_finite(compute, element_type),
    )
    largest = (_round_to(element_type), _clamp_to(element_type))
    yield Deviation(
        "infinity clamped", f"infinity becomes the largest finite {element_type} in every result", result=largest
    )
    clamp = (_clamp_to(element_type),)
    yield Deviation("infinite operands clamped", "infinite operands become finite", a=clamp, b=clamp)
    if formula in ("subtract", "squared_difference"):
        equal = formulas.zero_for_equal if formula == "subtract" else formulas.squared(formulas.zero_for_equal)
        yield Deviation("zero for equal operands", "equal operands give 0, also infinities", compute=equal)


def _without_sign_of_zero(values: Values) -> Values:
    return values + 0.0


def _nan_to(number: float) -> Change:
    return lambda values: np.where(np.isnan(values), number, values)


def _subnormals(formula: str, element_type: ElementType) -> Iterator[Deviation]:
    flush = (_flush(element_type),)
    yield Deviation("subnormal results flushed", "subnormal results become zeros of their sign", result=flush)
    yield Deviation("subnormal operands flushed", "subnormal operands count as zeros of their sign", a=flush, b=flush)
    yield Deviation(
        "subnormals flushed",
        "subnormal operands count as zeros of their sign, subnormal results become such zeros",
        a=flush,
        b=flush,
        result=flush,
    )
    if formula not in ("multiply", "squared_difference"):
        return  # A small sum is exact.
    early = formulas.flushed_before_rounding(formula, element_type)
    small = "results below the smallest normal number become zeros of their sign, also what rounding would raise to it"
    yield Deviation("subnormal results flushed before rounding", small, compute=early, result=flush)
    yield Deviation(
        "subnormals flushed before rounding",
        f"subnormal operands count as zeros of their sign; {small}",
        a=flush,
        b=flush,
        compute=early,
        result=flush,
    )


def _rounding(formula: str, element_type: ElementType) -> Iterator[Deviation]:
    if element_type is FLOAT64:
        return
    if len(expression_of(formula).steps) > 1:
        yield Deviation("rounded once", f"the steps are not rounded to {element_type}, only the result is", keep=Keep())
    for mode, name in _MODES.items():
        yield Deviation(name, f"every step has {name} instead of to nearest even", keep=Keep(element_type, mode))
        yield Deviation(
            f"{name}, once", f"only the result is rounded, {name}", keep=Keep(), result=(_round_to(element_type, mode),)
        )
    for first in (BFLOAT16, FLOAT16, FLOAT32):
        if first is not element_type:
            yield Deviation(
                f"rounded twice, to {first} first",
                f"every step is rounded to {first} and from there to {element_type}",
                keep=Keep(element_type, first=first),
            )


def _in_floats(element_type: ElementType, other: ElementType) -> Iterator[Deviation]:
    """Computed in another float type, which may have fewer digits, more of them, or another range."""
    into, clamp = _round_to(other), _clamp_to(other)
    yield Deviation(
        f"{other} arithmetic",
        f"computed in {other}: operands and every step are rounded to it",
        a=(into,),
        b=(into,),
        keep=Keep(other),
    )
    if other is FLOAT32 and element_type is not FLOAT64:
        yield Deviation(
            f"{other} arithmetic, result truncated",
            f"computed in {other}, from which the result is cut, without rounding",
            keep=Keep(other),
            result=(_round_to(element_type, "toward zero"),),
        )
        yield Deviation(
            f"{other} arithmetic, even results truncated",
            f"computed in {other}; from there to {element_type} half the last digit is added before cutting, so that "
            "between an even number and the next one all results are cut instead of rounded",
            keep=Keep(other),
            result=(_round_to(element_type, "odd only"),),
        )
    if not _has_less(other, element_type):
        return
    yield Deviation(
        f"{other} arithmetic, operands clamped",
        f"computed in {other}: operands, infinities too, are clamped to its largest finite number; every step is "
        "rounded to it",
        a=(clamp, into),
        b=(clamp, into),
        keep=Keep(other),
    )
    yield Deviation(
        f"operands rounded to {other}", f"operands are rounded to {other} before the computation", a=(into,), b=(into,)
    )
    yield Deviation(
        f"operands clamped to {other}",
        f"operands are clamped to the largest finite number of {other}",
        a=(clamp,),
        b=(clamp,),
    )
    yield Deviation(f"result rounded to {other}", f"results are rounded to {other}", result=(into,))
    yield Deviation(
        f"result clamped to {other}", f"results are clamped to the largest finite number of {other}", result=(clamp,)
    )


def _prepared_for_bfloat16() -> Iterator[Deviation]:
    """What is done to constants that may be needed in bfloat16 later."""
    largest = largest_finite(BFLOAT16)
    clamp = partial(clamped, low=-largest, high=largest, infinities=False)
    changes: tuple[Change, ...] = (clamp, partial(flushed, element_type=FLOAT32, keep_sign=False))
    text = "finite values beyond the largest bfloat16 become that, subnormal float32 values become +0"
    yield Deviation("operands prepared for bfloat16", f"in both operands, {text}", a=changes, b=changes)
    yield Deviation("A prepared for bfloat16", f"in operand A, {text}", a=changes)
    yield Deviation("B prepared for bfloat16", f"in operand B, {text}", b=changes)
    negated = (_negative, *changes, _negative)
    yield Deviation("-B prepared for bfloat16", f"A + (-B) is computed, and in -B, {text}", b=negated)
    yield Deviation("result prepared for bfloat16", f"in the result, {text}", result=changes)


def _negative(values: Values) -> Values:
    return -values


def _of_one_operand(element_type: ElementType, other: ElementType, operand: str) -> Iterator[Deviation]:
    """Only one operand is converted, as happens to a constant."""
    if not _has_less(other, element_type):
        return
    yield _of_operand(operand, f"{operand} rounded to {other}", f"is rounded to {other}", _round_to(other))
    yield _of_operand(
        operand,
        f"{operand} clamped to {other}",
        f"is clamped to the largest finite number of {other}",
        _clamp_to(other),
    )
    yield _of_operand(
        operand,
        f"{operand} flushed in {other}",
        f"loses what is subnormal in {other}",
        partial(flushed, element_type=other),
    )


def _of_operand(operand: str, name: str, text: str, change: Change) -> Deviation:
    changes = (change,)
    return Deviation(
        name, f"operand {operand} {text}", a=changes if operand == "A" else (), b=changes if operand == "B" else ()
    )
