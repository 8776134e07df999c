"""Transposed operands, as LLVM instructions: square tiles are transposed in registers. Pure.

The result is computed in tiles whose rows are whole cache lines. A transposed operand is read a vector at a time along
its own memory, and a tile of it is transposed by exchanging ever larger squares between pairs of vectors. What does not
fill a tile is computed element by element.

Tiles go along a stripe of some columns before they go down, so that the result and what lies like it are met a few
cache lines at a time, and transposed memory stays in the cache until its lines are used up. The processor does not
predict either walk, so that both are prefetched.
"""

from __future__ import annotations

from eltwise.kernels.builder import Builder, Loop
from eltwise.kernels.structure import CACHE_LINE, TILE_BLOCK, tile_sizes

_TILES_PER_STRIPE = 8


def write_block(code: Builder, places: list[str], inner: Loop, second: Loop, number: str) -> None:
    """Write one block of rows: its whole tiles, then its columns and rows that fill none.

    Args:
        code: where it is written to.
        places: the pointers to its first elements.
        inner: the loop along a row.
        second: the loop over the rows of all blocks.
        number: the number of this block.
    """
    tile_rows, tile_columns = tile_sizes(code.structure.width_of(1), code.structure.target.vector_bytes)
    before = code.let(f"mul i64 {number}, {TILE_BLOCK}")
    left = code.let(f"sub i64 {second.size}, {before}")
    rows = code.least(left, TILE_BLOCK)
    whole_rows = code.let(f"and i64 {rows}, {-tile_rows}")
    whole_columns = code.let(f"and i64 {inner.size}, {-tile_columns}")
    stripe_columns = tile_columns * _TILES_PER_STRIPE

    def tile(row: str, column: str) -> None:
        corners = code.all_moved(code.all_moved(places, row, second.steps), column, inner.steps)
        _write_tile(code, corners, inner, second, tile_rows, tile_columns)

    def stripe(first: str) -> None:
        beyond = code.let(f"add i64 {first}, {stripe_columns}")
        last = code.least(beyond, whole_columns)
        code.loop(
            "0", whole_rows, tile_rows, lambda row: code.loop(first, last, tile_columns, lambda at: tile(row, at))
        )

    def elements(row: str, begin: str, end: str) -> None:
        code.single_elements(code.all_moved(places, row, second.steps), inner, begin, end)

    code.loop("0", whole_columns, stripe_columns, stripe)
    code.loop(whole_rows, rows, 1, lambda row: elements(row, "0", whole_columns))
    code.loop("0", rows, 1, lambda row: elements(row, whole_columns, inner.size))


def _write_tile(code: Builder, corners: list[str], inner: Loop, second: Loop, rows: int, columns: int) -> None:
    structure = code.structure
    transposed = {
        array: _transposed_tile(code, array, corners[array], inner.steps[array], rows, columns)
        for array, walk in enumerate(structure.walks)
        if walk == "transposed"
    }
    for row in range(rows):
        places = code.all_moved(corners, str(row), second.steps)
        operands = []
        for array, pointer in enumerate(places[1:], start=1):
            if array in transposed:
                operands.append(transposed[array][row])
                continue
            if structure.walks[array] == "vector":
                code.prefetch(code.moved(pointer, str(CACHE_LINE)))
            operands.append(code.elements(array, pointer, inner.steps[array], columns))
        code.store(code.results(columns, operands), places[0], columns)


def _transposed_tile(code: Builder, array: int, pointer: str, step: str, rows: int, columns: int) -> list[str]:
    """The rows of a tile of an operand whose memory runs down its columns: of squares side by side."""
    parts = []
    for _square in range(columns // rows):
        lines = []
        for _line in range(rows):
            lines.append(code.load(array, pointer, rows))
            code.prefetch(code.moved(pointer, str(CACHE_LINE)))
            pointer = code.moved(pointer, step)
        parts.append(_transposed(code, lines))
    return [_joined(code, [square[row] for square in parts], rows) for row in range(rows)]


def _transposed(code: Builder, lines: list[str]) -> list[str]:
    """Transpose a square: in each round every pair of lines that are ``distance`` apart exchanges its off squares."""
    side, distance = len(lines), 1
    kind = f"<{side} x i{code.structure.width_of(1) * 8}>"
    while distance < side:
        for upper in (line for line in range(side) if not line & distance):
            lower = upper + distance
            pair = f"{kind} {lines[upper]}, {kind} {lines[lower]}"
            lanes = [lane if not lane & distance else side + lane - distance for lane in range(side)]
            lines[upper] = code.shuffled(pair, lanes)
            lines[lower] = code.shuffled(pair, [lane + distance for lane in lanes])
        distance *= 2
    return lines


def _joined(code: Builder, parts: list[str], lanes: int) -> str:
    """One vector of several, in order."""
    while len(parts) > 1:
        kind = f"<{lanes} x i{code.structure.width_of(1) * 8}>"
        pairs = zip(parts[::2], parts[1::2], strict=True)
        lanes *= 2
        parts = [code.shuffled(f"{kind} {first}, {kind} {second}", range(lanes)) for first, second in pairs]
    return parts[0]
