"""Conditions of elements in LLVM as operands of Python's operators. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from eltwise.kernels.instructions import Instructions, constant, of


@dataclass(frozen=True)
class Flags:
    """The name of so many conditions in a function's body; of one without being a vector."""

    code: Instructions
    lanes: int
    name: str

    @property
    def type(self) -> str:
        """The LLVM type."""
        return of(self.lanes, "i1")

    def __and__(self, other: Flags) -> Flags:
        return self._let("and", other.name)

    def __or__(self, other: Flags) -> Flags:
        return self._let("or", other.name)

    def __invert__(self) -> Flags:
        return self._let("xor", constant(self.lanes, "i1", True))

    def bits(self) -> str:
        """An integer with a bit for each of them."""
        return self.code.let(f"bitcast {self.type} {self.name} to i{self.lanes}") if self.lanes > 1 else self.name

    def any(self) -> str:
        """An i1: whether any is set."""
        return self.code.let(f"icmp ne i{self.lanes} {self.bits()}, 0")

    def choose(self, kind: str, one: str, other: str) -> str:
        """Values of an LLVM type where flags are set, else others."""
        return self.code.let(f"select {self.type} {self.name}, {kind} {one}, {kind} {other}")

    def _let(self, operation: str, other: str) -> Flags:
        return Flags(self.code, self.lanes, self.code.let(f"{operation} {self.type} {self.name}, {other}"))
