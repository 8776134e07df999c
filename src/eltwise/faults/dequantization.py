"""The faults of dequantization: another difference of the levels, and a product rounded otherwise."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from eltwise.core import odd_rounding
from eltwise.core.dtypes import BFLOAT16, FLOAT16, FLOAT32, FLOAT64, ElementType
from eltwise.core.odd_rounding import double
from eltwise.faults.floats import subnormal_results_flushed
from eltwise.faults.record import Fault, Operation
from eltwise.faults.values import StepPolicy, Values, clamped, rounded, wrapped


def of_dequantization(operation: Operation) -> Iterator[Fault]:
    """The faults of (x - zero point) * scale."""
    levels, to = operation.operand_types[0], operation.result_type
    if to.kind != "float":
        return  # The type of the scale is not stated.
    yield subnormal_results_flushed(to)
    text = "x * scale - zero point * scale is computed, "
    yield _back("products_subtracted", "last_bit", f"{text}each product rounded", partial(_products, to, to))
    yield _back("product_fused", "last_bit", f"{text}only the second product rounded", partial(_products, to, FLOAT64))
    text = "x and the zero point are rounded to {} before they are subtracted"
    for floats in dict.fromkeys((to, FLOAT16, BFLOAT16)):
        if levels.is_integer and levels.bits < floats.digits:
            continue
        difference = partial(_rounded_difference, floats)
        yield _back(f"difference_rounded_to_{floats}", f"{floats}_arithmetic", text.format(floats), difference)
    if to is not FLOAT32:
        text = f"the product is rounded to float32 before it is rounded to {to}"
        yield _back("product_rounded_to_float32", "float32_arithmetic", text, _in_float32)
    if operation.expression.operands > 2:
        text = "the zero point is not subtracted"
        yield _back("zero_point_ignored", "zero_point", text, lambda x, scale, _zero: odd_rounding.product(x, scale))
    if levels.is_integer:
        limits, half = levels.limits, 1 << (levels.bits - 1)
        text = f"x minus the zero point wraps in {levels}"
        yield _back("difference_wrapped", "wraparound", text, _of_levels(lambda x, zero: wrapped(x - zero, levels)))
        text = f"x minus the zero point saturates at the limits of {levels}"
        clamp = _of_levels(lambda x, zero: clamped(x - zero, *limits))
        yield _back("difference_saturated", "saturation", text, clamp)
        text = f"{levels} is taken for the type of the other sign"
        shift = _of_levels(lambda x, zero: wrapped(x, levels) + np.where(x < limits[0] + half, half, -half) - zero)
        yield _back("sign_of_type_exchanged", "signedness", text, shift)


def _back(slug: str, family: str, text: str, function: Callable[[Values, Values, Values], Values]) -> Fault:
    def compute(_steps: StepPolicy, x: Values, scale: Values, zero_point: Values | None = None) -> Values:
        return function(double(x), double(scale), np.zeros(()) if zero_point is None else double(zero_point))

    return Fault(slug, family, text, compute=compute)


def _products(to: ElementType, first: ElementType, x: Values, scale: Values, zero: Values) -> Values:
    """A difference of products, of which the first one is rounded to a type of its own."""
    second = rounded(odd_rounding.product(zero, scale), to)
    return odd_rounding.total(rounded(odd_rounding.product(x, scale), first), -second)


def _rounded_difference(floats: ElementType, x: Values, scale: Values, zero: Values) -> Values:
    difference = rounded(rounded(x, floats) - rounded(zero, floats), floats)
    return odd_rounding.product(difference, scale)


def _in_float32(x: Values, scale: Values, zero: Values) -> Values:
    return rounded(odd_rounding.product(x - zero, scale), FLOAT32)


def _of_levels(change: Callable[[Values, Values], Values]) -> Callable[[Values, Values, Values], Values]:
    """The product of changed differences of integers."""

    def compute(x: Values, scale: Values, zero: Values) -> Values:
        return odd_rounding.product(double(change(x.astype(np.int64), zero.astype(np.int64))), scale)

    return compute
