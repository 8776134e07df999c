"""The loop nest of a call: the fewest loops that walk three arrays together. Pure.

Dimensions of size 1 fall out, the order follows the result's memory, and neighbours that every array walks in one go
become one loop.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

Walk = Literal["vector", "scalar", "strided"]
"""How the innermost loop walks an operand: element after element, always the same one, or with a stride."""


@dataclass(frozen=True)
class Loop:
    """One loop: how often it runs, and by how many bytes each array moves a time."""

    size: int
    out: int
    a: int
    b: int


@dataclass(frozen=True)
class Nest:
    """The loops from the outermost to the innermost, and where the arrays start, in bytes from their first element.

    Attributes:
        loops: at least one.
        out_start: differs from 0 where the result's memory runs backwards.
        a_start: the same for A.
        b_start: the same for B.
        element_bytes: the size of an element.
    """

    loops: tuple[Loop, ...]
    out_start: int
    a_start: int
    b_start: int
    element_bytes: int

    @cached_property
    def inner(self) -> Loop:
        """The innermost loop."""
        return self.loops[-1]

    @cached_property
    def rows(self) -> int:
        """How often the innermost loop is run through."""
        count = 1
        for loop in self.loops[:-1]:
            count *= loop.size
        return count

    @cached_property
    def touched_bytes(self) -> int:
        """How many bytes all three arrays have together; what is broadcast counts once."""
        elements = 0
        for strides in zip(*((loop.out, loop.a, loop.b) for loop in self.loops), strict=True):
            sizes = (loop.size for loop, stride in zip(self.loops, strides, strict=True) if stride)
            elements += math.prod(sizes)
        return elements * self.element_bytes

    @property
    def walks(self) -> tuple[Walk, Walk, Walk]:
        """How the innermost loop walks the result, A and B."""
        inner = self.inner
        return self._walk(inner.out), self._walk(inner.a), self._walk(inner.b)

    def _walk(self, stride: int) -> Walk:
        if stride == self.element_bytes:
            return "vector"
        return "strided" if stride else "scalar"


def make_nest(
    sizes: tuple[int, ...], out: tuple[int, ...], a: tuple[int, ...], b: tuple[int, ...], element_bytes: int
) -> Nest:
    """Make the nest for arrays of one shape.

    Args:
        sizes: the sizes of the result, none of them 0.
        out: the result's strides in bytes.
        a: A's strides, 0 in dimensions that it is broadcast over.
        b: B's strides.
        element_bytes: the size of an element.
    """
    loops, starts = [], [0, 0, 0]
    for size, *strides in zip(sizes, out, a, b, strict=True):
        if size == 1:
            continue
        backwards = strides[0] < 0
        if backwards:
            starts = [start + (size - 1) * stride for start, stride in zip(starts, strides, strict=True)]
        loops.append(Loop(size, *(-stride if backwards else stride for stride in strides)))
    loops.sort(key=lambda loop: (-loop.out, -abs(loop.a), -abs(loop.b)))
    single = Loop(1, element_bytes, element_bytes, element_bytes)
    return Nest(_collapsed(loops) or (single,), starts[0], starts[1], starts[2], element_bytes)


def _collapsed(loops: list[Loop]) -> tuple[Loop, ...]:
    """Make one loop of each run of loops that all three arrays walk in one go."""
    done: list[Loop] = []
    for loop in loops:
        joined = done and _is_one_walk(done[-1], loop)
        size = done.pop().size * loop.size if joined else loop.size
        done.append(Loop(size, loop.out, loop.a, loop.b))
    return tuple(done)


def _is_one_walk(outer: Loop, inner: Loop) -> bool:
    steps = ((outer.out, inner.out), (outer.a, inner.a), (outer.b, inner.b))
    return all(far == near * inner.size for far, near in steps)
