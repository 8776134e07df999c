"""Calls that kernels compute: what a call needs, its recipe, and how the work is cut into pieces for threads."""

from __future__ import annotations

import ctypes
from collections.abc import Hashable, Sequence
from functools import lru_cache
from typing import NamedTuple, TypeVar

import numpy as np

from eltwise.core.blocks import ranges
from eltwise.core.dtypes import ElementType
from eltwise.core.machine import cache_bytes
from eltwise.core.shapes import Sizes
from eltwise.kernels import jit, numpy_kernel
from eltwise.kernels.emit import kernel_text
from eltwise.kernels.native import Records
from eltwise.kernels.nest import Nest, make_nest
from eltwise.kernels.plan import Axes, Plan
from eltwise.kernels.pool import allocated
from eltwise.kernels.records import address
from eltwise.kernels.structure import CACHE_LINE, Structure
from eltwise.kernels.threads import Pieces, num_threads
from eltwise.ops.expression import Expression

LEAST_BYTES_PER_PIECE = 1 << 16
"""A smaller result is computed by one thread; to share it would cost more than it saves."""

PIECES_PER_THREAD = 4
"""Into how many pieces the work of a thread is cut, so that one that starts late does less."""

_MOST_KEPT = 64
"""For so many sets of strides the recipes of a call are kept, and for so many sets of addresses the pieces of work."""


KeptT = TypeVar("KeptT")


class Part(NamedTuple):
    """A part of a call.

    Attributes:
        starts: for each array, the result first, the bytes from its first element to where the loops start.
        geometry: the kernel's arguments after the addresses.
        first: the first run.
        last: the one after the last.
    """

    starts: tuple[int, ...]
    geometry: tuple[int, ...]
    first: int
    last: int

    def arguments(self, places: Sequence[int]) -> ctypes.Array[ctypes.c_int64]:
        """The kernel's arguments for arrays at these addresses."""
        numbers = [*(place + start for place, start in zip(places, self.starts, strict=True)), *self.geometry]
        return (ctypes.c_int64 * len(numbers))(*numbers)


