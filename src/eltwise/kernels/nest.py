"""The loop nest of a call: the fewest loops that walk all arrays together, and how a kernel walks them. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from eltwise.kernels.structure import CACHE_LINE, TILE_BLOCK, Walk, tile_sizes

_LEAST_ROW_LINES = 16
"""Rows that do not begin at cache lines stream only from this many lines on: their heads and tails do not."""


class Loop(NamedTuple):
    """One loop.

    Attributes:
        size: how often it runs.
        steps: by how many bytes each array moves a time: the result first, then the operands.
    """

    size: int
    steps: tuple[int, ...]


class Nest(NamedTuple):
    """The loops of a call.

    Attributes:
        inner: the innermost loop.
        walks: how it walks each array.
        second: for tiles, the loop across them; else None.
        outer: the loops around that, from the inside out. With tiles the first of them steps from block to block.
        starts: for each array the bytes from its first element to where the loops start; differs from 0 where the
            result's memory runs backwards.
        element_bytes: the size of an element of each array.
        touched_bytes: how many bytes all arrays have together; what is broadcast counts once.
    """

    inner: Loop
    walks: tuple[Walk, ...]
    second: Loop | None
    outer: tuple[Loop, ...]
    starts: tuple[int, ...]
    element_bytes: tuple[int, ...]
    touched_bytes: int

    @property
    def runs(self) -> int:
        """How many runs of the innermost loop, or blocks of tiles, there are."""
        return math.prod(loop.size for loop in self.outer)

    @property
    def geometry(self) -> tuple[int, ...]:
        """A kernel's arguments after the addresses."""
        return geometry_of([self.inner, *([self.second] if self.second else []), *self.outer])

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


def make_nest(
    sizes: Sequence[int], strides: Sequence[Sequence[int]], element_bytes: tuple[int, ...], vector_bytes: int
) -> Nest:
    """Make the nest for arrays of one shape.

    Dimensions of size 1 fall out, the order follows the result's memory, and adjacent ones that every array walks in
    one go become one loop. Tiles are taken where an operand lies element after element in an outer loop and not in the
    innermost, and both loops are long enough for one.

    Args:
        sizes: the sizes of the result, none of them 0.
        strides: for each array, the result first, its strides in bytes; 0 in dimensions that it is broadcast over.
        element_bytes: the size of an element of each array.
        vector_bytes: the width of the processor's vectors.
    """
    loops, starts = [], [0] * len(strides)
    for size, *steps in zip(sizes, *strides, strict=True):
        if size == 1:
            continue
        backwards = steps[0] < 0
        if backwards:
            starts = [start + (size - 1) * step for start, step in zip(starts, steps, strict=True)]
        loops.append(Loop(size, tuple(-step if backwards else step for step in steps)))
    loops.sort(key=lambda loop: (-loop.steps[0], *(-abs(step) for step in loop.steps[1:])))
    *around, inner = collapsed(loops) or [Loop(1, element_bytes)]
    touched = sum(
        width * math.prod(loop.size for loop in (*around, inner) if loop.steps[array])
        for array, width in enumerate(element_bytes)
    )
    walks = [walk_of(*each) for each in zip(inner.steps, element_bytes, strict=True)]
    second = _second(inner, around, element_bytes, vector_bytes)
    if second is not None:
        for array in _transposed(inner, second, element_bytes):
            walks[array] = "transposed"
        blocks = Loop(-(-second.size // TILE_BLOCK), tuple(step * TILE_BLOCK for step in second.steps))
        around = [*(loop for loop in around if loop is not second), blocks]
    return Nest(inner, tuple(walks), second, tuple(around[::-1]), tuple(starts), element_bytes, touched)


def geometry_of(loops: Sequence[Loop]) -> tuple[int, ...]:
    """A kernel's arguments that describe loops."""
    return tuple(number for loop in loops for number in (loop.size, *loop.steps))


def collapsed(loops: list[Loop]) -> list[Loop]:
    """Make one loop of each run of loops that all arrays walk in one go."""
    done: list[Loop] = []
    for loop in loops:
        if done and all(far == near * loop.size for far, near in zip(done[-1].steps, loop.steps, strict=True)):
            done.append(Loop(done.pop().size * loop.size, loop.steps))
        else:
            done.append(loop)
    return done


def walk_of(step: int, element_bytes: int) -> Walk:
    """How the innermost loop walks an array in these steps."""
    if step == element_bytes:
        return "vector"
    return "strided" if step else "scalar"


def _second(inner: Loop, around: list[Loop], element_bytes: tuple[int, ...], vector_bytes: int) -> Loop | None:
    """The loop that tiles run across: the one in which most operands are walked element by element."""
    rows, columns = tile_sizes(element_bytes[1], vector_bytes)
    if inner.size < columns or inner.steps[0] != element_bytes[0] or len(set(element_bytes[1:])) > 1:
        return None
    long = [loop for loop in around if loop.size >= rows and _transposed(inner, loop, element_bytes)]
    return max(long, key=lambda loop: len(_transposed(inner, loop, element_bytes)), default=None)


def _transposed(inner: Loop, second: Loop, element_bytes: tuple[int, ...]) -> list[int]:
    return [
        array
        for array in range(1, len(inner.steps))
        if second.steps[array] == element_bytes[array] and inner.steps[array] not in (element_bytes[array], 0)
    ]
