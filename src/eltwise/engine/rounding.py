"""Exact sums to results: rounded once, to nearest with ties to even, in any element type."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache

import ml_dtypes
import numpy as np

from eltwise.core.dtypes import FLOAT64, ElementType
from eltwise.core.errors import ValueRangeError
from eltwise.kernels.exact_sum import HIGH, LOW, NAN, ExactSums


def rounded(sums: ExactSums, divisor: int, element_type: ElementType) -> np.ndarray:
    """Round sums over a divisor to an element type.

    Args:
        sums: the sums; a NaN, or infinities of both signs, give NaN.
        divisor: 1, or the number of elements for a mean.
        element_type: of the result. An integer type holds sums of integers only, with a divisor of 1.

    Raises:
        ValueRangeError: where an integer type does not hold a sum, naming both.
    """
    shape, units = sums.special.shape, sums.units()
    if element_type.is_integer:
        return _whole(units, shape, element_type)
    below = 1 << max(-sums.exponent, 0)
    if element_type is FLOAT64:
        values = [_float64(unit, divisor * below) for unit in units]
    else:
        digits, least = element_type.digits, _least_exponent(element_type)
        values = [_nearest(unit, divisor * below, digits, least) for unit in units]
    found = np.array(values, np.float64).reshape(shape)
    found[sums.special == HIGH] = np.inf
    found[sums.special == LOW] = -np.inf
    found[((sums.special & NAN) != 0) | ((sums.special & (HIGH | LOW)) == (HIGH | LOW))] = np.nan
    with np.errstate(all="ignore"):
        return np.asarray(found.astype(element_type.storage))


def _whole(units: Sequence[int], shape: tuple[int, ...], element_type: ElementType) -> np.ndarray:
    low, high = element_type.limits
    for index, unit in enumerate(units):
        if not low <= unit <= high:
            place = f" at index {[int(each) for each in np.unravel_index(index, shape)]} of the result" if shape else ""
            raise ValueRangeError(
                f"the exact sum overflows {element_type.name}",
                got=f"{unit}{place}",
                allowed=f"{low} to {high}",
                hint="give a wider dtype; float64 rounds the sum once",
            )
    wide = np.uint64 if element_type.kind == "unsigned" else np.int64
    return np.array(units, wide).reshape(shape).astype(element_type.storage)


def _float64(numerator: int, denominator: int) -> float:
    try:
        return numerator / denominator  # Python rounds quotients of integers once.
    except OverflowError:
        return math.inf if numerator > 0 else -math.inf


def _nearest(numerator: int, denominator: int, digits: int, least: int) -> float:
    """The nearest number of so many binary digits, or whole multiple of 2^least below these."""
    magnitude = abs(numerator)
    exponent = magnitude.bit_length() - denominator.bit_length()  # Of the leading digit, or one more.
    is_less = magnitude << max(-exponent, 0) < denominator << max(exponent, 0)
    unit = max(exponent - is_less - digits + 1, least)
    divisor = denominator << max(unit, 0)
    quotient, rest = divmod(magnitude << max(-unit, 0), divisor)
    quotient += 2 * rest > divisor or (2 * rest == divisor and quotient % 2)
    try:
        nearest = math.ldexp(quotient, unit)
    except OverflowError:
        nearest = math.inf
    return nearest if numerator >= 0 else -nearest


@cache
def _least_exponent(element_type: ElementType) -> int:
    """The exponent of the least subnormal number."""
    least = float(ml_dtypes.finfo(element_type.storage).smallest_subnormal)  # type: ignore[no-untyped-call]
    return math.frexp(least)[1] - 1
