"""The oracle's numbers: bit patterns to exact numbers and back.

Everything is computed with Python integers and fractions and rounded at one place, ``encode``. A bit pattern is the
element read as an unsigned integer. Sources: IEEE 754 for float16, float32 and float64; the OCP 8-bit floating point
specification for float8_e5m2 and float8_e4m3fn; bfloat16 is the upper half of a float32.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from fractions import Fraction
from functools import cached_property, lru_cache

from eltwise.core.dtypes import BFLOAT16, BOOL, FLOAT8E4M3FN, FLOAT8E5M2, FLOAT16, FLOAT32, FLOAT64, ElementType


class Special(Enum):
    """What a float can hold that a fraction cannot; the positive zero is the fraction 0."""

    NEGATIVE_ZERO = "-0"
    POSITIVE_INFINITY = "+inf"
    NEGATIVE_INFINITY = "-inf"
    NAN = "nan"


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
    if exponent_field > 0:
        digits += 1 << layout.mantissa_bits
    exponent = layout.least_exponent + max(exponent_field - 1, 0) - layout.mantissa_bits
    return (-digits if negative else digits) * _power_of_two(exponent)


def _encode_float(layout: FloatLayout, number: Number) -> int:
    if number is Special.NAN:
        return layout.nan
    if number is Special.NEGATIVE_ZERO:
        return layout.sign
    if number is Special.POSITIVE_INFINITY:
        return layout.largest_finite + 1
    if number is Special.NEGATIVE_INFINITY:
        return layout.sign | (layout.largest_finite + 1)
    exact = number if isinstance(number, Fraction) else Fraction(number)
    sign = layout.sign if exact.numerator < 0 else 0
    return sign | _rounded_magnitude(layout, abs(exact))


def _rounded_magnitude(layout: FloatLayout, magnitude: Fraction) -> int:
    """Round a number that is not negative to the nearest pattern, ties to even."""
    if magnitude == 0:
        return 0
    exponent = max(_floor_of_log2(magnitude), layout.least_exponent)
    digits = _rounded_quotient(magnitude, exponent - layout.mantissa_bits)
    # Adding instead of joining fields: the leading digit, which is not stored, raises the exponent field from 0 to 1,
    # and digits that were rounded up to the next power of two raise it once more.
    pattern = ((exponent - layout.least_exponent) << layout.mantissa_bits) + digits
    return min(pattern, layout.largest_finite + 1)


def _rounded_quotient(magnitude: Fraction, exponent: int) -> int:
    """A positive fraction over a power of two, rounded to the nearest whole number, ties to even."""
    numerator, denominator = _shifted(magnitude, exponent)
    quotient, rest = divmod(numerator, denominator)
    is_above = 2 * rest > denominator or (2 * rest == denominator and quotient % 2 == 1)
    return quotient + is_above


def _floor_of_log2(magnitude: Fraction) -> int:
    """The exponent of the greatest power of two that is not above a positive fraction."""
    guess = magnitude.numerator.bit_length() - magnitude.denominator.bit_length()
    numerator, denominator = _shifted(magnitude, guess)
    return guess if numerator >= denominator else guess - 1


def _shifted(magnitude: Fraction, exponent: int) -> tuple[int, int]:
    """Numerator and denominator of a fraction over a power of two: whole numbers are faster than fractions."""
    if exponent < 0:
        return magnitude.numerator << -exponent, magnitude.denominator
    return magnitude.numerator, magnitude.denominator << exponent


@lru_cache(maxsize=1 << 13)
def _power_of_two(exponent: int) -> Fraction:
    return Fraction(2) ** exponent
