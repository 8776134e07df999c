"""Sums of floats as float64, carried in vectors of any width, as LLVM instructions. Pure.

A sum is carried as several float64, each of what the roundings of the one before lost, and a bound of what the last
one lost. Where the bound decides how the whole is rounded, that is the exact sum rounded once; else the result is
uncertain, and a sum of more parts is computed. Where the bound is 0, the parts are the exact sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from eltwise.core.dtypes import FLOAT64, ElementType
from eltwise.core.odd_rounding import ordered_sum, two_sum
from eltwise.kernels.accumulators import Accumulator
from eltwise.kernels.double_arithmetic import Divisor, divided
from eltwise.kernels.flags import Flags
from eltwise.kernels.instructions import Instructions, constant, of, suffix
from eltwise.kernels.vectors import Vector, as_double

_NAN_BITS = 0x7FF8000000000000
_LEAST, _MOST = 2.0**-900, 2.0**1000
"""Between these no step of a division is subnormal or overflows."""

_ORDERED_STEPS = 1 << 8
"""After so many additions of elements that are not negative the bound is brought up to date."""

_SCALE = 2.0**-64
"""No sum of float64 times this overflows, so that it says which elements are infinite or NaN."""


def exact_additions(element_type: ElementType) -> int:
    """How many floats one float64 adds up exactly, whatever they are: thousands of float16, and none of wider types."""
    return int(2.0 ** (53 + element_type.least_exponent) / element_type.largest_finite)


class ShortFloatSum(Accumulator):
    """Sums of so few floats that one float64 is exact."""

    kinds = ("double",)

    def add(self, lanes: int, values: Sequence[str], bits: str) -> list[str]:
        """Take in an element of each lane."""
        value = as_double(self.code, lanes, self.type, self.code.widened(self.type, lanes, bits))
        return [(Vector(self.code, lanes, values[0]) + value).name]

    def merge(self, lanes: int, one: Sequence[str], other: Sequence[str]) -> list[str]:
        """What two that were carried apart give together."""
        return [(Vector(self.code, lanes, one[0]) + Vector(self.code, lanes, other[0])).name]

    def finish(self, lanes: int, values: Sequence[str], divisor: Divisor) -> tuple[str, str]:
        """The bits of the results, and for each whether it is certain."""
        total = Vector(self.code, lanes, values[0])
        result, is_certain = divided(total, total.constant(0.0), total.constant(0.0), divisor)
        return _or_special(result, is_certain, total)


def _or_special(result: str, is_certain: Flags, source: Vector) -> tuple[str, str]:
    """The bits of results, or of infinity and NaN where a source is that, and for each whether it is certain."""
    bits = of(source.lanes, "i64")
    special = source.flags("uno", source).choose(bits, constant(source.lanes, "i64", _NAN_BITS), source.in_bits())
    is_finite = abs(source).flags("olt", inf)
    return is_finite.choose(bits, result, special), (is_certain | ~is_finite).name


class FloatSum(Accumulator):
    """Sums of floats as float64.

    Args:
        code: where instructions are written to.
        element_type: of the elements.
        levels: of how many parts the roundings are added up exactly. With one, those of the second part are bounded by
            how much was added to it: that costs least, and is certain far more seldom, also where a result lies midway
            between two numbers.
        is_positive: whether no element is negative. Then the larger of a sum and an element is known without a
            subtraction, and no sum of some steps was larger than the last one, which bounds what the roundings lost.
        has_unit: whether the least magnitude is kept. All elements are multiples of its last place, and so is what the
            second part lacks: where the bound is less than that, it lacks nothing.
    """

    def __init__(
        self, code: Instructions, element_type: ElementType, *, levels: int, has_unit: bool, is_positive: bool = False
    ) -> None:
        super().__init__(code, element_type)
        self.steps = exact_additions(element_type)
        self._is_exact, self._is_ordered = self.steps > 0, is_positive and levels == 1
        self.steps = self.steps or _ORDERED_STEPS * self._is_ordered
        self._levels, self.parts, self._has_unit = levels, max(levels, 2), has_unit and not self._is_exact
        self._has_special = element_type is FLOAT64 and levels > 1
        floats = self.parts + 1 + self._has_special
        self.kinds = (*["double"] * floats, *[self.integer] * has_unit)

    def narrow(self, lanes: int, values: Sequence[str]) -> list[tuple[str, str]]:
        """What is carried for some steps: one float64 that is exact, or all but the bound."""
        if self._is_exact:
            return [(of(lanes, "double"), constant(lanes, "double", 0.0))]
        carried = list(zip(self.types(lanes), values, strict=True))
        return carried[: self.parts] + carried[self.parts + 1 :]

    def widened_into(self, lanes: int, values: Sequence[str], narrow: Sequence[str]) -> list[str]:
        """The values with what was carried for some steps."""
        total = self._float(lanes, narrow[0])
        if self._is_exact:
            return self._with(lanes, values, total)
        bound = self._float(lanes, values[self.parts]) + total * (self.steps * 2.0**-52)
        return [*narrow[: self.parts], bound.name, *narrow[self.parts :]]

    def add(self, lanes: int, values: Sequence[str], bits: str) -> list[str]:
        """Take in an element of each lane."""
        value = as_double(self.code, lanes, self.type, self.code.widened(self.type, lanes, bits))
        if self._is_exact:
            return [(self._float(lanes, values[0]) + value).name]
        if self._is_ordered:
            return self._ordered(lanes, values, value, bits)
        after = self._with(lanes, values, value)
        if self._has_special:
            after[self.parts + 1] = (self._float(lanes, values[self.parts + 1]) + value * _SCALE).name
        if self._has_unit:
            after[-1] = self._least(lanes, values[-1], self._below(lanes, bits))
        return after

    def _ordered(self, lanes: int, values: Sequence[str], value: Vector, bits: str) -> list[str]:
        """What is carried for some steps with an element that is not negative; a NaN in either makes the sum one."""
        total, lost = self._float(lanes, values[0]), self._float(lanes, values[1])
        larger = total.chosen(total.flags("ogt", value), value)
        smaller = value.chosen(value.flags("olt", total), total)
        total, beyond = ordered_sum(larger, smaller)
        unit = [self._least(lanes, values[2], self._below(lanes, bits))] if self._has_unit else []
        return [total.name, (lost + beyond).name, *unit]

    def _float(self, lanes: int, name: str) -> Vector:
        return Vector(self.code, lanes, name)

    def _with(self, lanes: int, values: Sequence[str], value: Vector, first: int = 0) -> list[str]:
        """What is carried with a number that is added to the part of this index, and what that loses to the next."""
        after = list(values)
        for level in range(first, self._levels):
            total, value = two_sum(self._float(lanes, after[level]), value)
            after[level] = total.name
        if self._levels < self.parts:
            after[1] = (self._float(lanes, after[1]) + value).name
        after[self.parts] = (self._float(lanes, after[self.parts]) + abs(value)).name
        return after

    def initial(self, lanes: int) -> list[str]:
        """What is carried before the first element: as the least magnitude, less 1, that of no element."""
        floats = super().initial(lanes)[: len(self.kinds) - self._has_unit]
        return floats + [constant(lanes, self.integer, -1)] * self._has_unit

    def _below(self, lanes: int, bits: str) -> str:
        """The magnitude of elements less 1 as integers: that of a zero is the largest."""
        one_less = constant(lanes, self.integer, -1)
        return self.code.let(f"add {of(lanes, self.integer)} {self.magnitude(lanes, bits)}, {one_less}")

    def _least(self, lanes: int, one: str, other: str) -> str:
        kind, name = of(lanes, self.integer), f"@llvm.umin.{suffix(lanes, self.integer)}"
        return self.code.let(f"call {kind} {name}({kind} {one}, {kind} {other})")

    def _unit(self, lanes: int, below: str) -> Vector:
        """The last place of the least magnitude, as a float64; 0 where that is none."""
        code, kind, magnitude_kind = self.code, of(lanes, "i64"), of(lanes, self.integer)
        fraction, scale = self.type.digits - 1, 1022 + self.type.least_exponent
        magnitude = code.let(f"add {magnitude_kind} {below}, {constant(lanes, self.integer, 1)}")
        field = code.let(f"lshr {magnitude_kind} {magnitude}, {constant(lanes, self.integer, fraction)}")
        wide = field if self.integer == "i64" else code.let(f"zext {magnitude_kind} {field} to {kind}")
        least, smallest = (1 - scale, 0) if self.type is FLOAT64 else (1, 1 + scale)
        moved = code.let(f"add {kind} {wide}, {constant(lanes, 'i64', scale)}")
        is_small = Flags(code, lanes, code.let(f"icmp slt {kind} {wide}, {constant(lanes, 'i64', least)}"))
        exponent = is_small.choose(kind, constant(lanes, "i64", smallest), moved)
        bits = code.let(f"shl {kind} {exponent}, {constant(lanes, 'i64', 52)}")
        return Vector(code, lanes, code.let(f"bitcast {kind} {bits} to {of(lanes, 'double')}"))

    def merge(self, lanes: int, one: Sequence[str], other: Sequence[str]) -> list[str]:
        """What two that were carried apart give together."""
        values = list(one)
        for part in range(self.parts):
            values = self._with(lanes, values, self._float(lanes, other[part]), part)
        for number in range(self.parts, self.parts + 1 + self._has_special):
            values[number] = (self._float(lanes, values[number]) + self._float(lanes, other[number])).name
        if self._has_unit:
            values[-1] = self._least(lanes, one[-1], other[-1])
        return values

    def finish(self, lanes: int, values: Sequence[str], divisor: Divisor) -> tuple[str, str]:
        """The bits of the results, and for each whether it is certain; of at most two levels."""
        high, low, bound = (self._float(lanes, name) for name in values[:3])
        if self._levels > 1:
            divisor = divisor._replace(share=bound.constant(2.0))
        if self._has_unit:
            is_whole = (bound * divisor.share).flags("olt", self._unit(lanes, values[-1]))
            bound = bound.constant(0.0).chosen(is_whole, bound)
        result, is_certain = divided(high, low, bound, divisor)
        if self.type is FLOAT64:
            size = abs(high + low)
            is_usual = (size.flags("ogt", _LEAST) | size.flags("oeq", 0.0)) & size.flags("olt", _MOST)
            is_certain = is_certain & is_usual
            if not self._has_special:
                return result, is_certain.name
        # No sum of smaller types overflows.
        return _or_special(
            result, is_certain, self._float(lanes, values[self.parts + 1]) if self._has_special else high
        )
