"""The oracle's functions on exact numbers, with Python's integers and fractions; results are wrapped or rounded once.

They are definitions of their own: nothing here reads the table of primitives.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from eltwise.core.dtypes import ElementType
from eltwise.oracle.numbers import Number, Special, decode, encode

OnBits = Callable[..., int]
"""Takes an element type and the bit patterns of the operands, and gives that of the result; 1 or 0 of a comparison."""

_INFINITIES = (Special.POSITIVE_INFINITY, Special.NEGATIVE_INFINITY)
_NEGATED: dict[Special, Number] = {
    Special.NEGATIVE_ZERO: Fraction(0),
    Special.POSITIVE_INFINITY: Special.NEGATIVE_INFINITY,
    Special.NEGATIVE_INFINITY: Special.POSITIVE_INFINITY,
    Special.NAN: Special.NAN,
}


class UndefinedError(ArithmeticError):
    """No specification says what the result is: an integer is divided by 0."""


def _negative(a: Number) -> Number:
    if isinstance(a, Special):
        return _NEGATED[a]
    return Special.NEGATIVE_ZERO if a == 0 and isinstance(a, Fraction) else -a


def _absolute(a: Number) -> Number:
    return _negative(a) if _is_negative(a) else a


def _sum(a: Number, b: Number) -> Number:
    """The exact a + b; opposite numbers give +0, and so do two zeros unless both are negative."""
    if not isinstance(a, Special) and not isinstance(b, Special):
        return a + b
    if Special.NAN in (a, b) or {a, b} == set(_INFINITIES):
        return Special.NAN
    for number, other in ((a, b), (b, a)):
        if number in _INFINITIES:
            return number
        if number is Special.NEGATIVE_ZERO and other is not Special.NEGATIVE_ZERO:
            return other
    return Special.NEGATIVE_ZERO


def _difference(a: Number, b: Number) -> Number:
    return _sum(a, _negative(b))


def _product(a: Number, b: Number) -> Number:
    """The exact a * b; a product of floats is negative, and so is its zero, where just one factor is."""
    if isinstance(a, int) and isinstance(b, int):
        return a * b
    if Special.NAN in (a, b) or (a in _INFINITIES and _is_zero(b)) or (b in _INFINITIES and _is_zero(a)):
        return Special.NAN
    negative = _is_negative(a) != _is_negative(b)
    if a in _INFINITIES or b in _INFINITIES:
        return Special.NEGATIVE_INFINITY if negative else Special.POSITIVE_INFINITY
    if _is_zero(a) or _is_zero(b):
        return Special.NEGATIVE_ZERO if negative else Fraction(0)
    assert isinstance(a, Fraction)
    assert isinstance(b, Fraction)
    return a * b


def _quotient(a: Number, b: Number) -> Number:
    """The exact a / b of two floats; it is negative, and so are its zeros and infinities, where just one of them is."""
    both_infinite, both_zero = a in _INFINITIES and b in _INFINITIES, _is_zero(a) and _is_zero(b)
    if Special.NAN in (a, b) or both_infinite or both_zero:
        return Special.NAN
    negative = _is_negative(a) != _is_negative(b)
    if a in _INFINITIES or _is_zero(b):
        return Special.NEGATIVE_INFINITY if negative else Special.POSITIVE_INFINITY
    if b in _INFINITIES or _is_zero(a):
        return Special.NEGATIVE_ZERO if negative else Fraction(0)
    assert isinstance(a, Fraction)
    assert isinstance(b, Fraction)
    return a / b


def _divided(a: Number, b: Number) -> Number:
    """The quotient; of integers rounded towards zero."""
    if not isinstance(a, int) or not isinstance(b, int):
        return _quotient(a, b)
    if b == 0:
        raise UndefinedError
    magnitude = abs(a) // abs(b)
    return magnitude if (a < 0) == (b < 0) else -magnitude


def _floor_divided(a: Number, b: Number) -> Number:
    """The quotient; of integers rounded down."""
    if not isinstance(a, int) or not isinstance(b, int):
        return _quotient(a, b)
    if b == 0:
        raise UndefinedError
    return a // b


def _maximum(a: Number, b: Number) -> Number:
    """The larger number: NaN if either is one, and +0 is larger than -0."""
    if Special.NAN in (a, b):
        return Special.NAN
    return a if _order(a) >= _order(b) else b


def _minimum(a: Number, b: Number) -> Number:
    return _negative(_maximum(_negative(a), _negative(b)))


def _equal(a: Number, b: Number) -> bool:
    """Whether a is b: -0 is +0, and a NaN is nothing."""
    return Special.NAN not in (a, b) and (a == b or (_is_zero(a) and _is_zero(b)))


def _less(a: Number, b: Number) -> bool:
    """Whether a is less than b, as IEEE 754 orders floats."""
    return Special.NAN not in (a, b) and not _equal(a, b) and _order(a) < _order(b)


def _is_zero(number: Number) -> bool:
    return number is Special.NEGATIVE_ZERO or number == 0


def _is_negative(number: Number) -> bool:
    if isinstance(number, Special):
        return number in (Special.NEGATIVE_ZERO, Special.NEGATIVE_INFINITY)
    return number < 0


def _order(number: Number) -> tuple[int, Fraction | int, int]:
    """What sorts numbers as their type does: infinities outermost, and -0 before +0."""
    if isinstance(number, Special):
        places = {Special.NEGATIVE_INFINITY: (-1, 0, 0), Special.POSITIVE_INFINITY: (1, 0, 0)}
        return places.get(number, (0, 0, -1))
    return 0, number, 0


def _arithmetic(function: Callable[..., Number]) -> OnBits:
    return lambda element_type, *bits: encode(element_type, function(*(decode(element_type, each) for each in bits)))


def _comparison(function: Callable[[Number, Number], bool]) -> OnBits:
    return lambda element_type, a, b: int(function(decode(element_type, a), decode(element_type, b)))


def _squared_difference(element_type: ElementType, a: int, b: int) -> int:
    """(a - b) * (a - b), wrapped or rounded to the type after each of the two steps."""
    difference = BINARY["subtract"](element_type, a, b)
    return BINARY["multiply"](element_type, difference, difference)


UNARY: dict[str, OnBits] = {"negative": _arithmetic(_negative), "absolute": _arithmetic(_absolute)}
COMPARISONS: dict[str, OnBits] = {
    "equal": _comparison(_equal),
    "not_equal": _comparison(lambda a, b: not _equal(a, b)),
    "less": _comparison(_less),
    "less_equal": _comparison(lambda a, b: _less(a, b) or _equal(a, b)),
    "greater": _comparison(lambda a, b: _less(b, a)),
    "greater_equal": _comparison(lambda a, b: _less(b, a) or _equal(a, b)),
}
BINARY: dict[str, OnBits] = COMPARISONS | {
    "add": _arithmetic(_sum),
    "subtract": _arithmetic(_difference),
    "multiply": _arithmetic(_product),
    "squared_difference": _squared_difference,
    "divide": _arithmetic(_divided),
    "floor_divide": _arithmetic(_floor_divided),
    "maximum": _arithmetic(_maximum),
    "minimum": _arithmetic(_minimum),
}

OF_BOOLEANS = ("equal", "not_equal")
OF_ANY_NUMBER = ("maximum", "minimum")
"""Those that take any number of operands, from left to right."""
