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
        kept_loops: how many loops over outputs there are, but for that of columns.
        reduced_loops: how many loops over what is reduced.
        is_part: whether what is carried is written as words, for ``carried.merging_text``, and not the results.
    """

    elements: Structure
    carried: Carried
    is_row: bool
    lanes: int
    vectors: int
    rows: int
    kept_loops: int
    reduced_loops: int
    is_part: bool


def reduction_text(structure: ReductionStructure) -> str:
    """Write the LLVM module of a structure; of its function ``kernel``, ``first`` to ``last`` are groups.

    The arguments are the addresses of the results, of the operands and of an i64 that becomes 1 where a result is
    uncertain; the numbers of the divisor; the bytes from a word of an output to its next; then the loops, each its
    size and steps: for columns that over outputs, those over what is reduced, and the others over outputs.
    """
    writer = _Writer(structure)
    writer.write()
    return writer.code.kernel()


class _Writer:
    def __init__(self, structure: ReductionStructure) -> None:
        self.code, self._structure = Builder(structure.elements), structure
        self._operands = structure.elements.arrays - 1
        self._rows = structure.rows
        self._outputs = structure.rows if structure.is_row else structure.lanes

    def write(self) -> None:
        code, structure, numbers = self.code, self._structure, count()

        def arguments(many: int) -> list[str]:
            return [code.argument(next(numbers)) for _number in range(many)]

        def loop() -> Loop:
            return Loop(code.argument(next(numbers)), arguments(1 + self._operands))

        *places, self._status = map(code.pointer, arguments(2 + self._operands))
        self._divisor = divisor_of(code, numbers, self._outputs)
        (self._plane,) = arguments(1)
        columns = None if structure.is_row and structure.rows == 1 else loop()
        self._reduced = [loop() for _loop in range(structure.reduced_loops)][::-1]
        kept_loops = [loop() for _loop in range(structure.kept_loops)]
        if columns is None:
            code.in_default_mode(
                lambda: write_runs(code, places, kept_loops, lambda pointers, _number: self._group(pointers)),
                has_mode=structure.elements.target.has_mode,
            )
            return
        lanes = self._outputs * structure.vectors
        if structure.vectors > 1 or structure.rows > 1:
            word_count = structure.carried._replace(levels=max(structure.carried.levels, 2)).words + 1
            size = word_count * structure.lanes * (structure.vectors if structure.rows == 1 else structure.rows)
            self._memory = code.let(f"alloca [{size} x i64], align {CACHE_LINE}")
        blocks = code.let(f"udiv i64 {code.let(f'add i64 {columns.size}, {lanes - 1}')}, {lanes}")
        still = Loop(blocks, ["0"] * (1 + self._operands))
        last = code.let(f"sub i64 {columns.size}, {lanes}")

        def block(pointers: list[str], number: str) -> None:
            first = code.least(code.let(f"mul i64 {number}, {lanes}"), last)
            self._steps = columns.steps
            corner = code.all_moved(pointers, first, columns.steps)
            (self._group if structure.vectors == 1 else self._side_by_side)(corner)

        code.in_default_mode(
            lambda: write_runs(code, places, [still, *kept_loops], block), has_mode=structure.elements.target.has_mode
        )

    def _group(self, places: list[str]) -> None:
        """Compute a group in registers."""
        accumulator = self._structure.carried.accumulator(self.code)
        self._finish(accumulator, places, self._values(accumulator, places))

    def _finish(self, accumulator: Accumulator, places: list[str], values: list[str]) -> None:
        """Write the results of a group, or what it carries; compute them once more where one is uncertain."""
        code, carried = self.code, self._structure.carried
        if self._structure.is_part:
            self._put_words(accumulator, values, places[0])
            return
        bits, is_certain = accumulator.finish(self._outputs, values, self._divisor)
        kind = of(self._outputs, f"i{8 * carried.result_bytes}")
        code.do(f"store {kind} {bits}, ptr {places[0]}, align 1")
        if is_certain == constant(self._outputs, "i1", 1):
            return

        def again() -> None:
            if not carried.is_float_sum or carried.levels != 1:
                code.do(f"store i64 1, ptr {self._status}, align 8")
                return
            other = carried._replace(levels=2).accumulator(code)
            bits, is_certain = other.finish(self._outputs, self._values(other, places), self._divisor)
            code.do(f"store {kind} {bits}, ptr {places[0]}, align 1")
            is_left = (~Flags(code, self._outputs, is_certain)).any()
            code.when(is_left, lambda: code.do(f"store i64 1, ptr {self._status}, align 8"))

        code.when((~Flags(code, self._outputs, is_certain)).any(), again)

    def _put_words(self, accumulator: Accumulator, values: Sequence[str], pointer: str) -> None:
        """Write what is carried as words: first the first word of all outputs."""
        code, lanes = self.code, self._outputs
        for number, (kind, value) in enumerate(zip(accumulator.types(lanes), values, strict=True)):
            plane = code.moved(pointer, code.let(f"mul i64 {self._plane}, {number}"))
            code.do(f"store {kind} {value}, ptr {plane}, align 1")

    def _values(self, accumulator: Accumulator, places: list[str]) -> list[str]:
        """What all elements of a group give."""
        return self._lane_values(accumulator, places, 1) if self._rows == 1 else self._row_values(accumulator, places)

    def _row_values(self, accumulator: Accumulator, places: list[str]) -> list[str]:
        """What the rows of a group give: each leaves some lanes in memory, which are merged with those of others."""
        code, rows = self.code, self._rows
        lanes = 1 if self._has_single_tail else min(self._structure.lanes, rows)
        types, numbers = accumulator.types(lanes), range(len(accumulator.kinds))
        columns = [code.moved(self._memory, str(8 * rows * lanes * number)) for number in numbers]

        def of_row(number: int | str) -> list[str]:
            pairs = zip(types, columns, strict=True)
            return [code.let(f"getelementptr {kind}, ptr {word}, i64 {number}") for kind, word in pairs]

        def row(number: str) -> None:
            values = self._lane_values(accumulator, code.all_moved(places, number, self._steps), lanes)
            for kind, value, pointer in zip(types, values, of_row(number), strict=True):
                code.do(f"store {kind} {value}, ptr {pointer}, align 1")

        def loaded(kinds: Sequence[str], pointers: Sequence[str]) -> list[str]:
            pairs = zip(kinds, pointers, strict=True)
            return [code.let(f"load {kind}, ptr {pointer}, align 1") for kind, pointer in pairs]

        code.loop("0", str(rows), 1, row)
        if lanes == 1:
            return loaded(accumulator.types(rows), columns)
        return self._lane_of_each(accumulator, lanes, [loaded(types, of_row(number)) for number in range(rows)])

    def _lane_values(self, accumulator: Accumulator, places: list[str], left: int) -> list[str]:
        """What all elements of a vector of columns give, or of one row: so many lanes, which are yet to be merged."""
        lanes, has_tail = self._structure.lanes, self._structure.is_row and self._has_single_tail
        before = [(accumulator, lanes)] + [(accumulator, 1)] * has_tail
        starts = [each for one, width in before for each in zip(one.types(width), one.initial(width), strict=True)]
        values = self._walk(accumulator, 0, places, starts)
        if not self._structure.is_row:
            return values
        many = len(accumulator.kinds)
        merged = self._across(accumulator, lanes, values[:many], left)
        return accumulator.merge(1, merged, values[many:]) if has_tail else merged

    def _walk(
        self, accumulator: Accumulator, depth: int, places: list[str], values: Sequence[tuple[str, str]]
    ) -> list[str]:
        """Go through the loops over what is reduced, from the outside in."""
        code, loop = self.code, self._reduced[depth]
        kinds = [kind for kind, _value in values]
        if depth + 1 == len(self._reduced):
            write = self._row if self._structure.is_row else self._column
            return write(accumulator, places, loop, [value for _kind, value in values])

        def once(index: str, values: list[str]) -> list[str]:
            moved = code.all_moved(places, index, loop.steps)
            return self._walk(accumulator, depth + 1, moved, list(zip(kinds, values, strict=True)))

        return code.fold("0", loop.size, 1, values, once)

    def _side_by_side(self, corner: list[str]) -> None:
        """Compute vectors of columns side by side: a few rows of one, then of the next, as memory lies."""
        code, structure = self.code, self._structure
        accumulator = structure.carried.accumulator(code, has_unit=not structure.is_part)
        types, lanes = accumulator.types(structure.lanes), structure.lanes
        vectors = str(structure.vectors)

        def memory(vector: str) -> list[str]:
            begin = code.moved(self._memory, code.let(f"mul i64 {vector}, {8 * lanes * len(types)}"))
            return [code.moved(begin, str(8 * lanes * number)) for number in range(len(types))]

        def put(vector: str, values: Sequence[str]) -> None:
            for kind, value, pointer in zip(types, values, memory(vector), strict=True):
                code.do(f"store {kind} {value}, ptr {pointer}, align 8")

        def carried(vector: str) -> list[str]:
            pointers = memory(vector)
            pairs = zip(types, pointers, strict=True)
            return [code.let(f"load {kind}, ptr {pointer}, align 8") for kind, pointer in pairs]

        def places_of(vector: str, places: list[str]) -> list[str]:
            return code.all_moved(places, code.let(f"mul i64 {vector}, {lanes}"), self._steps)

        def rows(places: list[str], loop: Loop, begin: str) -> None:
            left = code.let(f"sub i64 {loop.size}, {begin}")
            few = loop._replace(size=code.least(left, _ROWS))
            first = code.all_moved(places, begin, loop.steps)

            def add(vector: str) -> None:
                put(vector, self._column(accumulator, places_of(vector, first), few, carried(vector)))

            code.loop("0", vectors, 1, add)

        def walk(depth: int, places: list[str]) -> None:
            loop = self._reduced[depth]
            if depth + 1 == len(self._reduced):
                code.loop("0", loop.size, _ROWS, lambda begin: rows(places, loop, begin))
            else:
                code.loop("0", loop.size, 1, lambda row: walk(depth + 1, code.all_moved(places, row, loop.steps)))

        code.loop("0", vectors, 1, lambda vector: put(vector, accumulator.initial(lanes)))
        walk(0, corner)
        code.loop("0", vectors, 1, lambda each: self._finish(accumulator, places_of(each, corner), carried(each)))

    def _column(self, accumulator: Accumulator, places: list[str], loop: Loop, values: list[str]) -> list[str]:
        lanes = self._structure.lanes

        def bits(index: str) -> str:
            pointers = self.code.all_moved(places, index, loop.steps)
            self._prefetch(self.code.all_moved(pointers, str(_ROWS), loop.steps))
            return self._elements(pointers, Loop("", self._steps), "0", lanes)

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
                pointers = [code.place(places, loop, array, index) for array in range(1 + self._operands)]
                self._prefetch(code.all_moved(pointers, "1", outer.steps))
            return self._elements(places, loop, index, lanes)

        vector = self._added(accumulator, lanes, values[:many], ("0", whole, lanes), bits)
        if self._has_single_tail:
            single = partial(self._elements, places, loop, lanes=1)
            return [*vector, *self._added(accumulator, 1, values[many:], (whole, loop.size, 1), single)]
        if lanes == 1:
            return vector
        types = accumulator.types(lanes)

        def rest() -> list[str]:
            left = code.let(f"sub i64 {loop.size}, {whole}")
            mask = code.first_lanes(lanes, left)
            element = self._elements(places, loop, whole, lanes, mask)
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
            beyond = code.let(f"add i64 {begin}, {accumulator.steps * step}")
            end = code.least(beyond, last)
            narrow = code.fold(begin, end, step, accumulator.narrow(lanes, values), add)
            return accumulator.widened_into(lanes, values, narrow)

        return code.fold(first, last, accumulator.steps * step, carried, segment)

    @property
    def _has_single_tail(self) -> bool:
        """Whether what fills no vector of a row is computed element by element."""
        elements = self._structure.elements
        is_whole = elements.target.has_masks and "strided" not in elements.walks
        return self._structure.lanes > 1 and not is_whole

    def _elements(self, places: list[str], loop: Loop, index: str, lanes: int, mask: str = "") -> str:
        """The bits of elements from an index of the loop that runs in vectors on."""
        code = self.code
        return code.results(
            lanes,
            [
                code.elements(array, code.place(places, loop, array, index), loop.steps[array], lanes, mask)
                for array in range(1, 1 + self._operands)
            ],
        )

    def _lane_of_each(self, accumulator: Accumulator, lanes: int, rows: list[list[str]]) -> list[str]:
        """What all lanes of each row give, as a vector of rows: half of the lanes of two rows at a time."""
        width = lanes
        while len(rows) > 1:
            types, pairs = accumulator.types(lanes), list(zip(rows[::2], rows[1::2], strict=True))
            if width == 1:
                rows, lanes = [self._shuffled(types, *pair, range(2 * lanes)) for pair in pairs], 2 * lanes
                continue
            lower = [lane for lane in range(2 * lanes) if lane % width < width // 2]
            upper = [lane for lane in range(2 * lanes) if lane % width >= width // 2]
            halves = ([self._shuffled(types, *pair, order) for order in (lower, upper)] for pair in pairs)
            rows, width = [accumulator.merge(lanes, *each) for each in halves], width // 2
        return rows[0]

    def _shuffled(
        self, types: Sequence[str], one: Sequence[str], other: Sequence[str], order: Sequence[int]
    ) -> list[str]:
        """Lanes of two values of everything that is carried."""
        values = zip(types, one, other, strict=True)
        return [self.code.shuffled(f"{kind} {first}, {kind} {second}", order) for kind, first, second in values]

    def _across(self, accumulator: Accumulator, lanes: int, values: list[str], left: int) -> list[str]:
        """What all lanes give together, in so many that are left."""
        code = self.code
        while lanes > left:
            half, halves = lanes // 2, []
            for begin in (0, half):
                pairs = list(zip(accumulator.types(lanes), values, strict=True))
                if half == 1:
                    halves.append([code.let(f"extractelement {kind} {value}, i64 {begin}") for kind, value in pairs])
                    continue
                order = range(begin, begin + half)
                halves.append([code.shuffled(f"{kind} {value}, {kind} poison", order) for kind, value in pairs])
            lanes, values = half, accumulator.merge(half, halves[0], halves[1])
        return values
