"""Sums of floats as float64, carried in vectors of any width, as LLVM instructions. Pure.

A sum is carried as several float64, each of what the roundings of the one before lost, and a bound of what the last
one lost. Where the bound decides how the whole is rounded, that is the exact sum rounded once; else the result is
uncertain, and a sum of more parts is computed. Where the bound is 0, the parts are the exact sum.
"""

from __future__ import annotations

from collections.abc import Sequence

from eltwise.core.dtypes import BFLOAT16, FLOAT16, FLOAT32, FLOAT64, ElementType
from eltwise.kernels.accumulators import Accumulator
from eltwise.kernels.double_arithmetic import Divisor, absolute, divided, splat, two_sum
from eltwise.kernels.instructions import Instructions, constant, of

_INFINITY = "0x7FF0000000000000"
_NAN_BITS = 0x7FF8000000000000
_LEAST, _MOST = "0x07B0000000000000", "0x7E70000000000000"
"""2^-900 and 2^1000: between them no step of a division is subnormal or overflows."""

_FRACTIONS = {FLOAT16: (10, 15), BFLOAT16: (7, 127), FLOAT32: (23, 127), FLOAT64: (52, 1023)}
"""The bits of the fraction of a float, and the bias of its exponent."""


_SCALE = "0x3BF0000000000000"
"""2^-64: no sum of float64 times this overflows, so that it says which elements are infinite or NaN."""


