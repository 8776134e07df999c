"""Arrays of float64 with the methods of vectors in LLVM, for formulas that are written once. Pure."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from eltwise.core.odd_rounding import two_product
from eltwise.kernels.precision import DOUBLE
from eltwise.kernels.tables import Table

_COMPARISONS: dict[str, Callable[..., npt.NDArray[np.bool_]]] = {
    "eq": np.equal,
    "ge": np.greater_equal,
    "gt": np.greater,
    "le": np.less_equal,
    "lt": np.less,
    "ne": lambda one, other: (one < other) | (one > other),
}
"""LLVM's comparisons without their first letter, which says what those of a NaN give."""


class Array:
    """An array of float64 with the methods of ``Vector``."""

    precision = DOUBLE

    def __init__(self, values: npt.NDArray[np.float64]) -> None:
        self.values = values

    def constant(self, value: float) -> Array:
        """A number that is the same for every element."""
        return Array(np.array(value))

    def real(self, high: float, _low: float) -> Array:
        """A constant that is a sum of two float64."""
        return self.constant(high)

    def __add__(self, other: Array | float) -> Array:
        return Array(self.values + _values(other))

    def __radd__(self, other: float) -> Array:
        return Array(other + self.values)

    def __sub__(self, other: Array | float) -> Array:
        return Array(self.values - _values(other))

    def __rsub__(self, other: float) -> Array:
        return Array(other - self.values)

    def __mul__(self, other: Array | float) -> Array:
        return Array(self.values * _values(other))

    def __truediv__(self, other: Array | float) -> Array:
        return Array(self.values / _values(other))

    def __rtruediv__(self, other: float) -> Array:
        return Array(other / self.values)

    def __neg__(self) -> Array:
        return Array(-self.values)

    def __abs__(self) -> Array:
        return Array(np.abs(self.values))

    def fused(self, factor: Array | float, addend: Array | float) -> Array:
        """``self * factor + addend``, rounded twice."""
        return self * factor + addend

    def product(self, other: Array) -> tuple[Array, Array]:
        """Products, and exactly what their rounding lost."""
        return two_product(self, other)

    def sqrt(self) -> Array:
        """The square roots."""
        return Array(np.sqrt(self.values))

    def signed_as(self, other: Array) -> Array:
        """The magnitudes with the signs of others."""
        return Array(np.copysign(self.values, other.values))

    def where(self, comparison: str, limit: Array | float, one: Array | float, other: Array | float) -> Array:
        """``one`` where a comparison with a limit holds, else ``other``; comparisons have LLVM's names."""
        return Array(np.where(self.flags(comparison, limit), _values(one), _values(other)))

    def flags(self, comparison: str, other: Array | float) -> npt.NDArray[np.bool_]:
        """Where a comparison holds."""
        values, others = self.values, _values(other)
        flags = _COMPARISONS[comparison[1:]](values, others)
        return flags | np.isnan(values) | np.isnan(others) if comparison[0] == "u" else flags

    def chosen(self, flags: npt.NDArray[np.bool_], other: Array | float) -> Array:
        """These numbers where flags are set, else others."""
        return Array(np.where(flags, self.values, _values(other)))

    def split(self, factor: float, parts: int = 1) -> tuple[Array, Array]:
        """The integer ``n`` next to ``self * factor``, and 2 to the power ``n // parts``."""
        whole = self * factor + DOUBLE.shift - DOUBLE.shift
        with np.errstate(invalid="ignore"):
            return whole, Array(np.ldexp(1.0, np.nan_to_num(whole.values).astype(np.int32) // parts))

    def fraction(self) -> tuple[Array, Array, Array]:
        """``m`` from sqrt(1/2) to sqrt(2), the integer ``e`` and ``2**-e`` of positive numbers ``m * 2**e``."""
        mantissa, exponent = np.frexp(self.values)
        is_small = mantissa < 0.5**0.5
        power, small = exponent - is_small, np.where(is_small, mantissa + mantissa, mantissa)
        return Array(small), Array(power.astype(np.float64)), Array(np.ldexp(1.0, -power))

    def row(self, factor: float, table: Table, count: int) -> list[Array]:
        """The integers next to ``self * factor``, and the first columns of a table's rows there."""
        whole = self * factor + DOUBLE.shift - DOUBLE.shift
        with np.errstate(invalid="ignore"):
            numbers = np.nan_to_num(whole.values, posinf=0, neginf=0).astype(np.int64)
        return [whole, *_columns(table, count, numbers)]

    def row_of_octave(self, parts: int, table: Table, count: int) -> list[Array]:
        """The first columns of the row of numbers from 1 on: one for each of so many equal parts of every octave."""
        digits = DOUBLE.digits - parts.bit_length() + 1
        return _columns(table, count, self.values.view(np.int64) - DOUBLE.bits(1.0) >> digits)


def _columns(table: Table, count: int, numbers: npt.NDArray[np.int64]) -> list[Array]:
    return [Array(column[numbers % len(table)]) for column in np.array(table).T[:count]]


def _values(operand: Array | float) -> npt.NDArray[np.float64] | float:
    return operand.values if isinstance(operand, Array) else operand
