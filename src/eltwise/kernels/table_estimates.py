"""Estimates of real functions in pairs of float64, from a table's value at a near point and a short series. Pure.

Each has a relative error below 2**-68, also next to the zeros of its function. The series are Taylor's: what is left of
arguments is so small that few terms, of which only the first need a second part, have all digits. Where it is said so,
the second part of a result is not yet as small as that of a pair: sums with it are right, but no products.
"""

from __future__ import annotations

from math import factorial
from typing import Generic

from eltwise.core.odd_rounding import ordered_sum, two_sum
from eltwise.kernels import coefficients, tables
from eltwise.kernels.pairs import Pair
from eltwise.kernels.polynomials import horner
from eltwise.kernels.vectors import F

_EXPONENTIAL = tuple(2 / factorial(n) for n in range(3, 8))
_LOGARITHM = tuple((-1) ** (n + 1) * 2 / n for n in range(3, 10))
_SINE = tuple((-1) ** n / factorial(2 * n + 1) for n in range(1, 4))
_COSINE = tuple((-1) ** n / factorial(2 * n) for n in range(1, 4))
_ARCTANGENT = tuple((-1) ** n / (2 * n + 1) for n in range(1, 5))

_UPPER_LOG2, *_LOWER_LOG2 = coefficients.PAIR_LOG2


def exponential(x: Pair[F]) -> tuple[F, Pair[F]]:
    """``s``, a power of two, and ``p``, a sum from -0.01 to 1, of ``exp(x) = s + s p``; sizes count as at most 708."""
    largest, parts = x.precision.largest, tables.POWERS
    high = x.high.where("olt", -largest, -largest, x.high)
    high = high.where("ogt", largest, largest, high)
    low = abs(x.high).where("ogt", largest, 0.0, x.low)
    whole, power = high.split(parts / coefficients.LOG2[0], parts)
    upper, lower, last = (part / parts for part in coefficients.PAIR_LOG2)
    # Where what is left is less than the second product, it is next to a result that is not small.
    left, lost = ordered_sum(whole.fused(-upper, high), whole * -lower)
    rest = Pair(*ordered_sum(left, whole.fused(-last, lost + low)))
    first, second = whole.row(1.0, tables.powers(), 2)[1:]
    square, lost = rest.high.product(rest.high * 0.5)
    lost = lost + rest.high.fused(rest.low, square * rest.high * horner(rest.high, _EXPONENTIAL))
    part, beyond = ordered_sum(rest.high, square)
    beyond = beyond + (rest.low + lost)
    product, lost = part.product(first)
    total, left = ordered_sum(first, part)
    total, more = ordered_sum(total, product)
    return power, Pair(total, left + more + (lost + first.fused(beyond, second.fused(part, second)) + beyond))


def logarithm(x: Pair[F]) -> Pair[F]:
    """The logarithm of positive normal numbers, as a sum."""
    mantissa, exponent, scale = x.high.fraction()
    return _logarithm(exponent, mantissa, x.low * scale, None)


def logarithm_beside_one(u: Pair[F]) -> Pair[F]:
    """``log(1 + u)`` for ``u`` from 0 on, as a sum."""
    total, lost = two_sum(u.high.constant(1.0), u.high)
    mantissa, exponent, scale = total.fraction()
    return _logarithm(exponent, mantissa, lost * scale, u.low * scale)


def _logarithm(exponent: F, high: F, middle: F, low: F | None) -> Pair[F]:
    """``exponent * log(2) + log(high + middle + low)`` for sums from sqrt(1/2) to sqrt(2)."""
    inverse, first, second = high.row(float(tables.LOGARITHMS), tables.logarithms(), 3)[1:]
    product, lost = high.product(inverse)
    rest, beyond = two_sum(product - 1.0, middle * inverse)  # The difference is exact.
    beyond = beyond + (lost if low is None else low.fused(inverse, lost))
    square, lost = rest.product(rest * 0.5)
    tail = square * rest * horner(rest, _LOGARITHM) - lost
    total, left = ordered_sum(exponent * _UPPER_LOG2, first)
    total, more = ordered_sum(total, rest)
    total, most = ordered_sum(total, -square)
    beyond = beyond - beyond * rest.fused(-rest, rest)
    small = exponent.fused(sum(_LOWER_LOG2), beyond + tail)
    return Pair(total, ((left + more) + most) + (second + small))


