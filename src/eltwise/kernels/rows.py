"""One run of the innermost loop as LLVM instructions: vectors where the result lies element after element. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from eltwise.kernels import access
from eltwise.kernels.code import Code
from eltwise.kernels.structure import CACHE_LINE, Structure


@dataclass(frozen=True)
class Run:
    """One run of the innermost loop: the names of the values that say where it goes.

    Attributes:
        places: the pointers to the first element of each array.
        length: how many elements, an i64.
        steps: by how many bytes each array moves, i64s.
    """

    places: list[str]
    length: str
    steps: list[str]


def write_row(code: Code, structure: Structure, run: Run) -> None:
    """Write a run: single elements up to the first whole cache line, whole vectors, and the rest."""
    if structure.walks[0] != "vector":
        write_elements(code, structure, run, "0", run.length)
        return
    row = _Row(code, structure, run)
    head = "0"
    if structure.streams and structure.has_heads:
        head = row.head()
        write_elements(code, structure, run, "0", head)
    lanes = structure.lanes
    left = code.let(f"sub i64 {run.length}, {head}")
    whole = code.let(f"and i64 {left}, {-lanes}")
    end = code.let(f"add i64 {whole}, {head}")
    row.splat_scalars()
    code.loop(head, end, lanes, row.vector)
    if not structure.has_masks or "strided" in structure.walks:
        write_elements(code, structure, run, end, run.length)
        return
    some = code.let(f"icmp ult i64 {end}, {run.length}")
    code.when(some, lambda: row.rest(end))


def write_elements(code: Code, structure: Structure, run: Run, begin: str, end: str) -> None:
    """Write a loop over single elements, each array with its own stride."""

    def one(index: str) -> None:
        operands = []
        for array in range(1, structure.arrays):
            operands.append(access.loaded(code, structure, array, _at(code, structure, run, array, index), 1))
        result = structure.arithmetic.results(code, structure.expression, 1, operands)
        access.store(code, structure, result, _at(code, structure, run, 0, index), 1)

    code.loop(begin, end, 1, one)


def _at(code: Code, structure: Structure, run: Run, array: int, index: str) -> str:
    """The place of an element of a run."""
    match structure.walks[array]:
        case "vector":
            return code.let(f"getelementptr i{structure.width_of(array) * 8}, ptr {run.places[array]}, i64 {index}")
        case "scalar":
            return run.places[array]
        case _:
            return code.moved(run.places[array], code.let(f"mul i64 {index}, {run.steps[array]}"))


class _Row:
    """The vectors of one run."""

    def __init__(self, code: Code, structure: Structure, run: Run) -> None:
        self._code, self._structure, self._run = code, structure, run
        self._scalars: dict[int, str] = {}

    def splat_scalars(self) -> None:
        """Load what stays the same in the run, once."""
        structure = self._structure
        for array, walk in enumerate(structure.walks):
            if walk == "scalar":
                place = self._run.places[array]
                self._scalars[array] = access.splat(self._code, structure, array, place, structure.lanes)

    def head(self) -> str:
        """How many elements lie before the first whole cache line of the result, at most all."""
        code, width = self._code, self._structure.width_of(0)
        address = code.let(f"ptrtoint ptr {self._run.places[0]} to i64")
        before = code.let(f"sub i64 0, {address}")
        beyond = code.let(f"and i64 {before}, {CACHE_LINE - 1}")
        count = code.let(f"udiv i64 {beyond}, {width}")
        return code.let(f"call i64 @llvm.umin.i64(i64 {count}, i64 {self._run.length})")

    def vector(self, index: str) -> None:
        """Load, compute and store one vector."""
        structure, lanes = self._structure, self._structure.lanes
        result = self._results([self._operand(array, index) for array in range(1, structure.arrays)])
        place = _at(self._code, structure, self._run, 0, index)
        put = access.store_streaming if structure.streams else access.store
        put(self._code, structure, result, place, lanes)

    def rest(self, begin: str) -> None:
        """Load, compute and store what is left, less than a vector, under a mask."""
        code, structure, lanes = self._code, self._structure, self._structure.lanes
        count = code.let(f"sub i64 {self._run.length}, {begin}")
        first = code.let(f"insertelement <{lanes} x i64> poison, i64 {count}, i64 0")
        kind = f"<{lanes} x i64>"
        everywhere = code.let(f"shufflevector {kind} {first}, {kind} poison, <{lanes} x i32> zeroinitializer")
        numbers = ", ".join(f"i64 {lane}" for lane in range(lanes))
        mask = code.let(f"icmp ult {kind} <{numbers}>, {everywhere}")
        operands = []
        for array in range(1, structure.arrays):
            if array in self._scalars:
                operands.append(self._scalars[array])
                continue
            place = _at(code, structure, self._run, array, begin)
            operands.append(access.loaded_part(code, structure, array, place, mask))
        access.store_part(code, structure, self._results(operands), _at(code, structure, self._run, 0, begin), mask)

    def _operand(self, array: int, index: str) -> str:
        code, structure, lanes = self._code, self._structure, self._structure.lanes
        if array in self._scalars:
            return self._scalars[array]
        place = _at(code, structure, self._run, array, index)
        if structure.walks[array] == "strided":
            return access.gather(code, structure, array, place, self._run.steps[array], lanes)
        return access.loaded(code, structure, array, place, lanes)

    def _results(self, operands: list[str]) -> str:
        return self._structure.arithmetic.results(
            self._code, self._structure.expression, self._structure.lanes, operands
        )
