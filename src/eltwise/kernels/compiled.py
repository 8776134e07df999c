"""The compiled path: what it can take, and how a call is cut into pieces for threads."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import pairwise

import numpy as np

from eltwise.dtypes import ElementType
from eltwise.kernels import jit
from eltwise.kernels.caches import cache_bytes
from eltwise.kernels.emit import kernel_text
from eltwise.kernels.expression import Expression
from eltwise.kernels.nest import Nest, make_nest
from eltwise.kernels.plan import Plan
from eltwise.kernels.scalar import compiles
from eltwise.kernels.structure import CACHE_LINE, Structure
from eltwise.kernels.threads import num_threads, run_together
from eltwise.kernels.walks import Walks, choose

LEAST_BYTES_PER_THREAD = 1 << 21
"""Below this size of the result a second thread costs more than it saves."""

PIECES_PER_THREAD = 4
"""Into how many pieces the work of a thread is cut, so that one that starts late does less."""


def takes(element_type: ElementType, operands: Sequence[np.ndarray], out: np.ndarray) -> bool:
    """Whether a kernel can compute this call: there is something to do, and ``out`` is clear of the operands."""
    return out.size > 0 and compiles(element_type) and not any(_overlaps(operand, out) for operand in operands)


def _overlaps(operand: np.ndarray, out: np.ndarray) -> bool:
    """Whether out shares memory with an operand otherwise than element by element."""
    same = operand.shape == out.shape and operand.strides == out.strides and _address(operand) == _address(out)
    return not same and np.may_share_memory(operand, out)


def _address(array: np.ndarray) -> int:
    address: int = array.__array_interface__["data"][0]
    return address


@dataclass(frozen=True)
class Recipe:
    """What is the same for all calls with the same types, shapes and strides.

    Attributes:
        structure: what the kernel is made for.
        nest: the loops.
        walks: the loops as the kernel walks them.
        geometry: the integers that tell it their sizes and steps.
    """

    structure: Structure
    nest: Nest
    walks: Walks
    geometry: tuple[int, ...]

    @property
    def kernel(self) -> jit.Kernel:
        """The compiled kernel."""
        return _kernel(self.structure)


def compute(
    expression: Expression, element_type: ElementType, plan: Plan, operands: Sequence[np.ndarray], out: np.ndarray
) -> None:
    """Compute an expression into ``out`` with a compiled kernel; the arguments are those of the NumPy path."""
    recipe = recipe_of(expression, element_type, plan, operands, out)
    kernel = recipe.kernel
    arrays = (out, *operands)
    starts = [_address(array) + start for array, start in zip(arrays, recipe.walks.starts, strict=True)]
    threads = threads_for(out.nbytes)
    if threads < 2:
        arguments = _integers(*starts, *recipe.geometry)
        kernel(arguments, 0, recipe.walks.runs)
    else:
        run_together(_pieces(kernel, recipe, starts, threads * PIECES_PER_THREAD), threads)


def threads_for(result_bytes: int) -> int:
    """How many threads share a call with a result of so many bytes."""
    return max(1, min(num_threads(), result_bytes // LEAST_BYTES_PER_THREAD))


def recipe_of(
    expression: Expression, element_type: ElementType, plan: Plan, operands: Sequence[np.ndarray], out: np.ndarray
) -> Recipe:
    """Find how a call is computed, from what is kept or anew."""
    views = [
        operand if operand.shape == padded else operand.reshape(padded)
        for operand, padded in zip(operands, plan.operands, strict=True)
    ]
    arrays = (out, *views)
    return _recipe(
        expression,
        element_type,
        plan,
        tuple(array.strides for array in arrays),
        tuple(not array.dtype.isnative for array in arrays),
        _address(out) % CACHE_LINE,
    )


@lru_cache(maxsize=1024)
def _recipe(
    expression: Expression,
    element_type: ElementType,
    plan: Plan,
    strides: tuple[tuple[int, ...], ...],
    swapped: tuple[bool, ...],
    beyond_line: int,
) -> Recipe:
    shapes = (plan.shape, *plan.operands)
    spread = [
        tuple(0 if size == 1 else step for size, step in zip(shape, steps, strict=True))
        for shape, steps in zip(shapes, strides, strict=True)
    ]
    width = element_type.storage.itemsize
    nest, target = make_nest(plan.shape, spread, width), jit.target()
    walks = choose(nest, target.vector_bytes)
    aligned, whole = (beyond_line + nest.starts[0]) % CACHE_LINE == 0, beyond_line % width == 0
    structure = Structure(
        expression=expression,
        element_type=element_type,
        walks=walks.walks,
        outer_loops=len(walks.outer),
        swapped=swapped if width > 1 else (False,) * len(swapped),
        streams=whole and streams(nest, walks, aligned),
        has_heads=not walks.begins_at_lines(aligned),
        vector_bytes=target.vector_bytes,
        has_masks=target.has_masks,
        has_half=target.has_half,
        has_mode=target.has_mode and element_type.kind == "float",
    )
    return Recipe(structure, nest, walks, walks.geometry())


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
