"""The fault models of element types: floats that lose digits, zeros or NaN, integers that saturate or lose bits."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import get_args

import numpy as np

from eltwise.conformance.arithmetic import (
    Beyond,
    Change,
    Keep,
    Values,
    as_floats,
    as_integers,
    clamped,
    flushed,
    largest_finite,
    rounded,
    wrapped,
)
from eltwise.conformance.fault_model import FaultModel, Operation
from eltwise.core.dtypes import BFLOAT16, FLOAT16, FLOAT32, FLOAT64, INT8, INT16, INT32, TYPES, UINT16, ElementType
from eltwise.oracle.numbers import FLOAT_LAYOUTS


def of_floats(operation: Operation) -> Iterator[FaultModel]:
    """The fault models of a float type."""
    element_type = operation.element_type
    flush: Change = partial(flushed, element_type=element_type)
    largest = largest_finite(element_type)
    yield FaultModel("sign of zero lost", "zero results are always +0", after=(lambda values: values + 0.0,))
    text = "results that must be NaN are 0"
    yield FaultModel("NaN becomes 0", text, after=(lambda values: np.where(np.isnan(values), 0.0, values),))
    text = f"infinity becomes the largest finite {element_type} in every result"
    yield FaultModel("infinity clamped", text, after=(partial(rounded, element_type=element_type), _clamp(largest)))
    operands, results = (
        "subnormal operands count as zeros of their sign",
        "subnormal results become zeros of their sign",
    )
    yield FaultModel("subnormal results flushed", results, after=(flush,))
    yield FaultModel("subnormal operands flushed", operands, before=((None, flush),))
    yield FaultModel("subnormals flushed", f"{operands}; {results}", before=((None, flush),), after=(flush,))
    if element_type is not FLOAT64:
        if len(operation.expression.steps) > 1:
            text = f"the steps are not rounded to {element_type}, only the result is"
            yield FaultModel("rounded once", text, keep=Keep())
        text = "every step is rounded toward zero instead of to nearest even"
        yield FaultModel("rounding toward zero", text, keep=Keep(element_type, "toward zero"))
    others = [other for other in (FLOAT32, FLOAT16, BFLOAT16, FLOAT64) if other is not element_type]
    for other in others:
        yield from _in_other_floats(element_type, other)
    if element_type in (FLOAT32, FLOAT64):
        yield from _prepared_for_bfloat16(operation)
    for index, name in enumerate("AB"):
        text = f"operand {name} has its subnormal numbers flushed to zero"
        yield FaultModel(f"{name} flushed", text, before=((index, flush),))
        for other in others:
            if _has_less(other, element_type):
                clamp = _clamp(largest_finite(other))
                text = f"operand {name} is clamped to the largest finite number of {other}"
                yield FaultModel(f"{name} clamped to {other}", text, before=((index, clamp),))


def _clamp(largest: float) -> Change:
    return partial(clamped, low=-largest, high=largest)


def _has_less(other: ElementType, element_type: ElementType) -> bool:
    """Whether a type has fewer digits than another, or a smaller largest number."""
    digits, of_type = FLOAT_LAYOUTS[other].mantissa_bits, FLOAT_LAYOUTS[element_type].mantissa_bits
    return digits < of_type or largest_finite(other) < largest_finite(element_type)


def _in_other_floats(element_type: ElementType, other: ElementType) -> Iterator[FaultModel]:
    """Computed in another float type, which may have fewer digits, more of them, or another range."""
    into, clamp = partial(rounded, element_type=other), _clamp(largest_finite(other))
    text = f"computed in {other}: operands and every step are rounded to it"
    yield FaultModel(f"{other} arithmetic", text, before=((None, into),), keep=Keep(other))
    if other is FLOAT32 and element_type is not FLOAT64:
        yield FaultModel(
            f"{other} arithmetic, even results truncated",
            f"computed in {other}; from there to {element_type} half the last digit is added before cutting, so that "
            "between an even number and the next one all results are cut instead of rounded",
            keep=Keep(other),
            after=(partial(rounded, element_type=element_type, mode="odd only"),),
        )
    if _has_less(other, element_type):
        yield FaultModel(
            f"{other} arithmetic, operands clamped",
            f"computed in {other}: operands, infinities too, are clamped to its largest finite number; every step is "
            "rounded to it",
            before=((None, clamp), (None, into)),
            keep=Keep(other),
        )
        yield FaultModel(f"result rounded to {other}", f"results are rounded to {other}", after=(into,))
        text = f"results are clamped to the largest finite number of {other}"
        yield FaultModel(f"result clamped to {other}", text, after=(clamp,))


def _prepared_for_bfloat16(operation: Operation) -> Iterator[FaultModel]:
    """What is done to constants that may be needed in bfloat16 later."""
    text = "finite values beyond the largest bfloat16 become that, subnormal float32 values become +0"
    for index, name in enumerate("AB"):
        yield FaultModel(f"{name} prepared for bfloat16", f"in operand {name}, {text}", before=((index, _prepared),))
    if operation.function == "subtract":
        clause = f"A + (-B) is computed, and in -B, {text}"
        yield FaultModel("-B prepared for bfloat16", clause, before=((1, lambda values: -_prepared(-values)),))
    yield FaultModel("result prepared for bfloat16", f"in the result, {text}", after=(_prepared,))


def _prepared(values: Values) -> Values:
    largest = largest_finite(BFLOAT16)
    return flushed(clamped(values, -largest, largest, infinities=False), FLOAT32, keep_sign=False)


def of_integers(operation: Operation) -> Iterator[FaultModel]:
    """The fault models of an integer type."""
    element_type = operation.element_type
    limits = _limit(element_type)
    yield FaultModel("saturation", f"results saturate at the limits of {element_type}", after=(limits,))
    text = f"every step saturates at the limits of {element_type}"
    yield FaultModel("saturation at every step", text, keep=Keep(element_type, clamps=True))
    if element_type.bits <= 8:
        yield FaultModel(
            "saturation through uint16 and int16",  # By instructions that take saturated words for signed ones.
            f"results saturate at the limits of uint16, are taken for int16, and saturate at those of {element_type}",
            after=(_limit(UINT16), partial(wrapped, element_type=INT16), limits),
        )
    of_other_sign = [
        other
        for other in TYPES
        if other.is_integer and other.bits == element_type.bits and other.kind != element_type.kind and other.runs
    ]
    others = [other for other in (INT32, INT8, *of_other_sign) if other is not element_type]
    for other in others:
        yield from _in_other_integers(element_type, other)
    for floats in (FLOAT32, FLOAT64, FLOAT16):
        yield from _integers_in_floats(operation, floats)
    for other in others:
        if not _holds(other, element_type):
            yield from _of_one_operand(operation, other)


def _limit(element_type: ElementType) -> Change:
    low, high = element_type.limits
    return partial(clamped, low=low, high=high)


def _holds(other: ElementType, element_type: ElementType) -> bool:
    """Whether a type has every value of another one."""
    return other.limits[0] <= element_type.limits[0] and element_type.limits[1] <= other.limits[1]


def _in_other_integers(element_type: ElementType, other: ElementType) -> Iterator[FaultModel]:
    """Computed in another integer type, which may be narrower, wider, or as wide but with the other sign."""
    if _holds(other, element_type):
        text = f"computed in {other}, saturating at its limits; the low {element_type.bits} bits are the result"
        yield FaultModel(f"saturation in {other}", text, keep=Keep(other, clamps=True))
        return
    name, text, keep = f"{other} arithmetic", f"computed in {other}: operands", Keep(other)
    wrap = partial(wrapped, element_type=other)
    yield FaultModel(name, f"{text} lose what does not fit, results wrap there", before=((None, wrap),), keep=keep)
    text = f"{text} are clamped to its limits, results wrap there"
    yield FaultModel(f"{name}, operands clamped", text, before=((None, _limit(other)),), keep=keep)
    text = f"results are clamped to the limits of {other}"
    after = (partial(wrapped, element_type=element_type), _limit(other))
    yield FaultModel(f"result clamped to {other}", text, after=after)


_IN_WORDS: dict[Beyond, str] = {
    "saturate": "saturate at the limits of",
    "wrap": "wrap to",
}


def _integers_in_floats(operation: Operation, floats: ElementType) -> Iterator[FaultModel]:
    """Computed in a float type and converted back in each of the ways that there are."""
    into, name, text = (
        partial(as_floats, element_type=floats),
        f"{floats} arithmetic",
        f"computed in {floats}: operands",
    )
    if operation.result_type is not operation.element_type:
        yield FaultModel(name, f"{text} are rounded to it", before=((None, into),), keep=Keep(floats))
        return
    for beyond in get_args(Beyond):
        yield FaultModel(
            f"{name}, {beyond}",
            f"{text} and every step are rounded to it; results {_IN_WORDS[beyond]} {operation.element_type}",
            before=((None, into),),
            keep=Keep(floats),
            after=(partial(as_integers, element_type=operation.element_type, beyond=beyond),),
        )


def _of_one_operand(operation: Operation, other: ElementType) -> Iterator[FaultModel]:
    """Only one operand is converted, as happens to a constant."""
    limits, wrap = _limit(other), partial(wrapped, element_type=other)
    for index, name in enumerate("AB" if operation.expression.operands > 1 else ""):
        text = f"operand {name} is clamped to the limits of {other}"
        yield FaultModel(f"{name} clamped to {other}", text, before=((index, limits),))
        text = f"operand {name} loses what does not fit into {other}"
        yield FaultModel(f"{name} wrapped to {other}", text, before=((index, wrap),))
    if operation.function == "subtract":
        text = f"A + (-B) is computed, and -B is clamped to the limits of {other}"
        negated: Change = lambda values: -limits(wrapped(-values, operation.element_type))  # noqa: E731
        yield FaultModel(f"-B clamped to {other}", text, before=((1, negated),))
