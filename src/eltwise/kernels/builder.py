"""A kernel's LLVM instructions as text: how elements are read, computed and written. Pure."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from eltwise.kernels.instructions import NATIVE_FLOATS, Instructions, constant, of
from eltwise.kernels.invariant_divisor import InvariantDivisor, invariant_divisor, quotient
from eltwise.kernels.structure import Structure
from eltwise.ops.expression import Step

_SUFFIXES = {"float": "f32", "double": "f64"}
_CONSTANTS = {"zero": 0, "one": 1, "minus_one": -1}


class Loop(NamedTuple):
    """The names of the values that describe a loop: its size, and by how many bytes each array moves in it."""

    size: str
    steps: list[str]


class Builder(Instructions):
    """The body of one kernel; elements are held as integers."""

    def __init__(self, structure: Structure) -> None:
        super().__init__(has_fused=structure.target.has_fused)
        self.structure = structure
        self._invariants: dict[str, InvariantDivisor] = {}

    def place(self, places: Sequence[str], inner: Loop, array: int, index: str) -> str:
        """The pointer to an element of a run that begins at ``places``."""
        match self.structure.walks[array]:
            case "vector":
                kind = self._integer(array)
                return self.let(f"getelementptr {kind}, ptr {places[array]}, i64 {index}")
            case "scalar":
                return places[array]
            case _:
                return self.moved(places[array], self.let(f"mul i64 {index}, {inner.steps[array]}"))

    def single_elements(self, places: Sequence[str], inner: Loop, begin: str, end: str) -> None:
        """Compute the elements of a run one by one."""

        def one(index: str) -> None:
            pointers = [self.place(places, inner, array, index) for array in range(self.structure.arrays)]
            operands = [self.load(array, pointers[array], 1) for array in range(1, self.structure.arrays)]
            self.store(self.results(1, operands), pointers[0], 1)

        self.loop(begin, end, 1, one)

    def load(self, array: int, pointer: str, lanes: int, mask: str = "") -> str:
        """Load elements that lie one after the other; with a mask those that it allows."""
        kind = of(lanes, self._integer(array))
        if mask:
            name = f"@llvm.masked.load.v{lanes}{self._integer(array)}.p0"
            arguments = f"ptr align 1 {pointer}, <{lanes} x i1> {mask}, {kind} zeroinitializer"
            return self._native(array, lanes, self.let(f"call {kind} {name}({arguments})"))
        return self._native(array, lanes, self.let(f"load {kind}, ptr {pointer}, align 1"))

    def splat(self, array: int, pointer: str, lanes: int) -> str:
        """Load one element into every lane."""
        return self.in_all_lanes(self._integer(array), self.load(array, pointer, 1), lanes)

    def divisor(self, array: int, pointer: str, lanes: int) -> str:
        """Load an integer that many are divided by into every lane."""
        bits, is_signed = 8 * self.structure.width, self.structure.element_type.kind == "signed"
        value = self.load(array, pointer, 1)
        name = self.in_all_lanes(self._integer(array), value, lanes)
        self._invariants[name] = invariant_divisor(self, bits, value, is_signed=is_signed)
        return name

    def shuffled(self, pair: str, lanes: Iterable[int]) -> str:
        """Some lanes of two vectors; those of the second one follow those of the first."""
        order = [f"i32 {lane}" for lane in lanes]
        return self.let(f"shufflevector {pair}, <{len(order)} x i32> <{', '.join(order)}>")

    def gather(self, array: int, pointer: str, step: str, lanes: int) -> str:
        """Load elements that lie ``step`` bytes apart."""
        kind, element, value = of(lanes, self._integer(array)), self._integer(array), "poison"
        for lane in range(lanes):
            one = self.let(f"load {element}, ptr {pointer}, align 1")
            value = self.let(f"insertelement {kind} {value}, {element} {one}, i64 {lane}")
            pointer = self.moved(pointer, step)
        return self._native(array, lanes, value)

    def prefetch(self, pointer: str) -> None:
        """Ask for a cache line that will be read soon; a place beyond the array does no harm."""
        self.do(f"call void @llvm.prefetch.p0(ptr {pointer}, i32 0, i32 2, i32 1)")

    def store(self, value: str, pointer: str, lanes: int, mask: str = "") -> None:
        """Store elements one after the other; whole vectors bypass the cache where the structure says so."""
        kind, native = of(lanes, self._integer(0)), self._native(0, lanes, value)
        if mask:
            name = f"@llvm.masked.store.v{lanes}{self._integer(0)}.p0"
            self.do(f"call void {name}({kind} {native}, ptr align 1 {pointer}, <{lanes} x i1> {mask})")
        elif self.structure.streams and lanes > 1:
            alignment = lanes * self.structure.width_of(0)
            self.do(f"store {kind} {native}, ptr {pointer}, align {alignment}, !nontemporal !0")
        else:
            self.do(f"store {kind} {native}, ptr {pointer}, align 1")

    def _native(self, array: int, lanes: int, value: str) -> str:
        """Swap the bytes where the array has them in the other order."""
        if not self.structure.swapped[array]:
            return value
        kind = of(lanes, self._integer(array))
        suffix = ("" if lanes == 1 else f"v{lanes}") + self._integer(array)
        return self.let(f"call {kind} @llvm.bswap.{suffix}({kind} {value})")

    def _integer(self, array: int) -> str:
        return f"i{self.structure.width_of(array) * 8}"

    # ---- arithmetic

    def results(self, lanes: int, operands: Sequence[str]) -> str:
        """Compute the expression of the structure for ``lanes`` elements at once."""
        bits, wide = list(operands), dict[int, str]()
        for step in self.structure.expression.steps:
            for value in step.operands:
                if value not in wide:
                    wide[value] = self.widened(self.structure.element_type, lanes, bits[value])
            exact = self._step(lanes, step, [wide[value] for value in step.operands])
            if step.definition.result == "boolean":  # As NumPy holds it: a byte of 0 or 1.
                bits.append(self.let(f"zext {of(lanes, 'i1')} {exact} to {of(lanes, 'i8')}"))
            else:
                bits.append(self.narrowed(self.structure.element_type, lanes, exact))
        return bits[-1]

    @property
    def _scalar(self) -> str:
        """The LLVM type that one element is computed in."""
        element_type = self.structure.element_type
        return f"i{element_type.bits}" if element_type.is_integer else NATIVE_FLOATS.get(element_type, "float")

    def _step(self, lanes: int, step: Step, operands: list[str]) -> str:
        """Write the instructions of a step; see ``primitives.Instructions``."""
        if operands[-1] in self._invariants and step.definition.divides:
            return quotient(
                self,
                lanes,
                self.structure.element_type.bits,
                operands[0],
                self._invariants[operands[-1]],
                is_signed=self.structure.element_type.kind == "signed",
                is_floored=step.definition.name == "floor_divide",
            )
        names = dict(zip("ab", operands, strict=False)) | {
            "T": of(lanes, self._scalar),
            "t": ("" if lanes == 1 else f"v{lanes}") + _SUFFIXES.get(self._scalar, self._scalar),
            "B": of(lanes, "i1"),
        }
        constants = {name: constant(lanes, self._scalar, value) for name, value in _CONSTANTS.items()}
        results: list[str] = []
        for template in step.definition.instructions(self.structure.element_type):
            instruction = template.format(*results, **names, **constants)
            is_quotient = instruction.startswith(("sdiv", "udiv")) and self.structure.width < 8
            results.append(self._quotient(lanes, instruction) if is_quotient else self.let(instruction))
        return results[-1]

    def _quotient(self, lanes: int, instruction: str) -> str:
        """The quotient of integers of at most 32 bits: integers are divided one by one, floats in vectors.

        The dividend is multiplied by the reciprocal, which stays the same where the divisor does. That is made larger
        by more than roundings take away: a whole quotient never falls below itself, and one that is not whole is
        farther from the next integer than it is moved.
        """
        kind, is_double = of(lanes, self._scalar), self.structure.width == 4
        a, b = instruction.removeprefix(f"{instruction[:4]} {kind} ").split(", ")
        scalar, sign, one = ("double" if is_double else "float"), instruction[0], 1 + 2.0 ** (-50 if is_double else -21)
        floats = of(lanes, scalar)
        dividend, divisor = (self.let(f"{sign}itofp {kind} {each} to {floats}") for each in (a, b))
        bits = f"0x{struct.unpack('>Q', struct.pack('>d', one))[0]:X}"
        numerator = f"splat ({scalar} {bits})" if lanes > 1 else bits
        reciprocal = self.let(f"fdiv {floats} {numerator}, {divisor}")
        return self.let(f"fpto{sign}i {floats} {self.let(f'fmul {floats} {dividend}, {reciprocal}')} to {kind}")
