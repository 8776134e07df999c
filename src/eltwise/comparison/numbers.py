"""Elements as bits, as values and as places on the number line, for every element type."""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from eltwise.core.dtypes import ElementType

_UNSIGNED_FLOATS = ("float8_e8m0fnu",)

_LEAST_SQUARE = 2.0**-900
"""Of smaller sums of squares, some squares are no longer normal numbers."""


def is_float(element_type: ElementType) -> bool:
    """Whether it has fractions."""
    return element_type.kind == "float"


def bits_of(array: np.ndarray) -> np.ndarray:
    """The bit patterns of a contiguous array, sharing its memory."""
    return array.view(f"u{array.dtype.itemsize}")


def has_same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether two arrays of one type and shape have the same bits, in any memory layout."""
    return bool((bits_of(a) == bits_of(b)).all())


def shown(value: float) -> str:
    """A number with the digits that tell it from others, of float32 where it is one.

    >>> shown(float(np.float32(0.02))), shown(0.1), shown(3.0), shown(2**64 - 1), shown(1e300)
    ('0.02', '0.1', '3', '18446744073709551615', '1e+300')
    """
    if isinstance(value, int | np.integer):
        return str(int(value))
    with np.errstate(over="ignore"):
        single = np.float32(value)
    return (str(single) if float(single) == value else repr(float(value))).removesuffix(".0")


def values_of(array: np.ndarray, element_type: ElementType) -> np.ndarray:
    """The values as they are computed with: floats of up to 32 bits as float32, all others as float64.

    Only integers of more than 53 bits are rounded.
    """
    if not is_float(element_type):
        return array.astype(np.float64 if array.dtype.kind in "biu" else np.int8).astype(np.float64)
    return array.astype(np.float64 if array.dtype == np.float64 else np.float32)


def exact_values(array: np.ndarray, element_type: ElementType) -> np.ndarray:
    """The values, integers of 64 bits as such."""
    return array if array.dtype.kind in "iu" else values_of(array, element_type)


def keys_of(array: np.ndarray, element_type: ElementType) -> np.ndarray:
    """Integers in the order of the values, one apart for neighbours; both zeros are 0. A NaN has one, too."""
    if not is_float(element_type):
        if array.dtype.kind == "u":
            return array.astype(np.uint64)
        return array.astype(np.int64 if array.dtype.kind in "bi" else np.int8).astype(np.int64)
    bits = bits_of(array).astype(np.int64) if array.dtype.itemsize < 8 else array.view(np.int64)
    if element_type.name in _UNSIGNED_FLOATS:
        return bits
    sign = sign_bit(element_type)
    size = bits & np.int64(sign - 1)
    is_negative = bits < 0 if array.dtype.itemsize == 8 else (bits & np.int64(sign)) != 0
    return np.where(is_negative, -size, size)


def distances(a: np.ndarray, b: np.ndarray, element_type: ElementType) -> np.ndarray:
    """How many values of the type lie between two, as unsigned integers; for integers, their difference."""
    first, second = keys_of(a, element_type), keys_of(b, element_type)
    most, least = np.maximum(first, second), np.minimum(first, second)
    return np.asarray(most.view(np.uint64) - least.view(np.uint64))


def gaps(a: np.ndarray, b: np.ndarray, element_type: ElementType) -> np.ndarray:
    """The absolute differences: of floats as ``values_of`` computes them, of integers as exact unsigned ones."""
    if not is_float(element_type):
        return distances(a, b, element_type)
    return np.asarray(np.abs(values_of(a, element_type) - values_of(b, element_type)))


@cache
def sign_bit(element_type: ElementType) -> int:
    """The bit that says the sign of a float."""
    return 1 << (element_type.bits - 1)


def norm(values: np.ndarray, square: float | None = None) -> float:
    """The Euclidean norm of float64 numbers, which neither overflows nor underflows on the way.

    Args:
        values: a flat array; the norm is no number where one of them is none.
        square: the sum of their squares, if that is known.
    """
    square = float(values @ values) if square is None else square
    if _LEAST_SQUARE <= square < math.inf:
        return math.sqrt(square)
    largest = float(np.abs(values).max(initial=0.0))
    if not 0 < largest < math.inf:
        return largest
    scaled = values / largest
    return largest * math.sqrt(scaled @ scaled)
