"""Sums of two float64 as operands of Python's operators: about 100 digits, for estimates of float64. Pure.

The methods are those of ``Vector`` and ``Array``, whose formulas compute in pairs, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import copysign
from typing import Any, ClassVar, Generic

from eltwise.core.odd_rounding import ordered_sum, two_sum
from eltwise.kernels.precision import PAIR, Precision
from eltwise.kernels.vectors import F


@dataclass(frozen=True)
class Pair(Generic[F]):
    """``high + low``, of which the second is at most half a unit in the last place of the first."""

    high: F
    low: F
    precision: ClassVar[Precision] = PAIR

    def _of(self, value: Pair[F] | float) -> Pair[F]:
        if isinstance(value, Pair):
            return value
        return self.real(value, copysign(0.0, value))  # So that the sum of both is a zero of this sign, too.

    def _single(self, value: F | float) -> F:
        return self.high.constant(value) if isinstance(value, float) else value

    def real(self, high: float, low: float) -> Pair[F]:
        """A constant."""
        return Pair(self.high.constant(high), self.high.constant(low))

    def __add__(self, other: Pair[F] | F | float) -> Pair[F]:
        if not isinstance(other, Pair):
            total, lost = two_sum(self.high, self._single(other))
            return Pair(*ordered_sum(total, lost + self.low))
        total, lost = two_sum(self.high, other.high)
        return Pair(*ordered_sum(total, lost + (self.low + other.low)))

    __radd__ = __add__

    def __neg__(self) -> Pair[F]:
        return Pair(-self.high, -self.low)

    def __sub__(self, other: Pair[F] | float) -> Pair[F]:
        return self + -self._of(other)

    def __rsub__(self, other: float) -> Pair[F]:
        return -self + other

    def __mul__(self, other: Pair[F] | F | float) -> Pair[F]:
        if not isinstance(other, Pair):
            factor = self._single(other)
            product, lost = self.high.product(factor)
            return Pair(*ordered_sum(product, self.low.fused(factor, lost)))
        product, lost = self.high.product(other.high)
        return Pair(*ordered_sum(product, self.high.fused(other.low, self.low.fused(other.high, lost))))

    def __truediv__(self, other: Pair[F] | float) -> Pair[F]:
        pair = self._of(other)
        inverse = 1.0 / pair.high
        quotient = self.high * inverse
        product, lost = quotient.product(pair.high)
        rest = ((self.high - product) - lost) + (self.low - quotient * pair.low)
        return Pair(*ordered_sum(quotient, rest * inverse))

    def __rtruediv__(self, other: float) -> Pair[F]:
        return self._of(other) / self

    def __abs__(self) -> Pair[F]:
        return Pair(abs(self.high), self.high.where("olt", 0.0, -self.low, self.low))

    def fused(self, factor: Pair[F] | float, addend: Pair[F] | float) -> Pair[F]:
        """``self * factor + addend``."""
        if not isinstance(factor, Pair) or not isinstance(addend, Pair):
            return self * factor + addend
        product, lost = self.high.product(factor.high)
        lost = self.high.fused(factor.low, self.low.fused(factor.high, lost))
        total, rest = two_sum(product, addend.high)
        return Pair(*ordered_sum(total, rest + (lost + addend.low)))

    def sqrt(self) -> Pair[F]:
        """The square roots; 0 of 0."""
        root = self.high.sqrt()
        product, lost = root.product(root)
        rest = ((self.high - product) - lost) + self.low
        low = root.where("oeq", 0.0, 0.0, rest / (root + root))
        return Pair(*ordered_sum(root, low))

    def signed_as(self, other: Pair[F]) -> Pair[F]:
        """The magnitudes with the signs of others."""
        high = self.high.signed_as(other.high)
        return Pair(high, high.where("oeq", self.high, self.low, -self.low))

    def where(self, comparison: str, limit: float, one: Pair[F] | float, other: Pair[F] | float) -> Pair[F]:
        """``one`` where a comparison of the first part with a limit holds, else ``other``."""
        a, b = self._of(one), self._of(other)
        return Pair(*(self.high.where(comparison, limit, x, y) for x, y in ((a.high, b.high), (a.low, b.low))))

    def chosen(self, flags: Any, other: Pair[F]) -> Pair[F]:
        """These numbers where flags are set, else others."""
        return Pair(self.high.chosen(flags, other.high), self.low.chosen(flags, other.low))

    def scaled(self, power: F) -> Pair[F]:
        """The products with powers of two."""
        return Pair(self.high * power, self.low * power)

    def less(self, whole: F, parts: Sequence[float]) -> Pair[F]:
        """What is left beyond a whole number of the sum of parts, whose products with it are exact but for the last."""
        first, *others, last = parts
        rest, low = whole.fused(-first, self.high), self.low
        for part in others:
            rest, lost = two_sum(rest, whole * -part)
            low = low + lost
        return Pair(*ordered_sum(rest, whole.fused(-last, low)))
