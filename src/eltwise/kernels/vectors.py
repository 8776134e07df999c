"""Vectors of floats in LLVM as operands of Python's operators; NumPy's arrays have the same methods. Pure.

A formula that is written once computes in both. Processors that can do so fuse the product and the sum of ``fused``,
others and NumPy do not; bounds of errors hold for both. Nothing else is ever fused or reordered.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias, TypeVar

import numpy as np

from eltwise.core.dtypes import ElementType
from eltwise.core.odd_rounding import two_product
from eltwise.kernels.arrays import Array
from eltwise.kernels.flags import Flags
from eltwise.kernels.instructions import Instructions, computed_in, constant, of, suffix
from eltwise.kernels.lookups import columns
from eltwise.kernels.precision import DOUBLE, SINGLE, Precision
from eltwise.kernels.tables import Table

Number: TypeAlias = "Vector | float"


@dataclass(frozen=True)
class Vector:
    """The name of so many floats in a function's body; of one without being a vector."""

    code: Instructions
    lanes: int
    name: str
    precision: Precision = DOUBLE

    @property
    def type(self) -> str:
        """The LLVM type."""
        return of(self.lanes, self.precision.scalar)

    @property
    def _bits(self) -> str:
        return of(self.lanes, self.precision.integer)

    def constant(self, value: float) -> Vector:
        """A number in every lane."""
        with np.errstate(over="ignore"):
            rounded = float(np.float32(value)) if self.precision is SINGLE else value
        return self._named(constant(self.lanes, self.precision.scalar, rounded))

    def real(self, high: float, _low: float) -> Vector:
        """A constant that is a sum of two float64."""
        return self.constant(high)

    def _named(self, name: str) -> Vector:
        return Vector(self.code, self.lanes, name, self.precision)

    def _lifted(self, value: Number) -> str:
        return value.name if isinstance(value, Vector) else self.constant(value).name

    def _let(self, text: str) -> Vector:
        return self._named(self.code.let(text))

    def _binary(self, operation: str, one: Number, other: Number) -> Vector:
        return self._let(f"{operation} {self.type} {self._lifted(one)}, {self._lifted(other)}")

    def _intrinsic(self, name: str, *arguments: Number) -> Vector:
        name = f"{name}.{suffix(self.lanes, self.precision.scalar)}"
        operands = ", ".join(f"{self.type} {self._lifted(each)}" for each in arguments)
        return self._let(f"call {self.type} @llvm.{name}({operands})")

    def __add__(self, other: Number) -> Vector:
        return self._binary("fadd", self, other)

    def __radd__(self, other: float) -> Vector:
        return self._binary("fadd", other, self)

    def __sub__(self, other: Number) -> Vector:
        return self._binary("fsub", self, other)

    def __rsub__(self, other: float) -> Vector:
        return self._binary("fsub", other, self)

    def __mul__(self, other: Number) -> Vector:
        return self._binary("fmul", self, other)

    def __truediv__(self, other: Number) -> Vector:
        return self._binary("fdiv", self, other)

    def __rtruediv__(self, other: float) -> Vector:
        return self._binary("fdiv", other, self)

    def __neg__(self) -> Vector:
        return self._let(f"fneg {self.type} {self.name}")

    def __abs__(self) -> Vector:
        return self._intrinsic("fabs", self)

    def fused(self, factor: Number, addend: Number) -> Vector:
        """``self * factor + addend``, rounded once or twice."""
        if self.code.has_fused:
            return self._intrinsic("fma", self, factor, addend)
        return self * factor + addend

    def product(self, other: Vector) -> tuple[Vector, Vector]:
        """Float64 products, and exactly what their rounding lost."""
        if not self.code.has_fused:
            return two_product(self, other)
        product = self * other
        return product, self._intrinsic("fma", self, other, -product)

    def sqrt(self) -> Vector:
        """The square roots."""
        return self._intrinsic("sqrt", self)

    def signed_as(self, other: Vector) -> Vector:
        """The magnitudes with the signs of others."""
        return self._intrinsic("copysign", self, other)

    def signed_by(self, other: Vector) -> Vector:
        """The numbers, with the other sign where those of others are negative."""
        sign = self._integers(self.precision.bits(-0.0))
        negative = self.code.let(f"and {self._bits} {other.in_bits()}, {sign}")
        return self.of_bits(self.code.let(f"xor {self._bits} {self.in_bits()}, {negative}"))

    def to_integer(self) -> Vector:
        """The nearest integers, ties to even."""
        return self._intrinsic("roundeven", self)

    def truncated(self) -> Vector:
        """The next integers towards 0."""
        return self._intrinsic("trunc", self)

    def where(self, comparison: str, limit: Number, one: Number, other: Number) -> Vector:
        """``one`` where a comparison with a limit holds, else ``other``; comparisons have LLVM's names."""
        return self._named(self._lifted(one)).chosen(self.flags(comparison, limit), other)

    def flags(self, comparison: str, other: Number) -> Flags:
        """Where a comparison holds."""
        text = f"fcmp {comparison} {self.type} {self.name}, {self._lifted(other)}"
        return Flags(self.code, self.lanes, self.code.let(text))

    def chosen(self, flags: Flags, other: Number) -> Vector:
        """These numbers where flags are set, else others."""
        return self._named(flags.choose(self.type, self.name, self._lifted(other)))

    def in_bits(self) -> str:
        """The same bits as integers."""
        return self.code.let(f"bitcast {self.type} {self.name} to {self._bits}")

    def of_bits(self, integers: str) -> Vector:
        """The floats that have these bits."""
        return self._let(f"bitcast {self._bits} {integers} to {self.type}")

    def split(self, factor: float, parts: int = 1) -> tuple[Vector, Vector]:
        """The integer ``n`` next to ``self * factor``, and 2 to the power ``n // parts``, which is a normal number."""
        digits, offset = self.precision.digits, self.precision.shift + self.precision.bias * parts
        shifted = self.fused(factor, offset)
        bits = shifted.in_bits()
        if parts > 1:
            bits = self.code.let(f"lshr {self._bits} {bits}, {self._integers(parts.bit_length() - 1)}")
        moved = self.code.let(f"shl {self._bits} {bits}, {self._integers(digits)}")
        return shifted - offset, self.of_bits(moved)

    def fraction(self) -> tuple[Vector, Vector, Vector]:
        """``m`` from sqrt(1/2) to sqrt(2), the integer ``e`` and ``2**-e`` of positive normal numbers ``m * 2**e``.

        The power is 0 where it may be no normal number.
        """
        precision, kind = self.precision, self._bits
        digits = self._integers(precision.digits)
        bits = self.in_bits()
        moved = self.code.let(f"sub {kind} {bits}, {self._integers(precision.bits(0.5**0.5))}")
        count = self.code.let(f"ashr {kind} {moved}, {digits}")
        scaled = self.code.let(f"shl {kind} {count}, {digits}")
        mantissa = self.code.let(f"sub {kind} {bits}, {scaled}")
        scale = self.code.let(f"sub {kind} {self._integers(precision.bits(1.0))}, {scaled}")
        shifted = self.code.let(f"add {kind} {count}, {self._integers(precision.bits(precision.shift))}")
        power = self.where("olt", 1 / precision.least_normal, self.of_bits(scale), 0.0)
        return self.of_bits(mantissa), self.of_bits(shifted) - precision.shift, power

    def row(self, factor: float, table: Table, count: int) -> list[Vector]:
        """The integers next to float64 ``self * factor``, and the first columns of a table's rows there.

        A row's number is the integer modulo the number of rows, a power of two.
        """
        shifted = self.fused(factor, self.precision.shift)
        return [shifted - self.precision.shift, *self._columns(table, count, shifted.in_bits())]

    def row_of_octave(self, parts: int, table: Table, count: int) -> list[Vector]:
        """The first columns of the row of float64 from 1 on: one for each of so many equal parts of every octave."""
        moved = self.code.let(f"sub {self._bits} {self.in_bits()}, {self._integers(self.precision.bits(1.0))}")
        digits = self.precision.digits - parts.bit_length() + 1
        return self._columns(table, count, self.code.let(f"lshr {self._bits} {moved}, {self._integers(digits)}"))

    def _columns(self, table: Table, count: int, numbers: str) -> list[Vector]:
        numbers = self.code.let(f"and {self._bits} {numbers}, {self._integers(len(table) - 1)}")
        return [self._named(column) for column in columns(self.code, table, count, self.lanes, numbers)]

    def _integers(self, value: int) -> str:
        return constant(self.lanes, self.precision.integer, value)


