"""A kernel's LLVM instructions as text: loops, and how elements are read, computed and written. Pure.

In memory every element is an integer of its width, aligned to a byte. Integers wrap. float32 and float64 are computed
as they are; float16 and bfloat16 are widened to float32 and rounded after each step. No flag ever allows a
reassociation, a contraction or a flush to zero.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from eltwise.core.dtypes import BFLOAT16, FLOAT32, FLOAT64, ElementType
from eltwise.kernels.structure import Structure
from eltwise.ops.expression import Step

_NATIVE_FLOATS = {FLOAT32: "float", FLOAT64: "double"}
_SUFFIXES = {"float": "f32", "double": "f64"}
_CONSTANTS = {"zero": 0, "one": 1, "minus_one": -1}


def of(lanes: int, scalar: str) -> str:
    """The LLVM type of ``lanes`` values.

    >>> of(16, "i32"), of(1, "i32")
    ('<16 x i32>', 'i32')
    """
    return f"<{lanes} x {scalar}>" if lanes > 1 else scalar


def constant(lanes: int, scalar: str, value: int) -> str:
    """An integer in every lane.

    >>> constant(4, "i32", -1), constant(1, "i8", 2)
    ('splat (i32 -1)', '2')
    """
    return f"splat ({scalar} {value})" if lanes > 1 else str(value)


class Loop(NamedTuple):
    """The names of the values that describe a loop: its size, and by how many bytes each array moves in it."""

    size: str
    steps: list[str]


class Instructions:
    """The body of one function, written from top to bottom; every result has a name."""

    def __init__(self) -> None:
        self.lines: list[str] = ["entry:"]
        self._block = "entry"
        self._count = 0

    def let(self, instruction: str) -> str:
        """Append an instruction and give the name of its result."""
        name = self._fresh("%v")
        self.lines.append(f"  {name} = {instruction}")
        return name

    def do(self, instruction: str) -> None:
        """Append an instruction without a result."""
        self.lines.append(f"  {instruction}")

    def loop(self, begin: str, end: str, step: int, body: Callable[[str], None]) -> None:
        """Write a loop over i64 indices from ``begin`` to before ``end``; the body is written with the index's name."""

        def once(index: str, _values: list[str]) -> list[str]:
            body(index)
            return []

        self.fold(begin, end, step, (), once)

    def fold(
        self,
        begin: str,
        end: str,
        step: int,
        values: Sequence[tuple[str, str]],
        body: Callable[[str, list[str]], list[str]],
    ) -> list[str]:
        """Write a loop that carries values from one time to the next.

        Args:
            begin: the first i64 index.
            end: the i64 before which the loop ends.
            step: how far the index goes each time.
            values: the LLVM type of each value and what it is before the loop.
            body: is written with the index's name and the values', and gives what the values become.

        Returns:
            The values after the loop.
        """
        before, head, after = self._block, self._fresh("loop"), self._fresh("after")
        self.do(f"br i1 {self.let(f'icmp ult i64 {begin}, {end}')}, label %{head}, label %{after}")
        self.block(head)
        index, place = self._fresh("%i"), len(self.lines)
        names = [self._fresh("%c") for _value in values]
        results = body(index, names)
        following = self.let(f"add i64 {index}, {step}")
        last = self._block
        phis = [f"  {index} = phi i64 [{begin}, %{before}], [{following}, %{last}]"]
        made = list(zip(values, names, results, strict=True))
        phis += [f"  {name} = phi {kind} [{value}, %{before}], [{new}, %{last}]" for (kind, value), name, new in made]
        self.lines[place:place] = phis
        self.do(f"br i1 {self.let(f'icmp ult i64 {following}, {end}')}, label %{head}, label %{after}")
        self.block(after)
        return [self.let(f"phi {kind} [{value}, %{before}], [{new}, %{last}]") for (kind, value), _name, new in made]

    def require(self, condition: str, otherwise: str) -> None:
        """Go on only where an i1 holds; else at the block with that name."""
        after = self._fresh("after")
        self.do(f"br i1 {condition}, label %{after}, label %{otherwise}")
        self.block(after)

    def when(self, condition: str, body: Callable[[], None]) -> None:
        """Write what is done only where an i1 holds."""

        def without_values() -> list[str]:
            body()
            return []

        self.choose(condition, (), without_values)

    def choose(self, condition: str, values: Sequence[tuple[str, str]], body: Callable[[], Sequence[str]]) -> list[str]:
        """Write what is done only where an i1 holds, and give what some values are afterwards.

        Args:
            condition: the i1.
            values: the LLVM type of each value, and what it is where the condition does not hold.
            body: gives what the values are where it holds.
        """
        before, then, after = self._block, self._fresh("then"), self._fresh("after")
        self.do(f"br i1 {condition}, label %{then}, label %{after}")
        self.block(then)
        results, last = body(), self._block
        self.do(f"br label %{after}")
        self.block(after)
        made = zip(values, results, strict=True)
        return [self.let(f"phi {kind} [{value}, %{before}], [{new}, %{last}]") for (kind, value), new in made]

    def block(self, name: str) -> None:
        """Begin a block; the one before must have ended."""
        self.lines.append(f"{name}:")
        self._block = name

    def moved(self, pointer: str, offset: str) -> str:
        """A pointer moved by bytes, an i64."""
        return self.let(f"getelementptr i8, ptr {pointer}, i64 {offset}")

    def all_moved(self, places: Sequence[str], count: str, steps: Sequence[str]) -> list[str]:
        """The pointer of each array moved by so many steps of a loop."""
        return [
            self.moved(each, self.let(f"mul i64 {count}, {step}")) for each, step in zip(places, steps, strict=True)
        ]

    def name(self, prefix: str) -> str:
        """A name for a block that no other has."""
        return self._fresh(prefix)

    def in_all_lanes(self, scalar: str, value: str, lanes: int) -> str:
        """A vector of one value."""
        if lanes == 1:
            return value
        kind = of(lanes, scalar)
        first = self.let(f"insertelement {kind} poison, {scalar} {value}, i64 0")
        return self.let(f"shufflevector {kind} {first}, {kind} poison, <{lanes} x i32> zeroinitializer")

    def widened(self, element_type: ElementType, lanes: int, bits: str) -> str:
        """Make of bits what is computed with."""
        floats, integers = of(lanes, "float"), of(lanes, "i32")
        if element_type.is_integer:
            return bits
        if element_type in _NATIVE_FLOATS:
            own, scalar = of(lanes, f"i{element_type.bits}"), of(lanes, _NATIVE_FLOATS[element_type])
            return self.let(f"bitcast {own} {bits} to {scalar}")
        if element_type is BFLOAT16:  # It is the upper half of a float32.
            wide = self.let(f"zext {of(lanes, 'i16')} {bits} to {integers}")
            shifted = self.let(f"shl {integers} {wide}, {constant(lanes, 'i32', 16)}")
            return self.let(f"bitcast {integers} {shifted} to {floats}")
        half = self.let(f"bitcast {of(lanes, 'i16')} {bits} to {of(lanes, 'half')}")
        return self.let(f"fpext {of(lanes, 'half')} {half} to {floats}")

    def narrowed(self, element_type: ElementType, lanes: int, value: str) -> str:
        """Make bits of it again, rounded once to nearest, ties to even; a NaN stays one."""
        floats = of(lanes, "float")
        if element_type.is_integer:
            return value
        if element_type in _NATIVE_FLOATS:
            own, scalar = of(lanes, f"i{element_type.bits}"), of(lanes, _NATIVE_FLOATS[element_type])
            return self.let(f"bitcast {scalar} {value} to {own}")
        if element_type is BFLOAT16:
            return self._bfloat16(lanes, value)
        half = self.let(f"fptrunc {floats} {value} to {of(lanes, 'half')}")
        return self.let(f"bitcast {of(lanes, 'half')} {half} to {of(lanes, 'i16')}")

    def _bfloat16(self, lanes: int, value: str) -> str:
        """Round a float32 by adding just under half of the last place kept, and one more where that is odd."""
        floats, integers = of(lanes, "float"), of(lanes, "i32")

        def number(each: int) -> str:
            return constant(lanes, "i32", each)

        bits = self.let(f"bitcast {floats} {value} to {integers}")
        kept = self.let(f"lshr {integers} {bits}, {number(16)}")
        odd = self.let(f"and {integers} {kept}, {number(1)}")
        bias = self.let(f"add {integers} {odd}, {number(0x7FFF)}")
        rounded = self.let(f"add {integers} {bits}, {bias}")
        is_nan = self.let(f"fcmp uno {floats} {value}, {value}")
        chosen = self.let(f"select {of(lanes, 'i1')} {is_nan}, {integers} {number(0x7FC00000)}, {integers} {rounded}")
        top = self.let(f"lshr {integers} {chosen}, {number(16)}")
        return self.let(f"trunc {integers} {top} to {of(lanes, 'i16')}")

    def _fresh(self, prefix: str) -> str:
        self._count += 1
        return f"{prefix}{self._count}"


