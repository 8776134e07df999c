"""Which loop of a nest is the innermost, how it walks each array, and which one runs across tiles. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from eltwise.kernels.nest import Loop, Nest
from eltwise.kernels.structure import CACHE_LINE, TILE_BLOCK, Walk, tile_sizes

_LEAST_ROW_LINES = 16
"""Rows that do not begin at cache lines stream only from this many lines on: their heads and tails do not."""


@dataclass(frozen=True)
class Walks:
    """A nest as a kernel walks it.

    Attributes:
        inner: the innermost loop.
        walks: how it walks each array, the result first.
        second: for tiles, the loop across them; else None.
        outer: the loops around that, from the inside out. With tiles the first of them steps from block to block.
        starts: for each array the bytes from its first element to where the loops start.
        element_bytes: the size of an element of each array.
    """

    inner: Loop
    walks: tuple[Walk, ...]
    second: Loop | None
    outer: tuple[Loop, ...]
    starts: tuple[int, ...]
    element_bytes: tuple[int, ...]

    @property
    def runs(self) -> int:
        """How many runs of the innermost loop, or blocks of tiles, there are."""
        return prod(loop.size for loop in self.outer)

    def begins_at_lines(self, is_aligned: bool) -> bool:
        """Whether every run begins at a cache line of the result, if its memory does."""
        rows = self.outer if self.second is None else (*self.outer, self.second)
        return is_aligned and all(loop.steps[0] % CACHE_LINE == 0 for loop in rows)

    def fills_lines(self, is_aligned: bool) -> bool:
        """Whether streaming stores would fill whole cache lines of the result, but for a few.

        Args:
            is_aligned: whether the result begins at a cache line.
        """
        if self.walks[0] != "vector" or (self.second is not None and self.element_bytes[0] != self.element_bytes[1]):
            return False
        if self.begins_at_lines(is_aligned) or self.second is not None:
            return self.begins_at_lines(is_aligned)
        return not self.outer or self.inner.size * self.element_bytes[0] >= _LEAST_ROW_LINES * CACHE_LINE

    def geometry(self) -> tuple[int, ...]:
        """The integers that tell a kernel the sizes and steps, without the addresses."""
        loops = [self.inner, *([self.second] if self.second else []), *self.outer]
        return tuple(number for loop in loops for number in (loop.size, *loop.steps))


def choose(nest: Nest, vector_bytes: int) -> Walks:
    """Choose the walks of a nest for a target.

    Tiles are taken where an operand lies element after element in an outer loop and not in the innermost, and both
    loops are long enough for one.
    """
    inner, around = nest.inner, nest.loops[:-1]
    across = _across(nest, vector_bytes)
    walks = [_walk(*each) for each in zip(inner.steps, nest.element_bytes, strict=True)]
    if across is None:
        return Walks(inner, tuple(walks), None, around[::-1], nest.starts, nest.element_bytes)
    second = around[across]
    for array in _crossed(inner, second, nest.element_bytes):
        walks[array] = "crossed"
    blocks = Loop(-(-second.size // TILE_BLOCK), tuple(step * TILE_BLOCK for step in second.steps))
    others = (*around[:across], *around[across + 1 :])
    return Walks(inner, tuple(walks), second, (blocks, *others[::-1]), nest.starts, nest.element_bytes)


def _walk(step: int, element_bytes: int) -> Walk:
    if step == element_bytes:
        return "vector"
    return "strided" if step else "scalar"


def _across(nest: Nest, vector_bytes: int) -> int | None:
    """The index of the loop that tiles run across: the one in which most operands are walked element by element."""
    rows, columns = tile_sizes(nest.element_bytes[1], vector_bytes)
    inner = nest.inner
    if inner.size < columns or inner.steps[0] != nest.element_bytes[0]:
        return None
    found = {
        index: len(_crossed(inner, loop, nest.element_bytes))
        for index, loop in enumerate(nest.loops[:-1])
        if loop.size >= rows
    }
    best = max(found, key=found.__getitem__, default=None)
    return best if best is not None and found[best] else None


def _crossed(inner: Loop, second: Loop, element_bytes: tuple[int, ...]) -> list[int]:
    return [
        array
        for array in range(1, len(inner.steps))
        if second.steps[array] == element_bytes[array] and inner.steps[array] not in (element_bytes[array], 0)
    ]
