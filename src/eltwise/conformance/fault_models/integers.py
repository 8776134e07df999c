"""Faults of integer types: other limits, other widths, other signs, and floats on the way."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import get_args

import numpy as np

from eltwise.conformance.fault_models.expressions import SQUARED_DIFFERENCE, difference, squared
from eltwise.conformance.fault_models.model import FaultModel, Operation
from eltwise.conformance.fault_models.steps import Keep
from eltwise.conformance.fault_models.values import (
    Beyond,
    Change,
    as_floats,
    as_integers,
    clamped,
    wrapped,
)
from eltwise.core.dtypes import FLOAT16, FLOAT32, FLOAT64, INT8, INT16, INT32, TYPES, UINT16, ElementType

_FLOATS = (FLOAT32, FLOAT64, FLOAT16)


def integer_faults(operation: Operation) -> Iterator[FaultModel]:
    """The faults of an integer type, simplest first."""
    element_type = operation.element_type
    yield from _saturating(operation)
    if element_type.bits <= 8:
        yield _through_16_bits(element_type)
    others = [other for other in (INT32, INT8, *_other_sign(element_type)) if other is not element_type]
    for other in others:
        yield from _in_integers(element_type, other)
    for floats in _FLOATS:
        yield from _in_floats(operation, floats)
    for other in others:
        yield from _of_one_operand(operation, other)


def _other_sign(element_type: ElementType) -> list[ElementType]:
    return [
        other
        for other in TYPES
        if other.is_integer and other.bits == element_type.bits and other.kind != element_type.kind and other.runs
    ]


def _to_limits(element_type: ElementType) -> Change:
    low, high = element_type.limits
    return partial(clamped, low=low, high=high)


def _to_width(element_type: ElementType) -> Change:
    return partial(wrapped, element_type=element_type)


def _saturating(operation: Operation) -> Iterator[FaultModel]:
    element_type = operation.element_type
    limits = _to_limits(element_type)
    yield FaultModel("saturation", f"results saturate at the limits of {element_type}", after=(limits,))
    yield FaultModel(
        "saturation at every step",
        f"every step saturates at the limits of {element_type}",
        keep=Keep(element_type, overflow="clamp"),
    )
    if element_type.kind == "unsigned" and operation.function == "subtract":
        yield FaultModel(
            "clamping below zero", "negative differences become 0", after=(lambda values: np.maximum(values, 0),)
        )
    if operation.function == SQUARED_DIFFERENCE:
        square = squared(lambda a, b, keep: wrapped(difference(a, b, keep), element_type))
        yield FaultModel(
            "square saturates",
            f"the difference wraps, its square saturates at the limits of {element_type}",
            compute=lambda operands, keep: square(operands[0], operands[1], keep),
            after=(limits,),
        )


def _through_16_bits(element_type: ElementType) -> FaultModel:
    """What packing instructions do that take saturated words for signed ones."""
    return FaultModel(
        "saturation through uint16 and int16",
        f"results saturate at the limits of uint16, are taken for int16, and saturate at those of {element_type}",
        after=(_to_limits(UINT16), _to_width(INT16), _to_limits(element_type)),
    )


def _holds(other: ElementType, element_type: ElementType) -> bool:
    """Whether a type has every value of another one."""
    return other.limits[0] <= element_type.limits[0] and element_type.limits[1] <= other.limits[1]


def _in_integers(element_type: ElementType, other: ElementType) -> Iterator[FaultModel]:
    """Computed in another integer type, which may be narrower, wider, or as wide but with the other sign."""
    width, limits = ((None, _to_width(other)),), ((None, _to_limits(other)),)
    if _holds(other, element_type):
        text = f"computed in {other}, saturating at its limits; the low {element_type.bits} bits are the result"
        yield FaultModel(f"saturation in {other}", text, keep=Keep(other, overflow="clamp"))
        return
    yield FaultModel(
        f"{other} arithmetic",
        f"computed in {other}: operands lose what does not fit, results wrap there",
        before=width,
        keep=Keep(other),
    )
    yield FaultModel(
        f"{other} arithmetic, operands clamped",
        f"computed in {other}: operands are clamped to its limits, results wrap there",
        before=limits,
        keep=Keep(other),
    )
    yield FaultModel(
        f"result clamped to {other}",
        f"results are clamped to the limits of {other}",
        after=(_to_width(element_type), _to_limits(other)),
    )


_IN_WORDS: dict[Beyond, str] = {
    "saturate": "saturate at the limits of",
    "wrap": "wrap to",
    "indefinite": "beyond it become x86's indefinite value of",
}


def _in_floats(operation: Operation, floats: ElementType) -> Iterator[FaultModel]:
    """Computed in a float type and converted back in each of the ways that there are."""
    into = ((None, partial(as_floats, element_type=floats)),)
    if operation.result_type is not operation.element_type:
        text = f"computed in {floats}: operands are rounded to it"
        yield FaultModel(f"{floats} arithmetic", text, before=into, keep=Keep(floats))
        return
    for beyond in get_args(Beyond):
        yield FaultModel(
            f"{floats} arithmetic, {beyond}",
            f"computed in {floats}: operands and every step are rounded to it; results {_IN_WORDS[beyond]} "
            f"{operation.element_type}",
            before=into,
            keep=Keep(floats),
            after=(partial(as_integers, element_type=operation.element_type, beyond=beyond),),
        )


def _of_one_operand(operation: Operation, other: ElementType) -> Iterator[FaultModel]:
    """Only one operand is converted, as happens to a constant."""
    element_type = operation.element_type
    if _holds(other, element_type) or operation.expression.operands < 2:
        return
    width, limits = _to_width(other), _to_limits(other)
    for index, name in enumerate("AB"):
        yield FaultModel(
            f"{name} clamped to {other}",
            f"operand {name} is clamped to the limits of {other}",
            before=((index, limits),),
        )
        yield FaultModel(
            f"{name} wrapped to {other}",
            f"operand {name} loses what does not fit into {other}",
            before=((index, width),),
        )
    if operation.function == "subtract":
        negated = lambda values: -limits(wrapped(-values, element_type))  # noqa: E731
        text = f"A + (-B) is computed, and -B is clamped to the limits of {other}"
        yield FaultModel(f"-B clamped to {other}", text, before=((1, negated),))
