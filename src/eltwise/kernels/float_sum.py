"""Sums of floats as float64, carried in vectors of any width, as LLVM instructions. Pure.

A sum is carried as two float64, a sum and what its roundings lost, and a bound of what the second one lost. Where the
bound decides how the whole is rounded, that is the exact sum rounded once; else the result is uncertain, and somebody
else has to compute it.
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


class FloatSum(Accumulator):
    """Sums of floats as float64.

    Args:
        code: where instructions are written to.
        element_type: of the elements.
        is_double: whether the roundings of the second part are looked at one by one, rather than bounded by how much
            was added to it: then the result is certain far more often, also where it lies midway between two numbers.
        has_unit: whether the least magnitude is kept. All elements are multiples of its last place, and so is what the
            second part lacks: where the bound is less than that, it lacks nothing.
    """

    kinds: tuple[str, ...] = ("double", "double", "double")

    def __init__(self, code: Instructions, element_type: ElementType, *, is_double: bool, has_unit: bool) -> None:
        super().__init__(code, element_type)
        self._is_double, self._has_unit = is_double, has_unit
        if has_unit:
            self.kinds = (*self.kinds, self.integer)

    def add(self, lanes: int, values: Sequence[str], bits: str) -> list[str]:
        """Take in an element of each lane."""
        code, wide = self.code, of(lanes, "double")
        value = code.widened(self.type, lanes, bits)
        if self.type is not FLOAT64:
            value = code.let(f"fpext {of(lanes, 'float')} {value} to {wide}")
        total, lost = two_sum(code, lanes, values[0], value)
        unit = [self._least(lanes, values[3], self._below(lanes, bits))] if self._has_unit else []
        return [total, *self._lose(lanes, values[1:3], [lost]), *unit]

    def initial(self, lanes: int) -> list[str]:
        """What is carried before the first element: as the least magnitude, less 1, that of no element."""
        return super().initial(lanes)[:3] + [constant(lanes, self.integer, -1)] * self._has_unit

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
        code, kind, own = self.code, of(lanes, "i64"), of(lanes, self.integer)
        fraction, bias = _FRACTIONS[self.type]
        magnitude = code.let(f"add {own} {below}, {constant(lanes, self.integer, 1)}")
        field = code.let(f"lshr {own} {magnitude}, {constant(lanes, self.integer, fraction)}")
        wide = field if self.integer == "i64" else code.let(f"zext {own} {field} to {kind}")
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
        total, lost = two_sum(self.code, lanes, one[0], other[0])
        rest = self._lose(lanes, one[1:3], [other[1], lost])
        unit = [self._least(lanes, one[3], other[3])] if self._has_unit else []
        return [total, rest[0], self.code.let(f"fadd {of(lanes, 'double')} {rest[1]}, {other[2]}"), *unit]

    def _lose(self, lanes: int, values: Sequence[str], lost: Sequence[str]) -> list[str]:
        """The second part and its bound with what roundings lost."""
        code, wide = self.code, of(lanes, "double")
        low, bound = values
        for each in lost:
            if self._is_double:
                low, beyond = two_sum(code, lanes, low, each)
            else:
                low, beyond = code.let(f"fadd {wide} {low}, {each}"), each
            bound = code.let(f"fadd {wide} {bound}, {absolute(code, lanes, beyond)}")
        return [low, bound]

    def finish(self, lanes: int, values: Sequence[str], divisor: Divisor | None) -> tuple[str, str]:
        """The bits of the results, and for each whether it is certain."""
        if divisor is None:
            raise ValueError("a sum of floats needs a divisor")
        code, wide, flags = self.code, of(lanes, "double"), of(lanes, "i1")
        if self._is_double:
            divisor = divisor._replace(share=splat(lanes, "2.0"))
        bound = values[2]
        if self._has_unit:
            lack = code.let(f"fmul {wide} {bound}, {divisor.share}")
            is_whole = code.let(f"fcmp olt {wide} {lack}, {self._unit(lanes, values[3])}")
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
            return result, code.let(f"and {flags} {is_certain}, {is_usual}")
        bits, infinity = of(lanes, "i64"), splat(lanes, _INFINITY)  # No sum of smaller types overflows.
        own = code.let(f"bitcast {wide} {values[0]} to {bits}")
        is_nan = code.let(f"fcmp uno {wide} {values[0]}, {values[0]}")
        special = code.let(f"select {flags} {is_nan}, {bits} {constant(lanes, 'i64', _NAN_BITS)}, {bits} {own}")
        is_finite = code.let(f"fcmp olt {wide} {absolute(code, lanes, values[0])}, {infinity}")
        result = code.let(f"select {flags} {is_finite}, {bits} {result}, {bits} {special}")
        is_special = code.let(f"xor {flags} {is_finite}, {constant(lanes, 'i1', -1)}")
        return result, code.let(f"or {flags} {is_certain}, {is_special}")
