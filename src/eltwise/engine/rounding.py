"""Exact sums to results: rounded once, to nearest with ties to even, in any element type."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from itertools import repeat

import numpy as np

from eltwise.core.casting import cast
from eltwise.core.dtypes import FLOAT64, ElementType
from eltwise.core.errors import ValueRangeError
from eltwise.core.odd_rounding import odd, ordered_sum, two_product
from eltwise.kernels.exact_sum import DIGIT, HIGH, LOW, NAN, ExactSums
from eltwise.kernels.float_mode import only_default_mode, quietly
from eltwise.kernels.pool import allocated
from eltwise.kernels.threads import num_threads, run_together

MANY = 16
"""From so many results on they are rounded at once."""

AT_ONCE = 1 << 12
"""So many at a time, so that what is between two steps stays in cache."""

_LEAST_SCALE, _MOST_EXPONENT = -960, 980
"""Units of 2^-960 and more, below 2^980, over a divisor are normal float64, and their upper digits overflow nowhere."""


def rounded(sums: ExactSums, divisor: int | np.ndarray, element_type: ElementType) -> np.ndarray:
    """Round sums over a divisor to an element type.

    Args:
        sums: the sums; a NaN, or infinities of both signs, give NaN.
        divisor: 1, or the number of elements for a mean, or that of each sum.
        element_type: of the result. An integer type holds sums of integers only, with a divisor of 1.

    Raises:
        ValueRangeError: where an integer type does not hold a sum, naming both.
    """
    if element_type.is_integer:
        return _whole(sums, element_type)
    special, is_narrow = sums.special, element_type is not FLOAT64
    is_many = special.size >= MANY and not is_narrow
    values = _many(sums, divisor) if is_many else _one_by_one(sums, divisor, is_odd=is_narrow)
    values = values.reshape(special.shape)
    if special.any():
        values[special == HIGH] = np.inf
        values[special == LOW] = -np.inf
        values[((special & NAN) != 0) | ((special & (HIGH | LOW)) == (HIGH | LOW))] = np.nan
    return cast(values, FLOAT64, element_type, saturate=False) if is_narrow else values


def narrowed(values: np.ndarray, element_type: ElementType) -> np.ndarray | None:
    """Round what was rounded to float64 to a smaller float type; None where that might differ from rounding once.

    It differs only where a float64 lies midway between two numbers of the type, since those are float64, too, or
    beyond the largest one.
    """
    if values.dtype != np.float64:
        return None
    with only_default_mode():
        return quietly(_narrowed, values, element_type)


def _narrowed(values: np.ndarray, element_type: ElementType) -> np.ndarray | None:
    result = cast(values, FLOAT64, element_type, saturate=False)  # ml_dtypes would round to float32 in between.
    nearest = result.astype(np.float64)
    outwards = np.nextafter(result, np.copysign(np.inf, values - nearest).astype(element_type.storage))
    middle = nearest / 2 + outwards.astype(np.float64) / 2
    is_open = np.isfinite(values) & (values != nearest) & ((values == middle) | ~np.isfinite(middle))
    return None if is_open.any() else result


def _one_by_one(sums: ExactSums, divisor: int | np.ndarray, *, is_odd: bool = False) -> np.ndarray:
    """Every sum over its divisor as a float64, by Python's integers; rounded to odd where it is rounded once more."""
    shift, units = max(-sums.exponent, 0), sums.units()
    if isinstance(divisor, int):
        denominators: Iterable[int] = repeat(divisor << shift)
    else:
        denominators = [each << shift for each in divisor.reshape(-1).tolist()]
    nearest = np.array([*map(_nearest, units, denominators)], np.float64)
    return quietly(odd, nearest, np.array([*map(_lost, units, denominators)], np.float64)) if is_odd else nearest


def _many(sums: ExactSums, divisor: int | np.ndarray) -> np.ndarray:
    """Every sum over its divisor as a float64."""
    size = sums.special.size
    digits, special = sums.digits.reshape(-1, size), sums.special.reshape(size)
    values = allocated((size,), FLOAT64)

    def divisor_of(outputs: slice | np.ndarray) -> int | np.ndarray:
        return divisor if isinstance(divisor, int) else divisor.reshape(-1)[outputs]

    def compute(begin: int) -> None:
        part = slice(begin, begin + AT_ONCE)
        few_sums = replace(sums, digits=digits[:, part], special=special[part]).normalized()
        values[part], is_certain = rounded_at_once(few_sums, divisor_of(part))
        left = np.flatnonzero(~is_certain)
        if left.size:
            few = replace(few_sums, digits=few_sums.digits[:, left], special=few_sums.special[left])
            values[begin + left] = _one_by_one(few, divisor_of(begin + left))

    run_together([partial(compute, begin) for begin in range(0, size, AT_ONCE)], num_threads())
    return values


def rounded_at_once(sums: ExactSums, divisor: int | np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Round many normalized sums over a divisor to float64, and say which of them are certain.

    Each is computed as two floats. Where the lower and the upper bound of what they stand for are rounded to the same
    number, it is the result (Ziv's test).
    """
    digits, scale = sums.digits, DIGIT * sums.first + sums.exponent
    count, columns = digits.shape
    most = DIGIT * count + max(scale, 0)
    if not count or scale < _LEAST_SCALE or most > _MOST_EXPONENT:
        return np.zeros(columns), np.full(columns, not count)
    high, low = digits[-1] * 2.0 ** (DIGIT * (count - 1)), np.zeros(columns)
    for number in reversed(range(count - 1)):  # A digit is no more than what the sum above it is a multiple of.
        high, lost = ordered_sum(high, digits[number] * 2.0 ** (DIGIT * number))
        low += lost
    quotient = high / divisor
    product, lost = two_product(quotient, np.asarray(divisor, np.float64))
    low = (low + ((high - product) - lost)) / divisor
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


def _nearest(numerator: int, denominator: int) -> float:
    try:
        return numerator / denominator  # Python rounds quotients of integers once.
    except OverflowError:
        return math.inf if numerator > 0 else -math.inf


def _lost(numerator: int, denominator: int) -> int:
    """The sign of what rounding a quotient to the nearest float64 loses."""
    nearest = _nearest(numerator, denominator)
    if math.isinf(nearest):
        return 0
    whole, parts = nearest.as_integer_ratio()
    exact, rest = numerator * parts, whole * denominator
    return (exact > rest) - (exact < rest)
