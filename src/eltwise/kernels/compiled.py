"""The compiled path: what it can take, and how a call is cut into pieces for threads."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import pairwise
from pathlib import Path

import numpy as np

from eltwise.dtypes import FLOAT16, ElementType
from eltwise.kernels import jit
from eltwise.kernels.emit import CACHE_LINE, Structure, kernel_text
from eltwise.kernels.nest import Nest, make_nest
from eltwise.kernels.plan import Plan
from eltwise.kernels.scalar import compiles
from eltwise.kernels.threads import num_threads, run_together
from eltwise.spec import Formula

_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
_COMMON_CACHE = 32 << 20

LEAST_BYTES_PER_THREAD = 1 << 21
"""Below this size of the result a second thread costs more than it saves."""

PIECES_PER_THREAD = 4
"""Into how many pieces the work of a thread is cut, so that one that starts late does less."""


def takes(element_type: ElementType, a: np.ndarray, b: np.ndarray, out: np.ndarray) -> bool:
    """Whether a kernel can compute this call: aligned, in native byte order, and ``out`` clear of the operands."""
    return (
        out.size > 0
        and compiles(element_type)
        and all(array.dtype.isnative and array.flags.aligned for array in (a, b, out))
        and not any(_overlaps(operand, out) for operand in (a, b))
        and (element_type is not FLOAT16 or jit.target().has_half)
    )


def _overlaps(operand: np.ndarray, out: np.ndarray) -> bool:
    """Whether out shares memory with an operand otherwise than element by element."""
    same = operand.ctypes.data == out.ctypes.data and operand.shape == out.shape and operand.strides == out.strides
    return not same and np.may_share_memory(operand, out)


def compute(
    formula: Formula, element_type: ElementType, plan: Plan, a: np.ndarray, b: np.ndarray, out: np.ndarray
) -> None:
    """Compute a formula into ``out`` with a compiled kernel; the arguments are those of the NumPy path."""
    first = a if a.shape == plan.a_shape else a.reshape(plan.a_shape)
    second = b if b.shape == plan.b_shape else b.reshape(plan.b_shape)
    addresses = out.ctypes.data, first.ctypes.data, second.ctypes.data
    recipe = _recipe(
        formula, element_type, plan, out.strides, first.strides, second.strides, addresses[0] % CACHE_LINE == 0
    )
    nest = recipe.nest
    starts = (addresses[0] + nest.out_start, addresses[1] + nest.a_start, addresses[2] + nest.b_start)
    threads = min(num_threads(), out.nbytes // LEAST_BYTES_PER_THREAD)
    if threads < 2:
        recipe.kernel(*starts, recipe.geometry, 0, nest.rows)
    else:
        run_together(_pieces(recipe, starts, threads * PIECES_PER_THREAD), threads)


@dataclass(frozen=True)
class _Recipe:
    """What is the same for all calls with the same types, shapes and strides."""

    kernel: jit.Kernel
    nest: Nest
    geometry: ctypes.Array[ctypes.c_int64]


@lru_cache(maxsize=1024)
def _recipe(
    formula: Formula,
    element_type: ElementType,
    plan: Plan,
    out: tuple[int, ...],
    a: tuple[int, ...],
    b: tuple[int, ...],
    is_aligned: bool,
) -> _Recipe:
    spread_a = tuple(0 if size == 1 else stride for size, stride in zip(plan.a_shape, a, strict=True))
    spread_b = tuple(0 if size == 1 else stride for size, stride in zip(plan.b_shape, b, strict=True))
    nest = make_nest(plan.shape, out, spread_a, spread_b, element_type.storage.itemsize)
    target = jit.target()
    structure = Structure(
        formula=formula,
        element_type=element_type,
        walks=nest.walks,
        outer_loops=len(nest.loops) - 1,
        streams=streams(nest, is_aligned),
        vector_bytes=target.vector_bytes,
        has_masks=target.has_masks,
    )
    return _Recipe(_kernel(structure), nest, _geometry(nest, nest.inner.size))


@lru_cache(maxsize=1024)
def _kernel(structure: Structure) -> jit.Kernel:
    return jit.compiled(kernel_text(structure))


def streams(nest: Nest, is_aligned: bool) -> bool:
    """Whether results bypass the cache: only when not all arrays fit into it, in rows long enough to fill lines."""
    row_bytes = nest.inner.size * nest.element_bytes
    whole_lines = len(nest.loops) == 1 or (row_bytes % CACHE_LINE == 0 and is_aligned)
    return nest.touched_bytes > cache_bytes() and (whole_lines or row_bytes >= 16 * CACHE_LINE)


@lru_cache(maxsize=1)
def cache_bytes() -> int:
    """The size of the largest cache of this machine; a common one where the machine does not say."""
    sizes = [file.read_text().strip() for file in _CACHES.glob("index*/size") if file.is_file()]
    units = {"K": 1 << 10, "M": 1 << 20}
    found = [int(size[:-1]) * units[size[-1]] for size in sizes if size[:-1].isdigit() and size[-1] in units]
    return max(found, default=_COMMON_CACHE)


def _pieces(recipe: _Recipe, starts: tuple[int, int, int], count: int) -> list[Callable[[], None]]:
    """Cut the work: by rows where there are enough of them, else each row by whole cache lines of the result."""
    nest, inner = recipe.nest, recipe.nest.inner
    if nest.rows >= 4 * count:
        ends = [nest.rows * part // count for part in range(count + 1)]
        return [partial(recipe.kernel, *starts, recipe.geometry, first, last) for first, last in pairwise(ends)]
    pieces: list[Callable[[], None]] = []
    for first, last in _parts(starts[0], inner.out, inner.size, count):
        moved = [start + first * step for start, step in zip(starts, (inner.out, inner.a, inner.b), strict=True)]
        pieces.append(partial(recipe.kernel, *moved, _geometry(nest, last - first), 0, nest.rows))
    return pieces


def _parts(start: int, step: int, size: int, threads: int) -> list[tuple[int, int]]:
    """Cut a row into ranges of elements that begin at cache lines of the result."""
    ends = [0]
    for part in range(1, threads):
        end = size * part // threads
        beyond = (start + end * step) % CACHE_LINE
        ends.append(max(ends[-1], end - beyond // step if step else end))
    ends.append(size)
    return [(first, last) for first, last in pairwise(ends) if last > first]


def _geometry(nest: Nest, row: int) -> ctypes.Array[ctypes.c_int64]:
    """The integers that a kernel is told the sizes and strides by, for rows of this length."""
    numbers = [row, nest.inner.out, nest.inner.a, nest.inner.b]
    for loop in reversed(nest.loops[:-1]):
        numbers += [loop.size, loop.out, loop.a, loop.b]
    return (ctypes.c_int64 * len(numbers))(*numbers)
