"""The kernel of a reduction as LLVM IR text: it computes elements and takes them in, in registers. Pure.

A group is what one vector computes: as many outputs as it has lanes, or with rows one output, whose lanes are merged in
the end; short rows are finished several at a time. A group that is uncertain is computed once more, with sums that are
certain nearly always.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import count
from typing import NamedTuple

from eltwise.kernels.accumulators import Accumulator
from eltwise.kernels.builder import Builder, Loop
from eltwise.kernels.carried import Carried, divisor_of
from eltwise.kernels.emit import write_runs
from eltwise.kernels.flags import Flags
from eltwise.kernels.instructions import constant, of
from eltwise.kernels.structure import CACHE_LINE, Structure

_ROWS = 8
"""So many rows of a vector of columns are added before those of the next one beside it; so many rows ahead it is asked
for."""


class ReductionStructure(NamedTuple):
    """What a kernel is made for.

    Attributes:
        elements: the expression, its operands and the processor.
        carried: what is carried.
        is_row: whether a vector holds elements of one output.
        lanes: how many elements a vector holds.
        vectors: how many vectors of columns lie side by side in a group.
        rows: how many rows a group has.
        reduced_loops: how many loops over what is reduced there are.
        output_loops: how many loops over outputs.
        is_part: whether what is carried is written as words, for ``carried.merging_text``, and not the results.
    """

    elements: Structure
    carried: Carried
    is_row: bool
    lanes: int
    vectors: int
    rows: int
    reduced_loops: int
    output_loops: int
    is_part: bool


def reduction_text(structure: ReductionStructure) -> str:
    """Write the LLVM module of a structure; of its function ``kernel``, ``first`` to ``last`` are groups.

    The arguments are the addresses of the results, of the operands and of an i64 that becomes 1 where a result is
    uncertain; the numbers of the divisor; the bytes from a word of an output to its next; then the loops, each its
    size and steps: those over what is reduced, and those over outputs.
    """
    writer = _Writer(structure)
    writer.write()
    return writer.code.kernel()


class _Writer:
    def __init__(self, structure: ReductionStructure) -> None:
        self.code, self._structure = Builder(structure.elements), structure
        self._outputs = structure.rows if structure.is_row else structure.lanes
        elements = structure.elements
        is_whole = elements.target.has_masks and "strided" not in elements.walks
        # What fills no vector of a row is computed element by element.
        self._has_single_tail = structure.is_row and structure.lanes > 1 and not is_whole

    def write(self) -> None:
        code, structure, numbers = self.code, self._structure, count()
        arrays = structure.elements.arrays

        def arguments(many: int) -> list[str]:
            return [code.argument(next(numbers)) for _number in range(many)]

        def loop() -> Loop:
            return Loop(code.argument(next(numbers)), arguments(arrays))

        *places, self._status = map(code.pointer, arguments(arrays + 1))
        self._divisor = divisor_of(code, numbers, self._outputs)
        (self._plane,) = arguments(1)
        self._reduced = [loop() for _loop in range(structure.reduced_loops)][::-1]
        outputs = [loop() for _loop in range(structure.output_loops)]
        code.in_default_mode(
            lambda: self._groups(places, *outputs) if outputs else self._group(places),
            has_mode=structure.elements.target.has_mode,
        )

    def _groups(self, places: list[str], columns: Loop, *outer: Loop) -> None:
        """Compute groups of several outputs of the first loop; the last one of them overlaps another."""
        code, structure = self.code, self._structure
        self._steps, most = columns.steps, self._outputs * structure.vectors
        if structure.vectors > 1 or structure.rows > 1:
            word_count = structure.carried._replace(levels=max(structure.carried.levels, 2)).words + 1
            size = word_count * structure.lanes * (structure.vectors if structure.rows == 1 else structure.rows)
            self._memory = code.let(f"alloca [{size} x i64], align {CACHE_LINE}")
        blocks = code.let(f"udiv i64 {code.let(f'add i64 {columns.size}, {most - 1}')}, {most}")
        last = code.let(f"sub i64 {columns.size}, {most}")

        def block(pointers: list[str], number: str) -> None:
            first = code.least(code.let(f"mul i64 {number}, {most}"), last)
            corner = code.all_moved(pointers, first, columns.steps)
            (self._group if structure.vectors == 1 else self._side_by_side)(corner)

        write_runs(code, places, [Loop(blocks, ["0"] * len(places)), *outer], block)

    def _group(self, places: list[str]) -> None:
        """Compute a group in registers."""
        carried = self._structure.carried
        accumulator = carried.accumulator(self.code)
        self._finish(carried, accumulator, places, self._values(accumulator, places))

    def _finish(self, carried: Carried, accumulator: Accumulator, places: list[str], values: list[str]) -> None:
        """Write the results of a group, or what it carries; compute them once more where one is uncertain."""
        code, lanes = self.code, self._outputs
        if self._structure.is_part:  # First the first word of all outputs.
            offsets = [code.let(f"mul i64 {self._plane}, {number}") for number in range(len(values))]
            accumulator.store(lanes, values, [code.moved(places[0], offset) for offset in offsets])
            return
        bits, is_certain = accumulator.finish(lanes, values, self._divisor)
        code.do(f"store {of(lanes, f'i{8 * carried.result_bytes}')} {bits}, ptr {places[0]}, align 1")
        if is_certain == constant(lanes, "i1", 1):
            return

        def again() -> None:
            if carried.is_float_sum and carried.levels == 1:
                exacter = carried._replace(levels=2)
                other = exacter.accumulator(code)
                self._finish(exacter, other, places, self._values(other, places))
            else:
                code.do(f"store i64 1, ptr {self._status}, align 8")

        code.when((~Flags(code, lanes, is_certain)).any(), again)

    def _values(self, accumulator: Accumulator, places: list[str]) -> list[str]:
        """What all elements of a group give."""
        is_single = self._structure.rows == 1
        return self._lane_values(accumulator, places, 1) if is_single else self._row_values(accumulator, places)

    def _row_values(self, accumulator: Accumulator, places: list[str]) -> list[str]:
        """What the rows of a group give: each leaves some lanes in memory, which are merged with those of others."""
        code, rows = self.code, self._structure.rows
        lanes = 1 if self._has_single_tail else min(self._structure.lanes, rows)
        kinds = accumulator.types(lanes)
        columns = [code.moved(self._memory, str(8 * rows * lanes * number)) for number in range(len(kinds))]

        def of_row(number: int | str) -> list[str]:
            pairs = zip(kinds, columns, strict=True)
            return [code.let(f"getelementptr {kind}, ptr {word}, i64 {number}") for kind, word in pairs]

        def row(number: str) -> None:
            values = self._lane_values(accumulator, code.all_moved(places, number, self._steps), lanes)
            accumulator.store(lanes, values, of_row(number))

        code.loop("0", str(rows), 1, row)
        if lanes == 1:
            return accumulator.load(rows, columns)
        return accumulator.lane_of_each(lanes, [accumulator.load(lanes, of_row(number)) for number in range(rows)])

    def _lane_values(self, accumulator: Accumulator, places: list[str], left: int) -> list[str]:
        """What all elements of a vector of columns give, or of one row: so many lanes, which are yet to be merged."""
        lanes, many, has_tail = self._structure.lanes, len(accumulator.kinds), self._has_single_tail
        starts = accumulator.before(lanes) + accumulator.before(1) * has_tail
        values = self._walk(places, starts, partial(self._row if self._structure.is_row else self._column, accumulator))
        if not self._structure.is_row:
            return values
        merged = accumulator.across(lanes, values[:many], left)
        return accumulator.merge(1, merged, values[many:]) if has_tail else merged

    def _walk(
        self,
        places: list[str],
        values: Sequence[tuple[str, str]],
        innermost: Callable[[list[str], Loop, list[str]], list[str]],
        depth: int = 0,
    ) -> list[str]:
        """Go through the loops over what is reduced, from the outside in; the innermost gives what values become."""
        code, loop, kinds = self.code, self._reduced[depth], [kind for kind, _value in values]
        if depth + 1 == len(self._reduced):
            return innermost(places, loop, [value for _kind, value in values])

        def once(index: str, names: list[str]) -> list[str]:
            moved = code.all_moved(places, index, loop.steps)
            return self._walk(moved, list(zip(kinds, names, strict=True)), innermost, depth + 1)

        return code.fold("0", loop.size, 1, values, once)

    def _side_by_side(self, corner: list[str]) -> None:
        """Compute vectors of columns side by side: a few rows of one, then of the next, as memory lies."""
        code, structure, lanes = self.code, self._structure, self._structure.lanes
        accumulator = structure.carried.accumulator(code, has_unit=not structure.is_part)
        vectors, many = str(structure.vectors), len(accumulator.kinds)

        def memory(vector: str) -> list[str]:
            begin = code.moved(self._memory, code.let(f"mul i64 {vector}, {8 * lanes * many}"))
            return [code.moved(begin, str(8 * lanes * number)) for number in range(many)]

        def places_of(vector: str, places: list[str]) -> list[str]:
            return code.all_moved(places, code.let(f"mul i64 {vector}, {lanes}"), self._steps)

        def few_rows(places: list[str], loop: Loop, begin: str) -> None:
            few = loop._replace(size=code.least(code.let(f"sub i64 {loop.size}, {begin}"), _ROWS))
            first = code.all_moved(places, begin, loop.steps)

            def add(vector: str) -> None:
                pointers = memory(vector)
                values = self._column(accumulator, places_of(vector, first), few, accumulator.load(lanes, pointers))
                accumulator.store(lanes, values, pointers)

            code.loop("0", vectors, 1, add)

        def rows(places: list[str], loop: Loop, _values: list[str]) -> list[str]:
            code.loop("0", loop.size, _ROWS, lambda begin: few_rows(places, loop, begin))
            return []

        def finish(vector: str) -> None:
            values = accumulator.load(lanes, memory(vector))
            self._finish(structure.carried, accumulator, places_of(vector, corner), values)

        code.loop("0", vectors, 1, lambda vector: accumulator.store(lanes, accumulator.initial(lanes), memory(vector)))
        self._walk(corner, (), rows)
        code.loop("0", vectors, 1, finish)

    def _column(self, accumulator: Accumulator, places: list[str], loop: Loop, values: list[str]) -> list[str]:
        lanes = self._structure.lanes

        def bits(index: str) -> str:
            pointers = self.code.all_moved(places, index, loop.steps)
            self._prefetch(self.code.all_moved(pointers, str(_ROWS), loop.steps))
            return self.code.results_at(pointers, Loop("", self._steps), "0", lanes)

        return self._added(accumulator, lanes, values, ("0", loop.size, 1), bits)

    def _prefetch(self, places: list[str]) -> None:
        """Ask for the vectors at some places: the processor does not predict steps that are larger than a page."""
        for pointer, walk in zip(places[1:], self._structure.elements.walks[1:], strict=True):
            for offset in range(0, self._structure.elements.width * self._structure.lanes, CACHE_LINE):
                if walk == "vector":
                    self.code.prefetch(self.code.moved(pointer, str(offset)))

    def _row(self, accumulator: Accumulator, places: list[str], loop: Loop, values: list[str]) -> list[str]:
        code, lanes, many = self.code, self._structure.lanes, len(accumulator.kinds)
        whole = code.let(f"and i64 {loop.size}, {-lanes}")
        outer = self._reduced[-2] if len(self._reduced) > 1 else None

        def bits(index: str) -> str:
            if outer is not None:
                pointers = [code.place(places, loop, array, index) for array in range(len(places))]
                self._prefetch(code.all_moved(pointers, "1", outer.steps))
            return code.results_at(places, loop, index, lanes)

        vector = self._added(accumulator, lanes, values[:many], ("0", whole, lanes), bits)
        if self._has_single_tail:
            single = partial(code.results_at, places, loop, lanes=1)
            return [*vector, *self._added(accumulator, 1, values[many:], (whole, loop.size, 1), single)]
        if lanes == 1:
            return vector
        types = accumulator.types(lanes)

        def rest() -> list[str]:
            mask = code.first_lanes(lanes, code.let(f"sub i64 {loop.size}, {whole}"))
            element = code.results_at(places, loop, whole, lanes, mask)
            after = self._added(accumulator, lanes, vector, ("0", "1", 1), lambda _index: element)
            chosen = zip(types, after, vector, strict=True)
            return [Flags(code, lanes, mask).choose(*each) for each in chosen]

        is_left = code.let(f"icmp ult i64 {whole}, {loop.size}")
        return code.choose(is_left, list(zip(types, vector, strict=True)), rest)

    def _added(
        self,
        accumulator: Accumulator,
        lanes: int,
        values: Sequence[str],
        indices: tuple[str, str, int],
        bits: Callable[[str], str],
    ) -> list[str]:
        """Add the elements of a loop, so many at a time as the accumulator takes in a cheaper form."""
        code, (first, last, step) = self.code, indices
        carried = list(zip(accumulator.types(lanes), values, strict=True))

        def add(index: str, values: list[str]) -> list[str]:
            return accumulator.add(lanes, values, bits(index))

        if not accumulator.steps:
            return code.fold(first, last, step, carried, add)

        def segment(begin: str, values: list[str]) -> list[str]:
            end = code.least(code.let(f"add i64 {begin}, {accumulator.steps * step}"), last)
            narrow = code.fold(begin, end, step, accumulator.narrow(lanes, values), add)
            return accumulator.widened_into(lanes, values, narrow)

        return code.fold(first, last, accumulator.steps * step, carried, segment)
