"""Exact numbers as arrays, and what arithmetics do to them: round, wrap, clamp, flush, convert; and the primitives.

Integers and booleans are Python integers (int64 for types of up to 16 bits); floats are float64, which holds every
value of every float type. Where a sum, a product or a quotient does not fit into float64, its last digit is made odd,
so that rounding to a narrower type is right in every direction (Boldo and Melquiond, "When double rounding is odd",
2005).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from eltwise.core.dtypes import FLOAT64, ElementType
from eltwise.ops.expression import Expression
from eltwise.oracle.numbers import FLOAT_LAYOUTS, decode

Values = npt.NDArray[Any]
Change = Callable[[Values], Values]
Mode = Literal["nearest", "toward zero", "odd only"]
Beyond = Literal["saturate", "wrap"]


def _odd_only(scaled: Values) -> Values:
    """Half the last digit is added before cutting: everything between an even number and the next is cut."""
    magnitudes = np.abs(scaled)
    cut: Values = np.floor(magnitudes)
    return np.copysign(np.where((cut % 2 == 1) & (magnitudes - cut >= 0.5), cut + 1, cut), scaled)


_ROUND: dict[Mode, Change] = {"nearest": np.rint, "toward zero": np.trunc, "odd only": _odd_only}


def values_of(array: Values, element_type: ElementType) -> Values:
    """Read the exact values of an array's elements, in its shape."""
    with np.errstate(all="ignore"):
        if element_type.kind == "float":
            return array.astype(np.float64)
        return array.astype(np.int64 if element_type.bits <= 16 else np.object_)


def patterns_of(array: Values, element_type: ElementType) -> Values:
    """Read the bit patterns of an array's elements in C order, with one pattern for every NaN."""
    unsigned = np.dtype(f"u{array.dtype.itemsize}")
    native = np.ascontiguousarray(array, array.dtype.newbyteorder("=")).reshape(-1)
    patterns: Values = native.view(unsigned) & unsigned.type((1 << element_type.bits) - 1)
    layout = FLOAT_LAYOUTS.get(element_type)
    if layout is None:
        return patterns
    first_nan = layout.largest_finite + (2 if layout.has_infinity else 1)
    return np.where(patterns & unsigned.type(layout.sign - 1) >= first_nan, unsigned.type(layout.nan), patterns)


def stored(values: Values, element_type: ElementType) -> Values:
    """Store values as elements of a type and give their patterns: integers wrap, floats are rounded to the nearest."""
    if element_type.kind != "float":
        unsigned = np.dtype(f"u{element_type.storage.itemsize}")
        patterns: Values = (values & ((1 << element_type.bits) - 1)).astype(unsigned)
        return patterns
    with np.errstate(all="ignore"):
        return patterns_of(rounded(values, element_type).astype(element_type.storage), element_type)


@cache
def largest_finite(element_type: ElementType) -> float:
    """The largest finite number of a float type."""
    return float(decode(element_type, FLOAT_LAYOUTS[element_type].largest_finite))  # type: ignore[arg-type]


def rounded(values: Values, element_type: ElementType, mode: Mode = "nearest") -> Values:
    """Round to a float type; what is beyond its largest number becomes infinity, or NaN in a type without one."""
    if element_type is FLOAT64:
        return values
    layout = FLOAT_LAYOUTS[element_type]
    with np.errstate(all="ignore"):
        unit = np.maximum(np.frexp(values)[1] - 1, layout.least_exponent) - layout.mantissa_bits
        result = np.where(np.isfinite(values), np.ldexp(_ROUND[mode](np.ldexp(values, -unit)), unit), values)
        beyond = np.abs(result) > largest_finite(element_type)
    return np.where(beyond, np.copysign(np.inf, values) if layout.has_infinity else np.nan, result)


def wrapped(values: Values, element_type: ElementType) -> Values:
    """Reduce integers to the limits of an integer type modulo 2^n."""
    low, _high = element_type.limits
    reduced: Values = ((values - low) & ((1 << element_type.bits) - 1)) + low
    return reduced


def clamped(values: Values, low: float | int, high: float | int, infinities: bool = True) -> Values:
    """Move values beyond limits to the limits; NaN stays, and infinities stay unless they are to be clamped too."""
    if values.dtype == np.float64:
        stays = np.isnan(values) if infinities else ~np.isfinite(values)
        return np.where(stays, values, np.clip(values, low, high))
    return np.minimum(np.maximum(values, low), high)


def flushed(values: Values, element_type: ElementType, keep_sign: bool = True) -> Values:
    """Turn what is smaller than the smallest normal number of a type into a zero, of its sign or always +0."""
    zeros = np.copysign(0.0, values) if keep_sign else np.zeros_like(values)
    return np.where(np.abs(values) < 2.0 ** FLOAT_LAYOUTS[element_type].least_exponent, zeros, values)


def as_floats(values: Values, element_type: ElementType) -> Values:
    """Convert integers of up to 64 bits to a float type, rounded once."""
    if element_type is FLOAT64:
        return values.astype(np.float64)
    # What float64 has too few digits for gets an odd last digit where something is lost.
    magnitudes = np.abs(values)
    shortened = (magnitudes >> 11 << 11) | np.where((magnitudes & 0x7FF) != 0, 0x800, 0)
    floats = np.where((magnitudes >> 53) > 0, shortened, magnitudes).astype(np.float64)
    return rounded(np.where(values < 0, -floats, floats), element_type)


