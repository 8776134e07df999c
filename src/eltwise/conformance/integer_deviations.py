"""The deviations of integer types: other limits, other widths, other signs, and floats on the way."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import get_args

import numpy as np

from eltwise.conformance import formulas
from eltwise.conformance.arithmetic import Deviation
from eltwise.conformance.number_arrays import Beyond, Change, Values, as_floats, as_integers, clamped, wrapped
from eltwise.conformance.steps import Keep
from eltwise.core.dtypes import (
    BFLOAT16,
    FLOAT16,
    FLOAT32,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    UINT8,
    UINT16,
    UINT32,
    UINT64,
    ElementType,
)

_INTEGERS = (INT32, UINT32, INT8, UINT8, INT16, UINT16, INT64, UINT64)
_FLOATS = (FLOAT32, FLOAT64, FLOAT16, BFLOAT16)


def integer_deviations(formula: str, element_type: ElementType) -> Iterator[Deviation]:
    """The deviations of an integer type, simplest first."""
    yield from _saturating(formula, element_type)
    yield from _through_16_bits(element_type)
    others = [other for other in _INTEGERS if other is not element_type and other.bits <= max(32, element_type.bits)]
    for other in others:
        yield from _in_integers(element_type, other)
    for floats in _FLOATS:
        yield from _in_floats(element_type, floats)
    for other in others:
        yield from _of_one_operand(element_type, other)


def _to_limits(element_type: ElementType) -> Change:
    low, high = element_type.limits
    return partial(clamped, low=low, high=high)


def _to_width(element_type: ElementType) -> Change:
    return partial(wrapped, element_type=element_type)


def _not_negative(values: Values) -> Values:
    return np.maximum(values, 0)


def _saturating(formula: str, element_type: ElementType) -> Iterator[Deviation]:
    limits = _to_limits(element_type)
    saturating = Keep(element_type, overflow="clamp")
    yield Deviation("saturation", f"results saturate at the limits of {element_type}", result=(limits,))
    yield Deviation(
        "saturation at every step", f"every step saturates at the limits of {element_type}", keep=saturating
    )
    if element_type.kind == "unsigned" and formula in ("subtract", "squared_difference"):
        compute = formulas.changed(formulas.difference, _not_negative)
        text = "negative differences become 0" + ("" if formula == "subtract" else " before they are squared")
        yield Deviation(
            "clamping below zero", text, compute=compute if formula == "subtract" else formulas.squared(compute)
        )
    if formula == "squared_difference":
        wrapping = formulas.changed(formulas.difference, _to_width(element_type))
        yield Deviation(
            "square saturates",
            f"the difference wraps, its square saturates at the limits of {element_type}",
            compute=formulas.squared(wrapping),
            result=(limits,),
            of_integers=True,
        )
        absolute = formulas.changed(formulas.absolute, _to_limits(element_type))
        yield Deviation(
            "absolute difference saturates",
            f"|A - B| saturates at the limits of {element_type}, its square wraps",
            compute=formulas.squared(absolute),
            of_integers=True,
        )


def _through_16_bits(element_type: ElementType) -> Iterator[Deviation]:
    """What packing instructions do that take the saturated words for signed ones."""
    if element_type.bits <= 8:
        yield Deviation(
            "saturation through uint16 and int16",
            f"results saturate at the limits of uint16, are taken for int16, and saturate at those of {element_type}",
            result=(_to_limits(UINT16), _to_width(INT16), _to_limits(element_type)),
        )


def _in_integers(element_type: ElementType, other: ElementType) -> Iterator[Deviation]:
    """Computed in another integer type, which may be narrower, wider, or as wide but with the other sign."""
    width, limits = (_to_width(other),), (_to_limits(other),)
    wrapping, saturating = Keep(other), Keep(other, overflow="clamp")
    low, high = element_type.limits
    fits = other.limits[0] <= low and high <= other.limits[1]
    if fits:
        yield Deviation(
            f"saturation in {other}",
            f"computed in {other}, saturating at its limits; the low {element_type.bits} bits are the result",
            keep=saturating,
        )
        return
    yield Deviation(
        f"{other} arithmetic",
        f"computed in {other}: operands lose what does not fit, results wrap there",
        a=width,
        b=width,
        keep=wrapping,
    )
    yield Deviation(
        f"{other} arithmetic, operands clamped",
        f"computed in {other}: operands are clamped to its limits, results wrap there",
        a=limits,
        b=limits,
        keep=wrapping,
    )
    yield Deviation(
        f"saturating {other} arithmetic",
        f"computed in {other}: operands lose what does not fit, every step saturates there",
        a=width,
        b=width,
        keep=saturating,
    )
    yield Deviation(
        f"saturating {other} arithmetic, operands clamped",
        f"computed in {other}: operands are clamped to its limits, every step saturates there",
        a=limits,
        b=limits,
        keep=saturating,
    )
    yield Deviation(
        f"operands clamped to {other}", f"operands are clamped to the limits of {other}", a=limits, b=limits
    )
    yield Deviation(
        f"result clamped to {other}",
        f"results are clamped to the limits of {other}",
        result=(_to_width(element_type), *limits),
    )


def _in_floats(element_type: ElementType, floats: ElementType) -> Iterator[Deviation]:
    """Computed in a float type and converted back in each of the ways that there are."""
    into = (partial(as_floats, element_type=floats),)
    ways: list[tuple[str, ElementType, Beyond]] = [
        (f"results {_IN_WORDS[beyond]} {element_type}", element_type, beyond) for beyond in get_args(Beyond)
    ]
    ways += [
        (f"results pass through {other}, as x86 converts", other, "indefinite")
        for other in (INT32, INT64)
        if other is not element_type
    ]
    for way, target, beyond in ways:
        yield Deviation(
            f"{floats} arithmetic, {beyond}" + ("" if target is element_type else f" {target}"),
            f"computed in {floats}: operands and every step are rounded to it; {way}",
            a=into,
            b=into,
            keep=Keep(floats),
            result=(partial(as_integers, element_type=target, beyond=beyond),),
            in_floats=True,
        )


_IN_WORDS: dict[Beyond, str] = {
    "saturate": "saturate at the limits of",
    "wrap": "wrap to",
    "indefinite": "beyond it become x86's indefinite value of",
}


def _of_one_operand(element_type: ElementType, other: ElementType) -> Iterator[Deviation]:
    """Only one operand is converted, as happens to a constant."""
    low, high = element_type.limits
    if other.limits[0] <= low and high <= other.limits[1]:
        return
    width, limits = _to_width(other), _to_limits(other)
    negated = partial(_negated, change=limits, width=_to_width(element_type))
    yield Deviation(f"A clamped to {other}", f"operand A is clamped to the limits of {other}", a=(limits,))
    yield Deviation(f"B clamped to {other}", f"operand B is clamped to the limits of {other}", b=(limits,))
    yield Deviation(
        f"-B clamped to {other}",
        f"A + (-B) is computed, and -B is clamped to the limits of {other}",
        b=(negated,),
    )
    yield Deviation(f"A wrapped to {other}", f"operand A loses what does not fit into {other}", a=(width,))
    yield Deviation(f"B wrapped to {other}", f"operand B loses what does not fit into {other}", b=(width,))


def _negated(values: Values, change: Change, width: Change) -> Values:
    """Negate in the type itself, change, and negate back without loss."""
    return -change(width(-values))
