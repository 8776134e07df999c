"""The loop nest of a call: the fewest loops that walk all arrays together. Pure.

Dimensions of size 1 fall out, the order follows the result's memory, and adjacent ones that every array walks in one go
become one loop.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True)
class Loop:
    """One loop.

    Attributes:
        size: how often it runs.
        steps: by how many bytes each array moves a time: the result first, then the operands.
    """

    size: int
    steps: tuple[int, ...]


@dataclass(frozen=True)
class Nest:
    """The loops from the outermost to the innermost.

    Attributes:
        loops: at least one.
        starts: for each array the bytes from its first element to where the loops start; differs from 0 where the
            result's memory runs backwards.
        element_bytes: the size of an element of each array.
    """

    loops: tuple[Loop, ...]
    starts: tuple[int, ...]
    element_bytes: tuple[int, ...]

    @property
    def inner(self) -> Loop:
        """The innermost loop."""
        return self.loops[-1]

    @cached_property
    def touched_bytes(self) -> int:
        """How many bytes all arrays have together; what is broadcast counts once."""
        touched = 0
        for width, *steps in zip(self.element_bytes, *(loop.steps for loop in self.loops), strict=True):
            touched += width * math.prod(loop.size for loop, step in zip(self.loops, steps, strict=True) if step)
        return touched


def make_nest(sizes: Sequence[int], strides: Sequence[Sequence[int]], element_bytes: Sequence[int]) -> Nest:
    """Make the nest for arrays of one shape.

    Args:
        sizes: the sizes of the result, none of them 0.
        strides: for each array, the result first, its strides in bytes; 0 in dimensions that it is broadcast over.
        element_bytes: the size of an element of each array.
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
    single = Loop(1, tuple(element_bytes))
    return Nest(_collapsed(loops) or (single,), tuple(starts), tuple(element_bytes))


def _collapsed(loops: list[Loop]) -> tuple[Loop, ...]:
    """Make one loop of each run of loops that all arrays walk in one go."""
    done: list[Loop] = []
    for loop in loops:
        if done and all(far == near * loop.size for far, near in zip(done[-1].steps, loop.steps, strict=True)):
            done.append(Loop(done.pop().size * loop.size, loop.steps))
        else:
            done.append(loop)
    return tuple(done)
