"""Floats of 192 digits and any exponent, for elements whose rounding float64 does not decide: in Python and LLVM. Pure.

Every result is rounded to odd: an inexact one gets a last digit of 1. So it stays on the same side of every number of
fewer digits as the exact value, also where they differ by less than the last digit, and can be rounded again.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple, Protocol, Self

from eltwise.kernels.doubles import Vector, literal
from eltwise.kernels.instructions import Instructions

DIGITS = 192
_FARTHEST = 1 << 10
"""Beyond so many digits from the larger one an operand of a sum only decides the last digit."""


class Real(Protocol):
    """What formulas are written in: numbers in Python, or their names in LLVM. See ``Soft``."""

    def __add__(self, other: Self) -> Self: ...
    def __sub__(self, other: Self) -> Self: ...
    def __mul__(self, other: Self) -> Self: ...
    def __truediv__(self, other: Self) -> Self: ...
    def __neg__(self) -> Self: ...
    def constant(self, value: Soft) -> Self: ...
    def polynomial(self, coefficients: Sequence[Soft]) -> Self: ...
    def nearest(self, unit: float) -> Any: ...
    def whole(self, count: Any) -> Self: ...
    def scaled(self, count: Any) -> Self: ...
    def where_below(self, limit: float, one: Self, other: Self) -> Self: ...


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
        """A whole number that is next to this one divided by a unit."""
        return round(float(self) / unit)

    def whole(self, count: int) -> Soft:
        """A whole number that ``nearest`` gave."""
        return soft(count)

    def scaled(self, count: int) -> Soft:
        """This number times a power of two with an exponent that ``nearest`` gave."""
        return Soft(self.mantissa, self.exponent + count) if self.mantissa else self

    def where_below(self, limit: float, one: Soft, other: Soft) -> Soft:
        """``one`` where this number is below a limit, else ``other``."""
        return one if float(self) < limit else other


def soft(mantissa: int, exponent: int = 0) -> Soft:
    """The number ``mantissa * 2**exponent``, rounded to odd."""
    excess = mantissa.bit_length() - DIGITS
    if not mantissa or excess <= 0:
        return Soft(mantissa << -excess, exponent + excess) if mantissa else ZERO
    size = abs(mantissa)
    digits = size >> excess
    digits |= digits << excess != size
    return Soft(digits if mantissa > 0 else -digits, exponent + excess)


ZERO = Soft(0, -(1 << 40))


def rounded(value: Soft, precision: int, lowest: int) -> float:
    """A number rounded to nearest, ties to even, to at most so many digits, of which none is below ``2**lowest``."""
    size = abs(value.mantissa)
    last = max(value.exponent + DIGITS - precision, lowest)
    shift = min(last - value.exponent - 2, DIGITS + 2)
    digits = size >> shift
    digits |= digits << shift != size
    whole = digits + 1 + (digits >> 2 & 1) >> 2
    sign = -1.0 if value.mantissa < 0 else 1.0
    return sign * whole * 2.0**last if last < 971 else sign * float("inf")


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
        words = [word for each in coefficients for word in _words(each)]
        table = define(self.code, "table", f"constant [{len(words)} x i64] [{', '.join(f'i64 {w}' for w in words)}]")
        return self._call("polynomial", f"{self._arguments}, ptr {table}, i64 {len(coefficients)}")

    def estimate(self) -> Vector:
        """A float64 near it."""
        return Vector(self.code, 1, self.code.let(f"call double {_use(self.code, 'to_double')}({self._arguments})"))

    def nearest(self, unit: float) -> str:
        """A whole number, an i64, that is next to this one divided by a unit."""
        scaled = self.estimate() / unit
        half = scaled.constant(0.5).signed_as(scaled)
        return self.code.let(f"call i64 @llvm.fptosi.sat.i64.f64(double {(scaled + half).name})")

    def whole(self, count: str) -> SoftName:
        """A whole number that ``nearest`` gave."""
        zero = self.constant(ZERO)
        return self._call("add", f"i64 0, i256 {self.code.let(f'sext i64 {count} to i256')}, {zero._arguments}")

    def scaled(self, count: str) -> SoftName:
        """This number times a power of two with an exponent that ``nearest`` gave."""
        return SoftName(self.code, self.code.let(f"add i64 {self.exponent}, {count}"), self.mantissa)

    def where_below(self, limit: float, one: SoftName, other: SoftName) -> SoftName:
        """``one`` where this number is below a limit, else ``other``."""
        flag = self.code.let(f"fcmp olt double {self.estimate().name}, {literal(limit)}")
        kinds = ("i64", one.exponent, other.exponent), ("i256", one.mantissa, other.mantissa)
        parts = [self.code.let(f"select i1 {flag}, {kind} {a}, {kind} {b}") for kind, a, b in kinds]
        return SoftName(self.code, *parts)

    def rounded(self, precision: int, lowest: int) -> Vector:
        """The number rounded to nearest, ties to even, to so many digits, of which none is below ``2**lowest``."""
        arguments = f"{self._arguments}, i64 {precision}, i64 {lowest}"
        return Vector(self.code, 1, self.code.let(f"call double {_use(self.code, 'rounded')}({arguments})"))


def of_double(x: Vector) -> SoftName:
    """The number that a float64 is."""
    return SoftName(x.code, "", "")._call("from_double", f"double {x.name}")


def define(code: Instructions, prefix: str, text: str) -> str:
    """Add a function or a table, without its name, to a module, unless it has it; give its name."""
    for name, present in code.definitions.items():
        if present == _named(name, text):
            return name
    name = f"@{prefix}.{len(code.definitions)}"
    code.definitions[name] = _named(name, text)
    return name


def _named(name: str, text: str) -> str:
    return f"{name} = internal {text}" if text.startswith("constant") else text.replace("@", name, 1)


def _words(value: Soft) -> list[int]:
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
    with open(os.path.splitext(__file__)[0] + ".ll", encoding="utf-8") as file:  # noqa: PTH122, PTH123 - fast to load
        functions = re.findall(r"^define .*?^}", file.read(), re.DOTALL | re.MULTILINE)
    return {str(re.search(r"@soft\.\w+", text).group()): text for text in functions}  # type: ignore[union-attr]