class Builder(Instructions):
    """The body of one kernel; elements are held as integers."""

    def __init__(self, structure: Structure) -> None:
        super().__init__()
        self.structure = structure

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
            own = [self.place(places, inner, array, index) for array in range(self.structure.arrays)]
            operands = [self.load(array, own[array], 1) for array in range(1, self.structure.arrays)]
            self.store(self.results(1, operands), own[0], 1)

        self.loop(begin, end, 1, one)

    def load(self, array: int, place: str, lanes: int, mask: str = "") -> str:
        """Load elements that lie one after the other; with a mask those that it allows."""
        kind = of(lanes, self._integer(array))
        if mask:
            name = f"@llvm.masked.load.v{lanes}{self._integer(array)}.p0"
            arguments = f"ptr align 1 {place}, <{lanes} x i1> {mask}, {kind} zeroinitializer"
            return self._native(array, lanes, self.let(f"call {kind} {name}({arguments})"))
        return self._native(array, lanes, self.let(f"load {kind}, ptr {place}, align 1"))

    def splat(self, array: int, place: str, lanes: int) -> str:
        """Load one element into every lane."""
        return self.in_all_lanes(self._integer(array), self.load(array, place, 1), lanes)

    def shuffled(self, pair: str, lanes: Iterable[int]) -> str:
        """Some lanes of two vectors; those of the second one follow those of the first."""
        order = [f"i32 {lane}" for lane in lanes]
        return self.let(f"shufflevector {pair}, <{len(order)} x i32> <{', '.join(order)}>")

    def gather(self, array: int, place: str, step: str, lanes: int) -> str:
        """Load elements that lie ``step`` bytes apart."""
        kind, element, value = of(lanes, self._integer(array)), self._integer(array), "poison"
        for lane in range(lanes):
            one = self.let(f"load {element}, ptr {place}, align 1")
            value = self.let(f"insertelement {kind} {value}, {element} {one}, i64 {lane}")
            place = self.moved(place, step)
        return self._native(array, lanes, value)

    def prefetch(self, place: str) -> None:
        """Ask for a cache line that will be read soon; a place beyond the array does no harm."""
        self.do(f"call void @llvm.prefetch.p0(ptr {place}, i32 0, i32 2, i32 1)")

    def store(self, value: str, place: str, lanes: int, mask: str = "") -> None:
        """Store elements one after the other; whole vectors bypass the cache where the structure says so."""
        kind, native = of(lanes, self._integer(0)), self._native(0, lanes, value)
        if mask:
            name = f"@llvm.masked.store.v{lanes}{self._integer(0)}.p0"
            self.do(f"call void {name}({kind} {native}, ptr align 1 {place}, <{lanes} x i1> {mask})")
        elif self.structure.streams and lanes > 1:
            alignment = lanes * self.structure.width_of(0)
            self.do(f"store {kind} {native}, ptr {place}, align {alignment}, !nontemporal !0")
        else:
            self.do(f"store {kind} {native}, ptr {place}, align 1")

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
        return f"i{element_type.bits}" if element_type.is_integer else _NATIVE_FLOATS.get(element_type, "float")

    def _step(self, lanes: int, step: Step, operands: list[str]) -> str:
        """Write the instructions of a step; see ``primitives.Instructions``."""
        names = dict(zip("ab", operands, strict=False)) | {
            "T": of(lanes, self._scalar),
            "t": ("" if lanes == 1 else f"v{lanes}") + _SUFFIXES.get(self._scalar, self._scalar),
            "B": of(lanes, "i1"),
        }
        constants = {name: constant(lanes, self._scalar, value) for name, value in _CONSTANTS.items()}
        results: list[str] = []
        for template in step.definition.instructions(self.structure.element_type):
            results.append(self.let(template.format(*results, **names, **constants)))
        return results[-1]
