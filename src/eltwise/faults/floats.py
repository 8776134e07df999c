"""The faults of float types: lost digits, zeros and NaN, and another float type."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from eltwise.core.dtypes import BFLOAT16, FLOAT16, FLOAT32, FLOAT64, ElementType
from eltwise.faults.record import Fault, Operation
from eltwise.faults.values import (
    Change,
    StepPolicy,
    Values,
    clamped,
    flushed,
    rounded,
)


def of_floats(operation: Operation) -> Iterator[Fault]:
    """The faults of the float type of an operation."""
    element_type = operation.element_type
    flush: Change = partial(flushed, least=element_type.least_normal)
    bounded = (partial(rounded, element_type=element_type), _clamp(element_type))
    yield Fault("sign_of_zero_lost", "zero_sign", "zero results are always +0", after=(lambda values: values + 0.0,))
    text = "results that must be NaN are 0"
    yield Fault("nan_becomes_zero", "nan_handling", text, after=(lambda x: np.where(np.isnan(x), 0.0, x),))
    text, lowest = f"results that must be NaN are the lowest finite {element_type}", -element_type.largest_finite
    yield Fault("nan_becomes_lowest", "nan_handling", text, after=(lambda x: np.where(np.isnan(x), lowest, x),))
    text = f"infinity becomes the largest finite {element_type} in every result"
    yield Fault("infinity_clamped", "saturation", text, after=bounded)
    results, operands = subnormal_results_flushed(element_type), "subnormal operands count as zeros of their sign"
    yield results
    yield Fault("subnormal_operands_flushed", "subnormals_flushed", operands, before=((None, flush),))
    text = f"{operands}; {results.text}"
    yield Fault("subnormals_flushed", "subnormals_flushed", text, before=((None, flush),), after=results.after)
    if element_type is not FLOAT64:
        if len(operation.expression.steps) > 1:
            text = f"the steps are not rounded to {element_type}, only the result is"
            yield Fault("rounded_once", "fused_rounding", text, steps=StepPolicy())
        text = "every step is rounded toward zero instead of to nearest even"
        yield Fault("rounded_toward_zero", "last_bit", text, steps=StepPolicy(element_type, "toward zero"))
    others = [other for other in (FLOAT32, FLOAT16, BFLOAT16, FLOAT64) if other is not element_type]
    for other in others:
        yield from _in_other_floats(element_type, other)
    if element_type in (FLOAT32, FLOAT64):
        yield from _prepared_for_bfloat16(operation)
    for index, name in enumerate("AB"):
        text = f"operand {name} has its subnormal numbers flushed to zero"
        yield Fault(f"{name.lower()}_flushed", "subnormals_flushed", text, before=((index, flush),))
        for other in others:
            if not other.holds(element_type):
                family = "prepared_for_bfloat16" if other is BFLOAT16 else f"{other}_arithmetic"
                text = f"operand {name} is clamped to the largest finite number of {other}"
                yield Fault(f"{name.lower()}_clamped_to_{other}", family, text, before=((index, _clamp(other)),))


def subnormal_results_flushed(element_type: ElementType) -> Fault:
    """The fault of results that are smaller than the least normal number of a type."""
    flush: Change = partial(flushed, least=element_type.least_normal)
    text = "subnormal results become zeros of their sign"
    return Fault("subnormal_results_flushed", "subnormals_flushed", text, after=(flush,))


def _clamp(element_type: ElementType) -> Change:
    largest = element_type.largest_finite
    return partial(clamped, low=-largest, high=largest)


def _in_other_floats(element_type: ElementType, other: ElementType) -> Iterator[Fault]:
    """Computed in another float type, which may have fewer digits, more of them, or another range."""
    into, clamp, steps = partial(rounded, element_type=other), _clamp(other), StepPolicy(other)
    slug = family = f"{other}_arithmetic"
    text = f"computed in {other}: operands and every step are rounded to it"
    yield Fault(slug, family, text, before=((None, into),), steps=steps)
    if other is FLOAT32 and element_type is not FLOAT64:
        text = f"computed in {other}; from there to {element_type} half the last digit is added before cutting, so that"
        text += " between an even number and the next one all results are cut instead of rounded"
        cut: Change = partial(rounded, element_type=element_type, mode="odd only")
        yield Fault(f"{slug}_even_truncated", family, text, steps=steps, after=(cut,))
    if not other.holds(element_type):
        text = f"computed in {other}: operands, infinities too, are clamped to its largest finite number; every step is"
        text += " rounded to it"
        before = ((None, clamp), (None, into))
        yield Fault(f"{slug}_clamped_operands", family, text, before=before, steps=steps)
        yield Fault(f"result_rounded_to_{other}", family, f"results are rounded to {other}", after=(into,))
        text = f"results are clamped to the largest finite number of {other}"
        yield Fault(f"result_clamped_to_{other}", family, text, after=(clamp,))


def _prepared_for_bfloat16(operation: Operation) -> Iterator[Fault]:
    """What is done to constants that may be needed in bfloat16 later."""
    family = "prepared_for_bfloat16"
    text = "finite values beyond the largest bfloat16 become that, subnormal float32 values become +0"
    for index, name in enumerate("AB"):
        yield Fault(f"{name.lower()}_{family}", family, f"in operand {name}, {text}", before=((index, _prepared),))
    if operation.function == "subtract":
        before = ((1, lambda values: -_prepared(-values)),)
        yield Fault(f"minus_b_{family}", family, f"A + (-B) is computed, and in -B, {text}", before=before)
    yield Fault(f"result_{family}", family, f"in the result, {text}", after=(_prepared,))


def _prepared(values: Values) -> Values:
    largest = BFLOAT16.largest_finite
    return flushed(clamped(values, -largest, largest, infinities=False), FLOAT32.least_normal, keeps_sign=False)
