"""Floats of 192 digits and any exponent, for elements whose rounding float64 does not decide: in Python and LLVM. Pure.

Every result is rounded to odd: an inexact one gets a last digit of 1. So it stays on the same side of every number of
fewer digits as the exact value, also where they differ by less than the last digit, and can be rounded again.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple, TypeVar

from eltwise.kernels import estimates
from eltwise.kernels.instructions import Instructions
from eltwise.kernels.vectors import Vector, literal

DIGITS = 192
TABLE_DIGITS = 1280
"""So many digits of 2 / pi show what is left of the largest float64 beyond a multiple of it."""

_NEAR = 1 << 20
"""So many units in the last place are more than the error of a power."""

_FARTHEST = 1 << 10
"""Beyond so many digits from the larger one an operand of a sum only decides the last digit."""


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
        """A whole number of at most 32 bits that is next to this one divided by a unit."""
        return round(max(min(float(self) / unit, 2.0**31 - 1), -(2.0**31)))

    def whole(self, count: int) -> Soft:
        """A whole number that ``nearest`` gave."""
        return soft(count)

    def scaled(self, count: int) -> Soft:
        """This number times a power of two with an exponent that ``nearest`` gave."""
        return Soft(self.mantissa, self.exponent + count) if self.mantissa else self

    def where_below(self, limit: float, one: Soft, other: Soft) -> Soft:
        """``one`` where this number is below a limit, else ``other``."""
        return one if float(self) < limit else other

    def either(self, limit: float, below: Callable[[], Soft], otherwise: Callable[[], Soft]) -> Soft:
        """What one of two functions gives: the first one where this number is below a limit."""
        return below() if float(self) < limit else otherwise()

    def continued(self, count: int) -> Soft:
        """``x + (1/2) / (x + (2/2) / (x + (3/2) / ...))`` of this number ``x``, up to the quotient of ``count / 2``."""
        value = self
        for number in range(count, 0, -1):
            value = self + soft(number, -1) / value
        return value

    def snapped(self) -> Soft:
        """A positive number, or the one of at most 100 digits that lies within 2**-171 of it."""
        near = self.mantissa + (1 << 91) >> 92 << 92
        return Soft(near, self.exponent) if abs(self.mantissa - near) < _NEAR else self

    def normalised(self) -> tuple[Soft, int]:
        """``m`` from 1/2 to 1 and ``n`` of a positive number ``m * 2**n``."""
        return Soft(self.mantissa, -DIGITS), self.exponent + DIGITS

    def approximately(self, function: str) -> Soft:
        """A function of a float64 near this number, to about 40 digits."""
        value: float = getattr(math, function)(float(self))
        numerator, denominator = value.as_integer_ratio()
        return soft(numerator) / soft(denominator)

    def reduced(self) -> tuple[Soft, int]:
        """What is left of a float64's size beyond a multiple of pi / 2, divided by that, and the multiple modulo 4.

        Sizes below 1/2 count as this number.
        """
        numerator, denominator = max(abs(float(self)), 0.5).as_integer_ratio()
        turns = numerator * two_by_pi() // denominator
        multiple = turns + (1 << TABLE_DIGITS - 1) >> TABLE_DIGITS
        return soft(turns - (multiple << TABLE_DIGITS), -TABLE_DIGITS), multiple & 3

    def by_quadrant(self, quadrant: int, quarters: int, cosine: Soft) -> Soft:
        """The sine after so many quarters of a turn, of which this number is the sine in the first one."""
        value = cosine if quadrant + quarters & 1 else self
        return -value if quadrant + quarters & 2 else value


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


@cache
def pi_digits(count: int) -> int:
    """``pi * 2**count``, rounded down but for a few units (Machin)."""
    guard = 16

    def arctangent(inverse: int) -> int:
        unit, total, n = (1 << count + guard) // inverse, 0, 0
        while unit:
            total += unit // (2 * n + 1) * (-1) ** n
            unit //= inverse * inverse
            n += 1
        return total

    return 4 * (4 * arctangent(5) - arctangent(239)) >> guard


@cache
def two_by_pi() -> int:
    """``2 / pi * 2**TABLE_DIGITS``."""
    return (2 << 2 * TABLE_DIGITS) // pi_digits(TABLE_DIGITS)


def rounded_to_odd(value: Soft) -> float:
    """A float64 on the same side of every number of fewer digits; one of twice the least exponent has the sign."""
    excess = max(DIGITS - 53, -1080 - value.exponent)
    if not value.mantissa or excess > DIGITS + 64:
        return math.copysign(0.0 if not value.mantissa else 5e-324, value.mantissa)
    size = abs(value.mantissa)
    digits = size >> excess
    digits |= digits << excess != size
    return math.copysign(math.ldexp(digits, min(value.exponent + excess, 900)), value.mantissa)


def rounded(value: Soft, precision: int, lowest: int) -> float:
    """A number rounded to nearest, ties to even, to at most so many digits, of which none is below ``2**lowest``."""
    size = abs(value.mantissa)
    last = max(value.exponent + DIGITS - precision, lowest)
    shift = min(last - value.exponent - 2, DIGITS + 2)
    digits = size >> shift
    digits |= digits << shift != size
    whole = digits + 1 + (digits >> 2 & 1) >> 2
    sign = -1.0 if value.mantissa < 0 else 1.0
    return sign * whole * 2.0**last if last <= 971 else sign * float("inf")


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
        flag = self.code.let(f"fcmp olt double {self.estimate().name}, {literal(limit)}")
        return self._chosen(flag, one, other)

    def either(self, limit: float, below: Callable[[], SoftName], otherwise: Callable[[], SoftName]) -> SoftName:
        """What one of two functions gives: the first one where this number is below a limit."""
        flag = self.code.let(f"fcmp olt double {self.estimate().name}, {literal(limit)}")
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
        is_near = self.code.let(f"icmp ult i256 {distance}, {_NEAR}")
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


def _table(code: Instructions, numbers: Sequence[int]) -> str:
    """Add an array of i64 to a module, and give its name."""
    return define(code, "table", f"constant [{len(numbers)} x i64] [{', '.join(f'i64 {each}' for each in numbers)}]")


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
    with open(os.path.splitext(__file__)[0] + ".ll", encoding="utf-8") as file:  # noqa: PTH122, PTH123 - fast to load
        functions = re.findall(r"^define .*?^}", file.read(), re.DOTALL | re.MULTILINE)
    return {str(re.search(r"@soft\.\w+", text).group()): text for text in functions}  # type: ignore[union-attr]
