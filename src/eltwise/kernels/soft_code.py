"""Floats of 192 digits as names in LLVM: the operations of ``Soft``, which are calls of the library. Pure."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TypeVar

from eltwise.core.dtypes import FLOAT64, ElementType
from eltwise.kernels import estimates
from eltwise.kernels.flags import Flags
from eltwise.kernels.instructions import Instructions, constant
from eltwise.kernels.soft_floats import DIGITS, NEAR, TABLE_DIGITS, ZERO, Soft, two_by_pi
from eltwise.kernels.vectors import Vector, narrowed


@dataclass(frozen=True)
class SoftName:
    """The names of the exponent and the mantissa of a ``Soft`` in a function's body, which has the same methods."""

    code: Instructions
    exponent: str
    mantissa: str

    @property
    def _arguments(self) -> str:
        return f"i64 {self.exponent}, i256 {self.mantissa}"

    def _call(self, name: str, arguments: str) -> SoftName:
        result = self.code.let(f"call {{i64, i256}} {_use(self.code, name)}({arguments})")
        parts = [self.code.let(f"extractvalue {{i64, i256}} {result}, {index}") for index in range(2)]
        return SoftName(self.code, *parts)

    def __add__(self, other: SoftName) -> SoftName:
        return self._call("add", f"{self._arguments}, {other._arguments}")

    def __sub__(self, other: SoftName) -> SoftName:
        return self + -other

    def __mul__(self, other: SoftName) -> SoftName:
        return self._call("multiply", f"{self._arguments}, {other._arguments}")

    def __truediv__(self, other: SoftName) -> SoftName:
        return self._call("divide", f"{self._arguments}, {other._arguments}")

    def __neg__(self) -> SoftName:
        return SoftName(self.code, self.exponent, self.code.let(f"sub i256 0, {self.mantissa}"))

    def constant(self, value: Soft) -> SoftName:
        """A number as an operand of this one."""
        return SoftName(self.code, str(value.exponent), str(value.mantissa))

    def polynomial(self, coefficients: Sequence[Soft]) -> SoftName:
        """The value here of a polynomial whose coefficients begin with the lowest."""
        numbers = [number for each in coefficients for number in _digits(each)]
        table = _table(self.code, numbers)
        return self._call("polynomial", f"{self._arguments}, ptr {table}, i64 {len(coefficients)}")

    def estimate(self) -> Vector:
        """A float64 near it."""
        return Vector(self.code, 1, self.code.let(f"call double {_use(self.code, 'to_double')}({self._arguments})"))

    def nearest(self, unit: float) -> str:
        """A whole number, an i64 of at most 32 bits, that is next to this one divided by a unit."""
        scaled = self.estimate() / unit
        half = scaled.constant(0.5).signed_as(scaled)
        near = self.code.let(f"call i32 @llvm.fptosi.sat.i32.f64(double {(scaled + half).name})")
        return self.code.let(f"sext i32 {near} to i64")

    def whole(self, count: str) -> SoftName:
        """A whole number that ``nearest`` gave."""
        zero = self.constant(ZERO)
        return self._call("add", f"i64 0, i256 {self.code.let(f'sext i64 {count} to i256')}, {zero._arguments}")

    def scaled(self, count: str) -> SoftName:
        """This number times a power of two with an exponent that ``nearest`` gave."""
        return SoftName(self.code, self.code.let(f"add i64 {self.exponent}, {count}"), self.mantissa)

    def where_below(self, limit: float, one: SoftName, other: SoftName) -> SoftName:
        """``one`` where this number is below a limit, else ``other``."""
        flag = self.code.let(f"fcmp olt double {self.estimate().name}, {constant(1, 'double', limit)}")
        return self._chosen(flag, one, other)

    def either(self, limit: float, below: Callable[[], SoftName], otherwise: Callable[[], SoftName]) -> SoftName:
        """What one of two functions gives: the first one where this number is below a limit."""
        flag = self.code.let(f"fcmp olt double {self.estimate().name}, {constant(1, 'double', limit)}")
        values = [("i64", "0"), ("i256", "0")]
        for condition, function in ((flag, below), (self.code.let(f"xor i1 {flag}, true"), otherwise)):
            names = self.code.choose(condition, values, lambda call=function: call().names)  # type: ignore[misc]
            values = [("i64", names[0]), ("i256", names[1])]
        return SoftName(self.code, *names)

    @property
    def names(self) -> list[str]:
        """The names of the exponent and the mantissa."""
        return [self.exponent, self.mantissa]

    def continued(self, count: int) -> SoftName:
        """``x + (1/2) / (x + (2/2) / (x + (3/2) / ...))`` of this number ``x``, up to the quotient of ``count / 2``."""
        return self._call("continued", f"{self._arguments}, i64 {count}")

    def snapped(self) -> SoftName:
        """A positive number, or the one of at most 100 digits that lies within 2**-171 of it."""
        biased = self.code.let(f"add i256 {self.mantissa}, {1 << 91}")
        near = self.code.let(f"and i256 {biased}, {-1 << 92}")
        difference = self.code.let(f"sub i256 {self.mantissa}, {near}")
        distance = self.code.let(f"call i256 @llvm.abs.i256(i256 {difference}, i1 false)")
        is_near = self.code.let(f"icmp ult i256 {distance}, {NEAR}")
        return SoftName(
            self.code, self.exponent, self.code.let(f"select i1 {is_near}, i256 {near}, i256 {self.mantissa}")
        )

    def normalised(self) -> tuple[SoftName, str]:
        """``m`` from 1/2 to 1 and ``n`` of a positive number ``m * 2**n``."""
        power = self.code.let(f"add i64 {self.exponent}, {DIGITS}")
        return SoftName(self.code, str(-DIGITS), self.mantissa), power

    def approximately(self, function: str) -> SoftName:
        """A function of a float64 near this number, to about 40 digits."""
        near = self.estimate()
        return of_double(near.sqrt() if function == "sqrt" else estimates.FORMULAS[function](near))

    def reduced(self) -> tuple[SoftName, str]:
        """What is left of a float64's size beyond a multiple of pi / 2, divided by that, and the multiple modulo 4.

        Sizes below 1/2 count as this number.
        """
        digits = two_by_pi().to_bytes(TABLE_DIGITS // 8 + 64, "little")
        table = _table(
            self.code, [int.from_bytes(digits[start : start + 8], "little") for start in range(0, len(digits), 8)]
        )
        size = abs(self.estimate())
        arguments = f"double {size.where('olt', 0.5, 0.5, size).name}, ptr {table}, i64 {TABLE_DIGITS}"
        result = self.code.let(f"call {{i64, i256, i64}} {_use(self.code, 'turned')}({arguments})")
        parts = [self.code.let(f"extractvalue {{i64, i256, i64}} {result}, {index}") for index in range(3)]
        return SoftName(self.code, *parts[:2]), parts[2]

    def by_quadrant(self, quadrant: str, quarters: int, cosine: SoftName) -> SoftName:
        """The sine after so many quarters of a turn, of which this number is the sine in the first one."""
        number = self.code.let(f"add i64 {quadrant}, {quarters}")
        is_odd = self.code.let(f"trunc i64 {number} to i1")
        is_late = self.code.let(f"trunc i64 {self.code.let(f'lshr i64 {number}, 1')} to i1")
        value = self._chosen(is_odd, cosine, self)
        return self._chosen(is_late, -value, value)

    def _chosen(self, flag: str, one: SoftName, other: SoftName) -> SoftName:
        kinds = ("i64", one.exponent, other.exponent), ("i256", one.mantissa, other.mantissa)
        return SoftName(
            self.code, *(self.code.let(f"select i1 {flag}, {kind} {a}, {kind} {b}") for kind, a, b in kinds)
        )

    def rounded(self, precision: int, lowest: int) -> Vector:
        """The number rounded to nearest, ties to even, to so many digits, of which none is below ``2**lowest``."""
        arguments = f"{self._arguments}, i64 {precision}, i64 {lowest}"
        return Vector(self.code, 1, self.code.let(f"call double {_use(self.code, 'rounded')}({arguments})"))


R = TypeVar("R", Soft, SoftName)
"""What formulas of real numbers are written in."""


def of_double(x: Vector) -> SoftName:
    """The number that a float64 is."""
    return SoftName(x.code, "", "")._call("from_double", f"double {x.name}")


def accurate(
    code: Instructions,
    element_type: ElementType,
    formula: Callable[..., SoftName],
    count: int = 1,
    estimate: Callable[..., tuple[Vector, Flags]] | None = None,
) -> str:
    """Add a function that computes one element with 192 digits to a module.

    Args:
        code: a body in the module.
        element_type: what results are rounded to, as float64 if it is that, else as float32.
        formula: what is computed.
        count: how many float64 it is computed of.
        estimate: gives the result, and whether it is certain, so that the formula is not computed.

    Returns:
        The name of the function.
    """
    body, is_double = Instructions(has_fused=code.has_fused), element_type is FLOAT64
    body.definitions = code.definitions
    scalar, operands = "double" if is_double else "float", [Vector(body, 1, f"%{letter}") for letter in "xyz"[:count]]

    def finish(value: Vector) -> None:
        body.do(f"ret {scalar} {value.name if is_double else narrowed(value).name}")

    if estimate is not None:
        value, is_certain = estimate(*operands)
        body.do(f"br i1 {is_certain.name}, label %certain, label %uncertain")
        body.block("certain")
        finish(value)
        body.block("uncertain")
    finish(formula(*map(of_double, operands)).rounded(element_type.digits, element_type.least_exponent))
    arguments = ", ".join(f"double {each.name}" for each in operands)
    head = f"define internal {scalar} @({arguments}) noinline cold nounwind {{"
    return code.define("accurate", "\n".join([head, *body.lines, "}"]))


def _table(code: Instructions, numbers: Sequence[int]) -> str:
    """Add an array of i64 to a module, and give its name."""
    return code.define("table", f"constant [{len(numbers)} x i64] [{', '.join(f'i64 {each}' for each in numbers)}]")


def _digits(value: Soft) -> list[int]:
    digits = value.mantissa & (1 << 256) - 1
    return [value.exponent, *(digits >> 64 * index & (1 << 64) - 1 for index in range(4))]


def _use(code: Instructions, name: str) -> str:
    """Add a function of the library, and those that it calls, to a module; give its name."""
    full = f"@soft.{name}"
    if full not in code.definitions:
        code.definitions[full] = _library()[full]
        for called in re.findall(r"call [^@]*@soft\.(\w+)", _library()[full]):
            _use(code, called)
    return full


@cache
def _library() -> dict[str, str]:
    """The functions in LLVM by name."""
    with open(os.path.join(os.path.dirname(__file__), "soft_floats.ll"), encoding="utf-8") as file:  # noqa: PTH118, PTH120, PTH123 - fast to load
        functions = re.findall(r"^define .*?^}", file.read(), re.DOTALL | re.MULTILINE)
    return {str(re.search(r"@soft\.\w+", text).group()): text for text in functions}  # type: ignore[union-attr]
