"""A kernel as LLVM IR text: the loops around rows or tiles. Pure.

The loops that lie around a run are walked as an odometer counts, so that a piece of work can begin anywhere.
"""

from __future__ import annotations

from collections.abc import Callable

from eltwise.kernels.code import Code
from eltwise.kernels.rows import Run, write_row
from eltwise.kernels.structure import Structure
from eltwise.kernels.tiles import Block, write_block

Outer = tuple[str, list[str]]
"""A loop around the runs: its size, and by how many bytes each array moves in it."""

_DEFAULT_MODE = 0x1F80
"""MXCSR as a thread has it at its start: round to nearest, keep subnormals, raise nothing."""


def kernel_text(structure: Structure) -> str:
    """Write the LLVM module of a structure; its one function is ``kernel``."""
    kernel = _Kernel(structure)
    kernel.write()
    lines = [
        "define void @kernel(ptr readonly %arguments, i64 %first, i64 %last) nounwind {",
        *kernel.code.lines,
        "}",
        *_declarations(structure),
        "!0 = !{i32 1}",
    ]
    return "\n".join(lines) + "\n"


def _declarations(structure: Structure) -> list[str]:
    found = ["declare i64 @llvm.umin.i64(i64, i64)"]
    if structure.has_mode:
        found += ["declare void @llvm.x86.sse.stmxcsr(ptr)", "declare void @llvm.x86.sse.ldmxcsr(ptr)"]
    return found


class _Kernel:
    """The function that is being written."""

    def __init__(self, structure: Structure) -> None:
        self.code = Code()
        self._structure = structure
        self._read = 0

    def write(self) -> None:
        structure, code = self._structure, self.code
        starts = [code.let(f"inttoptr i64 {address} to ptr") for address in self._arguments()]
        length, steps = self._argument(), self._arguments()
        second = (self._argument(), self._arguments()) if structure.is_tiled else ("0", [])
        outer = [(self._argument(), self._arguments()) for _loop in range(structure.outer_loops)]
        self._set_mode()

        def one(places: list[str], number: str) -> None:
            run = Run(places, length, steps)
            if structure.is_tiled:
                write_block(code, structure, Block(run, *second, number=number))
            else:
                write_row(code, structure, run)

        if outer:
            self._walk(outer, starts, one)
        else:
            one(starts, "0")
        if structure.streams:
            # Streaming stores are ordered by nothing else: another thread must see them when it learns of the end.
            code.do("fence seq_cst")
        self._restore_mode()
        code.do("ret void")

    def _argument(self) -> str:
        place = self.code.let(f"getelementptr i64, ptr %arguments, i64 {self._read}")
        self._read += 1
        return self.code.let(f"load i64, ptr {place}, align 8")

    def _arguments(self) -> list[str]:
        return [self._argument() for _array in range(self._structure.arrays)]

    def _begin(self, outer: list[Outer], places: list[str]) -> tuple[list[str], list[str]]:
        """The indices and the places of the run with number ``first``."""
        code, indices, rest = self.code, [], "%first"
        for size, steps in outer:
            index = code.let(f"urem i64 {rest}, {size}")
            rest = code.let(f"udiv i64 {rest}, {size}")
            places = self._all_moved(places, index, steps)
            indices.append(index)
        return indices, places

    def _walk(self, outer: list[Outer], starts: list[str], one: Callable[[list[str], str], None]) -> None:
        """Write the loops around the runs: the first one plainly, and the others around it as an odometer counts."""
        code, arrays = self.code, self._structure.arrays
        (size, steps), *further = outer
        indices, places = self._begin(outer, starts)

        def iteration(number: str, values: list[str]) -> tuple[list[str], str]:
            here, (index, *others) = values[:arrays], values[arrays:]
            left = code.let(f"sub i64 {size}, {index}")
            wanted = code.let(f"sub i64 %last, {number}")
            count = code.let(f"call i64 @llvm.umin.i64(i64 {left}, i64 {wanted})")

            def next_run(done: str, places: list[str]) -> tuple[list[str], str]:
                one(places, code.let(f"add i64 {index}, {done}"))
                return [code.moved(place, step) for place, step in zip(places, steps, strict=True)], "1"

            code.loop_with("0", count, [f"ptr {place}" for place in here], next_run)
            ended = code.let(f"add i64 {index}, {count}")
            through = code.let(f"icmp eq i64 {ended}, {size}")
            back = code.let(f"select i1 {through}, i64 {size}, i64 0")
            here = self._all_moved(here, code.let(f"sub i64 {count}, {back}"), steps)
            first = code.let(f"select i1 {through}, i64 0, i64 {ended}")
            return self._next(further, here, [first], others, through), count

        begin = [*(f"ptr {place}" for place in places), *(f"i64 {index}" for index in indices)]
        code.loop_with("%first", "%last", begin, iteration)

    def _next(
        self, outer: list[Outer], places: list[str], following: list[str], indices: list[str], moves: str
    ) -> list[str]:
        """Step as an odometer does: a loop that is through starts again and moves the next one outside."""
        code = self.code
        for (size, steps), index in zip(outer, indices, strict=True):
            moved = code.let(f"zext i1 {moves} to i64")
            up = code.let(f"add i64 {index}, {moved}")
            through = code.let(f"icmp eq i64 {up}, {size}")
            following.append(code.let(f"select i1 {through}, i64 0, i64 {up}"))
            back = code.let(f"select i1 {through}, i64 {size}, i64 0")
            places = self._all_moved(places, code.let(f"sub i64 {moved}, {back}"), steps)
            moves = through
        return [*places, *following]

    def _all_moved(self, places: list[str], turns: str, steps: list[str]) -> list[str]:
        """Every place moved by so many turns of a loop."""
        code = self.code
        return [
            code.moved(place, code.let(f"mul i64 {turns}, {step}")) for place, step in zip(places, steps, strict=True)
        ]

    def _set_mode(self) -> None:
        if not self._structure.has_mode:
            return
        for name in ("saved", "wanted"):
            self.code.do(f"%{name} = alloca i32, align 4")
        self.code.do("call void @llvm.x86.sse.stmxcsr(ptr %saved)")
        self.code.do(f"store i32 {_DEFAULT_MODE}, ptr %wanted, align 4")
        self.code.do("call void @llvm.x86.sse.ldmxcsr(ptr %wanted)")

    def _restore_mode(self) -> None:
        if self._structure.has_mode:
            self.code.do("call void @llvm.x86.sse.ldmxcsr(ptr %saved)")
