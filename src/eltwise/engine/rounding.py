"""Exact sums to results: rounded once, to nearest with ties to even, in any element type."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache

import numpy as np

from eltwise.core.dtypes import FLOAT64, ElementType
from eltwise.core.errors import ValueRangeError
from eltwise.kernels.exact_sum import HIGH, LOW, NAN, ExactSums
from eltwise.kernels.sum_kernel import DIGIT

MANY = 64
"""From so many results on they are rounded at once."""

_MOST_DIGITS = 20
"""So many digits are in the range of float64 together."""

_SPLIT = 2.0**27 + 1


def rounded(sums: ExactSums, divisor: int, element_type: ElementType) -> np.ndarray:
    """Round sums over a divisor to an element type.

    Args:
        sums: the sums; a NaN, or infinities of both signs, give NaN.
        divisor: 1, or the number of elements for a mean.
        element_type: of the result. An integer type holds sums of integers only, with a divisor of 1.

    Raises:
        ValueRangeError: where an integer type does not hold a sum, naming both.
    """
    shape = sums.special.shape
    if element_type.is_integer:
        return _whole(sums.units(), shape, element_type)
    if element_type is FLOAT64 and sums.special.size >= MANY:
        found, is_known = rounded_at_once(sums, divisor)
        left = ~is_known
        digits = sums.digits.reshape(len(sums.digits), sums.special.size)[:, left.reshape(-1)]
        few = ExactSums(sums.exponent, sums.count, sums.first, digits, sums.special[left])
        found[left] = _one_by_one(few, divisor, element_type)
    else:
        found = np.array(_one_by_one(sums, divisor, element_type), np.float64).reshape(shape)
    found[sums.special == HIGH] = np.inf
    found[sums.special == LOW] = -np.inf
    found[((sums.special & NAN) != 0) | ((sums.special & (HIGH | LOW)) == (HIGH | LOW))] = np.nan
    with np.errstate(all="ignore"):
        return np.asarray(found.astype(element_type.storage))


def _one_by_one(sums: ExactSums, divisor: int, element_type: ElementType) -> list[float]:
    """Every sum over the divisor, by Python's integers."""
    denominator = divisor << max(-sums.exponent, 0)
    if element_type is FLOAT64:
        return [_float64(unit, denominator) for unit in sums.units()]
    digits, least = element_type.digits, _least_exponent(element_type)
    return [_nearest(unit, denominator, digits, least) for unit in sums.units()]


def rounded_at_once(sums: ExactSums, divisor: int) -> tuple[np.ndarray, np.ndarray]:
    """Round many sums over a divisor to float64, and say which of them are certain.

    Each is computed as two floats with a bound on their error; where that leaves the rounding open, or the range is not
    the common one, the result is not certain.
    """
    shape = sums.special.shape
    digits = sums.digits
    if not 0 < len(digits) <= _MOST_DIGITS or divisor >= 1 << 52:
        return np.zeros(shape), np.zeros(shape, bool)
    high, low, bound = (np.zeros(shape) for _part in range(3))
    for number in reversed(range(len(digits))):
        high, rest = _two_sum(high, digits[number] * 2.0 ** (DIGIT * number))
        low += rest
        bound += np.abs(low) * 2.0**-52
    high, low = _two_sum(high, low)
    quotient = high / divisor
    product, rest = _two_product(quotient, float(divisor))
    more = ((high - product) - rest + low) / divisor
    nearest, low = _two_sum(quotient, more)
    bound = bound / divisor * (1 + 2.0**-50) + np.abs(more) * 2.0**-48
    half = np.spacing(np.abs(nearest)) / 2
    mantissa, exponent = np.frexp(np.abs(nearest))
    exponent += DIGIT * sums.first + sums.exponent
    is_certain = (half - np.abs(low) > bound) & (mantissa != 0.5) & (np.abs(exponent) < 900) & (nearest != 0)
    is_certain &= (np.abs(digits[-1]) < 1 << 53) & (sums.special == 0)
    return np.ldexp(nearest, np.where(is_certain, DIGIT * sums.first + sums.exponent, 0)), is_certain


def _two_sum(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A rounded sum and its error, which is exact (Knuth)."""
    total = a + b
    other = total - a
    return total, (a - (total - other)) + (b - other)


def _two_product(a: np.ndarray, b: float) -> tuple[np.ndarray, np.ndarray]:
    """A rounded product and its error, which is exact (Dekker)."""
    product = a * b
    a_high, b_high = ((each * _SPLIT) - (each * _SPLIT - each) for each in (a, b))
    a_low, b_low = a - a_high, b - b_high
    return product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low


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
    import ml_dtypes

    least = float(ml_dtypes.finfo(element_type.storage).smallest_subnormal)  # type: ignore[no-untyped-call]
    return math.frexp(least)[1] - 1