F = TypeVar("F", Vector, Array)
"""Vectors in LLVM or in NumPy."""


def narrowed(value: Vector) -> Vector:
    """Float64 rounded to float32."""
    name = value.code.let(f"fptrunc {value.type} {value.name} to {of(value.lanes, 'float')}")
    return Vector(value.code, value.lanes, name, SINGLE)


def widened(value: Vector) -> Vector:
    """Float32 as float64."""
    name = value.code.let(f"fpext {value.type} {value.name} to {of(value.lanes, 'double')}")
    return Vector(value.code, value.lanes, name)


def as_double(code: Instructions, lanes: int, element_type: ElementType, value: str) -> Vector:
    """Numbers as ``Instructions.widened`` gives them, as float64, which must hold them."""
    scalar = computed_in(element_type)
    if scalar != "double":
        convert = {"float": "fpext", "signed": "sitofp"}.get(element_type.kind, "uitofp")
        value = code.let(f"{convert} {of(lanes, scalar)} {value} to {of(lanes, 'double')}")
    return Vector(code, lanes, value)


def in_single(value: F) -> F:
    """Float64 rounded to float32, as float64 again."""
    if isinstance(value, Array):
        with np.errstate(over="ignore"):
            return Array(value.values.astype(np.float32).astype(np.float64))
    return widened(narrowed(value))
