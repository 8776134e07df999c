"""What a kernel is made for: types, expression and how the loops walk, never sizes. Pure.

A kernel is a function ``kernel(arguments, first, last)``. ``arguments`` points to 64-bit integers: the addresses of the
arrays (the result first, then the operands), how long the innermost loop is and by how many bytes each array moves in
it, for tiles the same for the second loop, then the same for each outer loop from the inside out. It computes the runs
of the innermost loop (for tiles, of a block of the second one) from number ``first`` to before ``last``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from eltwise.core.dtypes import ElementType
from eltwise.kernels.scalar import Arithmetic
from eltwise.ops.expression import Expression

CACHE_LINE = 64
"""Streaming stores fill whole cache lines of this many bytes."""

TILE_BLOCK = 256
"""How many rows of the result the tiles of one block span: what lies across is read in runs of as many elements."""

Walk = Literal["vector", "scalar", "strided", "crossed"]
"""How the innermost loop walks an array: element after element, always the same one, with a stride, or with a stride
while the second loop walks element after element."""


@dataclass(frozen=True)
class Structure:
    """What a kernel is made for.

    Attributes:
        expression: what is computed.
        element_type: of the operands.
        walks: how the innermost loop walks each array, the result first.
        outer_loops: how many loops lie around what a run computes.
        swapped: for each array whether its bytes are in the other order.
        streams: whether results bypass the cache, for results that are larger than it.
        has_heads: whether runs may begin within a cache line of the result.
        vector_bytes: the width of the target's vectors.
        has_masks: whether the target loads and stores parts of a vector at full speed.
        has_half: whether the target converts float16 by itself.
        has_mode: whether the target has a floating-point mode that a thread may have changed.
    """

    expression: Expression
    element_type: ElementType
    walks: tuple[Walk, ...]
    outer_loops: int
    swapped: tuple[bool, ...]
    streams: bool
    has_heads: bool
    vector_bytes: int
    has_masks: bool
    has_half: bool
    has_mode: bool

    @property
    def arrays(self) -> int:
        """How many arrays there are, the result among them."""
        return len(self.walks)

    @property
    def is_tiled(self) -> bool:
        """Whether a run computes tiles, because some operand lies across the result."""
        return "crossed" in self.walks

    @property
    def width(self) -> int:
        """The size of an operand's element in bytes."""
        return self.element_type.storage.itemsize

    def width_of(self, array: int) -> int:
        """The size of an element of an array in bytes; that of a boolean result is 1."""
        return self.expression.result_type(self.element_type).storage.itemsize if array == 0 else self.width

    @property
    def lanes(self) -> int:
        """How many elements a vector of operands holds; few where they are gathered or divided one by one."""
        lanes = self.vector_bytes // self.width
        is_single = "strided" in self.walks or (self.element_type.is_integer and self.expression.divides)
        return min(lanes, 16) if is_single else lanes

    @property
    def arithmetic(self) -> Arithmetic:
        """How the element type is computed."""
        return Arithmetic(self.element_type, self.has_half)


def tile_sizes(width: int, vector_bytes: int) -> tuple[int, int]:
    """The rows and the columns of a tile: a row is one cache line of the result.

    >>> tile_sizes(4, 64), tile_sizes(1, 64), tile_sizes(4, 16)
    ((16, 16), (16, 64), (4, 16))
    """
    return min(16, max(4, vector_bytes // width), CACHE_LINE // width), CACHE_LINE // width
