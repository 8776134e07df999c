"""Vectors of float64 as operands of Python's operators: LLVM values, and NumPy's arrays with the same methods. Pure.

A formula that is written once computes in both. LLVM may fuse the product and the sum of ``fused``, NumPy does not;
bounds of errors hold for both. Nothing else is ever fused or reordered.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ldexp
from struct import pack
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from eltwise.kernels.instructions import Instructions, of

_SHIFT = 1.5 * 2.0**52
"""What is added to a float64 below 2^51 to round it to an integer, which then is in the lowest bits of the sum."""

_BIAS = 1023

Number: TypeAlias = "Vector | float"


def literal(value: float) -> str:
    """A float64 as LLVM writes it.

    >>> literal(1.0)
    '0x3FF0000000000000'
    """
    return f"0x{pack('>d', value).hex().upper()}"


@dataclass(frozen=True)
class Vector:
    """The name of so many float64 in a function's body; of one without being a vector."""

    code: Instructions
    lanes: int
    name: str

    @property
    def type(self) -> str:
        """The LLVM type."""
        return of(self.lanes, "double")

    @property
    def _bits(self) -> str:
        return of(self.lanes, "i64")

    def constant(self, value: float) -> Vector:
        """A number in every lane."""
        text = f"splat (double {literal(value)})" if self.lanes > 1 else literal(value)
        return self._named(text)

    def _named(self, name: str) -> Vector:
        return Vector(self.code, self.lanes, name)

    def _lifted(self, value: Number) -> str:
        return value.name if isinstance(value, Vector) else self.constant(value).name

    def _let(self, text: str) -> Vector:
        return self._named(self.code.let(text))

    def _binary(self, operation: str, one: Number, other: Number) -> Vector:
        return self._let(f"{operation} {self.type} {self._lifted(one)}, {self._lifted(other)}")

    def _intrinsic(self, name: str, *arguments: Number) -> Vector:
        suffix = ("" if self.lanes == 1 else f"v{self.lanes}") + "f64"
        operands = ", ".join(f"{self.type} {self._lifted(each)}" for each in arguments)
        return self._let(f"call {self.type} @llvm.{name}.{suffix}({operands})")

    def __add__(self, other: Number) -> Vector:
        return self._binary("fadd", self, other)

    def __radd__(self, other: Number) -> Vector:
        return self._binary("fadd", other, self)

    def __sub__(self, other: Number) -> Vector:
        return self._binary("fsub", self, other)

    def __rsub__(self, other: Number) -> Vector:
        return self._binary("fsub", other, self)

    def __mul__(self, other: Number) -> Vector:
        return self._binary("fmul", self, other)

    __rmul__ = __mul__

    def __truediv__(self, other: Number) -> Vector:
        return self._binary("fdiv", self, other)

    def __rtruediv__(self, other: Number) -> Vector:
        return self._binary("fdiv", other, self)

    def __neg__(self) -> Vector:
        return self._let(f"fneg {self.type} {self.name}")

    def __abs__(self) -> Vector:
        return self._intrinsic("fabs", self)

    def fused(self, factor: Number, addend: Number) -> Vector:
        """``self * factor + addend``, rounded once or twice."""
        return self._intrinsic("fmuladd", self, factor, addend)

    def sqrt(self) -> Vector:
        """The square roots."""
        return self._intrinsic("sqrt", self)

    def signed_as(self, other: Vector) -> Vector:
        """The magnitudes with the signs of others."""
        return self._intrinsic("copysign", self, other)

    def at_least(self, limit: float) -> Vector:
        """The larger of each number and a limit; NaN stays."""
        return self.where("olt", limit, limit, self)

    def at_most(self, limit: float) -> Vector:
        """The lesser of each number and a limit; NaN stays."""
        return self.where("ogt", limit, limit, self)

    def where(self, comparison: str, limit: Number, one: Number, other: Number) -> Vector:
        """``one`` where a comparison with a limit holds, else ``other``; comparisons have LLVM's names."""
        flags = self.code.let(f"fcmp {comparison} {self.type} {self.name}, {self._lifted(limit)}")
        chosen = f"{self.type} {self._lifted(one)}, {self.type} {self._lifted(other)}"
        return self._let(f"select {of(self.lanes, 'i1')} {flags}, {chosen}")

    def split(self, factor: float) -> tuple[Vector, Vector]:
        """The integer next to ``self * factor``, and 2 to this power; factors are below 2^51, integers below 1023."""
        shifted = self.fused(factor, _SHIFT + _BIAS)
        bits = self.code.let(f"bitcast {self.type} {shifted.name} to {self._bits}")
        moved = self.code.let(f"shl {self._bits} {bits}, {self._integers(52)}")
        return shifted - (_SHIFT + _BIAS), self._let(f"bitcast {self._bits} {moved} to {self.type}")

    def fraction(self) -> tuple[Vector, Vector]:
        """``m`` from sqrt(1/2) to sqrt(2) and the integer ``e`` of positive normal numbers ``m * 2**e``."""
        bits = self.code.let(f"bitcast {self.type} {self.name} to {self._bits}")
        moved = self.code.let(f"sub {self._bits} {bits}, {self._integers(_ROOT_HALF)}")
        power = self.code.let(f"ashr {self._bits} {moved}, {self._integers(52)}")
        scale = self.code.let(f"shl {self._bits} {power}, {self._integers(52)}")
        mantissa = self.code.let(f"sub {self._bits} {bits}, {scale}")
        shift = int.from_bytes(pack(">d", _SHIFT), "big")
        sum_bits = self.code.let(f"add {self._bits} {power}, {self._integers(shift)}")
        exponent = self._let(f"bitcast {self._bits} {sum_bits} to {self.type}") - _SHIFT
        return self._let(f"bitcast {self._bits} {mantissa} to {self.type}"), exponent

    def _integers(self, value: int) -> str:
        return f"splat (i64 {value})" if self.lanes > 1 else str(value)


_ROOT_HALF = int.from_bytes(pack(">d", 0.5**0.5), "big")
