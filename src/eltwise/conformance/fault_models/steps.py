"""The primitives on arrays of values, and what is kept of the result of each step.

float64 is as good as exact here: where a sum, a product or a quotient does not fit into float64, its last digit is made
odd, so that rounding to a narrower type later goes the right way in every direction (Boldo and Melquiond, "When double
rounding is odd", 2005).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from eltwise.conformance.fault_models.values import Mode, Values, clamped, rounded, wrapped
from eltwise.core.dtypes import FLOAT64, ElementType
from eltwise.ops.expression import Expression


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
        if self.element_type is None or values.dtype == np.bool_:
            return values
        if not self.element_type.is_integer:
            values = values if self.first is None else rounded(values, self.first)
            return rounded(values, self.element_type, self.mode)
        if self.overflow == "clamp":
            return clamped(values, *self.element_type.limits)
        return wrapped(values, self.element_type)

    def sum(self, a: Values, b: Values) -> Values:
        """Compute a + b and keep what is kept."""
        if a.dtype != np.float64:
            return self.of(a + b)
        with np.errstate(all="ignore"):
            plain = a + b
            if self.element_type is FLOAT64:
                return plain
            b_part = plain - a  # Knuth's two-sum: what float64 lost of the sum.
            lost = (a - (plain - b_part)) + (b - b_part)
            return self.of(_made_odd(plain, lost))

    def product(self, a: Values, b: Values) -> Values:
        """Compute a * b and keep what is kept."""
        if a.dtype != np.float64:
            return self.of(a * b)
        with np.errstate(all="ignore"):
            plain = a * b
            return plain if self.element_type is FLOAT64 else self.of(_made_odd(plain, _lost(a, b, plain)))

    def quotient(self, a: Values, b: Values) -> Values:
        """Compute a / b, truncated for integers, whose divisors are not 0, and keep what is kept."""
        if a.dtype != np.float64:
            magnitudes = np.abs(a) // np.maximum(np.abs(b), 1)
            return self.of(np.where((a < 0) != (b < 0), -magnitudes, magnitudes))
        with np.errstate(all="ignore"):
            plain = a / b
            if self.element_type is FLOAT64:
                return plain
            rest = (a - plain * b) - _lost(plain, b, plain * b)
            return self.of(_made_odd(plain, np.copysign(1.0, b) * rest))


def evaluated(expression: Expression, operands: Sequence[Values], keep: Keep) -> Values:
    """Compute an expression, keeping what is kept of each step."""
    values = list(operands)
    for step in expression.steps:
        if step.primitive not in _PRIMITIVES:
            raise LookupError(f"the primitive {step.primitive} has no definition on exact values")
        values.append(_PRIMITIVES[step.primitive](keep, *(values[number] for number in step.operands)))
    return values[-1]


def has_definition(expression: Expression) -> bool:
    """Whether every step of an expression can be computed here."""
    return all(step.primitive in _PRIMITIVES for step in expression.steps)


def _floored(keep: Keep, a: Values, b: Values) -> Values:
    return keep.quotient(a, b) if a.dtype == np.float64 else keep.of(a // np.where(b == 0, 1, b))


def _larger(_keep: Keep, a: Values, b: Values) -> Values:
    """NaN wins, and +0 is larger than -0."""
    if a.dtype != np.float64:
        return np.maximum(a, b)
    return np.where(a == b, np.where(np.signbit(a), b, a), np.maximum(a, b))


def _smaller(_keep: Keep, a: Values, b: Values) -> Values:
    if a.dtype != np.float64:
        return np.minimum(a, b)
    return np.where(a == b, np.where(np.signbit(a), a, b), np.minimum(a, b))


_PRIMITIVES: dict[str, Callable[..., Values]] = {
    "add": Keep.sum,
    "subtract": lambda keep, a, b: keep.sum(a, -b),
    "multiply": Keep.product,
    "divide": Keep.quotient,
    "floor_divide": _floored,
    "maximum": _larger,
    "minimum": _smaller,
    "negative": lambda keep, a: keep.of(-a),
    "absolute": lambda keep, a: keep.of(np.abs(a)),
    "equal": lambda _keep, a, b: a == b,
    "not_equal": lambda _keep, a, b: a != b,
    "less": lambda _keep, a, b: a < b,
    "less_equal": lambda _keep, a, b: a <= b,
    "greater": lambda _keep, a, b: a > b,
    "greater_equal": lambda _keep, a, b: a >= b,
}


def _lost(a: Values, b: Values, plain: Values) -> Values:
    """What float64 lost of a product (Dekker)."""
    a_high, a_low = _halves(a)
    b_high, b_low = _halves(b)
    lost: Values = a_low * b_low - (((plain - a_high * b_high) - a_low * b_high) - a_high * b_low)
    return lost


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
