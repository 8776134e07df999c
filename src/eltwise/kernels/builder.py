"""A kernel's LLVM instructions as text: how elements are read, computed and written. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from eltwise.core.dtypes import ElementType
from eltwise.kernels.instructions import Instructions, computed_in, constant, of, suffix
from eltwise.kernels.structure import Structure
from eltwise.ops.expression import Step

if TYPE_CHECKING:
    from eltwise.kernels.invariant_divisor import InvariantDivisor

_CONSTANTS = {"zero": 0, "one": 1, "minus_one": -1}
_FLOAT_CONSTANTS = {"half": 0.5, "infinity": math.inf}
_FIRST_WHOLE = {"float": 2.0**23, "double": 2.0**52}
"""From these on every number is an integer."""

_DIVISIONS = ("sdiv", "udiv", "srem", "urem")

_ROUNDINGS = {"floor": "floor", "ceil": "ceil", "round": "roundeven"}
"""The steps that are one instruction of processors that have fused products, which all round to integers, too."""

_QUOTIENTS = {"divide": False, "floor_divide": True, "fmod": False, "modulo": True}
"""What is computed of a quotient of integers, and whether that is rounded down."""


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
            pointer = self.place(places, inner, 0, index)
            self.store(self.results_at(places, inner, index, 1), pointer, 1)

        self.loop(begin, end, 1, one)

    def results_at(self, places: Sequence[str], inner: Loop, index: str, lanes: int, mask: str = "") -> str:
        """Compute so many elements of a run, from an index on; with a mask those that it allows."""
        arrays = range(1, self.structure.arrays)
        pointers = [self.place(places, inner, array, index) for array in arrays]
        pairs = zip(arrays, pointers, strict=True)
        return self.results(lanes, [self.elements(*pair, inner.steps[pair[0]], lanes, mask) for pair in pairs])

    def elements(self, array: int, pointer: str, step: str, lanes: int, mask: str = "") -> str:
        """Load elements as a run walks them; with a mask those that it allows, where they lie one after the other."""
        match self.structure.walks[array]:
            case "scalar":
                return self.splat(array, pointer, lanes)
            case "strided" if lanes > 1:
                return self.gather(array, pointer, step, lanes)
            case _:
                return self.load(array, pointer, lanes, mask)

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
        from eltwise.kernels.invariant_divisor import invariant_divisor  # Few kernels divide by one.

        element_type = self.structure.types[array - 1]
        bits, is_signed = element_type.bits, element_type.kind == "signed"
        value = self.load(array, pointer, 1)
        name = self.in_all_lanes(self._integer(array), value, lanes)
        self._invariants[name] = invariant_divisor(self, bits, value, is_signed=is_signed)
        return name

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
        return self.let(f"call {kind} @llvm.bswap.{suffix(lanes, self._integer(array))}({kind} {value})")

    def _integer(self, array: int) -> str:
        return f"i{self.structure.width_of(array) * 8}"

    # ---- arithmetic

    def results(self, lanes: int, operands: Sequence[str]) -> str:
        """Compute the expression of the structure for ``lanes`` elements at once."""
        types, bits, wide = self.structure.types, list(operands), dict[int, str]()
        for step in self.structure.expression.steps:
            values = []
            for kind, value in zip(step.definition.operand_kinds(len(step.operands)), step.operands, strict=True):
                if step.definition.on_bits and kind == "T":
                    values.append(bits[value])
                    continue
                if value not in wide:
                    wide[value] = self.widened(types[value], lanes, bits[value])
                values.append(wide[value])
            result_type = types[len(bits)]
            if step.definition.has_module:
                from eltwise.kernels import real_steps  # Arithmetic must not pay for it.

                result = real_steps.write(self, step, types, lanes, values)
            elif step.definition.result == "to":
                from eltwise.kernels.conversions import write_conversion

                result = write_conversion(self, lanes, step, types, values)
            else:
                resolved = step._replace(parameters=step.resolved(types))
                result = self._step(lanes, resolved, step.type_of(types), values)
            bits.append(result if step.definition.on_bits else self.narrowed(result_type, lanes, result))
        return bits[-1]

    def _step(self, lanes: int, step: Step, element_type: ElementType, operands: list[str]) -> str:
        """Write the instructions of a step; see ``primitive.Instructions``."""
        definition, scalar = step.definition, computed_in(element_type)
        if definition.on_bits:
            scalar = f"i{8 * element_type.storage.itemsize}"
        kind = of(lanes, scalar)
        if operands[-1] in self._invariants and definition.name in _QUOTIENTS:
            return self._by_invariant(lanes, definition.name, element_type, operands)
        names = dict(zip("abc", operands, strict=False)) | {
            "T": kind,
            "t": suffix(lanes, scalar),
            "B": of(lanes, "i1"),
        }
        if self.has_fused and definition.name in _ROUNDINGS:
            return self.let(f"call {kind} @llvm.{_ROUNDINGS[definition.name]}.{names['t']}({kind} {operands[0]})")
        results: list[str] = []
        for template in definition.instructions(element_type):
            instruction = template.format(*results, **names, **_constants(lanes, scalar, element_type, step))
            is_divided = instruction.startswith(_DIVISIONS) and (element_type.bits < 64 or self._converts_wide(lanes))
            results.append(self._divided(lanes, element_type, instruction) if is_divided else self.let(instruction))
        return results[-1]

    def _converts_wide(self, lanes: int) -> bool:
        """Whether vectors of 64-bit integers become floats in one instruction; else dividing one by one is faster."""
        return lanes > 1 and self.structure.target.has_masks

    def _divided(self, lanes: int, element_type: ElementType, instruction: str) -> str:
        from eltwise.kernels.quotients import divided  # Few kernels divide.

        return divided(self, lanes, element_type.bits, instruction)

    def _by_invariant(self, lanes: int, name: str, element_type: ElementType, operands: list[str]) -> str:
        """A quotient, or what is left of one, by a divisor that is the same for all elements."""
        from eltwise.kernels.invariant_divisor import quotient

        a, b = operands
        divisor, is_signed = self._invariants[b], element_type.kind == "signed"
        whole = quotient(self, lanes, element_type.bits, a, divisor, is_signed=is_signed, is_floored=_QUOTIENTS[name])
        if name not in ("fmod", "modulo"):
            return whole
        kind = of(lanes, computed_in(element_type))
        return self.let(f"sub {kind} {a}, {self.let(f'mul {kind} {whole}, {b}')}")


def _constants(lanes: int, scalar: str, element_type: ElementType, step: Step) -> dict[str, str]:
    """The numbers that templates name, as the type that a step computes in."""
    numbers: dict[str, float] = {**_CONSTANTS, "bits": element_type.bits}
    if step.definition.on_bits:
        sign_bit = -(1 << (element_type.storage.itemsize * 8 - 1))
        numbers |= {"sign_bit": sign_bit, "other_bits": ~sign_bit}
    if scalar in _FIRST_WHOLE:
        numbers |= {**_FLOAT_CONSTANTS, "whole": _FIRST_WHOLE[scalar]}
        numbers |= {"largest": element_type.largest_finite, "lowest": -element_type.largest_finite}
    texts = {name: constant(lanes, scalar, number) for name, number in numbers.items()}
    for name, value in step.parameters:
        if isinstance(value, bool | int | float):
            texts[name] = constant(lanes, "i1" if isinstance(value, bool) else scalar, value)
    return texts
