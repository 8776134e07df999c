"""The steps of a computation on arrays of values: a difference, a product, and what is kept of them.

float64 is as good as exact here: where a sum or a product of numbers of a narrower type does not fit into float64, the
last digit of the result is made odd, so that rounding to the narrower type later goes the right way in every direction
(Boldo and Melquiond, "When double rounding is odd", 2005).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from eltwise.conformance.number_arrays import Mode, Values, clamped, rounded, wrapped
from eltwise.core.dtypes import FLOAT64, ElementType


@dataclass(frozen=True)
class Keep:
    """What is kept of the result of each step.

    Attributes:
        element_type: the type that it is brought to; None keeps all of it.
        mode: how floats are rounded.
        overflow: what becomes of integers beyond the type.
        first: a float type that each result is rounded to before.
    """

    element_type: ElementType | None = None
    mode: Mode = "nearest"
    overflow: Literal["wrap", "clamp"] = "wrap"
    first: ElementType | None = None

    def of(self, values: Values) -> Values:
        """Bring values to what is kept of them."""
        if self.element_type is None:
            return values
        if not self.element_type.is_integer:
            values = values if self.first is None else rounded(values, self.first)
            return rounded(values, self.element_type, self.mode)
        if self.overflow == "clamp":
            return clamped(values, *self.element_type.limits)
        return wrapped(values, self.element_type)

    def difference(self, a: Values, b: Values) -> Values:
        """Compute a - b and keep what is kept."""
        if a.dtype != np.float64:
            return self.of(a - b)
        with np.errstate(all="ignore"):
            plain = a - b
            if self.element_type is FLOAT64:
                return plain
            # Knuth's two-sum: what float64 lost of the sum.
            b_part = plain - a
            lost = (a - (plain - b_part)) - (b + b_part)
            return self.of(_made_odd(plain, lost))

    def product(self, a: Values, b: Values) -> Values:
        """Compute a * b and keep what is kept."""
        if a.dtype != np.float64:
            return self.of(a * b)
        with np.errstate(all="ignore"):
            plain = a * b
            if self.element_type is FLOAT64:
                return plain
            # Dekker's two-product: what float64 lost of the product.
            a_high, a_low = _halves(a)
            b_high, b_low = _halves(b)
            lost = a_low * b_low - (((plain - a_high * b_high) - a_low * b_high) - a_high * b_low)
            return self.of(_made_odd(plain, lost))


def _halves(values: Values) -> tuple[Values, Values]:
    """Split the digits of float64 numbers into an upper and a lower half (Veltkamp)."""
    scaled = values * 134217729.0
    high = scaled - (scaled - values)
    return high, values - high


def _made_odd(plain: Values, lost: Values) -> Values:
    """Move numbers whose last digit is even by one digit towards what was lost of them."""
    even = (plain.view(np.int64) & 1) == 0
    moved = np.nextafter(plain, np.where(lost > 0, np.inf, -np.inf))
    return np.where(even & (lost != 0) & np.isfinite(plain) & np.isfinite(lost), moved, plain)