class FloatSum(Accumulator):
    """Sums of floats as float64.

    Args:
        code: where instructions are written to.
        element_type: of the elements.
        levels: of how many parts the roundings are added up exactly. With one, those of the second part are bounded by
            how much was added to it: that costs least, and is certain far more seldom, also where a result lies midway
            between two numbers.
        has_unit: whether the least magnitude is kept. All elements are multiples of its last place, and so is what the
            second part lacks: where the bound is less than that, it lacks nothing.
    """

    def __init__(self, code: Instructions, element_type: ElementType, *, levels: int, has_unit: bool) -> None:
        super().__init__(code, element_type)
        self._levels, self.parts, self._has_unit = levels, max(levels, 2), has_unit
        self._has_special = element_type is FLOAT64 and levels > 1
        floats = self.parts + 1 + self._has_special
        self.kinds = (*["double"] * floats, *[self.integer] * has_unit)

    def add(self, lanes: int, values: Sequence[str], bits: str) -> list[str]:
        """Take in an element of each lane."""
        code, wide = self.code, of(lanes, "double")
        value = code.widened(self.type, lanes, bits)
        if self.type is not FLOAT64:
            value = code.let(f"fpext {of(lanes, 'float')} {value} to {wide}")
        after = self._with(lanes, values, value)
        if self._has_special:
            scaled = code.let(f"fmul {wide} {value}, {splat(lanes, _SCALE)}")
            after[self.parts + 1] = code.let(f"fadd {wide} {values[self.parts + 1]}, {scaled}")
        if self._has_unit:
            after[-1] = self._least(lanes, values[-1], self._below(lanes, bits))
        return after

    def _with(self, lanes: int, values: Sequence[str], value: str, first: int = 0) -> list[str]:
        """What is carried with a number that is added to the part of this index, and what that loses to the next."""
        code, after = self.code, list(values)
        for level in range(first, self._levels):
            after[level], value = two_sum(code, lanes, after[level], value)
        if self._levels < self.parts:
            after[1] = code.let(f"fadd {of(lanes, 'double')} {after[1]}, {value}")
        lost = absolute(code, lanes, value)
        after[self.parts] = code.let(f"fadd {of(lanes, 'double')} {after[self.parts]}, {lost}")
        return after

    def initial(self, lanes: int) -> list[str]:
        """What is carried before the first element: as the least magnitude, less 1, that of no element."""
        floats = super().initial(lanes)[: len(self.kinds) - self._has_unit]
        return floats + [constant(lanes, self.integer, -1)] * self._has_unit

    def _below(self, lanes: int, bits: str) -> str:
        """The magnitude of elements less 1 as integers: that of a zero is the largest."""
        kind, sign = of(lanes, self.integer), self.type.storage.itemsize * 8 - 1
        magnitude = self.code.let(f"and {kind} {bits}, {constant(lanes, self.integer, (1 << sign) - 1)}")
        return self.code.let(f"add {kind} {magnitude}, {constant(lanes, self.integer, -1)}")

    def _least(self, lanes: int, one: str, other: str) -> str:
        kind, suffix = of(lanes, self.integer), ("" if lanes == 1 else f"v{lanes}") + self.integer
        return self.code.let(f"call {kind} @llvm.umin.{suffix}({kind} {one}, {kind} {other})")

    def _unit(self, lanes: int, below: str) -> str:
        """The last place of the least magnitude, as a float64; 0 where that is none."""
        code, kind, magnitude_kind = self.code, of(lanes, "i64"), of(lanes, self.integer)
        fraction, bias = _FRACTIONS[self.type]
        magnitude = code.let(f"add {magnitude_kind} {below}, {constant(lanes, self.integer, 1)}")
        field = code.let(f"lshr {magnitude_kind} {magnitude}, {constant(lanes, self.integer, fraction)}")
        wide = field if self.integer == "i64" else code.let(f"zext {magnitude_kind} {field} to {kind}")
        least = bias + fraction - 1022 if self.type is FLOAT64 else 1
        moved = code.let(f"add {kind} {wide}, {constant(lanes, 'i64', 1023 - bias - fraction)}")
        is_small = code.let(f"icmp slt {kind} {wide}, {constant(lanes, 'i64', least)}")
        smallest = 0 if self.type is FLOAT64 else 1024 - bias - fraction
        exponent = code.let(
            f"select {of(lanes, 'i1')} {is_small}, {kind} {constant(lanes, 'i64', smallest)}, {kind} {moved}"
        )
        bits = code.let(f"shl {kind} {exponent}, {constant(lanes, 'i64', 52)}")
        return code.let(f"bitcast {kind} {bits} to {of(lanes, 'double')}")

    def merge(self, lanes: int, one: Sequence[str], other: Sequence[str]) -> list[str]:
        """What two that were carried apart give together."""
        values = list(one)
        for part in range(self.parts):
            values = self._with(lanes, values, other[part], part)
        for number in range(self.parts, self.parts + 1 + self._has_special):
            values[number] = self.code.let(f"fadd {of(lanes, 'double')} {values[number]}, {other[number]}")
        if self._has_unit:
            values[-1] = self._least(lanes, one[-1], other[-1])
        return values

    def finish(self, lanes: int, values: Sequence[str], divisor: Divisor | None) -> tuple[str, str]:
        """The bits of the results, and for each whether it is certain; of at most two levels."""
        if divisor is None:
            raise ValueError("a sum of floats needs a divisor")
        code, wide, flags = self.code, of(lanes, "double"), of(lanes, "i1")
        if self._levels > 1:
            divisor = divisor._replace(share=splat(lanes, "2.0"))
        bound = values[2]
        if self._has_unit:
            lack = code.let(f"fmul {wide} {bound}, {divisor.share}")
            is_whole = code.let(f"fcmp olt {wide} {lack}, {self._unit(lanes, values[-1])}")
            bound = code.let(f"select {flags} {is_whole}, {wide} {splat(lanes, '0.0')}, {wide} {bound}")
        result, is_certain = divided(code, lanes, values[0], values[1], bound, divisor)
        size = absolute(code, lanes, code.let(f"fadd {wide} {values[0]}, {values[1]}"))
        if self.type is FLOAT64:
            is_normal = code.let(f"fcmp ogt {wide} {size}, {splat(lanes, _LEAST)}")
            is_zero = code.let(
                f"fcmp oeq {wide} {size}, zeroinitializer" if lanes > 1 else f"fcmp oeq double {size}, 0.0"
            )
            is_usual = code.let(f"or {flags} {is_normal}, {is_zero}")
            is_small = code.let(f"fcmp olt {wide} {size}, {splat(lanes, _MOST)}")
            is_usual = code.let(f"and {flags} {is_usual}, {is_small}")
            is_certain = code.let(f"and {flags} {is_certain}, {is_usual}")
            if not self._has_special:
                return result, is_certain
        # No sum of smaller types overflows.
        source = values[self.parts + 1] if self._has_special else values[0]
        bits, infinity = of(lanes, "i64"), splat(lanes, _INFINITY)
        bits_of_sum = code.let(f"bitcast {wide} {source} to {bits}")
        is_nan = code.let(f"fcmp uno {wide} {source}, {source}")
        special = code.let(f"select {flags} {is_nan}, {bits} {constant(lanes, 'i64', _NAN_BITS)}, {bits} {bits_of_sum}")
        is_finite = code.let(f"fcmp olt {wide} {absolute(code, lanes, source)}, {infinity}")
        result = code.let(f"select {flags} {is_finite}, {bits} {result}, {bits} {special}")
        is_special = code.let(f"xor {flags} {is_finite}, {constant(lanes, 'i1', -1)}")
        return result, code.let(f"or {flags} {is_certain}, {is_special}")