def as_integers(values: Values, element_type: ElementType, beyond: Beyond) -> Values:
    """Cut floats to integers; ``beyond`` says what becomes of those outside an integer type, and of NaN.

    ``saturate`` gives the nearest limit and 0 for NaN, ``wrap`` the value modulo 2^n and 0 for what is not finite.
    """
    low, high = element_type.limits
    cut = np.trunc(values)
    whole = np.array([int(number) if np.isfinite(number) else 0 for number in cut], object)
    if beyond == "wrap":
        return wrapped(whole, element_type)
    whole[cut > high], whole[cut < low] = high, low
    return whole


@dataclass(frozen=True)
class Keep:
    """What is kept of the result of each step."""

    element_type: ElementType | None = None  # The type that it is brought to; None keeps all of it.
    mode: Mode = "nearest"  # How floats are rounded.
    clamps: bool = False  # Whether integers beyond the type are clamped to its limits; else they wrap.

    def of(self, values: Values) -> Values:
        """Bring values to what is kept of them."""
        if self.element_type is None or values.dtype == np.bool_:
            return values
        if not self.element_type.is_integer:
            return rounded(values, self.element_type, self.mode)
        return clamped(values, *self.element_type.limits) if self.clamps else wrapped(values, self.element_type)

    def sum(self, a: Values, b: Values) -> Values:
        """Compute a + b and keep what is kept."""
        if a.dtype != np.float64:
            return self.of(a + b)
        with np.errstate(all="ignore"):
            plain = a + b
            b_part = plain - a  # Knuth's two-sum: what float64 lost of the sum.
            return self._rounded(plain, (a - (plain - b_part)) + (b - b_part))

    def product(self, a: Values, b: Values) -> Values:
        """Compute a * b and keep what is kept."""
        if a.dtype != np.float64:
            return self.of(a * b)
        with np.errstate(all="ignore"):
            plain = a * b
            return self._rounded(plain, _lost(a, b, plain))

    def quotient(self, a: Values, b: Values) -> Values:
        """Compute a / b, truncated for integers, whose divisors are not 0, and keep what is kept."""
        if a.dtype != np.float64:
            magnitudes = np.abs(a) // np.maximum(np.abs(b), 1)
            return self.of(np.where((a < 0) != (b < 0), -magnitudes, magnitudes))
        with np.errstate(all="ignore"):
            plain = a / b
            rest = (a - plain * b) - _lost(plain, b, plain * b)
            return self._rounded(plain, np.copysign(1.0, b) * rest)

    def _rounded(self, plain: Values, lost: Values) -> Values:
        """Move numbers whose last digit is even by one digit towards what was lost of them, and keep what is kept."""
        if self.element_type is FLOAT64:
            return plain
        is_moved = ((plain.view(np.int64) & 1) == 0) & (lost != 0) & np.isfinite(plain) & np.isfinite(lost)
        return self.of(np.where(is_moved, np.nextafter(plain, np.where(lost > 0, np.inf, -np.inf)), plain))


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


def _floored(keep: Keep, a: Values, b: Values) -> Values:
    return keep.quotient(a, b) if a.dtype == np.float64 else keep.of(a // np.where(b == 0, 1, b))


def _extreme(choose: Callable[[Values, Values], Values], prefers_plus: bool) -> Callable[..., Values]:
    """The larger or smaller one; NaN wins, and +0 is larger than -0."""

    def compute(_keep: Keep, a: Values, b: Values) -> Values:
        if a.dtype != np.float64:
            return choose(a, b)
        return np.where(a == b, np.where(np.signbit(a) == prefers_plus, b, a), choose(a, b))

    return compute


PRIMITIVES: dict[str, Callable[..., Values]] = {
    "add": Keep.sum,
    "subtract": lambda keep, a, b: keep.sum(a, -b),
    "multiply": Keep.product,
    "divide": Keep.quotient,
    "floor_divide": _floored,
    "maximum": _extreme(np.maximum, True),
    "minimum": _extreme(np.minimum, False),
    "negative": lambda keep, a: keep.of(-a),
    "absolute": lambda keep, a: keep.of(np.abs(a)),
    "equal": lambda _keep, a, b: a == b,
    "not_equal": lambda _keep, a, b: a != b,
    "less": lambda _keep, a, b: a < b,
    "less_equal": lambda _keep, a, b: a <= b,
    "greater": lambda _keep, a, b: a > b,
    "greater_equal": lambda _keep, a, b: a >= b,
}
"""What each primitive computes of exact values; one without an entry has no fault models."""


def evaluated(expression: Expression, operands: Sequence[Values], keep: Keep) -> Values:
    """Compute an expression, keeping what is kept of each step."""
    values = list(operands)
    for step in expression.steps:
        values.append(PRIMITIVES[step.primitive](keep, *(values[number] for number in step.operands)))
    return values[-1]
