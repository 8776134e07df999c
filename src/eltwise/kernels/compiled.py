"""The compiled path: what it can take, and how a call is cut into pieces for threads."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from itertools import pairwise
from math import prod

import numpy as np

from eltwise.core.dtypes import ElementType
from eltwise.core.machine import cache_bytes
from eltwise.kernels import jit, numpy_kernel
from eltwise.kernels.addresses import address, extent
from eltwise.kernels.emit import kernel_text
from eltwise.kernels.nest import Nest, make_nest
from eltwise.kernels.plan import Plan, Sizes
from eltwise.kernels.pool import allocated
from eltwise.kernels.structure import CACHE_LINE, Structure
from eltwise.kernels.threads import num_threads, run_together
from eltwise.kernels.walks import Walks, choose
from eltwise.ops.expression import Expression

LEAST_BYTES_PER_THREAD = 3 << 19
"""Below this size of the result a second thread costs more than it saves."""

PIECES_PER_THREAD = 4
"""Into how many pieces the work of a thread is cut, so that one that starts late does less."""

LEAST_BYTES_PER_PIECE = 1 << 21
"""Smaller pieces are not worth taking turns for: each thread gets one."""

_MOST_RECIPES = 64
"""For so many combinations of strides a call is kept."""

_MOST_READY = 16
"""For so many sets of addresses the calls of a kernel are kept."""


@dataclass(frozen=True)
class Recipe:
    """What is the same for all calls with the same types, shapes and strides.

    Attributes:
        structure: what the kernel is made for.
        kernel: the compiled kernel.
        nest: the loops.
        walks: the loops as the kernel walks them.
        geometry: the integers that tell it their sizes and steps.
        extents: for each array, the result first, its first byte and the one after its last, from its address.
        same: for each operand whether it lies as the result does, so that it may be the result's own memory.
        beyond_line: the result's address modulo a cache line.
        result_bytes: the size of the result, or of an operand of its shape where that is larger.
        ready: the calls of the kernel for the last addresses: callers often come back with the same arrays, and what
            Python does between two kernels is slow because its data have left the processor's cache.
    """

    structure: Structure
    kernel: jit.Kernel
    nest: Nest
    walks: Walks
    geometry: tuple[int, ...]
    extents: tuple[tuple[int, int], ...]
    same: tuple[bool, ...]
    beyond_line: int
    result_bytes: int
    ready: dict[tuple[int, ...], list[Callable[[], None]]] = field(default_factory=dict, compare=False, repr=False)

    def run(self, out: np.ndarray, operands: Sequence[np.ndarray]) -> bool:
        """Compute into ``out``, whose layout and operands must be those that this was made for.

        Returns:
            Whether that was possible: ``out`` may lie at another place in a cache line, or share memory with an
            operand otherwise than element by element. Then nothing was written.
        """
        threads = threads_for(self.result_bytes)
        key = (threads, address(out), *map(address, operands))
        calls = self.ready.get(key)
        if calls is None:
            calls = self._calls(*key)
            if len(self.ready) >= _MOST_READY:
                self.ready.clear()
            self.ready[key] = calls
        run_together(calls, threads, keep=(out, *operands))
        return bool(calls)

    def _calls(self, threads: int, *places: int) -> list[Callable[[], None]]:
        """The calls of the kernel for arrays at these addresses, the result's first; none where that cannot be."""
        if self.structure.streams and places[0] % CACHE_LINE != self.beyond_line:
            return []
        if self._overlaps(places):
            return []
        starts = [place + start for place, start in zip(places, self.walks.starts, strict=True)]
        if threads < 2:
            return [partial(self.kernel, _integers(*starts, *self.geometry), 0, self.walks.runs)]
        pieces = max(threads, min(threads * PIECES_PER_THREAD, self.result_bytes // LEAST_BYTES_PER_PIECE))
        return _pieces(self.kernel, self, starts, pieces)

    def _overlaps(self, places: Sequence[int]) -> bool:
        (out, *others), (ends, *extents) = places, self.extents
        low, high = out + ends[0], out + ends[1]
        for place, (begin, end), same in zip(others, extents, self.same, strict=True):
            if place + begin < high and low < place + end and not (same and place == out):
                return True
        return False


@dataclass(frozen=True)
class Call:
    """A call on arrays of known types and shapes; what depends on their strides is made at the first call with them.

    Attributes:
        expression: the steps.
        element_type: of the operands.
        plan: where the operands lie in the result.
        sizes: the sizes of the operands.
        swapped: for each array, the result first, whether its bytes are in the other order.
    """

    expression: Expression
    element_type: ElementType
    plan: Plan
    sizes: tuple[Sizes, ...]
    swapped: tuple[bool, ...]
    _recipes: dict[Hashable, Recipe] = field(default_factory=dict, compare=False, repr=False)

    def __call__(self, *arrays: np.ndarray) -> np.ndarray:
        """Compute the operands, which come first, into the array that follows them or into a new one."""
        count = self.expression.operands
        operands = arrays[:count]
        if len(arrays) > count:
            out = arrays[count]
        else:
            out = allocated(self.plan.shape, self.expression.result_type(self.element_type))
        if not self.recipe(operands, out).run(out, operands):
            numpy_kernel.compute(self.expression, self.element_type, self.plan, operands, out)
        return out

    def recipe(self, operands: Sequence[np.ndarray], out: np.ndarray) -> Recipe:
        """How arrays with these strides are computed, from what is kept or anew."""
        key = (out.strides, *[operand.strides for operand in operands], address(out) % CACHE_LINE)
        recipe = self._recipes.get(key)
        if recipe is None:
            strides = (out.strides, *[operand.strides for operand in operands])
            recipe = self._new_recipe(strides, address(out) % CACHE_LINE)
            if len(self._recipes) >= _MOST_RECIPES:
                self._recipes.clear()
            self._recipes[key] = recipe
        return recipe

    def _new_recipe(self, strides: tuple[tuple[int, ...], ...], beyond_line: int) -> Recipe:
        expression, element_type, plan = self.expression, self.element_type, self.plan
        result_width = expression.result_type(element_type).storage.itemsize
        widths = (result_width, *[element_type.storage.itemsize] * expression.operands)
        steps = [
            strides[0],
            *(_broadcast_strides(*each) for each in zip(plan.operands, self.sizes, strides[1:], strict=True)),
        ]
        nest, target = make_nest(plan.shape, steps, widths), jit.target()
        walks = choose(nest, target.vector_bytes)
        beyond = beyond_line + nest.starts[0]
        aligned, whole = beyond % CACHE_LINE == 0, all(step % result_width == 0 for step in (beyond, *strides[0]))
        structure = Structure(
            expression=expression,
            element_type=element_type,
            walks=walks.walks,
            outer_loops=len(walks.outer),
            swapped=tuple(each and width > 1 for each, width in zip(self.swapped, widths, strict=True)),
            streams=whole and streams(nest, walks, aligned),
            has_heads=not walks.begins_at_lines(aligned),
            vector_bytes=target.vector_bytes,
            has_masks=target.has_masks,
            has_half=target.has_half,
            has_mode=target.has_mode and element_type.kind == "float",
        )
        return Recipe(
            structure=structure,
            kernel=_kernel(structure),
            nest=nest,
            walks=walks,
            geometry=walks.geometry(),
            extents=tuple(extent(*layout) for layout in zip((plan.shape, *self.sizes), strides, widths, strict=True)),
            same=tuple(
                widths[0] == widths[1] and own == plan.shape and stride == strides[0]
                for own, stride in zip(self.sizes, strides[1:], strict=True)
            ),
            beyond_line=beyond_line,
            result_bytes=prod(plan.shape) * max(widths),
        )


def threads_for(result_bytes: int) -> int:
    """How many threads share a call with a result of so many bytes."""
    return max(1, min(num_threads(), result_bytes // LEAST_BYTES_PER_THREAD))


def _broadcast_strides(padded: Sizes, own: Sizes, strides: tuple[int, ...]) -> tuple[int, ...]:
    """An operand's strides in the result's dimensions: 0 where it is broadcast."""
    start = next(start for start in range(len(padded) + 1) if padded[start : start + len(own)] == own)
    steps = (0,) * start + strides + (0,) * (len(padded) - start - len(own))
    return tuple(0 if size == 1 else step for size, step in zip(padded, steps, strict=True))


@lru_cache(maxsize=1024)
def _kernel(structure: Structure) -> jit.Kernel:
    return jit.compiled(kernel_text(structure))


def streams(nest: Nest, walks: Walks, is_aligned: bool) -> bool:
    """Whether results bypass the cache: only when not all arrays fit into it, and whole lines are filled."""
    return nest.touched_bytes > cache_bytes() and walks.fills_lines(is_aligned)


def _integers(*numbers: int) -> ctypes.Array[ctypes.c_int64]:
    return (ctypes.c_int64 * len(numbers))(*numbers)


def _pieces(kernel: jit.Kernel, recipe: Recipe, starts: list[int], count: int) -> list[Callable[[], None]]:
    """Cut the work: by runs where there are enough of them, else each run by whole cache lines of the result."""
    runs, inner = recipe.walks.runs, recipe.walks.inner
    if runs >= 4 * count or inner.steps[0] == 0:
        ends = [runs * part // count for part in range(count + 1)]
        arguments = _integers(*starts, *recipe.geometry)
        return [partial(kernel, arguments, first, last) for first, last in pairwise(ends)]
    pieces: list[Callable[[], None]] = []
    for first, last in _parts(starts[0], inner.steps[0], inner.size, count):
        moved = (start + first * step for start, step in zip(starts, inner.steps, strict=True))
        pieces.append(partial(kernel, _integers(*moved, last - first, *recipe.geometry[1:]), 0, runs))
    return pieces


def _parts(start: int, step: int, size: int, count: int) -> list[tuple[int, int]]:
    """Cut a run into ranges of elements that begin at cache lines of the result."""
    ends = [0]
    for part in range(1, count):
        end = size * part // count
        ends.append(max(ends[-1], end - (start + end * step) % CACHE_LINE // step))
    ends.append(size)
    return [(first, last) for first, last in pairwise(ends) if last > first]
