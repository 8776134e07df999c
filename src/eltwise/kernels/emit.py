"""A kernel as LLVM IR text: the loops around rows or tiles, and rows. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import count

from eltwise.kernels.builder import Builder, Loop
from eltwise.kernels.instructions import constant, of
from eltwise.kernels.structure import CACHE_LINE, TILE_BLOCK, Structure


def kernel_text(structure: Structure) -> str:
    """Write the LLVM module of a structure; its one function is ``kernel``."""
    code, numbers = Builder(structure), count()

    def arguments() -> list[str]:
        return [code.argument(next(numbers)) for _array in range(structure.arrays)]

    def loop() -> Loop:
        return Loop(code.argument(next(numbers)), arguments())

    places = list(map(code.pointer, arguments()))
    status = code.pointer(code.argument(next(numbers))) if structure.has_status else ""
    inner = loop()
    second = loop() if structure.is_tiled else None
    outer = [loop() for _loop in range(structure.outer_loops)]

    def run(places: list[str], number: str) -> None:
        if second is None:
            _write_row(code, places, inner)
        else:
            from eltwise.kernels.tiles import write_block  # Other kernels must not pay for it.

            write_block(code, places, inner, second, number)

    def compute() -> None:
        has_mode = structure.target.has_mode and structure.rounds
        code.in_default_mode(lambda: write_runs(code, places, outer, run), has_mode=has_mode)

    if structure.has_status:
        is_refused = _is_refused(code, places, inner, second, outer)
        code.when(is_refused, lambda: code.do(f"store i64 1, ptr {status}, align 8"))
        code.when(code.let(f"xor i1 {is_refused}, true"), compute)
    else:
        compute()
    if structure.streams:
        # Streaming stores are ordered by nothing else: another thread must see them when it learns of the end.
        code.do("fence seq_cst")
    return code.kernel()


def _is_refused(code: Builder, places: list[str], inner: Loop, second: Loop | None, outer: list[Loop]) -> str:
    """An i1: whether a divisor has a 0, or an exponent a negative number, in some run, or block of tiles."""
    from eltwise.kernels.flags import Flags  # Other kernels must not pay for it.

    seen = code.let("alloca i1, align 1")
    code.do(f"store i1 false, ptr {seen}, align 1")

    conditions = [(array, "eq") for array in code.structure.divisors]
    conditions += [(array, "slt") for array in code.structure.exponents]

    def one(pointers: list[str], array: int, condition: str, lanes: int, begin: str, end: str) -> None:
        scalar = f"i{8 * code.structure.width_of(array)}"
        kind = of(lanes, scalar)

        def add(index: str, values: list[str]) -> list[str]:
            value = code.load(array, code.place(pointers, inner, array, index), lanes)
            holds = code.let(f"icmp {condition} {kind} {value}, {constant(lanes, scalar, 0)}")
            return [code.let(f"or {of(lanes, 'i1')} {values[0]}, {holds}")]

        (flags,) = code.fold(begin, end, lanes, [(of(lanes, "i1"), constant(lanes, "i1", 0))], add)
        before = code.let(f"load i1, ptr {seen}, align 1")
        is_any = Flags(code, lanes, flags).any()
        code.do(f"store i1 {code.let(f'or i1 {before}, {is_any}')}, ptr {seen}, align 1")

    def run(pointers: list[str], number: str) -> None:
        if second is None:
            row(pointers)
            return
        left = code.let(f"sub i64 {second.size}, {code.let(f'mul i64 {number}, {TILE_BLOCK}')}")
        rows = code.least(left, TILE_BLOCK)
        code.loop("0", rows, 1, lambda index: row(code.all_moved(pointers, index, second.steps)))

    def row(pointers: list[str]) -> None:
        for array, condition in conditions:
            whole = "0"
            if code.structure.walks[array] == "vector":
                lanes = code.structure.lanes
                whole = code.let(f"and i64 {inner.size}, {-lanes}")
                one(pointers, array, condition, lanes, "0", whole)
            one(pointers, array, condition, 1, whole, "1" if code.structure.walks[array] == "scalar" else inner.size)

    write_runs(code, places, outer, run)
    return code.let(f"load i1, ptr {seen}, align 1")


def write_runs(code: Builder, starts: list[str], outer: list[Loop], run: Callable[[list[str], str], None]) -> None:
    """Write the loops around the runs: the first of them plainly, the others by dividing its number."""
    if not outer:
        run(starts, "0")
        return
    (size, steps), *further = outer
    beyond = code.let(f"add i64 %last, {size}")
    rounded = code.let(f"sub i64 {beyond}, 1")

    def turn(number: str) -> None:
        places, rest = starts, number
        for outer_size, outer_steps in further:
            index = code.let(f"urem i64 {rest}, {outer_size}")
            rest = code.let(f"udiv i64 {rest}, {outer_size}")
            places = code.all_moved(places, index, outer_steps)
        before = code.let(f"mul i64 {number}, {size}")
        first = code.let(f"call i64 @llvm.usub.sat.i64(i64 %first, i64 {before})")
        left = code.let(f"sub i64 %last, {before}")
        last = code.least(left, size)
        code.loop(first, last, 1, lambda index: run(code.all_moved(places, index, steps), index))

    code.loop(code.let(f"udiv i64 %first, {size}"), code.let(f"udiv i64 {rounded}, {size}"), 1, turn)


def _write_row(code: Builder, places: list[str], inner: Loop) -> None:
    """Write a run: single elements up to the first whole cache line, whole vectors, and the rest."""
    structure, lanes = code.structure, code.structure.lanes
    if structure.walks[0] != "vector":
        code.single_elements(places, inner, "0", inner.size)
        return
    head = "0"
    if structure.has_heads:
        head = _head(code, places[0], inner.size)
        code.single_elements(places, inner, "0", head)
    left = code.let(f"sub i64 {inner.size}, {head}")
    whole = code.let(f"and i64 {left}, {-lanes}")
    end = code.let(f"add i64 {whole}, {head}")
    divisors = {1 + step.operands[1] for step in structure.expression.steps if step.definition.divides}
    integers = {array for array in divisors if lanes > 1 and structure.types[array - 1].is_integer}
    scalars = {
        array: (code.divisor if array in integers else code.splat)(array, places[array], lanes)
        for array, walk in enumerate(structure.walks)
        if walk == "scalar"
    }

    def vector(index: str, mask: str = "") -> None:
        operands = []
        for array in range(1, structure.arrays):
            if array in scalars:
                operands.append(scalars[array])
                continue
            pointer = code.place(places, inner, array, index)
            operands.append(code.elements(array, pointer, inner.steps[array], lanes, mask))
        result = code.results(lanes, operands)
        code.store(result, code.place(places, inner, 0, index), lanes, mask)

    begin = _write_lines(code, head, left, vector, scalars.values())
    code.loop(begin, end, lanes, vector, scalars.values())
    if not structure.target.has_masks or "strided" in structure.walks:
        code.single_elements(places, inner, end, inner.size)
        return

    def rest() -> None:
        count = code.let(f"sub i64 {inner.size}, {end}")
        vector(end, code.first_lanes(lanes, count))

    code.when(code.let(f"icmp ult i64 {end}, {inner.size}"), rest)


def _write_lines(code: Builder, begin: str, left: str, vector: Callable[[str], None], invariants: Iterable[str]) -> str:
    """Write as many vectors as fill a cache line one after the other, as often as there are so many elements.

    Processors join such stores: differences of a column and a row took 0.6 of the time of single vectors. Nothing is
    gained where a vector takes longer to compute than to store.

    Returns:
        The index of the first element behind them.
    """
    structure, lanes = code.structure, code.structure.lanes
    (_first, *others), many = structure.expression.steps, CACHE_LINE // structure.target.vector_bytes
    is_heavy = others or structure.expression.is_real or structure.expression.divides
    if many < 2 or is_heavy or {"strided", "transposed"} & {*structure.walks}:
        return begin

    def line(index: str) -> None:
        for number in range(many):
            vector(code.let(f"add i64 {index}, {number * lanes}"))

    end = code.let(f"add i64 {begin}, {code.let(f'and i64 {left}, {-many * lanes}')}")
    code.loop(begin, end, many * lanes, line, invariants)
    return end


def _head(code: Builder, pointer: str, length: str) -> str:
    """How many elements lie before the first whole cache line of the result, at most all."""
    address = code.let(f"ptrtoint ptr {pointer} to i64")
    before = code.let(f"sub i64 0, {address}")
    beyond = code.let(f"and i64 {before}, {CACHE_LINE - 1}")
    count = code.let(f"udiv i64 {beyond}, {code.structure.width_of(0)}")
    return code.least(count, length)
