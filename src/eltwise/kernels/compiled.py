"""Calls that kernels compute: what a call needs, its recipe, and how the work is cut into pieces for threads."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any, NamedTuple

import numpy as np

from eltwise.core.blocks import ranges
from eltwise.core.machine import cache_bytes
from eltwise.kernels import jit, numpy_kernel
from eltwise.kernels.emit import kernel_text
from eltwise.kernels.nest import Nest, make_nest
from eltwise.kernels.order import broadcast_strides, new_result, result_strides
from eltwise.kernels.plan import Divisors, TypedCall
from eltwise.kernels.records import address, function_address
from eltwise.kernels.structure import CACHE_LINE, Structure, signed_exponents
from eltwise.kernels.threads import num_threads, shared_run

LEAST_BYTES_PER_PIECE = 1 << 16
"""A smaller result is computed by one thread; to share it would cost more than it saves."""

PIECES_PER_THREAD = 8
"""Into how many pieces the work of a thread is cut, so that one that starts late does less."""

_MOST_STRIDES = 64
"""For so many sets of strides a call keeps its recipes."""


class Part(NamedTuple):
    """A part of a call.

    Attributes:
        starts: for each array, the result first, the bytes from its first element to where the loops start; then 0
            where the kernel has a status.
        geometry: the kernel's arguments after the addresses.
        first: the first run.
        last: the one after the last.
    """

    starts: tuple[int, ...]
    geometry: tuple[int, ...]
    first: int
    last: int


@dataclass(eq=False, repr=False)  # What these would be takes long to make at every start.
class Recipe:
    """What is the same for all calls with the same types, shapes and strides.

    Attributes:
        structure: what the kernel is made for.
        kernel: the compiled kernel.
        nest: the loops, a ``Nest`` or ``ReductionNest``.
        extents: for each array, the result first, its first byte and the one after its last, from its address.
        same: for each operand whether it lies as the result does, so that it may be the result's own memory.
        result_bytes: the size of an operand of the result's shape.
        has_status: whether the kernel says that it could not compute the result: the address of an i64, which becomes
            1, then follows those of the arrays.
    """

    structure: Structure
    kernel: jit.Kernel
    nest: Any
    extents: tuple[tuple[int, int], ...]
    same: tuple[bool, ...]
    result_bytes: int
    has_status: bool

    def parts(self, most: int) -> list[Part]:
        """Cut the work into at most so many parts, which are computed in any order."""
        count, nest = pieces_of(self.result_bytes, most), self.nest
        status = (0,) * self.has_status
        if count == 1 or nest.runs >= 4 * count or nest.inner.steps[0] == 0:
            starts = (*nest.starts, *status)
            return [Part(starts, nest.geometry, first, last) for first, last in ranges(nest.runs, count)]
        inner, rest = nest.inner, nest.geometry[1:]
        parts: list[Part] = []
        # Each part but the first begins a multiple of cache lines after the run's own begin.
        for first, last in ranges(inner.size, count, CACHE_LINE):
            moved = tuple(start + first * step for start, step in zip(nest.starts, inner.steps, strict=True))
            parts.append(Part((*moved, *status), (last - first, *rest), 0, nest.runs))
        return parts

    def overlaps(self, places: Sequence[int]) -> bool:
        """Whether a result at the first address shares memory with an operand otherwise than element by element."""
        (out, *others), (ends, *extents) = places, self.extents
        low, high = out + ends[0], out + ends[1]
        for operand, (begin, end), same in zip(others, extents, self.same, strict=True):
            if operand + begin < high and low < operand + end and not (same and operand == out):
                return True
        return False


class Work:
    """A recipe divided for a number of threads: memory that holds the kernel's arguments of each part.

    Attributes:
        recipe: what is computed, a ``Recipe``.
        parts: its parts.
    """

    def __init__(self, recipe: Any, threads: int) -> None:
        self.recipe, self._threads = recipe, threads
        self.parts = parts = recipe.parts(threads * PIECES_PER_THREAD if threads > 1 else 1)
        self._status = np.zeros(1, np.int64)
        self._words = np.array([[*part.starts, *part.geometry] for part in parts], np.int64)
        self._addresses = self._words[:, : len(recipe.extents) + recipe.has_status]
        self._starts = self._addresses.copy()
        kernel, first, step = function_address(recipe.kernel), address(self._words), self._words.strides[0]
        pieces = [(kernel, first + number * step, part.first, part.last) for number, part in enumerate(parts)]
        self._pieces = np.array(pieces, np.int64)
        self._share = shared_run(address(self._pieces), len(parts))
        self._places: list[int] = []
        self._lock = Lock()

    def run(self, places: list[int]) -> bool:
        """Compute arrays at these addresses, the result's first.

        Returns:
            Whether that was possible; see ``Call.run``. Where the recipe has a status, what it wrote is then no result.
        """
        if not self._lock.acquire(blocking=False):  # Another thread computes with this memory.
            return Work(self.recipe, self._threads).run(places)
        try:
            if places != self._places:  # Callers often come back with the same arrays.
                if self.recipe.overlaps(places):
                    return False
                addresses = [*places, address(self._status)] if self.recipe.has_status else places
                np.add(self._starts, addresses, out=self._addresses)
                self._places = places
            self._share()
            if self._status[0]:
                self._status[0] = 0
                return False
            return True
        finally:
            self._lock.release()


class Call:
    """A call on arrays of known types and shapes; what depends on their strides is built at the first call with them.

    Attributes:
        typed: what is computed.
        swapped: for each array, the result first, whether its bytes are in the other order.
        divisors: the operands that must not hold a 0, for integers.
    """

    def __init__(self, typed: TypedCall, swapped: tuple[bool, ...], divisors: Divisors | None = None) -> None:
        self.typed, self.swapped, self.divisors = typed, swapped, divisors
        self._exponents = signed_exponents(typed.expression, typed.element_type)
        # To build a recipe takes longer than most calls, and a program has arrays of few strides of a shape.
        self._work: dict[Hashable, Work] = {}

    def __call__(self, *arrays: np.ndarray) -> np.ndarray:
        """Compute the operands, which come first, into the array that follows them or into a new one."""
        count = self.typed.expression.operands
        operands = arrays[:count]
        if len(arrays) > count:
            out = arrays[count]
            if self.divisors is not None:  # Another thread might find a 0 when this one has written something.
                self.divisors.check(operands)
            if any(operands[number].min() < 0 for number in self._exponents):
                return numpy_kernel.planned(self.typed)(*operands, out)
        else:
            out = new_result(self.typed.plan, operands, self.typed.result_type)
        if not self.run(out, operands):
            if self.divisors is not None:
                self.divisors.check(operands)
            numpy_kernel.planned(self.typed)(*operands, out)
        return out

    def run(self, out: np.ndarray, operands: Sequence[np.ndarray]) -> bool:
        """Compute into ``out``.

        Returns:
            Whether that was possible: ``out`` may share memory with an operand otherwise than element by element,
            and then nothing was written; or a divisor holds a 0, or an exponent a negative number.
        """
        places = [address(out), *map(address, operands)]
        key = (num_threads(), places[0] % CACHE_LINE, out.strides, *[operand.strides for operand in operands])
        return (self._work.get(key) or self._new_work(key)).run(places)

    def recorded_recipe(self, operands: Sequence[np.ndarray], out: np.ndarray) -> Recipe | None:
        """How the native entry computes calls like this one into new arrays; None where it cannot."""
        result_type = self.typed.result_type
        strides = result_strides(self.typed.plan, [operand.strides for operand in operands], result_type)
        if out.dtype is not result_type.storage or out.strides != strides:
            return None  # What the caller gave is not what a new result is like.
        recipe = self.recipe(operands, out)
        return None if recipe.structure.streams else recipe

    def recipe(self, operands: Sequence[np.ndarray], out: np.ndarray) -> Recipe:
        """How arrays with these strides are computed."""
        key = (num_threads(), address(out) % CACHE_LINE, out.strides, *[operand.strides for operand in operands])
        recipe: Recipe = (self._work.get(key) or self._new_work(key)).recipe
        return recipe

    def _new_work(self, key: tuple[Any, ...]) -> Work:
        threads, beyond_line, *strides = key
        work = Work(self._new_recipe(tuple(strides), beyond_line), threads)
        if len(self._work) >= _MOST_STRIDES:
            self._work.clear()
        self._work[key] = work
        return work

    def _new_recipe(self, strides: tuple[tuple[int, ...], ...], beyond_line: int) -> Recipe:
        expression, element_type, plan = self.typed
        *values, result_type = expression.types(element_type)
        widths = tuple(each.storage.itemsize for each in (result_type, *values[: expression.operands]))
        steps = [strides[0], *map(broadcast_strides, plan.operands, plan.axes, strides[1:])]
        target = jit.target()
        nest = make_nest(plan.shape, steps, widths, target.vector_bytes)
        beyond = beyond_line + nest.starts[0]
        aligned, whole = beyond % CACHE_LINE == 0, all(step % widths[0] == 0 for step in (beyond, *strides[0]))
        is_streamed = whole and streams(nest, aligned)
        structure = Structure(
            expression=expression,
            element_type=element_type,
            walks=nest.walks,
            outer_loops=len(nest.outer),
            swapped=tuple(each and width > 1 for each, width in zip(self.swapped, widths, strict=True)),
            streams=is_streamed,
            has_heads=is_streamed and not nest.begins_at_lines(aligned),
            target=target,
            divisors=tuple(1 + number for number in self.divisors.operands) if self.divisors else (),
        )
        return Recipe(
            structure=structure,
            kernel=jit.compiled(kernel_text, structure),
            nest=nest,
            extents=tuple(map(extent, (plan.shape, *plan.operands), steps, widths)),
            same=tuple(
                widths[0] == width and sizes == plan.shape and stride == strides[0]
                for width, sizes, stride in zip(widths[1:], plan.operands, strides[1:], strict=True)
            ),
            result_bytes=plan.bytes_of(element_type),
            has_status=structure.has_status,
        )


def pieces_of(size: int, most: int) -> int:
    """Into about how many parts the work on operands of so many bytes is cut, at most so many."""
    return max(1, min(most, size // LEAST_BYTES_PER_PIECE))


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
