"""Hard values of every element type: the ones on which engines are known to differ, built by bit pattern.

Every array made here is one-dimensional, native and of the element type's NumPy type.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from functools import cache
from math import isqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from eltwise.core.dtypes import ElementType
from eltwise.oracle import array_of
from eltwise.oracle.numbers import FLOAT_LAYOUTS, FloatLayout, decode, encode

# Engines that compute in a narrower or wider type differ beyond what that type holds: 24 and 53 bits are the digits of
# float32 and float64, the others the widths of the integer types and those less one.
_CRITICAL_WIDTHS = (7, 8, 15, 16, 24, 31, 32, 53, 63)


def hard_values(element_type: ElementType) -> npt.NDArray[Any]:
    """Give the hard values of a numeric element type, each once.

    For an integer type: the limits, zero, the powers of two at which other types end, all with their neighbours, and
    alternating bits. For a float: both signs of zero, subnormals, the smallest normal and the largest finite numbers,
    infinity where there is one, NaN, one and its neighbours, partners that make exact ties and near ties with them,
    and numbers whose squares are ties, underflow, are subnormal or overflow.

    >>> from eltwise.core.dtypes import UINT4
    >>> hard_values(UINT4).tolist()
    [0, 1, 2, 3, 4, 6, 7, 8, 14, 15, 5, 10]
    """
    return array_of(element_type, _hard_patterns(element_type))


@cache
def _hard_patterns(element_type: ElementType) -> list[int]:
    layout = FLOAT_LAYOUTS.get(element_type)
    if layout is None:
        return _integer_patterns(element_type)
    magnitudes = sorted(set(_float_magnitudes(element_type, layout)))
    return [sign | magnitude for sign in (0, layout.sign) for magnitude in magnitudes]


def random_bits(element_type: ElementType, count: int, seed: int) -> npt.NDArray[Any]:
    """Draw bit patterns of a numeric element type, all equally likely; the same for the same seed.

    >>> from eltwise.core.dtypes import UINT8
    >>> random_bits(UINT8, 3, seed=1).dtype, random_bits(UINT8, 3, seed=1).shape
    (dtype('uint8'), (3,))
    """
    generator = np.random.default_rng(seed)
    patterns = generator.integers(0, 1 << element_type.bits, size=count, dtype=np.uint64)
    return array_of(element_type, patterns.tolist())


def ordinary(element_type: ElementType, count: int, seed: int) -> npt.NDArray[Any]:
    """Draw values as models hold them: small whole numbers, for floats with quarters; the same for the same seed.

    >>> from eltwise.core.dtypes import INT8
    >>> bool((abs(ordinary(INT8, 100, seed=1).astype(int)) <= 50).all())
    True
    """
    low, high = (-50, 50) if element_type.kind != "unsigned" else (0, 100)
    if element_type.is_integer:
        low, high = max(low, element_type.limits[0]), min(high, element_type.limits[1])
    drawn = np.random.default_rng(seed).integers(low, high, size=count, endpoint=True)
    return array_of(element_type, [_ordinary_pattern(element_type, number) for number in drawn.tolist()])


@cache
def _ordinary_pattern(element_type: ElementType, number: int) -> int:
    """Of a whole number, or of as many quarters in a float type."""
    return encode(element_type, number if element_type.is_integer else Fraction(number, 4))


def of_all_digits(element_type: ElementType, count: int, seed: int) -> npt.NDArray[Any]:
    """Draw numbers of ordinary size with all the digits that a type has; bit patterns of integers.

    They show a step that is rounded once instead of twice. The same for the same seed.

    >>> from eltwise.core.dtypes import FLOAT32
    >>> drawn = abs(of_all_digits(FLOAT32, 100, seed=1))
    >>> bool(((0.5 <= drawn) & (drawn <= 8)).all())
    True
    """
    if element_type.is_integer:
        return random_bits(element_type, count, seed)
    generator = np.random.default_rng(seed)
    numbers = generator.uniform(0.5, 8.0, count) * generator.choice([-1.0, 1.0], count)
    return np.asarray(numbers.astype(element_type.storage))


def _integer_patterns(element_type: ElementType) -> list[int]:
    low, high = element_type.limits
    # The squares of numbers around the root of the greatest value are the first ones that wrap.
    centres = [low, 0, 1, isqrt(high), high // 2, high, low // 2]
    for width in _CRITICAL_WIDTHS:
        centres += [1 << width, -(1 << width)]
    values = {centre + step: None for centre in centres for step in (-1, 0, 1)}
    patterns = [encode(element_type, value) for value in values if low <= value <= high]
    ones = (1 << element_type.bits) - 1
    alternating = [ones // 3, ones // 3 * 2]
    return list(dict.fromkeys(patterns + alternating))


def _float_magnitudes(element_type: ElementType, layout: FloatLayout) -> list[int]:
    one = encode(element_type, Fraction(1))
    alternating = (layout.sign - 1) // 3
    plain = [encode(element_type, value) for value in (Fraction(1, 3), Fraction(3, 2), Fraction(2), Fraction(3))]
    smallest_normal = 1 << layout.mantissa_bits
    # Two normal numbers this close have a subnormal difference.
    half_above_normal = smallest_normal + smallest_normal // 2
    return [
        *(0, 1, 2, 3),
        *_with_neighbours([smallest_normal]),
        half_above_normal,
        *_with_neighbours([one]),
        one + 2,
        *plain,
        *_with_neighbours(_tie_partners(element_type, layout)),
        *_square_patterns(element_type, layout),
        *(alternating, alternating * 2),
        *(layout.largest_finite - 1, layout.largest_finite, layout.largest_finite + 1),
        *_nan_patterns(layout),
    ]


def _nan_patterns(layout: FloatLayout) -> list[int]:
    """The first and the last NaN and the one that results are given as; one and the same where there is no infinity."""
    first = layout.largest_finite + (2 if layout.has_infinity else 1)
    return [first, layout.nan, layout.sign - 1]


def _tie_partners(element_type: ElementType, layout: FloatLayout) -> list[int]:
    """Half the distances between numbers above one, below one and below the overflow.

    Added to or subtracted from their neighbours they lie exactly between two numbers, and their own neighbours just
    beside that.
    """
    greatest_exponent = (layout.largest_finite >> layout.mantissa_bits) - 1 + layout.least_exponent
    exponents = (0, -1, greatest_exponent)
    return [encode(element_type, Fraction(2) ** (exponent - layout.mantissa_bits - 1)) for exponent in exponents]


def _square_patterns(element_type: ElementType, layout: FloatLayout) -> list[int]:
    """Numbers whose squares are exact ties, vanish, are subnormal, or overflow."""
    least_tie = layout.least_exponent - layout.mantissa_bits - 1
    exponents = (least_tie // 2, least_tie // 2 + 1, layout.least_exponent // 2)
    borders = [encode(element_type, Fraction(2) ** exponent) for exponent in exponents]
    largest = decode(element_type, layout.largest_finite)
    assert isinstance(largest, Fraction)
    borders.append(encode(element_type, isqrt(int(largest))))
    # An odd number whose square has one digit more than the type is a tie.
    odd = (isqrt((1 << (layout.mantissa_bits + 2)) - 1) - 1) | 1
    ties = [encode(element_type, number) for number in (odd, odd - 2)]
    return [*_with_neighbours(borders), *ties]


def _with_neighbours(patterns: Iterable[int]) -> list[int]:
    return [pattern + step for pattern in patterns for step in (-1, 0, 1)]
