"""Arithmetic on exact numbers: sums, products, remainders, order, choice and rounding to integers.

Source of the signs of zeros and of what infinities and NaN give: IEEE 754.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from eltwise.oracle.exact import Flags, Numbers, aligned, whole
from eltwise.oracle.numbers import Integers


class UndefinedError(ArithmeticError):
    """No specification says what the result is."""


# ---- arithmetic


def negated(a: Numbers) -> Numbers:
    """The number with the other sign."""
    return replace(a, numerators=-a.numerators, negative=~a.negative)


def absolute(a: Numbers) -> Numbers:
    """The number without its sign."""
    return replace(a, numerators=np.abs(a.numerators), negative=np.zeros_like(a.negative))


def total(a: Numbers, b: Numbers) -> Numbers:
    """The exact a + b; opposite numbers give +0, and so do two zeros unless both are negative."""
    left, right, denominators = aligned(a, b)
    numerators = left + right
    negative = np.where(np.equal(numerators, 0), a.negative & b.negative, np.less(numerators, 0))
    negative = np.where(a.infinite, a.negative, np.where(b.infinite, b.negative, negative))
    nan = a.nan | b.nan | (a.infinite & b.infinite & (a.negative != b.negative))
    return Numbers(numerators, negative, a.infinite | b.infinite, nan, denominators)


def difference(a: Numbers, b: Numbers) -> Numbers:
    """The exact a - b."""
    return total(a, negated(b))


def product(a: Numbers, b: Numbers) -> Numbers:
    """The exact a * b; it is negative, and so is its zero, where just one factor is."""
    infinite = a.infinite | b.infinite
    nan = a.nan | b.nan | (infinite & (a.zero | b.zero))
    numerators, denominators = a.numerators * b.numerators, a.denominators * b.denominators
    return Numbers(numerators, a.negative != b.negative, infinite, nan, denominators)


def quotient(a: Numbers, b: Numbers) -> Numbers:
    """The exact a / b; it is negative, and so are its zeros and infinities, where just one of them is."""
    nan = a.nan | b.nan | (a.infinite & b.infinite) | (a.zero & b.zero)
    dividends, divisors, _denominators = aligned(a, b)
    numerators = np.where(b.infinite, 0, np.where(np.less(divisors, 0), -dividends, dividends))
    denominators = np.where(np.equal(divisors, 0), 1, np.abs(divisors))
    return Numbers(numerators, a.negative != b.negative, a.infinite | b.zero, nan, denominators)


def divided(a: Numbers, b: Numbers) -> Numbers:
    """The quotient; of integers rounded towards zero."""
    if not a.are_integers:
        return quotient(a, b)
    magnitudes = floor_divided(absolute(a), absolute(b)).numerators
    return whole(np.where(a.negative == b.negative, magnitudes, -magnitudes))


def floor_divided(a: Numbers, b: Numbers) -> Numbers:
    """The quotient; of integers rounded down."""
    if not a.are_integers:
        return quotient(a, b)
    _refuse_zero(b)
    return whole(a.numerators // b.numerators)


def modulo(a: Numbers, b: Numbers) -> Numbers:
    """The remainder a - floor(a / b) * b, which has b's sign, also as a zero."""
    left, right, denominators = _divisible(a, b)
    numerators = left % right
    crosses = np.not_equal(numerators, 0) & b.infinite & (a.negative != b.negative)
    nan = a.nan | b.nan | a.infinite | b.zero
    return Numbers(numerators, b.negative, crosses, nan, denominators)


def fmod(a: Numbers, b: Numbers) -> Numbers:
    """The remainder a - trunc(a / b) * b, which has a's sign, also as a zero."""
    left, right, denominators = _divisible(a, b)
    magnitudes = np.abs(left) % np.abs(right)
    nan = a.nan | b.nan | a.infinite | b.zero
    never = np.zeros_like(nan)
    return Numbers(np.where(a.negative, -magnitudes, magnitudes), a.negative, never, nan, denominators)


def _divisible(a: Numbers, b: Numbers) -> tuple[Integers, Integers, Integers | int]:
    """Numerators over one denominator; a divisor is not 0, and an infinite one larger than every dividend."""
    if a.are_integers:
        _refuse_zero(b)
    left, right, denominators = aligned(a, b)
    farther = np.where(b.negative, -1, 1) * (np.abs(left) + 1)
    return left, np.where(b.infinite, farther, np.where(np.equal(right, 0), 1, right)), denominators


def _refuse_zero(divisors: Numbers) -> None:
    if divisors.zero.any():
        raise UndefinedError("an integer is divided by 0, of which no specification gives the result")


# ---- order and choice


def choice(condition: Flags, a: Numbers, b: Numbers) -> Numbers:
    """The numbers a where the condition holds, elsewhere b."""
    left, right, denominators = aligned(a, b)
    return Numbers(
        np.where(condition, left, right),
        np.where(condition, a.negative, b.negative),
        np.where(condition, a.infinite, b.infinite),
        np.where(condition, a.nan, b.nan),
        denominators,
    )


def equal(a: Numbers, b: Numbers) -> Flags:
    """Whether a is b: -0 is +0, and a NaN is nothing."""
    left, right, _denominators = aligned(a, b)
    is_same = np.where(a.infinite & b.infinite, a.negative == b.negative, np.equal(left, right))
    return np.asarray(is_same & (a.infinite == b.infinite) & ~a.nan & ~b.nan)


def less(a: Numbers, b: Numbers) -> Flags:
    """Whether a is less than b, as IEEE 754 orders floats."""
    left, right, _denominators = aligned(a, b)
    is_less = np.where(a.infinite | b.infinite, a.ranks < b.ranks, np.less(left, right))
    return np.asarray(is_less & ~a.nan & ~b.nan)


def maximum(a: Numbers, b: Numbers) -> Numbers:
    """The larger number: NaN if either is one, and +0 is larger than -0."""
    is_b = less(a, b) | (equal(a, b) & a.negative)
    return replace(choice(is_b, b, a), nan=a.nan | b.nan)


def minimum(a: Numbers, b: Numbers) -> Numbers:
    """The smaller number: NaN if either is one, and -0 is smaller than +0."""
    return negated(maximum(negated(a), negated(b)))


# ---- rounding to integers; infinities, NaN and the signs of zeros stay


def truncated(a: Numbers) -> Numbers:
    """The number without its fraction."""
    magnitudes = np.abs(a.numerators) // a.denominators
    return replace(a, numerators=np.where(a.negative, -magnitudes, magnitudes), denominators=1)


def half_even(a: Numbers) -> Numbers:
    """The nearest integer, the even one of two."""
    integers, rests = a.numerators // a.denominators, 2 * (a.numerators % a.denominators)
    is_up = np.greater(rests, a.denominators) | (np.equal(rests, a.denominators) & np.equal(integers % 2, 1))
    return replace(a, numerators=integers + is_up, denominators=1)


def half_away(a: Numbers) -> Numbers:
    """The nearest integer, that farther from 0 of two."""
    halves = np.where(a.negative, -1, 1).astype(object) * a.denominators
    return truncated(replace(a, numerators=2 * a.numerators + halves, denominators=2 * a.denominators))


def floor(a: Numbers) -> Numbers:
    """The largest integer that is not above the number."""
    return replace(a, numerators=a.numerators // a.denominators, denominators=1)


def ceil(a: Numbers) -> Numbers:
    """The smallest integer that is not below the number."""
    return negated(floor(negated(a)))
