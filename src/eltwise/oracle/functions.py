"""The oracle's functions on arrays of exact numbers: Python's integers, wrapped or rounded once.

They are definitions of their own: nothing here reads the table of primitives.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from eltwise.core.dtypes import BOOL, ElementType
from eltwise.oracle.numbers import FLOAT_LAYOUTS, Integers, rounded, steps_of

Flags = npt.NDArray[Any]
OnBits = Callable[..., Integers]
"""Takes an element type and the bit patterns of the operands, and gives those of the results; 1 or 0 of comparisons."""


class UndefinedError(ArithmeticError):
    """No specification says what the result is: an integer is divided by 0."""


@dataclass(frozen=True, eq=False)
class Numbers:
    """Exact numbers of one type, or results that are not rounded to it yet."""

    steps: Integers  # Integers as they are, floats as multiples of the smallest one; infinities are beyond all others.
    negative: Flags  # Whether the sign is minus, also that of a zero.
    infinite: Flags
    nan: Flags
    one: int  # How many steps make 1; 1 for integers.
    divisors: Integers | int = 1  # What the steps are divided by.

    @property
    def zero(self) -> Flags:
        """Which of them are zeros of either sign."""
        return np.equal(self.steps, 0)


def decoded(element_type: ElementType, bits: Integers) -> Numbers:
    """The numbers of some bit patterns."""
    layout = FLOAT_LAYOUTS.get(element_type)
    if layout is None:
        high = 1 if element_type is BOOL else element_type.limits[1]
        steps = np.where(bits > high, bits - (1 << element_type.bits), bits)
        never = np.zeros(bits.shape, bool)
        return Numbers(steps, np.less(steps, 0), never, never, 1)
    negative, magnitudes = bits >= layout.sign, bits & (layout.sign - 1)
    infinite = (magnitudes == layout.largest_finite + 1) & layout.has_infinity
    steps = steps_of(layout, magnitudes)
    nan = (magnitudes > layout.largest_finite) & ~infinite
    return Numbers(np.where(negative, -steps, steps), negative, infinite, nan, layout.steps)


def _encoded(element_type: ElementType, numbers: Numbers) -> Integers:
    layout = FLOAT_LAYOUTS.get(element_type)
    if layout is None:
        wrapped: Integers = numbers.steps % (1 << element_type.bits)
        return wrapped
    finite = np.frompyfunc(partial(rounded, layout), 2, 1)(np.abs(numbers.steps), numbers.divisors)
    magnitudes = np.where(numbers.infinite, layout.largest_finite + 1, finite)
    return np.where(numbers.nan, layout.nan, np.where(numbers.negative, magnitudes | layout.sign, magnitudes))


def _negative(a: Numbers) -> Numbers:
    return replace(a, steps=-a.steps, negative=~a.negative)


def _absolute(a: Numbers) -> Numbers:
    return replace(a, steps=np.abs(a.steps), negative=np.zeros_like(a.negative))


def _sum(a: Numbers, b: Numbers) -> Numbers:
    """The exact a + b; opposite numbers give +0, and so do two zeros unless both are negative."""
    steps = a.steps + b.steps
    negative = np.where(np.equal(steps, 0), a.negative & b.negative, np.less(steps, 0))
    negative = np.where(a.infinite, a.negative, np.where(b.infinite, b.negative, negative))
    nan = a.nan | b.nan | (a.infinite & b.infinite & (a.negative != b.negative))
    return Numbers(steps, negative, a.infinite | b.infinite, nan, a.one)


def _product(a: Numbers, b: Numbers) -> Numbers:
    """The exact a * b; a product of floats is negative, and so is its zero, where just one factor is."""
    infinite = a.infinite | b.infinite
    nan = a.nan | b.nan | (infinite & (a.zero | b.zero))
    return Numbers(a.steps * b.steps, a.negative != b.negative, infinite, nan, a.one, a.one)


def _quotient(a: Numbers, b: Numbers) -> Numbers:
    """The exact a / b of two floats; it is negative, and so are its zeros and infinities, where just one of them is."""
    nan = a.nan | b.nan | (a.infinite & b.infinite) | (a.zero & b.zero)
    steps, divisors = np.where(b.infinite, 0, a.steps * a.one), np.where(b.zero, 1, np.abs(b.steps))
    return Numbers(steps, a.negative != b.negative, a.infinite | b.zero, nan, a.one, divisors)


def _divided(a: Numbers, b: Numbers) -> Numbers:
    """The quotient; of integers rounded towards zero."""
    if a.one > 1:
        return _quotient(a, b)
    magnitudes = _floor_divided(_absolute(a), _absolute(b)).steps
    return replace(a, steps=np.where(a.negative == b.negative, magnitudes, -magnitudes))


def _floor_divided(a: Numbers, b: Numbers) -> Numbers:
    """The quotient; of integers rounded down."""
    if a.one > 1:
        return _quotient(a, b)
    if b.zero.any():
        raise UndefinedError
    return replace(a, steps=a.steps // b.steps)


def _maximum(a: Numbers, b: Numbers) -> Numbers:
    """The larger number: NaN if either is one, and +0 is larger than -0."""
    is_b = np.less(a.steps, b.steps) | (np.equal(a.steps, b.steps) & a.negative)
    steps, negative = np.where(is_b, b.steps, a.steps), np.where(is_b, b.negative, a.negative)
    return Numbers(steps, negative, np.where(is_b, b.infinite, a.infinite), a.nan | b.nan, a.one)


def _minimum(a: Numbers, b: Numbers) -> Numbers:
    return _negative(_maximum(_negative(a), _negative(b)))


def _equal(a: Numbers, b: Numbers) -> Flags:
    """Whether a is b: -0 is +0, and a NaN is nothing."""
    return np.equal(a.steps, b.steps) & ~a.nan & ~b.nan


def _less(a: Numbers, b: Numbers) -> Flags:
    """Whether a is less than b, as IEEE 754 orders floats."""
    return np.less(a.steps, b.steps) & ~a.nan & ~b.nan


def _arithmetic(function: Callable[..., Numbers]) -> OnBits:
    return lambda element_type, *bits: _encoded(element_type, function(*(decoded(element_type, one) for one in bits)))


def _comparison(function: Callable[[Numbers, Numbers], Flags]) -> OnBits:
    return lambda element_type, a, b: function(decoded(element_type, a), decoded(element_type, b)) * 1


def _squared_difference(element_type: ElementType, a: Integers, b: Integers) -> Integers:
    """(a - b) * (a - b), wrapped or rounded to the type after each of the two steps."""
    difference = BINARY["subtract"](element_type, a, b)
    return BINARY["multiply"](element_type, difference, difference)


UNARY: dict[str, OnBits] = {"negative": _arithmetic(_negative), "absolute": _arithmetic(_absolute)}
COMPARISONS: dict[str, OnBits] = {
    "equal": _comparison(_equal),
    "not_equal": _comparison(lambda a, b: ~_equal(a, b)),
    "less": _comparison(_less),
    "less_equal": _comparison(lambda a, b: _less(a, b) | _equal(a, b)),
    "greater": _comparison(lambda a, b: _less(b, a)),
    "greater_equal": _comparison(lambda a, b: _less(b, a) | _equal(a, b)),
}
BINARY: dict[str, OnBits] = COMPARISONS | {
    "add": _arithmetic(_sum),
    "subtract": _arithmetic(lambda a, b: _sum(a, _negative(b))),
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
