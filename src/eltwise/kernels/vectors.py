"""Vectors of floats as operands of Python's operators: LLVM's values, and NumPy's arrays with the same methods. Pure.

A formula that is written once computes in both. Processors that can do so fuse the product and the sum of ``fused``,
others and NumPy do not; bounds of errors hold for both. Nothing else is ever fused or reordered.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from eltwise.core.dtypes import ElementType
from eltwise.core.odd_rounding import two_product
from eltwise.kernels.flags import Flags
from eltwise.kernels.instructions import Instructions, computed_in, constant, of, suffix
from eltwise.kernels.precision import DOUBLE, SINGLE, Precision

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

    def split(self, factor: float) -> tuple[Vector, Vector]:
        """The integer next to ``self * factor``, and 2 to this power, which is a normal number."""
        digits, offset = self.precision.digits, self.precision.shift + self.precision.bias
        shifted = self.fused(factor, offset)
        moved = self.code.let(f"shl {self._bits} {shifted.in_bits()}, {self._integers(digits)}")
        return shifted - offset, self.of_bits(moved)

    def fraction(self) -> tuple[Vector, Vector]:
        """``m`` from sqrt(1/2) to sqrt(2) and the integer ``e`` of positive normal numbers ``m * 2**e``."""
        precision, kind = self.precision, self._bits
        digits = self._integers(precision.digits)
        bits = self.in_bits()
        moved = self.code.let(f"sub {kind} {bits}, {self._integers(precision.bits(0.5**0.5))}")
        power = self.code.let(f"ashr {kind} {moved}, {digits}")
        mantissa = self.code.let(f"sub {kind} {bits}, {self.code.let(f'shl {kind} {power}, {digits}')}")
        shifted = self.code.let(f"add {kind} {power}, {self._integers(precision.bits(precision.shift))}")
        return self.of_bits(mantissa), self.of_bits(shifted) - precision.shift

    def _integers(self, value: int) -> str:
        return constant(self.lanes, self.precision.integer, value)


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

    def split(self, factor: float) -> tuple[Array, Array]:
        """The integer next to ``self * factor``, and 2 to this power."""
        whole = self * factor + DOUBLE.shift - DOUBLE.shift
        with np.errstate(invalid="ignore"):
            return whole, Array(np.ldexp(1.0, np.nan_to_num(whole.values).astype(np.int32)))

    def fraction(self) -> tuple[Array, Array]:
        """``m`` from sqrt(1/2) to sqrt(2) and the integer ``e`` of positive numbers ``m * 2**e``."""
        mantissa, exponent = np.frexp(self.values)
        is_small = mantissa < 0.5**0.5
        return Array(np.where(is_small, mantissa + mantissa, mantissa)), Array((exponent - is_small).astype(np.float64))


def _values(operand: Array | float) -> npt.NDArray[np.float64] | float:
    return operand.values if isinstance(operand, Array) else operand


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
