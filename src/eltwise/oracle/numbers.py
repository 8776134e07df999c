"""The oracle's numbers: bit patterns to exact numbers and back, and the formulas on single elements.

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


def subtract(element_type: ElementType, a: int, b: int) -> int:
    """Give the bit pattern of a - b for two bit patterns of one type: exact, then wrapped or rounded once.

    >>> from eltwise.core.dtypes import UINT8
    >>> subtract(UINT8, 3, 5)
    254
    """
    return encode(element_type, _difference(decode(element_type, a), decode(element_type, b)))


def squared_difference(element_type: ElementType, a: int, b: int) -> int:
    """Give the bit pattern of (a - b) * (a - b), wrapped or rounded to the type after each of the two steps.

    >>> from eltwise.core.dtypes import UINT8
    >>> squared_difference(UINT8, 3, 5)
    4
    """
    difference = decode(element_type, subtract(element_type, a, b))
    return encode(element_type, _product(difference, difference))


def add(element_type: ElementType, a: int, b: int) -> int:
    """Give the bit pattern of a + b for two bit patterns of one type: exact, then wrapped or rounded once.

    >>> from eltwise.core.dtypes import UINT8
    >>> add(UINT8, 250, 8)
    2
    """
    return encode(element_type, _sum(decode(element_type, a), decode(element_type, b)))


def multiply(element_type: ElementType, a: int, b: int) -> int:
    """Give the bit pattern of a * b for two bit patterns of one type: exact, then wrapped or rounded once.

    >>> from eltwise.core.dtypes import UINT8
    >>> multiply(UINT8, 20, 13)
    4
    """
    return encode(element_type, _product(decode(element_type, a), decode(element_type, b)))


class UndefinedError(ArithmeticError):
    """No specification says what the result is: an integer is divided by 0."""


def divide(element_type: ElementType, a: int, b: int) -> int:
    """Give the bit pattern of a / b: integers rounded towards zero, then wrapped; floats rounded once.

    >>> from eltwise.core.dtypes import INT8
    >>> divide(INT8, 249, 2), divide(INT8, 128, 255)
    (253, 128)

    Raises:
        UndefinedError: for an integer divided by 0.
    """
    dividend, divisor = decode(element_type, a), decode(element_type, b)
    if isinstance(dividend, int) and isinstance(divisor, int):
        if divisor == 0:
            raise UndefinedError
        magnitude = abs(dividend) // abs(divisor)
        return encode(element_type, magnitude if (dividend < 0) == (divisor < 0) else -magnitude)
    return encode(element_type, _quotient(dividend, divisor))


def floor_divide(element_type: ElementType, a: int, b: int) -> int:
    """Give the bit pattern of a / b: integers rounded down, then wrapped; floats rounded once.

    >>> from eltwise.core.dtypes import INT8
    >>> floor_divide(INT8, 249, 2)
    252

    Raises:
        UndefinedError: for an integer divided by 0.
    """
    dividend, divisor = decode(element_type, a), decode(element_type, b)
    if isinstance(dividend, int) and isinstance(divisor, int):
        if divisor == 0:
            raise UndefinedError
        return encode(element_type, dividend // divisor)
    return encode(element_type, _quotient(dividend, divisor))


def maximum(element_type: ElementType, a: int, b: int) -> int:
    """Give the bit pattern of the larger number: a NaN if either is one, and +0 is larger than -0."""
    first, second = decode(element_type, a), decode(element_type, b)
    if Special.NAN in (first, second):
        return encode(element_type, Special.NAN)
    return a if _order(first) >= _order(second) else b


def minimum(element_type: ElementType, a: int, b: int) -> int:
    """Give the bit pattern of the smaller number: a NaN if either is one, and -0 is smaller than +0."""
    first, second = decode(element_type, a), decode(element_type, b)
    if Special.NAN in (first, second):
        return encode(element_type, Special.NAN)
    return a if _order(first) <= _order(second) else b


def negative(element_type: ElementType, a: int) -> int:
    """Give the bit pattern of -a; the least integer wraps to itself."""
    return encode(element_type, _negated(decode(element_type, a)))


def absolute(element_type: ElementType, a: int) -> int:
    """Give the bit pattern of the magnitude; the least integer wraps to itself."""
    number = decode(element_type, a)
    return encode(element_type, _negated(number) if _is_negative(number) else number)


def equal(element_type: ElementType, a: int, b: int) -> int:
    """Give 1 where a is b: -0 is +0, and a NaN is nothing."""
    first, second = decode(element_type, a), decode(element_type, b)
    if Special.NAN in (first, second):
        return 0
    return int(first == second or (_is_zero(first) and _is_zero(second)))


def less(element_type: ElementType, a: int, b: int) -> int:
    """Give 1 where a is less than b, as IEEE 754 orders floats."""
    first, second = decode(element_type, a), decode(element_type, b)
    if Special.NAN in (first, second) or (_is_zero(first) and _is_zero(second)):
        return 0
    return int(_order(first) < _order(second))


def less_equal(element_type: ElementType, a: int, b: int) -> int:
    """Give 1 where a is less than b or equal to it."""
    return less(element_type, a, b) | equal(element_type, a, b)


def greater(element_type: ElementType, a: int, b: int) -> int:
    """Give 1 where a is greater than b."""
    return less(element_type, b, a)


def greater_equal(element_type: ElementType, a: int, b: int) -> int:
    """Give 1 where a is greater than b or equal to it."""
    return greater(element_type, a, b) | equal(element_type, a, b)


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


def _difference(a: Number, b: Number) -> Number:
    """The exact a - b; equal numbers give +0, as rounding to nearest demands."""
    if isinstance(a, Special) or isinstance(b, Special):
        return _difference_with_special(a, b)
    return a - b


def _difference_with_special(a: Number, b: Number) -> Number:
    infinities = (Special.POSITIVE_INFINITY, Special.NEGATIVE_INFINITY)
    if Special.NAN in (a, b):
        return Special.NAN
    if a in infinities:
        return Special.NAN if a is b else a
    if b in infinities:
        return Special.NEGATIVE_INFINITY if b is Special.POSITIVE_INFINITY else Special.POSITIVE_INFINITY
    if isinstance(b, Special):
        return Fraction(0) if a is b else a
    return -b if b != 0 else Special.NEGATIVE_ZERO


def _sum(a: Number, b: Number) -> Number:
    """The exact a + b; opposite numbers give +0, and so do two zeros unless both are negative."""
    if not isinstance(a, Special) and not isinstance(b, Special):
        return a + b
    if Special.NAN in (a, b) or {a, b} == {Special.POSITIVE_INFINITY, Special.NEGATIVE_INFINITY}:
        return Special.NAN
    for number, other in ((a, b), (b, a)):
        if number in (Special.POSITIVE_INFINITY, Special.NEGATIVE_INFINITY):
            return number
        if number is Special.NEGATIVE_ZERO and other is not Special.NEGATIVE_ZERO:
            return other
    return Special.NEGATIVE_ZERO


def _product(a: Number, b: Number) -> Number:
    """The exact a * b; a product of floats is negative, and so is its zero, where just one factor is."""
    if isinstance(a, int) and isinstance(b, int):
        return a * b
    if Special.NAN in (a, b):
        return Special.NAN
    negative = _is_negative(a) != _is_negative(b)
    if any(isinstance(number, Special) and number is not Special.NEGATIVE_ZERO for number in (a, b)):
        if _is_zero(a) or _is_zero(b):
            return Special.NAN
        return Special.NEGATIVE_INFINITY if negative else Special.POSITIVE_INFINITY
    if _is_zero(a) or _is_zero(b):
        return Special.NEGATIVE_ZERO if negative else Fraction(0)
    assert not isinstance(a, Special)
    assert not isinstance(b, Special)
    return a * b


def _is_zero(number: Number) -> bool:
    return number is Special.NEGATIVE_ZERO or number == 0


def _is_negative(number: Number) -> bool:
    if isinstance(number, Special):
        return number in (Special.NEGATIVE_ZERO, Special.NEGATIVE_INFINITY)
    return number < 0


def _quotient(a: Number, b: Number) -> Number:
    """The exact a / b of two floats; it is negative, and so are its zeros and infinities, where just one of them is."""
    infinities = (Special.POSITIVE_INFINITY, Special.NEGATIVE_INFINITY)
    both_infinite, both_zero = a in infinities and b in infinities, _is_zero(a) and _is_zero(b)
    if Special.NAN in (a, b) or both_infinite or both_zero:
        return Special.NAN
    negative = _is_negative(a) != _is_negative(b)
    if a in infinities or _is_zero(b):
        return Special.NEGATIVE_INFINITY if negative else Special.POSITIVE_INFINITY
    if b in infinities or _is_zero(a):
        return Special.NEGATIVE_ZERO if negative else Fraction(0)
    assert isinstance(a, Fraction)
    assert isinstance(b, Fraction)
    return a / b


def _negated(number: Number) -> Number:
    if isinstance(number, Special):
        return _NEGATED[number]
    return Special.NEGATIVE_ZERO if number == 0 and isinstance(number, Fraction) else -number


_NEGATED: dict[Special, Number] = {
    Special.NEGATIVE_ZERO: Fraction(0),
    Special.POSITIVE_INFINITY: Special.NEGATIVE_INFINITY,
    Special.NEGATIVE_INFINITY: Special.POSITIVE_INFINITY,
    Special.NAN: Special.NAN,
}


def _order(number: Number) -> tuple[int, Fraction | int, int]:
    """What sorts numbers as their type does: infinities outermost, and -0 before +0."""
    if number is Special.NEGATIVE_INFINITY:
        return -1, 0, 0
    if number is Special.POSITIVE_INFINITY:
        return 1, 0, 0
    if number is Special.NEGATIVE_ZERO:
        return 0, 0, -1
    assert not isinstance(number, Special)
    return 0, number, 0
