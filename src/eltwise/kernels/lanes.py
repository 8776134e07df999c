"""LLVM instructions on 16 elements at a time: as numbers, as flags, and how far two are from each other. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from eltwise.core.dtypes import ElementType
from eltwise.kernels.flags import Flags
from eltwise.kernels.instructions import Instructions, constant, of, suffix
from eltwise.kernels.precision import DOUBLE, SINGLE
from eltwise.kernels.vectors import Vector

LANES = 16


class Lanes:
    """Writes instructions on vectors of one element type.

    Attributes:
        type: the element type.
        code: where they are written to.
        bits: how many bits an element has in memory.
        raw: the LLVM type of elements as they are in memory.
        is_float: whether it has fractions.
        distance: the LLVM type of a distance in units of the last place.
        distances: that of a vector of them.
        precision: that of the numbers that are computed with.
    """

    def __init__(self, element_type: ElementType) -> None:
        self.type, self.code = element_type, Instructions()
        self.bits = max(element_type.bits, 8)
        self.raw = of(LANES, f"i{self.bits}")
        self.is_float = element_type.kind == "float"
        self.distance = "i64" if self.bits == 64 else "i32"
        self.distances = of(LANES, self.distance)
        self.precision = SINGLE if self.is_float and self.bits < 64 else DOUBLE

    def vector(self, name: str) -> Vector:
        """Numbers that are computed with."""
        return Vector(self.code, LANES, name, self.precision)

    def counted(self, before: str, flags: Flags) -> str:
        """An i64 to which the number of set flags is added."""
        ones = self.code.let(f"call i16 @llvm.ctpop.i16(i16 {flags.bits()})")
        return self.code.let(f"add i64 {before}, {self.code.let(f'zext i16 {ones} to i64')}")

    def value(self, loaded: str) -> Vector:
        """Elements as numbers that are computed with."""
        if self.is_float:
            return self.vector(self.code.widened(self.type, LANES, loaded))
        kind = "sitofp" if self.type.kind == "signed" else "uitofp"
        return self.vector(self.code.let(f"{kind} {self.raw} {loaded} to {of(LANES, 'double')}"))

    def distance_of(self, loaded: Sequence[str]) -> str:
        """How many numbers lie between, from keys in the order of the numbers."""
        let, scalar, sign = self.code.let, f"i{self.bits}", "u" if self.type.kind in ("unsigned", "boolean") else "s"
        keys = list(loaded)
        if self.is_float:  # The patterns without sign, negative where the sign is, are in order.
            keys = [self._key(one) for one in loaded]
            scalar = self.distance
        kind = of(LANES, scalar)
        arguments = f"({kind} {keys[0]}, {kind} {keys[1]})"
        most, least = (
            let(f"call {kind} @llvm.{sign}{end}.{suffix(LANES, scalar)}{arguments}") for end in ("max", "min")
        )
        gap = let(f"sub {kind} {most}, {least}")
        return gap if self.bits >= 32 or self.is_float else let(f"zext {kind} {gap} to {self.distances}")

    def _key(self, loaded: str) -> str:
        let, last = self.code.let, self.bits - 1
        size = let(f"and {self.raw} {loaded}, {constant(LANES, f'i{self.bits}', (1 << last) - 1)}")
        sign = let(f"ashr {self.raw} {loaded}, {constant(LANES, f'i{self.bits}', last)}")
        key = let(f"sub {self.raw} {let(f'xor {self.raw} {size}, {sign}')}, {sign}")
        return key if self.bits >= 32 else let(f"sext {self.raw} {key} to {self.distances}")
