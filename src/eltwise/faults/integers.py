"""The faults of integer types: saturation, lost bits, and another integer or float type."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from eltwise.core.dtypes import FLOAT16, FLOAT32, FLOAT64, INT8, INT16, INT32, TYPES, UINT16, ElementType
from eltwise.faults.record import Fault, Operation
from eltwise.faults.values import Beyond, Change, StepPolicy, Values, as_floats, as_integers, clamped, wrapped

_BEYOND: dict[Beyond, tuple[str, str]] = {
    "saturate": ("saturated", "saturate at the limits of"),
    "wrap": ("wrapped", "wrap to"),
}
"""What becomes of results beyond an integer type: as the end of a slug, and as a verb."""


def of_integers(operation: Operation) -> Iterator[Fault]:
    """The faults of the integer type of an operation."""
    element_type, limits = operation.element_type, _limit(operation.element_type)
    text = f"results saturate at the limits of {element_type}"
    yield Fault("saturation", "saturation", text, after=(limits,))
    text, steps = f"every step saturates at the limits of {element_type}", StepPolicy(element_type, clamps=True)
    yield Fault("saturation_at_every_step", "saturation", text, steps=steps)
    if element_type.bits <= 8:  # By instructions that take saturated words for signed ones.
        text = f"results saturate at the limits of uint16, are taken for int16, and saturate at those of {element_type}"
        after = (_limit(UINT16), partial(wrapped, element_type=INT16), limits)
        yield Fault("saturation_through_uint16_and_int16", "saturation", text, after=after)
    if element_type.bits == 64:
        yield from _compared_by_halves(operation)
    of_other_sign = [
        other
        for other in TYPES
        if other.is_integer and other.bits == element_type.bits and other.kind != element_type.kind and other.runs
    ]
    others = [other for other in (INT32, INT8, *of_other_sign) if other is not element_type]
    for other in others:
        yield from _in_other_integers(element_type, other)
    for floats in (FLOAT32, FLOAT64, FLOAT16):
        yield from _in_floats(operation, floats)
    for other in others:
        if not other.holds(element_type):
            yield from _of_one_operand(operation, other)


_ORDERING = ("maximum", "minimum", "less", "less_equal", "greater", "greater_equal", "sign")


def _compared_by_halves(operation: Operation) -> Iterator[Fault]:
    """Another order of numbers, as instructions give it that compare halves."""
    if operation.function not in _ORDERING:
        return
    text = "numbers whose upper 32 bits are equal are compared by their lower 32 bits as signed numbers"

    def exchanged(values: Values) -> Values:
        """Numbers that are ordered so; of them again the numbers."""
        changed: Values = values ^ (1 << 31)
        return changed

    def compared_with_zero(steps: StepPolicy, a: Values) -> Values:
        return steps.apply("sign", exchanged(a) - (1 << 31))

    slug, family = "low_halves_compared_as_signed", "signedness"
    if operation.function == "sign":
        yield Fault(slug, family, text, compute=compared_with_zero)
    elif operation.result_type is operation.element_type:
        yield Fault(slug, family, text, before=((None, exchanged),), after=(exchanged,))
    else:
        yield Fault(slug, family, text, before=((None, exchanged),))


def _limit(element_type: ElementType) -> Change:
    low, high = element_type.limits
    return partial(clamped, low=low, high=high)


def _in_other_integers(element_type: ElementType, other: ElementType) -> Iterator[Fault]:
    """Computed in another integer type, which may be narrower, wider, or as wide but with the other sign."""
    if other.holds(element_type):
        text = f"computed in {other}, saturating at its limits; the low {element_type.bits} bits are the result"
        yield Fault(f"saturation_in_{other}", "saturation", text, steps=StepPolicy(other, clamps=True))
        return
    slug = family = f"{other}_arithmetic"
    wrap, limits, steps = partial(wrapped, element_type=other), _limit(other), StepPolicy(other)
    text = f"computed in {other}: operands lose what does not fit, results wrap there"
    yield Fault(slug, family, text, before=((None, wrap),), steps=steps)
    text = f"computed in {other}: operands are clamped to its limits, results wrap there"
    yield Fault(f"{slug}_clamped_operands", family, text, before=((None, limits),), steps=steps)
    text, after = f"results are clamped to the limits of {other}", (partial(wrapped, element_type=element_type), limits)
    yield Fault(f"result_clamped_to_{other}", family, text, after=after)


def _in_floats(operation: Operation, floats: ElementType) -> Iterator[Fault]:
    """Computed in a float type and converted back in each of the ways that there are."""
    slug = family = f"{floats}_arithmetic"
    before, steps = ((None, partial(as_floats, element_type=floats)),), StepPolicy(floats)
    text = f"computed in {floats}: operands are rounded to it"
    if operation.result_type is not operation.element_type:
        yield Fault(slug, family, text, before=before, steps=steps)
        return
    for beyond, (suffix, verb) in _BEYOND.items():
        text = f"computed in {floats}: operands and every step are rounded to it; results {verb} "
        text += f"{operation.element_type}"
        after = (partial(as_integers, element_type=operation.element_type, beyond=beyond),)
        yield Fault(f"{slug}_{suffix}", family, text, before=before, steps=steps, after=after)
    if floats is FLOAT32 and operation.element_type.bits >= 32:
        text = (
            f"computed in {floats}: operands and every step are rounded to it; results beyond int32 become its least "
        )
        text += "value, as x86 converts them"
        after = (partial(as_integers, element_type=INT32, beyond="indefinite"),)
        yield Fault(f"{slug}_indefinite", family, text, before=before, steps=steps, after=after)


def _of_one_operand(operation: Operation, other: ElementType) -> Iterator[Fault]:
    """Only one operand is converted, as happens to a constant."""
    limits, wrap, family = _limit(other), partial(wrapped, element_type=other), f"{other}_arithmetic"
    for index, name in enumerate("AB" if operation.expression.operands > 1 else ""):
        text = f"operand {name} is clamped to the limits of {other}"
        yield Fault(f"{name.lower()}_clamped_to_{other}", family, text, before=((index, limits),))
        text = f"operand {name} loses what does not fit into {other}"
        yield Fault(f"{name.lower()}_wrapped_to_{other}", family, text, before=((index, wrap),))
    if operation.function == "subtract":
        text = f"A + (-B) is computed, and -B is clamped to the limits of {other}"
        negated: Change = lambda values: -limits(wrapped(-values, operation.element_type))  # noqa: E731
        yield Fault(f"minus_b_clamped_to_{other}", family, text, before=((1, negated),))
