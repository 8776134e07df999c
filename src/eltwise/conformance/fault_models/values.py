"""Exact numbers as arrays, and what arithmetics do to them: round, wrap, clamp, flush, convert.

An array of values holds Python integers (int64 for types of up to 16 bits) for the integer types and booleans, and
float64 for the floats, which holds every value of each of them with its infinities and NaN.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from eltwise.core.dtypes import FLOAT64, ElementType
from eltwise.oracle.numbers import FLOAT_LAYOUTS, decode

Values = npt.NDArray[Any]
Change = Callable[[Values], Values]
Mode = Literal["nearest", "toward zero", "half away", "odd only"]
Beyond = Literal["saturate", "wrap", "indefinite"]

_ROUND: dict[Mode, Change] = {
    "nearest": np.rint,
    "toward zero": np.trunc,
    "half away": lambda scaled: np.copysign(np.floor(np.abs(scaled) + 0.5), scaled),
    "odd only": lambda scaled: np.copysign(_rounded_odd_only(np.abs(scaled)), scaled),
}


def _rounded_odd_only(scaled: Values) -> Values:
    """Half the last digit is added before cutting: everything between an even number and the next is cut."""
    cut: Values = np.floor(scaled)
    return np.where((cut % 2 == 1) & (scaled - cut >= 0.5), cut + 1, cut)


def values_of(array: Values, element_type: ElementType) -> Values:
    """Read the exact values of an array's elements, in its shape."""
    with np.errstate(all="ignore"):
        if element_type.kind == "float":
            return array.astype(np.float64)
        return array.astype(np.int64 if element_type.bits <= 16 else np.object_)


def patterns_of(array: Values, element_type: ElementType) -> Values:
    """Read the bit patterns of an array's elements in C order, with one pattern for every NaN."""
    unsigned = np.dtype(f"u{array.dtype.itemsize}")
    native = np.ascontiguousarray(array, array.dtype.newbyteorder("=")).reshape(-1)
    patterns: Values = native.view(unsigned) & unsigned.type((1 << element_type.bits) - 1)
    layout = FLOAT_LAYOUTS.get(element_type)
    if layout is None:
        return patterns
    magnitudes = patterns & unsigned.type(layout.sign - 1)
    first_nan = layout.largest_finite + (2 if layout.has_infinity else 1)
    return np.where(magnitudes >= first_nan, unsigned.type(layout.nan), patterns)


def stored(values: Values, element_type: ElementType) -> Values:
    """Store values as elements of a type and give their patterns: integers wrap, floats are rounded to the nearest."""
    unsigned = np.dtype(f"u{element_type.storage.itemsize}")
    if element_type.kind != "float":
        patterns: Values = (values & ((1 << element_type.bits) - 1)).astype(unsigned)
        return patterns
    with np.errstate(all="ignore"):
        return patterns_of(rounded(values, element_type).astype(element_type.storage), element_type)


@cache
def largest_finite(element_type: ElementType) -> float:
    """The largest finite number of a float type."""
    return float(decode(element_type, FLOAT_LAYOUTS[element_type].largest_finite))  # type: ignore[arg-type]


@cache
def smallest_normal(element_type: ElementType) -> float:
    """The smallest positive number of a float type with all its digits."""
    return float(2.0 ** FLOAT_LAYOUTS[element_type].least_exponent)


def rounded(values: Values, element_type: ElementType, mode: Mode = "nearest") -> Values:
    """Round to a float type; what is beyond its largest number becomes infinity, or NaN in a type without one."""
    if element_type is FLOAT64:
        return values
    layout = FLOAT_LAYOUTS[element_type]
    with np.errstate(all="ignore"):
        exponents = np.frexp(values)[1] - 1
        unit = np.maximum(exponents, layout.least_exponent) - layout.mantissa_bits
        result = np.ldexp(_ROUND[mode](np.ldexp(values, -unit)), unit)
        result = np.where(np.isfinite(values), result, values)
        beyond = np.abs(result) > largest_finite(element_type)
    return np.where(beyond, np.copysign(np.inf, values) if layout.has_infinity else np.nan, result)


def rounded_digits(values: Values, element_type: ElementType) -> Values:
    """Round to the digits of a float type, whatever the exponents."""
    if element_type is FLOAT64:
        return values
    unit = np.frexp(values)[1] - 1 - FLOAT_LAYOUTS[element_type].mantissa_bits
    result = np.ldexp(np.rint(np.ldexp(values, -unit)), unit)
    return np.where(np.isfinite(values), result, values)


def wrapped(values: Values, element_type: ElementType) -> Values:
    """Reduce integers to the limits of an integer type modulo 2^n."""
    low, _high = element_type.limits
    mask: Any = (1 << element_type.bits) - 1
    reduced: Values = ((values - low) & mask) + low
    return reduced


def clamped(values: Values, low: float | int, high: float | int, infinities: bool = True) -> Values:
    """Move values beyond limits to the limits; NaN stays, and infinities stay unless they are to be clamped too."""
    if values.dtype == np.float64:
        stays = np.isnan(values) if infinities else ~np.isfinite(values)
        return np.where(stays, values, np.clip(values, low, high))
    return np.minimum(np.maximum(values, low), high)


def flushed(values: Values, element_type: ElementType, keep_sign: bool = True) -> Values:
    """Turn what is smaller than the smallest normal number of a type into a zero, of its sign or always +0."""
    zeros = np.copysign(0.0, values) if keep_sign else np.zeros_like(values)
    return np.where(np.abs(values) < smallest_normal(element_type), zeros, values)


def as_floats(values: Values, element_type: ElementType) -> Values:
    """Convert integers of up to 64 bits to a float type, rounded once."""
    if element_type is FLOAT64:
        return values.astype(np.float64)
    # Where float64 has too few digits for the integer, its last one is made odd when something is lost, so that
    # rounding again goes the right way.
    magnitudes = np.abs(values)
    lost = (magnitudes & 0x7FF) != 0
    shortened = (magnitudes >> 11 << 11) | np.where(lost, 0x800, 0)
    floats = np.where((magnitudes >> 53) > 0, shortened, magnitudes).astype(np.float64)
    return rounded(np.where(values < 0, -floats, floats), element_type)


def as_integers(values: Values, element_type: ElementType, beyond: Beyond) -> Values:
    """Cut floats to integers; ``beyond`` says what becomes of those outside an integer type, and of NaN.

    ``saturate`` gives the nearest limit and 0 for NaN, ``wrap`` the value modulo 2^n and 0 for what is not finite,
    ``indefinite`` what x86 instructions give: the least value of a signed type, the greatest of an unsigned one.
    """
    low, high = element_type.limits
    cut = np.trunc(values)
    whole = np.array([int(number) if np.isfinite(number) else 0 for number in cut], object)
    if beyond == "wrap":
        return wrapped(whole, element_type)
    with np.errstate(invalid="ignore"):
        inside = (cut >= low) & (cut <= high)
    if beyond == "indefinite":
        return np.where(inside, whole, low if low < 0 else high)
    return np.where(inside | np.isnan(cut), whole, np.where(cut < 0, low, high))
