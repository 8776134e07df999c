"""Floats of 192 digits and any exponent, for elements whose rounding float64 does not decide: in Python and LLVM. Pure.

Every result is rounded to odd: an inexact one gets a last digit of 1. So it stays on the same side of every number of
fewer digits as the exact value, also where they differ by less than the last digit, and can be rounded again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import NamedTuple

DIGITS = 192
TABLE_DIGITS = 1280
"""So many digits of 2 / pi show what is left of the largest float64 beyond a multiple of it."""

NEAR = 1 << 20
"""So many units in the last place are more than the error of a power."""

_FARTHEST = 1 << 10
"""Beyond so many digits from the larger one an operand of a sum only decides the last digit."""


class Soft(NamedTuple):
    """A number, ``mantissa * 2**exponent``, with a mantissa of 192 digits, or 0."""

    mantissa: int
    exponent: int

    def __add__(self, other: Soft) -> Soft:  # type: ignore[override]
        high, low = (self, other) if self.exponent >= other.exponent else (other, self)
        if not high.mantissa or not low.mantissa:
            return low if not high.mantissa else high
        distance = high.exponent - low.exponent
        if distance > _FARTHEST:
            return soft((high.mantissa << _FARTHEST) + (1 if low.mantissa > 0 else -1), high.exponent - _FARTHEST)
        return soft((high.mantissa << distance) + low.mantissa, low.exponent)

    def __neg__(self) -> Soft:
        return Soft(-self.mantissa, self.exponent)

    def __sub__(self, other: Soft) -> Soft:
        return self + -other

    def __mul__(self, other: Soft) -> Soft:  # type: ignore[override]
        return soft(self.mantissa * other.mantissa, self.exponent + other.exponent)

    def __truediv__(self, other: Soft) -> Soft:
        digits, rest = divmod(abs(self.mantissa) << DIGITS + 1, abs(other.mantissa))
        sign = -1 if (self.mantissa < 0) != (other.mantissa < 0) else 1
        return soft(sign * (digits | bool(rest)), self.exponent - other.exponent - DIGITS - 1)

    def __float__(self) -> float:
        """A float64 near it."""
        return rounded(self, 53, -1074)

    def constant(self, value: Soft) -> Soft:
        """A number as an operand of this one."""
        return value

    def polynomial(self, coefficients: Sequence[Soft]) -> Soft:
        """The value here of a polynomial whose coefficients begin with the lowest."""
        result = ZERO
        for coefficient in reversed(coefficients):
            result = result * self + coefficient
        return result

    def nearest(self, unit: float) -> int:
        """A whole number of at most 32 bits that is next to this one divided by a unit."""
        return round(max(min(float(self) / unit, 2.0**31 - 1), -(2.0**31)))

    def whole(self, count: int) -> Soft:
        """A whole number that ``nearest`` gave."""
        return soft(count)

    def scaled(self, count: int) -> Soft:
        """This number times a power of two with an exponent that ``nearest`` gave."""
        return Soft(self.mantissa, self.exponent + count) if self.mantissa else self

    def where_below(self, limit: float, one: Soft, other: Soft) -> Soft:
        """``one`` where this number is below a limit, else ``other``."""
        return one if float(self) < limit else other

    def either(self, limit: float, below: Callable[[], Soft], otherwise: Callable[[], Soft]) -> Soft:
        """What one of two functions gives: the first one where this number is below a limit."""
        return below() if float(self) < limit else otherwise()

    def continued(self, count: int) -> Soft:
        """``x + (1/2) / (x + (2/2) / (x + (3/2) / ...))`` of this number ``x``, up to the quotient of ``count / 2``."""
        value = self
        for number in range(count, 0, -1):
            value = self + soft(number, -1) / value
        return value

    def snapped(self) -> Soft:
        """A positive number, or the one of at most 100 digits that lies within 2**-171 of it."""
        near = self.mantissa + (1 << 91) >> 92 << 92
        return Soft(near, self.exponent) if abs(self.mantissa - near) < NEAR else self

    def normalised(self) -> tuple[Soft, int]:
        """``m`` from 1/2 to 1 and ``n`` of a positive number ``m * 2**n``."""
        return Soft(self.mantissa, -DIGITS), self.exponent + DIGITS

    def approximately(self, function: str) -> Soft:
        """A function of a float64 near this number, to about 40 digits."""
        return of_float(getattr(math, function)(float(self)))

    def reduced(self) -> tuple[Soft, int]:
        """What is left of a float64's size beyond a multiple of pi / 2, divided by that, and the multiple modulo 4.

        Sizes below 1/2 count as this number.
        """
        numerator, denominator = max(abs(float(self)), 0.5).as_integer_ratio()
        turns = numerator * two_by_pi() // denominator
        multiple = turns + (1 << TABLE_DIGITS - 1) >> TABLE_DIGITS
        return soft(turns - (multiple << TABLE_DIGITS), -TABLE_DIGITS), multiple & 3

    def by_quadrant(self, quadrant: int, quarters: int, cosine: Soft) -> Soft:
        """The sine after so many quarters of a turn, of which this number is the sine in the first one."""
        value = cosine if quadrant + quarters & 1 else self
        return -value if quadrant + quarters & 2 else value


def soft(mantissa: int, exponent: int = 0) -> Soft:
    """The number ``mantissa * 2**exponent``, rounded to odd."""
    excess = mantissa.bit_length() - DIGITS
    if not mantissa or excess <= 0:
        return Soft(mantissa << -excess, exponent + excess) if mantissa else ZERO
    size = abs(mantissa)
    digits = size >> excess
    digits |= digits << excess != size
    return Soft(digits if mantissa > 0 else -digits, exponent + excess)


def of_float(value: float) -> Soft:
    """The number that a float is."""
    numerator, denominator = value.as_integer_ratio()
    return soft(numerator) / soft(denominator)


ZERO = Soft(0, -(1 << 40))


@cache
def pi_digits(count: int) -> int:
    """``pi * 2**count``, rounded down but for a few units (Machin)."""
    guard = 16

    def arctangent(inverse: int) -> int:
        unit, total, n = (1 << count + guard) // inverse, 0, 0
        while unit:
            total += unit // (2 * n + 1) * (-1) ** n
            unit //= inverse * inverse
            n += 1
        return total

    return 4 * (4 * arctangent(5) - arctangent(239)) >> guard


@cache
def two_by_pi() -> int:
    """``2 / pi * 2**TABLE_DIGITS``."""
    return (2 << 2 * TABLE_DIGITS) // pi_digits(TABLE_DIGITS)


def rounded_to_odd(value: Soft) -> float:
    """A float64 on the same side of every number of fewer digits; one of twice the least exponent has the sign."""
    excess = max(DIGITS - 53, -1080 - value.exponent)
    if not value.mantissa or excess > DIGITS + 64:
        return math.copysign(0.0 if not value.mantissa else math.ldexp(1.0, -1074), value.mantissa)
    size = abs(value.mantissa)
    digits = size >> excess
    digits |= digits << excess != size
    return math.copysign(math.ldexp(digits, min(value.exponent + excess, 900)), value.mantissa)


def rounded(value: Soft, precision: int, lowest: int) -> float:
    """A number rounded to nearest, ties to even, to at most so many digits, of which none is below ``2**lowest``."""
    size = abs(value.mantissa)
    last = max(value.exponent + DIGITS - precision, lowest)
    shift = min(last - value.exponent - 2, DIGITS + 2)
    digits = size >> shift
    digits |= digits << shift != size
    whole = digits + 1 + (digits >> 2 & 1) >> 2
    sign = -1.0 if value.mantissa < 0 else 1.0
    return sign * whole * 2.0**last if last <= 971 else sign * float("inf")