class Turn(Generic[F]):
    """Sines and cosines of pairs up to pi / 4."""

    def __init__(self, rest: Pair[F]) -> None:
        columns = rest.high.row(float(tables.ANGLES), tables.sines(), 4)
        near: F = rest.high - columns[0] * (1 / tables.ANGLES)  # It is exact.
        square = near * near
        self._near: F = near
        self._less: F = square * horner(square, _COSINE) - near * rest.low
        self._more: F = near.fused(square * horner(square, _SINE), rest.low.fused(self._less, rest.low))
        self._sine: Pair[F] = Pair(columns[1], columns[2])
        self._cosine: Pair[F] = Pair(columns[3], columns[4])

    def sine(self) -> Pair[F]:
        """The sine."""
        value = self._turned(self._sine, self._cosine)
        return Pair(*ordered_sum(value.high, value.low))

    def cosine(self) -> Pair[F]:
        """The cosine."""
        value = self._turned(self._cosine, -self._sine)
        return Pair(*ordered_sum(value.high, value.low))

    def either(self, odd: F) -> Pair[F]:
        """The sine where a number is 0, else the cosine, as a sum."""
        is_odd = odd.flags("one", 0.0)
        return self._turned(self._cosine.chosen(is_odd, self._sine), (-self._sine).chosen(is_odd, self._cosine))

    def _turned(self, value: Pair[F], slope: Pair[F]) -> Pair[F]:
        product, lost = slope.high.product(self._near)
        total, left = ordered_sum(value.high, product)
        small = slope.low.fused(self._near, slope.high.fused(self._more, value.high.fused(self._less, lost)))
        return Pair(total, left + (value.low + small))


def arctangent(y: Pair[F], x: Pair[F]) -> Pair[F]:
    """The angle of points whose coordinates are not negative and not both 0, ``atan(y / x)``, as a sum."""
    is_steep = y.high.flags("ogt", x.high)
    one, other = y.chosen(is_steep, x), x.chosen(is_steep, y)  # The larger one and the less.
    turned = y.high.constant(2.0 * tables.ANGLES).chosen(is_steep, 0.0)
    columns = (other.high / one.high).fused(float(tables.ANGLES), turned).row(1.0, tables.arctangents(), 2)
    slope = (columns[0] - turned) * (1 / tables.ANGLES)
    across, along = one * slope, other * slope
    difference = Pair(*ordered_sum(other.high - across.high, other.low - across.low))  # The first one is exact.
    total, left = ordered_sum(one.high, along.high)
    ratio = difference / Pair(total, left + (one.low + along.low))
    ratio = (-ratio).chosen(is_steep, ratio)
    near, square = ratio.high, ratio.high * ratio.high
    total, left = ordered_sum(columns[1], near)
    small = near.fused(square * horner(square, _ARCTANGENT), ratio.low)
    return Pair(total, left + (columns[2] + small))


def error_function(size: F) -> F:
    """The error function of float64 that are not negative, with the digits that float32 need."""
    return horner(*_beside_error(size, 6))


def error_function_in_pairs(size: F) -> Pair[F]:
    """The error function of float64 that are not negative."""
    return _series(*_beside_error(size, 14))


def _beside_error(size: F, count: int) -> tuple[F, list[F]]:
    last = float(tables.LAST_ERROR)
    near = size.where("ogt", last, last, size)
    columns = near.row(float(tables.ERRORS), tables.errors(), count)
    return near - columns[0] * (1 / tables.ERRORS), columns[1:]  # The difference is exact.


def scaled_tail(size: F) -> F:
    """``exp(size * size / 2)`` times the normal distribution's share beyond a float64 from 0 to 40, for float32."""
    return horner(*_beside_tail(size, 9))


def scaled_tail_in_pairs(size: F) -> Pair[F]:
    """``exp(size * size / 2)`` times the normal distribution's share beyond a float64 from 0 to 40."""
    return _series(*_beside_tail(size, 16))


def _beside_tail(size: F, count: int) -> tuple[F, list[F]]:
    last = float(tables.LAST_TAIL)
    near = size.where("ogt", last, last, size)
    columns = (near + 1.0).row_of_octave(tables.TAILS, tables.tails(), count)
    return near - columns[0], columns[1:]


def _series(x: F, columns: list[F]) -> Pair[F]:
    """A polynomial whose coefficients begin with the lowest, followed by the second parts of the first three."""
    result = Pair(horner(x, columns[3:-3]), x.constant(0.0))
    for number in (2, 1, 0):
        product, lost = result.high.product(x)
        total, left = ordered_sum(columns[number], product)
        result = Pair(total, left + (columns[number - 3] + result.low.fused(x, lost)))
    return result
