"""The faults of float types: lost digits, zeros and NaN, and another float type."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from eltwise.core.dtypes import BFLOAT16, FLOAT16, FLOAT32, FLOAT64, ElementType
from eltwise.faults.record import Fault, Operation
from eltwise.faults.values import Change, StepPolicy, Values, clamped, flushed, largest_finite, rounded
from eltwise.oracle.numbers import FLOAT_LAYOUTS


def of_floats(operation: Operation) -> Iterator[Fault]:
    """The faults of the float type of an operation."""
    element_type = operation.element_type
    text, positive = "zero results are always +0", (lambda values: values + 0.0,)
    yield Fault(slug="sign_of_zero_lost", text=text, family="zero_sign", after=positive)
    text, without_nan = "results that must be NaN are 0", (lambda values: np.where(np.isnan(values), 0.0, values),)
    yield Fault(slug="nan_becomes_zero", text=text, family="nan_handling", after=without_nan)
    text = f"infinity becomes the largest finite {element_type} in every result"
    after = (partial(rounded, element_type=element_type), _clamp(element_type))
    yield Fault(slug="infinity_clamped", text=text, family="saturation", after=after)
    yield from _flushed(element_type)
    if element_type is not FLOAT64:
        if len(operation.expression.steps) > 1:
            text = f"the steps are not rounded to {element_type}, only the result is"
            yield Fault(slug="rounded_once", text=text, family="fused_rounding", steps=StepPolicy())
        text = "every step is rounded toward zero instead of to nearest even"
        steps = StepPolicy(element_type, "toward zero")
        yield Fault(slug="rounded_toward_zero", text=text, family="last_bit", steps=steps)
    others = [other for other in (FLOAT32, FLOAT16, BFLOAT16, FLOAT64) if other is not element_type]
    for other in others:
        yield from _in_other_floats(element_type, other)
    if element_type in (FLOAT32, FLOAT64):
        yield from _prepared_for_bfloat16(operation)
    flush: Change = partial(flushed, element_type=element_type)
    for index, name in enumerate("AB"):
        slug, text = f"{name.lower()}_flushed", f"operand {name} has its subnormal numbers flushed to zero"
        yield Fault(slug=slug, text=text, family="subnormals_flushed", before=((index, flush),))
        for other in others:
            if _has_less(other, element_type):
                yield _clamped_operand(index, name, other)


def _flushed(element_type: ElementType) -> Iterator[Fault]:
    """Subnormal numbers that become zeros: results, operands, or both."""
    flush, family = partial(flushed, element_type=element_type), "subnormals_flushed"
    results = "subnormal results become zeros of their sign"
    operands = "subnormal operands count as zeros of their sign"
    yield Fault(slug="subnormal_results_flushed", text=results, family=family, after=(flush,))
    yield Fault(slug="subnormal_operands_flushed", text=operands, family=family, before=((None, flush),))
    text = f"{operands}; {results}"
    yield Fault(slug="subnormals_flushed", text=text, family=family, before=((None, flush),), after=(flush,))


def _clamped_operand(index: int, name: str, other: ElementType) -> Fault:
    family = "prepared_for_bfloat16" if other is BFLOAT16 else f"{other}_arithmetic"
    slug = f"{name.lower()}_clamped_to_{other}"
    text = f"operand {name} is clamped to the largest finite number of {other}"
    return Fault(slug=slug, text=text, family=family, before=((index, _clamp(other)),))


def _clamp(element_type: ElementType) -> Change:
    largest = largest_finite(element_type)
    return partial(clamped, low=-largest, high=largest)


def _has_less(other: ElementType, element_type: ElementType) -> bool:
    """Whether a type has fewer digits than another, or a smaller largest number."""
    digits, of_type = FLOAT_LAYOUTS[other].mantissa_bits, FLOAT_LAYOUTS[element_type].mantissa_bits
    return digits < of_type or largest_finite(other) < largest_finite(element_type)


def _in_other_floats(element_type: ElementType, other: ElementType) -> Iterator[Fault]:
    """Computed in another float type, which may have fewer digits, more of them, or another range."""
    into, clamp, has_less = partial(rounded, element_type=other), _clamp(other), _has_less(other, element_type)
    slug = family = f"{other}_arithmetic"
    text = f"computed in {other}: operands and every step are rounded to it"
    yield Fault(slug=slug, text=text, family=family, before=((None, into),), steps=StepPolicy(other))
    if other is FLOAT32 and element_type is not FLOAT64:
        yield Fault(
            slug=f"{slug}_even_truncated",
            text=f"computed in {other}; from there to {element_type} half the last digit is added before cutting, so "
            "that between an even number and the next one all results are cut instead of rounded",
            family=family,
            steps=StepPolicy(other),
            after=(partial(rounded, element_type=element_type, mode="odd only"),),
        )
    if has_less:
        yield Fault(
            slug=f"{slug}_clamped_operands",
            text=f"computed in {other}: operands, infinities too, are clamped to its largest finite number; every step "
            "is rounded to it",
            family=family,
            before=((None, clamp), (None, into)),
            steps=StepPolicy(other),
        )
        text = f"results are rounded to {other}"
        yield Fault(slug=f"result_rounded_to_{other}", text=text, family=family, after=(into,))
        text = f"results are clamped to the largest finite number of {other}"
        yield Fault(slug=f"result_clamped_to_{other}", text=text, family=family, after=(clamp,))


def _prepared_for_bfloat16(operation: Operation) -> Iterator[Fault]:
    """What is done to constants that may be needed in bfloat16 later."""
    family, suffix = "prepared_for_bfloat16", "prepared_for_bfloat16"
    text = "finite values beyond the largest bfloat16 become that, subnormal float32 values become +0"
    for index, name in enumerate("AB"):
        slug, clause = f"{name.lower()}_{suffix}", f"in operand {name}, {text}"
        yield Fault(slug=slug, text=clause, family=family, before=((index, _prepared),))
    if operation.function == "subtract":
        clause = f"A + (-B) is computed, and in -B, {text}"
        before = ((1, lambda values: -_prepared(-values)),)
        yield Fault(slug=f"minus_b_{suffix}", text=clause, family=family, before=before)
    yield Fault(slug=f"result_{suffix}", text=f"in the result, {text}", family=family, after=(_prepared,))


def _prepared(values: Values) -> Values:
    largest = largest_finite(BFLOAT16)
    return flushed(clamped(values, -largest, largest, infinities=False), FLOAT32, keep_sign=False)
