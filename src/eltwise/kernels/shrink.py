"""Shrink in vectors of LLVM: floats rounded once, integers truncated and saturating. Pure."""

from __future__ import annotations

from eltwise.core.dtypes import FLOAT64, ElementType
from eltwise.core.odd_rounding import two_sum
from eltwise.kernels.instructions import Instructions, constant, of, suffix
from eltwise.kernels.rounding_tests import for_rounding, odd_sum
from eltwise.kernels.vectors import as_double
from eltwise.ops.sums import limits, saturating


def write_shrink(
    code: Instructions, element_type: ElementType, lanes: int, operand: str, *, bias: float, lambd: float
) -> str:
    """Write x - bias above lambd, x + bias below -lambd, else 0, of elements as ``Instructions.widened`` gives them.

    Returns:
        What ``Instructions.narrowed`` makes the nearest elements of.
    """
    if element_type.is_integer:
        return _Integers(code, element_type, lanes).shrunk(operand, bias, lambd)
    x = as_double(code, lanes, element_type, operand)
    moved = x.where("olt", -lambd, bias, -bias)
    total, lost = two_sum(x, moved)
    if element_type is not FLOAT64:
        total = odd_sum(total, lost)
    result = total.chosen(x.flags("ogt", lambd) | x.flags("olt", -lambd), 0.0)
    return result.name if element_type is FLOAT64 else for_rounding(element_type, result).name


class _Integers:
    """Instructions on so many integers of a type."""

    def __init__(self, code: Instructions, element_type: ElementType, lanes: int) -> None:
        self._code, self._element_type, self._lanes = code, element_type, lanes
        self._scalar = f"i{element_type.bits}"
        self._kind, self._suffix = of(lanes, self._scalar), suffix(lanes, self._scalar)
        self._sign = "s" if element_type.kind == "signed" else "u"

    def shrunk(self, x: str, bias: float, lambd: float) -> str:
        (least, greatest), (low, high) = limits(self._element_type, lambd), self._element_type.limits
        inner = self._moved(x, -bias)
        if greatest >= low:
            inner = self._where("gt", x, greatest, inner, self._number(0))
        outer = self._moved(x, bias)
        return self._where("lt", x, least, outer, inner) if least <= high else outer

    def _where(self, comparison: str, x: str, limit: int, one: str, other: str) -> str:
        flags = self._code.let(f"icmp {self._sign}{comparison} {self._kind} {x}, {self._number(limit)}")
        return self._code.let(f"select {of(self._lanes, 'i1')} {flags}, {self._kind} {one}, {self._kind} {other}")

    def _moved(self, x: str, number: float) -> str:
        """The sum with a number, truncated: one below it where that is positive, and one above it where negative."""
        below, above = (
            self._sum(self._extreme("min" if addend > 0 else "max", x, self._number(bound)), self._number(addend))
            for addend, bound in saturating(self._element_type, number)
        )
        zero = self._number(0)
        return self._sum(self._extreme("max", below, zero), self._extreme("min", above, zero))

    def _extreme(self, name: str, one: str, other: str) -> str:
        arguments = f"{self._kind} {one}, {self._kind} {other}"
        return self._code.let(f"call {self._kind} @llvm.{self._sign}{name}.{self._suffix}({arguments})")

    def _sum(self, one: str, other: str) -> str:
        return self._code.let(f"add {self._kind} {one}, {other}")

    def _number(self, value: int) -> str:
        """A number modulo 2 to the number of bits, as one with a sign."""
        half = 1 << self._element_type.bits - 1
        return constant(self._lanes, self._scalar, (value + half) % (2 * half) - half)
