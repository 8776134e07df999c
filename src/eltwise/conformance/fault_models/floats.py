"""Faults of float types: other digits, other rounding, and special values that are lost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from eltwise.conformance.fault_models.expressions import flushed_before_rounding
from eltwise.conformance.fault_models.model import FaultModel, Operation
from eltwise.conformance.fault_models.steps import Keep
from eltwise.conformance.fault_models.values import Change, Mode, Values, clamped, flushed, largest_finite, rounded
from eltwise.core.dtypes import BFLOAT16, FLOAT16, FLOAT32, FLOAT64, ElementType
from eltwise.oracle.numbers import FLOAT_LAYOUTS

_OTHERS = (FLOAT32, FLOAT16, BFLOAT16, FLOAT64)
_MODES: dict[Mode, str] = {
    "toward zero": "rounding toward zero",
    "half away": "rounding ties away from zero",
}


def float_faults(operation: Operation) -> Iterator[FaultModel]:
    """The faults of a float type, simplest first."""
    element_type = operation.element_type
    yield from _special_values(operation)
    yield from _subnormals(operation)
    yield from _rounding(operation)
    others = [other for other in _OTHERS if other is not element_type]
    for other in others:
        yield from _in_floats(element_type, other)
    if element_type in (FLOAT32, FLOAT64):
        yield from _prepared_for_bfloat16(operation)
    for index in range(min(operation.expression.operands, 2)):
        name = "AB"[index]
        text = f"operand {name} has its subnormal numbers flushed to zero"
        yield FaultModel(f"{name} flushed", text, before=((index, _flush(element_type)),))
        for other in others:
            yield from _of_one_operand(element_type, other, index)


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


def _special_values(operation: Operation) -> Iterator[FaultModel]:
    element_type = operation.element_type
    clamp = _clamp_to(element_type)

    def finite_stays_finite(operands: Sequence[Values], keep: Keep) -> Values:
        result = operation.compute(operands, keep)
        overflown = np.isinf(result) & np.logical_and.reduce([np.isfinite(operand) for operand in operands])
        return np.where(overflown, np.copysign(largest_finite(element_type), result), result)

    yield FaultModel("sign of zero lost", "zero results are always +0", after=(_without_sign_of_zero,))
    yield FaultModel("NaN becomes 0", "results that must be NaN are 0", after=(partial(_nan_to, number=0.0),))
    yield FaultModel("NaN becomes infinity", "results that must be NaN are infinity", after=(_nan_to,))
    if operation.result_type is element_type:
        text = f"finite operands never give infinity: results are clamped to the largest finite {element_type}"
        yield FaultModel("overflow clamped", text, compute=finite_stays_finite)
    yield FaultModel(
        "infinity clamped",
        f"infinity becomes the largest finite {element_type} in every result",
        after=(_round_to(element_type), clamp),
    )
    yield FaultModel("infinite operands clamped", "infinite operands become finite", before=((None, clamp),))


def _without_sign_of_zero(values: Values) -> Values:
    return values + 0.0


def _nan_to(values: Values, number: float = np.inf) -> Values:
    return np.where(np.isnan(values), number, values)


def _subnormals(operation: Operation) -> Iterator[FaultModel]:
    flush = _flush(operation.element_type)
    operands = "subnormal operands count as zeros of their sign"
    yield FaultModel("subnormal results flushed", "subnormal results become zeros of their sign", after=(flush,))
    yield FaultModel("subnormal operands flushed", operands, before=((None, flush),))
    yield FaultModel(
        "subnormals flushed",
        f"{operands}, subnormal results become such zeros",
        before=((None, flush),),
        after=(flush,),
    )
    early = flushed_before_rounding(operation)
    if early is None:
        return
    small = "results below the smallest normal number become zeros of their sign, also what rounding would raise to it"
    yield FaultModel("subnormal results flushed before rounding", small, compute=early, after=(flush,))
    yield FaultModel(
        "subnormals flushed before rounding",
        f"{operands}; {small}",
        before=((None, flush),),
        compute=early,
        after=(flush,),
    )


def _rounding(operation: Operation) -> Iterator[FaultModel]:
    element_type = operation.element_type
    if element_type is FLOAT64:
        return
    if len(operation.expression.steps) > 1:
        text = f"the steps are not rounded to {element_type}, only the result is"
        yield FaultModel("rounded once", text, keep=Keep())
    for mode, name in _MODES.items():
        text = f"every step has {name} instead of to nearest even"
        yield FaultModel(name, text, keep=Keep(element_type, mode))
    for first in (BFLOAT16, FLOAT16, FLOAT32):
        if first is not element_type:
            text = f"every step is rounded to {first} and from there to {element_type}"
            yield FaultModel(f"rounded twice, to {first} first", text, keep=Keep(element_type, first=first))


def _in_floats(element_type: ElementType, other: ElementType) -> Iterator[FaultModel]:
    """Computed in another float type, which may have fewer digits, more of them, or another range."""
    into, clamp = _round_to(other), _clamp_to(other)
    yield FaultModel(
        f"{other} arithmetic",
        f"computed in {other}: operands and every step are rounded to it",
        before=((None, into),),
        keep=Keep(other),
    )
    if other is FLOAT32 and element_type is not FLOAT64:
        yield FaultModel(
            f"{other} arithmetic, even results truncated",
            f"computed in {other}; from there to {element_type} half the last digit is added before cutting, so that "
            "between an even number and the next one all results are cut instead of rounded",
            keep=Keep(other),
            after=(_round_to(element_type, "odd only"),),
        )
    if not _has_less(other, element_type):
        return
    yield FaultModel(
        f"{other} arithmetic, operands clamped",
        f"computed in {other}: operands, infinities too, are clamped to its largest finite number; every step is "
        "rounded to it",
        before=((None, clamp), (None, into)),
        keep=Keep(other),
    )
    yield FaultModel(
        f"operands rounded to {other}",
        f"operands are rounded to {other} before the computation",
        before=((None, into),),
    )
    yield FaultModel(f"result rounded to {other}", f"results are rounded to {other}", after=(into,))
    yield FaultModel(
        f"result clamped to {other}", f"results are clamped to the largest finite number of {other}", after=(clamp,)
    )


def _prepared_for_bfloat16(operation: Operation) -> Iterator[FaultModel]:
    """What is done to constants that may be needed in bfloat16 later."""
    text = "finite values beyond the largest bfloat16 become that, subnormal float32 values become +0"
    for index, name in enumerate("AB"):
        yield FaultModel(f"{name} prepared for bfloat16", f"in operand {name}, {text}", before=((index, _prepared),))
    if operation.function == "subtract":
        negated = lambda values: -_prepared(-values)  # noqa: E731
        yield FaultModel("-B prepared for bfloat16", f"A + (-B) is computed, and in -B, {text}", before=((1, negated),))
    yield FaultModel("result prepared for bfloat16", f"in the result, {text}", after=(_prepared,))


def _prepared(values: Values) -> Values:
    largest = largest_finite(BFLOAT16)
    return flushed(clamped(values, -largest, largest, infinities=False), FLOAT32, keep_sign=False)


def _of_one_operand(element_type: ElementType, other: ElementType, index: int) -> Iterator[FaultModel]:
    """Only one operand is converted, as happens to a constant."""
    if not _has_less(other, element_type):
        return
    name, into = "AB"[index], _round_to(other)
    yield FaultModel(f"{name} rounded to {other}", f"operand {name} is rounded to {other}", before=((index, into),))
    yield FaultModel(
        f"{name} clamped to {other}",
        f"operand {name} is clamped to the largest finite number of {other}",
        before=((index, _clamp_to(other)),),
    )
