"""The oracle's functions on single elements: exact with Python's integers and fractions, then wrapped or rounded once.

They are definitions of their own: nothing here reads the table of primitives.
"""

from __future__ import annotations

from fractions import Fraction

from eltwise.core.dtypes import ElementType
from eltwise.oracle.numbers import Number, Special, decode, encode


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


def not_equal(element_type: ElementType, a: int, b: int) -> int:
    """Give 1 where a is not b; a NaN is not even itself."""
    return 1 - equal(element_type, a, b)


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


UNARY = {function.__name__: function for function in (negative, absolute)}
BINARY = {
    function.__name__: function
    for function in (
        *(add, subtract, multiply, squared_difference, divide, floor_divide, maximum, minimum),
        *(equal, not_equal, less, less_equal, greater, greater_equal),
    )
}
"""The functions by name: of an element type and the bit patterns of one operand, or of two."""

COMPARISONS = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")
"""Those that give 1 or 0 for true or false."""

OF_BOOLEANS = ("equal", "not_equal")
OF_ANY_NUMBER = ("maximum", "minimum")
"""Those that take any number of operands, from left to right."""
