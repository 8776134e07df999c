"""Operands that lie across the result, as LLVM instructions: square tiles are transposed in registers. Pure.

The result is computed in tiles whose rows are whole cache lines. An operand that lies across is read a vector at a time
along its own memory, and a tile of it is transposed by exchanging ever larger squares between pairs of
vectors. What does not fill a tile is computed element by element.

Tiles go along a stripe of some columns before they go down, so that the result and what lies like it are met a few
cache lines at a time, and what lies across stays in the cache until its lines are used up. The processor does not
predict either walk, so that both are prefetched.
"""

from __future__ import annotations

from dataclasses import dataclass

from eltwise.kernels import access
from eltwise.kernels.code import Code
from eltwise.kernels.rows import Run, write_elements
from eltwise.kernels.structure import CACHE_LINE, TILE_BLOCK, Structure, tile_sizes

_TILES_PER_STRIPE = 8


@dataclass(frozen=True)
class Block:
    """The rows of one block: the names of the values that say where it goes.

    Attributes:
        run: its first row.
        rows: how many rows there are in all blocks, an i64.
        row_steps: by how many bytes each array moves from row to row, i64s.
        number: the number of this block, an i64.
    """

    run: Run
    rows: str
    row_steps: list[str]
    number: str


def write_block(code: Code, structure: Structure, block: Block) -> None:
    """Write one block: its whole tiles, then its columns and rows that fill none."""
    tile_rows, tile_columns = tile_sizes(structure.width, structure.vector_bytes)
    before = code.let(f"mul i64 {block.number}, {TILE_BLOCK}")
    left = code.let(f"sub i64 {block.rows}, {before}")
    rows = code.let(f"call i64 @llvm.umin.i64(i64 {left}, i64 {TILE_BLOCK})")
    whole_rows = code.let(f"and i64 {rows}, {-tile_rows}")
    whole_columns = code.let(f"and i64 {block.run.length}, {-tile_columns}")

    tile = _Tile(code, structure, block)
    stripe_columns = tile_columns * _TILES_PER_STRIPE

    def stripe(first: str) -> None:
        beyond = code.let(f"add i64 {first}, {stripe_columns}")
        last = code.let(f"call i64 @llvm.umin.i64(i64 {beyond}, i64 {whole_columns})")
        code.loop(
            "0", whole_rows, tile_rows, lambda row: code.loop(first, last, tile_columns, lambda at: tile.write(row, at))
        )

    code.loop("0", whole_columns, stripe_columns, stripe)
    code.loop(whole_rows, rows, 1, lambda row: _row(code, structure, block, row, "0", whole_columns))
    code.loop("0", rows, 1, lambda row: _row(code, structure, block, row, whole_columns, block.run.length))


def _row(code: Code, structure: Structure, block: Block, row: str, begin: str, end: str) -> None:
    """Some elements of a row, one by one."""
    places = [
        code.moved(place, code.let(f"mul i64 {row}, {step}"))
        for place, step in zip(block.run.places, block.row_steps, strict=True)
    ]
    write_elements(code, structure, Run(places, block.run.length, block.run.steps), begin, end)


class _Tile:
    """One tile."""

    def __init__(self, code: Code, structure: Structure, block: Block) -> None:
        self._code, self._structure, self._block = code, structure, block
        self._rows, self._columns = tile_sizes(structure.width, structure.vector_bytes)

    def write(self, row: str, column: str) -> None:
        code, structure = self._code, self._structure
        corners = [self._corner(array, row, column) for array in range(structure.arrays)]
        transposed = {
            array: self._transposed_tile(array, corners[array])
            for array, walk in enumerate(structure.walks)
            if walk == "crossed"
        }
        for index in range(self._rows):
            places = [self._below(array, corners[array], index) for array in range(structure.arrays)]
            operands = [
                transposed[array][index] if array in transposed else self._operand(array, places[array])
                for array in range(1, structure.arrays)
            ]
            result = structure.arithmetic.results(code, structure.expression, self._columns, operands)
            put = access.store_streaming if structure.streams else access.store
            put(code, structure, result, places[0], self._columns)

    def _corner(self, array: int, row: str, column: str) -> str:
        down = self._code.let(f"mul i64 {row}, {self._block.row_steps[array]}")
        right = self._code.let(f"mul i64 {column}, {self._block.run.steps[array]}")
        return self._code.moved(self._block.run.places[array], down, right)

    def _below(self, array: int, corner: str, index: int) -> str:
        return self._code.moved(corner, self._code.let(f"mul i64 {index}, {self._block.row_steps[array]}"))

    def _operand(self, array: int, place: str) -> str:
        code, structure = self._code, self._structure
        match structure.walks[array]:
            case "vector":
                access.prefetch(code, code.moved(place, str(CACHE_LINE)))
                return access.loaded(code, structure, array, place, self._columns)
            case "scalar":
                return access.splat(code, structure, array, place, self._columns)
            case _:
                return access.gather(code, structure, array, place, self._block.run.steps[array], self._columns)

    def _transposed_tile(self, array: int, corner: str) -> list[str]:
        """The rows of a tile of an operand whose memory runs down its columns."""
        code, side = self._code, self._rows
        squares, place = [], corner
        for _square in range(self._columns // side):
            lines = []
            for _line in range(side):
                lines.append(access.loaded(code, self._structure, array, place, side))
                access.prefetch(code, code.moved(place, str(CACHE_LINE)))
                place = code.moved(place, self._block.run.steps[array])
            squares.append(_transposed(code, lines, side, self._structure.width * 8))
        return [self._joined([square[index] for square in squares]) for index in range(side)]

    def _joined(self, parts: list[str]) -> str:
        """One vector of several, in order."""
        code, lanes, kind = self._code, self._rows, f"i{self._structure.width * 8}"
        while len(parts) > 1:
            order = ", ".join(f"i32 {lane}" for lane in range(2 * lanes))
            half = f"<{lanes} x {kind}>"
            parts = [
                code.let(f"shufflevector {half} {first}, {half} {second}, <{2 * lanes} x i32> <{order}>")
                for first, second in zip(parts[::2], parts[1::2], strict=True)
            ]
            lanes *= 2
        return parts[0]


def _transposed(code: Code, lines: list[str], side: int, bits: int) -> list[str]:
    """Transpose a square: in each round every pair of lines that are ``distance`` apart exchanges its off squares."""
    kind, distance = f"<{side} x i{bits}>", 1
    while distance < side:
        for upper in range(side):
            if upper & distance:
                continue
            lower = upper + distance
            pair = f"{kind} {lines[upper]}, {kind} {lines[lower]}"
            lines[upper], lines[lower] = (
                code.let(f"shufflevector {pair}, <{side} x i32> <{_exchange(side, distance, half)}>") for half in (0, 1)
            )
        distance *= 2
    return lines


def _exchange(side: int, distance: int, half: int) -> str:
    """Which lanes the upper (0) or the lower (1) line of a pair holds afterwards; lanes of the lower one follow."""
    lanes = []
    for lane in range(side):
        if half == 0:
            lanes.append(lane if not lane & distance else side + lane - distance)
        else:
            lanes.append(lane + distance if not lane & distance else side + lane)
    return ", ".join(f"i32 {lane}" for lane in lanes)
