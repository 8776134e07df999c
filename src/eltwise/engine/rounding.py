"""Exact sums to results: rounded once, to nearest with ties to even, in any element type."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial

import numpy as np

from eltwise.core.dtypes import FLOAT64, ElementType
from eltwise.core.errors import ValueRangeError
from eltwise.kernels.exact_sum import DIGIT, HIGH, LOW, NAN, ExactSums
from eltwise.kernels.float_mode import quietly
from eltwise.kernels.pool import allocated
from eltwise.kernels.threads import num_threads, run_together

MANY = 16
"""From so many results on they are rounded at once."""

AT_ONCE = 1 << 12
"""So many at a time, so that what is between two steps stays in cache."""

_MOST_DIVISOR = 1 << 26
_LEAST_SCALE, _MOST_EXPONENT = -990, 1000
"""Units of 2^-990 and more, below 2^1000, over such a divisor are normal float64."""

_UPPER_BITS = -1 << 27
"""The bits of a float64 that make a number whose product with such a divisor is exact."""


def rounded(sums: ExactSums, divisor: int, element_type: ElementType) -> np.ndarray:
    """Round sums over a divisor to an element type.

    Args:
        sums: the sums; a NaN, or infinities of both signs, give NaN.
        divisor: 1, or the number of elements for a mean.
        element_type: of the result. An integer type holds sums of integers only, with a divisor of 1.

    Raises:
        ValueRangeError: where an integer type does not hold a sum, naming both.
    """
    if element_type.is_integer:
        return _whole(sums, element_type)
    special = sums.special
    if element_type is FLOAT64 and special.size >= MANY:
        values = _many(sums, divisor).reshape(special.shape)
    else:
        values = np.array(_one_by_one(sums, divisor, element_type), np.float64).reshape(special.shape)
    if special.any():
        values[special == HIGH] = np.inf
        values[special == LOW] = -np.inf
        values[((special & NAN) != 0) | ((special & (HIGH | LOW)) == (HIGH | LOW))] = np.nan
    return np.asarray(quietly(values.astype, element_type.storage, copy=False))


def narrowed(values: np.ndarray, element_type: ElementType) -> np.ndarray | None:
    """Round what was rounded to float64 to a smaller float type; None where that might differ from rounding once.

    It differs only where a float64 lies midway between two numbers of the type, since those are float64, too.
    """
    return quietly(_narrowed, values, element_type) if values.dtype == np.float64 else None


def _narrowed(values: np.ndarray, element_type: ElementType) -> np.ndarray | None:
    result = np.asarray(values.astype(element_type.storage))
    nearest = result.astype(np.float64)
    outwards = np.nextafter(result, np.copysign(np.inf, values - nearest).astype(element_type.storage))
    is_midway = (values == nearest / 2 + outwards.astype(np.float64) / 2) & (values != nearest)
    is_too_large = np.isinf(nearest) & np.isfinite(values)
    return None if (is_midway | is_too_large).any() else result


def _one_by_one(sums: ExactSums, divisor: int, element_type: ElementType) -> list[float]:
    """Every sum over the divisor, by Python's integers."""
    denominator = divisor << max(-sums.exponent, 0)
    if element_type is FLOAT64:
        return [_float64(unit, denominator) for unit in sums.units()]
    digits, least = element_type.digits, element_type.least_exponent
    return [_nearest(unit, denominator, digits, least) for unit in sums.units()]


def _many(sums: ExactSums, divisor: int) -> np.ndarray:
    """Every sum over the divisor as a float64."""
    size = sums.special.size
    digits, special = sums.digits.reshape(-1, size), sums.special.reshape(size)
    values = allocated((size,), FLOAT64)

    def compute(begin: int) -> None:
        part = slice(begin, begin + AT_ONCE)
        few_sums = replace(sums, digits=digits[:, part], special=special[part]).normalized()
        values[part], is_certain = rounded_at_once(few_sums, divisor)
        left = np.flatnonzero(~is_certain)
        if left.size:
            few = replace(few_sums, digits=few_sums.digits[:, left], special=few_sums.special[left])
            values[begin + left] = _one_by_one(few, divisor, FLOAT64)

    run_together([partial(compute, begin) for begin in range(0, size, AT_ONCE)], num_threads())
    return values


def rounded_at_once(sums: ExactSums, divisor: int) -> tuple[np.ndarray, np.ndarray]:
    """Round many normalized sums over a divisor to float64, and say which of them are certain.

    Each is computed as two floats. Where the lower and the upper bound of what they stand for are rounded to the same
    number, it is the result (Ziv's test).
    """
    digits, scale = sums.digits, DIGIT * sums.first + sums.exponent
    count, columns = digits.shape
    most = DIGIT * count + max(scale, 0)
    if not count or divisor > _MOST_DIVISOR or scale < _LEAST_SCALE or most > _MOST_EXPONENT:
        return np.zeros(columns), np.full(columns, not count)
    high, low = digits[-1] * 2.0 ** (DIGIT * (count - 1)), np.zeros(columns)
    for number in reversed(range(count - 1)):
        # A digit is no more than what the sum of those above it is a multiple of: its error is exact (Dekker).
        digit = digits[number] * 2.0 ** (DIGIT * number)
        total = high + digit
        low += digit - (total - high)
        high = total
    quotient = high / divisor
    upper = (quotient.view(np.int64) & _UPPER_BITS).view(np.float64)
    low += (high - upper * divisor) - (quotient - upper) * divisor  # What is left of the division, exactly.
    low /= divisor
    error = np.abs(quotient) * 2.0**-98
    nearest = quotient + (low + error)
    return nearest * 2.0**scale, nearest == quotient + (low - error)


def _whole(sums: ExactSums, element_type: ElementType) -> np.ndarray:
    sums = sums.normalized()
    (low, high), shape, above = element_type.limits, sums.special.shape, sums.first + len(sums.digits)
    values = np.zeros(shape, np.int64)
    if above < 2 or (above == 2 and np.abs(sums.digits[-1]).max() < 1 << (62 - DIGIT)):
        for number, digits in enumerate(sums.digits, sums.first):
            values += digits << (DIGIT * number)
    else:
        values = np.array(sums.units(), object).reshape(shape)
    is_beyond = np.asarray((values < low) | (values > high))
    if is_beyond.any():
        index = np.unravel_index(int(is_beyond.argmax()), shape)
        location = f" at index {[int(each) for each in index]} of the result" if shape else ""
        raise ValueRangeError(
            f"the exact sum overflows {element_type.name}",
            got=f"{values[index]}{location}",
            allowed=f"{low} to {high}",
            hint="give a wider dtype; float64 rounds the sum once",
        )
    wide = np.uint64 if element_type.kind == "unsigned" else np.int64
    return values.astype(wide).astype(element_type.storage)


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