class Recipe(NamedTuple):
    """What is the same for all calls with the same types, shapes and strides.

    Attributes:
        structure: what the kernel is made for.
        kernel: the compiled kernel.
        nest: the loops; they say all arguments of the kernel but the addresses.
        extents: for each array, the result first, its first byte and the one after its last, from its address.
        same: for each operand whether it lies as the result does, so that it may be the result's own memory.
        result_bytes: the size of an operand of the result's shape.
    """

    structure: Structure
    kernel: jit.Kernel
    nest: Nest
    extents: tuple[tuple[int, int], ...]
    same: tuple[bool, ...]
    result_bytes: int

    def parts(self, most: int) -> list[Part]:
        """Cut the work into at most so many parts, which are computed in any order."""
        count, nest = max(1, min(most, self.result_bytes // LEAST_BYTES_PER_PIECE)), self.nest
        if count == 1 or nest.runs >= 4 * count or nest.inner.steps[0] == 0:
            return [Part(nest.starts, nest.geometry, first, last) for first, last in ranges(nest.runs, count)]
        inner, rest = nest.inner, nest.geometry[1:]
        found: list[Part] = []
        # Each part but the first begins a multiple of cache lines after the run's own begin.
        for first, last in ranges(inner.size, count, CACHE_LINE):
            moved = tuple(start + first * step for start, step in zip(nest.starts, inner.steps, strict=True))
            found.append(Part(moved, (last - first, *rest), 0, nest.runs))
        return found

    def pieces(self, threads: int, places: Sequence[int]) -> Pieces | None:
        """The calls of the kernel for arrays at these addresses, the result's first.

        None where the result shares memory with an operand otherwise than element by element.
        """
        if self._overlaps(places):
            return None
        parts = self.parts(threads * PIECES_PER_THREAD if threads > 1 else 1)
        return Pieces(self.kernel, [(part.arguments(places), part.first, part.last) for part in parts])

    def _overlaps(self, places: Sequence[int]) -> bool:
        (out, *others), (ends, *extents) = places, self.extents
        low, high = out + ends[0], out + ends[1]
        for place, (begin, end), same in zip(others, extents, self.same, strict=True):
            if place + begin < high and low < place + end and not (same and place == out):
                return True
        return False


class Call:
    """A call on arrays of known types and shapes; what depends on their strides is made at the first call with them.

    Attributes:
        expression: the steps.
        element_type: of the operands.
        plan: where the operands lie in the result.
        swapped: for each array, the result first, whether its bytes are in the other order.
    """

    def __init__(
        self,
        expression: Expression,
        element_type: ElementType,
        plan: Plan,
        swapped: tuple[bool, ...],
    ) -> None:
        self.expression, self.element_type, self.plan, self.swapped = expression, element_type, plan, swapped
        self._recipes: dict[Hashable, Recipe] = {}
        self._ready: dict[Hashable, Pieces] = {}

    def __call__(self, *arrays: np.ndarray) -> np.ndarray:
        """Compute the operands, which come first, into the array that follows them or into a new one."""
        count = self.expression.operands
        operands = arrays[:count]
        if len(arrays) > count:
            out = arrays[count]
        else:
            out = allocated(self.plan.shape, self.expression.result_type(self.element_type))
        if not self.run(out, operands):
            numpy_kernel.compute(self.expression, self.element_type, self.plan, operands, out)
        return out

    def run(self, out: np.ndarray, operands: Sequence[np.ndarray]) -> bool:
        """Compute into ``out``.

        Returns:
            Whether that was possible: ``out`` may share memory with an operand otherwise than element by element.
            Then nothing was written.
        """
        threads = num_threads()
        places = [address(out), *map(address, operands)]
        # Callers often come back with the same arrays: their pieces of work are kept.
        key = (threads, *places, out.strides, *[operand.strides for operand in operands])
        pieces = self._ready.get(key)
        if pieces is None:
            pieces = self.recipe(operands, out).pieces(threads, places)
            if pieces is None:
                return False
            _keep(self._ready, key, pieces)
        pieces.run()
        return True

    def add_to(self, records: Records, operands: Sequence[np.ndarray], out: np.ndarray) -> None:
        """Make a record of calls with operands and a result like these, which the native entry computes."""
        if out.dtype is not self.expression.result_type(self.element_type).storage or not out.flags.c_contiguous:
            return  # What the caller gave is not what a new result is like.
        recipe = self.recipe(operands, out)
        if not recipe.structure.streams:
            records.add(operands, out, recipe)

    def recipe(self, operands: Sequence[np.ndarray], out: np.ndarray) -> Recipe:
        """How arrays with these strides are computed, from what is kept or anew."""
        strides = (out.strides, *[operand.strides for operand in operands])
        key = (*strides, address(out) % CACHE_LINE)
        recipe = self._recipes.get(key)
        if recipe is None:
            recipe = self._new_recipe(strides, address(out) % CACHE_LINE)
            _keep(self._recipes, key, recipe)
        return recipe

    def _new_recipe(self, strides: tuple[tuple[int, ...], ...], beyond_line: int) -> Recipe:
        expression, element_type, plan = self.expression, self.element_type, self.plan
        result_width = expression.result_type(element_type).storage.itemsize
        widths = (result_width, *[element_type.storage.itemsize] * expression.operands)
        steps = [strides[0], *map(_broadcast_strides, plan.operands, plan.axes, strides[1:])]
        target = jit.target()
        nest = make_nest(plan.shape, steps, widths, target.vector_bytes)
        beyond = beyond_line + nest.starts[0]
        aligned, whole = beyond % CACHE_LINE == 0, all(step % result_width == 0 for step in (beyond, *strides[0]))
        structure = Structure(
            expression=expression,
            element_type=element_type,
            walks=nest.walks,
            outer_loops=len(nest.outer),
            swapped=tuple(each and width > 1 for each, width in zip(self.swapped, widths, strict=True)),
            streams=whole and streams(nest, aligned),
            has_heads=not nest.begins_at_lines(aligned),
            target=target,
        )
        return Recipe(
            structure=structure,
            kernel=_kernel(structure),
            nest=nest,
            extents=tuple(map(extent, (plan.shape, *plan.operands), steps, widths)),
            same=tuple(
                widths[0] == widths[1] and sizes == plan.shape and stride == strides[0]
                for sizes, stride in zip(plan.operands, strides[1:], strict=True)
            ),
            result_bytes=plan.bytes_of(element_type),
        )


def streams(nest: Nest, is_aligned: bool) -> bool:
    """Whether results bypass the cache: only when not all arrays fit into it, and whole lines are filled."""
    return nest.touched_bytes > cache_bytes() and nest.fills_lines(is_aligned)


def extent(sizes: Sequence[int], strides: Sequence[int], element_bytes: int) -> tuple[int, int]:
    """The first byte of an array and the one after its last, from the address of its first element.

    >>> extent((3, 2), (-8, 4), 4)
    (-16, 8)
    """
    spans = [(size - 1) * stride for size, stride in zip(sizes, strides, strict=True)]
    return sum(span for span in spans if span < 0), sum(span for span in spans if span > 0) + element_bytes


def _broadcast_strides(sizes: Sizes, axes: Axes, strides: tuple[int, ...]) -> tuple[int, ...]:
    """An operand's strides along the result's axes: 0 where it is broadcast."""
    steps = dict(zip(axes, strides, strict=True))
    return tuple(0 if size == 1 else steps[axis] for axis, size in enumerate(sizes))


@lru_cache(maxsize=1024)
def _kernel(structure: Structure) -> jit.Kernel:
    return jit.compiled(kernel_text(structure))


def _keep(kept: dict[Hashable, KeptT], key: Hashable, value: KeptT) -> None:
    if len(kept) >= _MOST_KEPT:
        kept.clear()
    kept[key] = value
