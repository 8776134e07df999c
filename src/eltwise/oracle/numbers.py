"""The oracle's numbers: bit patterns to exact numbers and back.

Everything is computed with Python's integers, also in arrays, which hold them as objects; NumPy's only divide patterns
into their fields. Floats are rounded at one place, ``rounded``. A bit pattern is an element as an unsigned integer.
Sources: IEEE 754 for float16, float32 and float64; the OCP 8-bit floating point specification for float8_e5m2 and
float8_e4m3fn; bfloat16 is the upper half of a float32.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from eltwise.core.dtypes import BFLOAT16, BOOL, FLOAT8E4M3FN, FLOAT8E5M2, FLOAT16, FLOAT32, FLOAT64, ElementType


class Special(Enum):
    """What a float can hold that a fraction cannot; the positive zero is the fraction 0."""

    NEGATIVE_ZERO = "-0"
    POSITIVE_INFINITY = "+inf"
    NEGATIVE_INFINITY = "-inf"
    NAN = "nan"


Integers = npt.NDArray[Any]
"""An array of Python integers."""

Number = int | Fraction | Special
"""The value of one element: an ``int`` for the integer types, one of the other two for the floats."""


@dataclass(frozen=True)
class FloatLayout:
    """How a float type divides its bits: a sign, then the exponent, then the mantissa.

    Attributes:
        exponent_bits: the width of the exponent field.
        mantissa_bits: the width of the mantissa field, without the leading digit that is not stored.
        has_infinity: whether the greatest exponent is kept for infinities and NaN; if not, only the pattern with
            all exponent and mantissa bits set is a NaN and the others are finite.
    """

    exponent_bits: int
    mantissa_bits: int
    has_infinity: bool

    @cached_property
    def sign(self) -> int:
        """The sign bit; it is also the number of patterns of one sign."""
        return 1 << (self.exponent_bits + self.mantissa_bits)

    @cached_property
    def least_exponent(self) -> int:
        """The exponent of the smallest normal number and of the subnormal ones."""
        return 2 - (1 << (self.exponent_bits - 1))

    @cached_property
    def steps(self) -> int:
        """How many times the smallest positive number goes into 1; every finite number is a multiple of it."""
        return 1 << (self.mantissa_bits - self.least_exponent)

    @cached_property
    def largest_finite(self) -> int:
        """The pattern of the largest finite number; the next one is the infinity, or the NaN where there is none."""
        if self.has_infinity:
            return self.sign - (1 << self.mantissa_bits) - 1
        return self.sign - 2

    @cached_property
    def nan(self) -> int:
        """The pattern of the NaN that results are given as."""
        quiet = 1 << (self.mantissa_bits - 1) if self.has_infinity else 0
        return self.largest_finite + 1 + quiet


FLOAT_LAYOUTS: dict[ElementType, FloatLayout] = {
    FLOAT16: FloatLayout(exponent_bits=5, mantissa_bits=10, has_infinity=True),
    BFLOAT16: FloatLayout(exponent_bits=8, mantissa_bits=7, has_infinity=True),
    FLOAT32: FloatLayout(exponent_bits=8, mantissa_bits=23, has_infinity=True),
    FLOAT64: FloatLayout(exponent_bits=11, mantissa_bits=52, has_infinity=True),
    FLOAT8E4M3FN: FloatLayout(exponent_bits=4, mantissa_bits=3, has_infinity=False),
    FLOAT8E5M2: FloatLayout(exponent_bits=5, mantissa_bits=2, has_infinity=True),
}


@lru_cache(maxsize=1 << 17)
def decode(element_type: ElementType, bits: int) -> Number:
    """Read a bit pattern exactly.

    >>> from eltwise.core.dtypes import FLOAT16, INT8
    >>> decode(INT8, 0xFF), decode(FLOAT16, 0x3E00), decode(FLOAT16, 0x8000).name
    (-1, Fraction(3, 2), 'NEGATIVE_ZERO')

    Raises:
        ValueError: where the pattern has more bits than the type, or the type is no number.
    """
    if not 0 <= bits < 1 << element_type.bits:
        raise ValueError(f"{bits:#x} is no pattern of {element_type.bits} bits")
    if element_type is BOOL:
        return int(bits != 0)
    if element_type.is_integer:
        return bits if bits <= element_type.limits[1] else bits - (1 << element_type.bits)
    return _decode_float(_layout_of(element_type), bits)


def encode(element_type: ElementType, number: Number) -> int:
    """Give the bit pattern of a number in a type: an integer modulo 2^n, a float rounded once, ties to even.

    Subnormal results are kept. A magnitude that rounds beyond the largest finite number becomes infinity, or NaN in a
    type without infinity.

    >>> from eltwise.core.dtypes import FLOAT16, UINT8
    >>> hex(encode(UINT8, -1)), hex(encode(FLOAT16, Fraction(1, 3)))
    ('0xff', '0x3555')

    Raises:
        ValueError: where the type is no number, or an integer type is given anything but an ``int``.
    """
    if not element_type.is_integer:
        return _encode_float(_layout_of(element_type), number)
    if not isinstance(number, int):
        raise ValueError(f"{number} is no value of the integer type {element_type}")
    return number % (1 << element_type.bits)


def is_nan(element_type: ElementType, bits: int) -> bool:
    """Whether a bit pattern is a NaN of the type."""
    return element_type in FLOAT_LAYOUTS and decode(element_type, bits) is Special.NAN


def _layout_of(element_type: ElementType) -> FloatLayout:
    if element_type not in FLOAT_LAYOUTS:
        raise ValueError(f"{element_type} is no numeric type of the oracle")
    return FLOAT_LAYOUTS[element_type]


def _decode_float(layout: FloatLayout, bits: int) -> Number:
    negative, magnitude = bool(bits & layout.sign), bits & (layout.sign - 1)
    if magnitude > layout.largest_finite:
        if not layout.has_infinity or magnitude > layout.largest_finite + 1:
            return Special.NAN
        return Special.NEGATIVE_INFINITY if negative else Special.POSITIVE_INFINITY
    if magnitude == 0:
        return Special.NEGATIVE_ZERO if negative else Fraction(0)
    exponent_field, digits = divmod(magnitude, 1 << layout.mantissa_bits)
    steps = (digits + (1 << layout.mantissa_bits)) << (exponent_field - 1) if exponent_field else digits
    return Fraction(-steps if negative else steps, layout.steps)


def steps_of(layout: FloatLayout, magnitudes: Integers) -> Integers:
    """The numbers of some patterns without their sign as multiples of the smallest one; infinity as if it went on."""
    exponents, digits = magnitudes >> layout.mantissa_bits, magnitudes & ((1 << layout.mantissa_bits) - 1)
    digits = digits + np.where(exponents > 0, 1 << layout.mantissa_bits, 0).astype(magnitudes.dtype)
    steps: Integers = digits.astype(object) << (np.maximum(exponents, 1) - 1).astype(object)
    return steps


def rounded(layout: FloatLayout, steps: int, divisor: int) -> int:
    """The pattern of ``steps / divisor`` times the smallest number: the nearest one, ties to even.

    Neither is negative; what rounds beyond the largest finite number is the pattern after it.
    """
    exponent = steps.bit_length() - divisor.bit_length()
    exponent -= exponent > 0 and steps < divisor << exponent
    shift = max(exponent - layout.mantissa_bits, 0)
    divisor <<= shift
    digits, rest = divmod(steps, divisor)
    digits += 2 * rest > divisor or (2 * rest == divisor and digits % 2 == 1)
    # Added and not joined: the leading digit, which is not stored, raises the exponent field from 0 to 1, and digits
    # that were rounded up to the next power of two raise it once more.
    return min((shift << layout.mantissa_bits) + digits, layout.largest_finite + 1)


def _encode_float(layout: FloatLayout, number: Number) -> int:
    if number is Special.NAN:
        return layout.nan
    if number is Special.NEGATIVE_ZERO:
        return layout.sign
    if number is Special.POSITIVE_INFINITY:
        return layout.largest_finite + 1
    if number is Special.NEGATIVE_INFINITY:
        return layout.sign | (layout.largest_finite + 1)
    numerator, denominator = number.as_integer_ratio()
    sign = layout.sign if numerator < 0 else 0
    return sign | rounded(layout, abs(numerator) * layout.steps, denominator)
