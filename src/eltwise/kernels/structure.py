"""What a kernel is made for: types, expression, processor and how the loops walk, never sizes. Pure.

A kernel is a C function ``void kernel(const int64_t *arguments, int64_t first, int64_t last)``. ``arguments`` holds the
addresses of the arrays (the result first, then the operands), then for each loop, from the inside out, its size and by
how many bytes each array moves in it. It computes the runs of the innermost loop (for tiles, the blocks of the second
loop) from number ``first`` to before ``last``.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

from eltwise.core.dtypes import BFLOAT16, BOOL, FLOAT16, FLOAT32, FLOAT64, ElementType
from eltwise.ops.expression import Expression, Step

CACHE_LINE = 64
"""Streaming stores fill whole cache lines of this many bytes."""

TILE_BLOCK = 256
"""How many rows of the result the tiles of one block span: a transposed operand is read in runs of as many elements."""

Walk = Literal["vector", "scalar", "strided", "transposed"]
"""How the innermost loop walks an array: element after element, always the same one, with a stride, or with a stride
while the second loop walks element after element."""


class Target(NamedTuple):
    """A processor to compile for.

    Attributes:
        name: LLVM's name of it.
        features: LLVM's list of what it can do beyond its name.
        vector_bytes: the width of its vectors.
        has_masks: whether it loads and stores parts of a vector at full speed.
        has_half: whether it converts float16 in hardware.
        has_mode: whether it has a floating-point mode that a thread may have changed: the x86 processors.
    """

    name: str
    features: str
    vector_bytes: int
    has_masks: bool
    has_half: bool
    has_mode: bool

    @property
    def has_fused(self) -> bool:
        """Whether it rounds ``a * b + c`` once; x86 processors before AVX2 do not."""
        return not self.has_mode or "+fma" in self.features.split(",") or self.name in ("x86-64-v3", "x86-64-v4")

    def compiles(self, element_type: ElementType) -> bool:
        """Whether kernels compute an element type: ONNX's, float16 where the processor converts it, and booleans."""
        is_float = element_type in (BFLOAT16, FLOAT32, FLOAT64) or (element_type is FLOAT16 and self.has_half)
        return is_float or element_type is BOOL or (element_type.is_integer and element_type.bits >= 8)


class Structure(NamedTuple):
    """What a kernel is made for.

    Attributes:
        expression: what is computed.
        element_type: the type T of the expression.
        walks: how the innermost loop walks each array, the result first.
        outer_loops: how many loops lie around what a run computes.
        swapped: for each array whether its bytes are in the other order.
        streams: whether results bypass the cache, for results that are larger than it.
        has_heads: whether streamed runs may begin within a cache line of the result.
        target: the processor.
        divisors: the arrays that are looked through for a 0 before anything is computed, as ``exponents`` are for a
            negative number; with one that has it, an i64 whose address follows those of the arrays becomes 1, and
            nothing is written.
    """

    expression: Expression
    element_type: ElementType
    walks: tuple[Walk, ...]
    outer_loops: int
    swapped: tuple[bool, ...]
    streams: bool
    has_heads: bool
    target: Target
    divisors: tuple[int, ...] = ()

    @property
    def arrays(self) -> int:
        """How many arrays there are, the result among them."""
        return len(self.walks)

    @property
    def is_tiled(self) -> bool:
        """Whether a run computes tiles, because some operand is transposed."""
        return "transposed" in self.walks

    @property
    def types(self) -> tuple[ElementType, ...]:
        """The type of each value of the expression."""
        return self.expression.types(self.element_type)

    @property
    def exponents(self) -> tuple[int, ...]:
        """The arrays of exponents of integers that may be negative."""
        return tuple(1 + operand for operand in signed_exponents(self.expression, self.element_type))

    @property
    def has_status(self) -> bool:
        """Whether operands are looked through before anything is computed."""
        return bool(self.divisors or self.exponents)

    @property
    def width(self) -> int:
        """The size in bytes of the largest element that is read or computed."""
        return max(each.storage.itemsize for each in self.types)

    def width_of(self, array: int) -> int:
        """The size of an element of an array in bytes."""
        return self.types[array - 1].storage.itemsize

    @property
    def lanes(self) -> int:
        """How many elements are computed at a time; few where they are gathered or divided one by one.

        Two vectors of floats at a time let the processor compute one where a real function of the other waits for its
        last result; types of 16 bits are several vectors of float32 anyway. Booleans of several vectors are packed into
        one.
        """
        lanes = self.target.vector_bytes // self.width
        if self.expression.is_real and self.width >= FLOAT32.storage.itemsize:
            lanes *= 2
        is_gathered = {"strided", "transposed"} & {*self.walks}
        if self.expression.gives_booleans and not is_gathered:
            return min(4 * lanes, self.target.vector_bytes)
        is_single = "strided" in self.walks or any(each.is_integer and each.bits == 64 for each in self.types)
        return min(lanes, 16) if is_single else lanes

    @property
    def rounds(self) -> bool:
        """Whether the thread's floating-point mode changes results: quotients of integers are floats first."""
        return any(each.kind == "float" for each in self.types) or self.expression.divides


def is_whole_power(step: Step, types: Sequence[ElementType]) -> bool:
    """Whether a step is a power of integers to integers that a kernel reads."""
    if step.primitive != "power":
        return False
    base, exponent = (types[value] for value in step.operands)
    return base.is_integer and exponent.is_integer


@lru_cache(maxsize=1024)
def signed_exponents(expression: Expression, element_type: ElementType) -> tuple[int, ...]:
    """The operands that are exponents of integers, where they may be negative."""
    types = expression.types(element_type)
    exponents = {step.operands[1] for step in expression.steps if is_whole_power(step, types)}
    return tuple(sorted(each for each in exponents if types[each].kind == "signed"))


def tile_sizes(width: int, vector_bytes: int) -> tuple[int, int]:
    """The rows and the columns of a tile: a row is one cache line of the result.

    >>> tile_sizes(4, 64), tile_sizes(1, 64), tile_sizes(4, 16)
    ((16, 16), (16, 64), (4, 16))
    """
    return min(16, max(4, vector_bytes // width), CACHE_LINE // width), CACHE_LINE // width
