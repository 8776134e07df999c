"""Calls of reductions that kernels compute from the operands to the results, on one thread or several."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Any

import numpy as np

from eltwise.core.dtypes import INT64
from eltwise.core.machine import cache_bytes
from eltwise.kernels import jit
from eltwise.kernels.carried import Carried, merging_text
from eltwise.kernels.compiled import Part, Recipe, Work, extent, pieces_of
from eltwise.kernels.exact_sum import EXACT_LEVELS, float_sums, integer_sums
from eltwise.kernels.extremes import Extremes
from eltwise.kernels.float_sum import exact_additions
from eltwise.kernels.order import broadcast_strides
from eltwise.kernels.pool import allocated
from eltwise.kernels.records import address
from eltwise.kernels.reduction import Elements, Partial, default_type
from eltwise.kernels.reduction_kernel import ReductionStructure, reduction_text
from eltwise.kernels.reduction_nest import make_reduction_nest
from eltwise.kernels.structure import Structure
from eltwise.kernels.threads import num_threads

LEAST_SUMMED, LEAST_SHARED_BYTES = 1 << 17, 1 << 20
"""From so many floats on a sum is shared by threads, and from so many bytes on everything else, which is as fast as
memory: two threads took as long as one for half as many floats, and for as many bytes."""

_MOST_STRIDES = 64
_FEW = 1 << 16
"""Sums of fewer floats lie midway between two results often enough that threads compute them twice as exactly."""

_MOST_LOST = 2.0**-52
"""The share of what was added to a second part that one addition may lose, twice over."""

_FLOATS, _WORDS = struct.Struct("2d"), struct.Struct("2q")


@dataclass(eq=False, repr=False)
class ReductionRecipe(Recipe):
    """What is the same for all reductions with the same types, shapes and strides.

    Attributes:
        carried: what the kernel carries.
        numbers: the kernel's arguments between the addresses and the loops.
        outputs: how many results there are.
        word_count: how many words the kernel writes for each output, rather than its result; 0 for results.
        is_split: whether each part has all outputs, and writes words, rather than all elements of some outputs.
    """

    carried: Carried
    numbers: tuple[int, ...]
    outputs: int
    word_count: int
    is_split: bool

    def parts(self, most: int) -> list[Part]:
        """Cut the work into at most so many parts, which are computed in any order."""
        count = pieces_of(self.result_bytes, most)
        splits = self.nest.by_elements(count) if self.is_split else self.nest.by_groups(count)
        part_bytes = self.word_count * 8 * self.outputs if self.is_split else 0
        return [
            Part((number * part_bytes, *nest.starts, 0), (*self.numbers, *nest.geometry), first, last)
            for number, (nest, first, last) in enumerate(splits)
        ]

    def overlaps(self, _places: Sequence[int]) -> bool:
        """Whether a result shares memory with an operand: it is always new."""
        return False


class ReductionCall:
    """A reduction of arrays of known types and shapes; what depends on their strides is built at the first call.

    Args:
        elements: what is reduced, and how; there are some.
        swapped: for each operand whether its bytes are in the other order.
    """

    def __init__(self, elements: Elements, swapped: tuple[bool, ...]) -> None:
        self._elements, self._swapped = elements, swapped
        self._type = default_type(elements.reduction, elements.result_type)
        self._shape, self._count = elements.outputs, prod(elements.reduced_sizes)
        self._carried = Carried(
            elements.reduction,
            elements.result_type,
            elements.is_squared,
            self._type.storage.itemsize,
            is_positive=elements.is_positive,
        )
        # A kernel of any size computes all sizes of as many bits.
        if self._carried.is_float_sum and 1 << self._count.bit_length() <= exact_additions(elements.result_type):
            self._carried = self._carried._replace(levels=0)
        self._work: dict[Hashable, Work | _Merged] = {}

    def __call__(self, operands: Sequence[np.ndarray]) -> np.ndarray | None:
        """The results; None where one is uncertain."""
        return self._results(operands, num_threads())

    def _results(self, operands: Sequence[np.ndarray], threads: int) -> np.ndarray | None:
        key = (threads, *[operand.strides for operand in operands])
        work = self._work.get(key)
        if work is None:
            if len(self._work) >= _MOST_STRIDES:
                self._work.clear()
            work = self._work[key] = self._new_work(operands, threads)
        out = allocated(self._shape, self._type)
        return out if work.run([address(out), *map(address, operands)]) else None

    def partial(self, operands: Sequence[np.ndarray], threads: int) -> Partial | None:
        """What merges with the partials of other elements; None where the words that are carried do not hold it."""
        reduction = self._elements.reduction
        if reduction in ("min", "max"):
            result = self._results(operands, threads)
            return None if result is None else Extremes(reduction, self._type, self._count, result)
        parts = _words(Work(self.recipe(operands, threads, is_exact=True), threads), [*map(address, operands)])
        if not self._carried.is_float_sum:
            return integer_sums(parts, self._count, self._shape)
        return float_sums(parts, self._elements.result_type, self._count, self._shape)

    def recorded_recipe(self, operands: Sequence[np.ndarray]) -> ReductionRecipe | None:
        """How the native entry computes calls like this one; None where it cannot."""
        recipe = self.recipe(operands, num_threads())
        return None if recipe.word_count else recipe

    def _new_work(self, operands: Sequence[np.ndarray], threads: int) -> Work | _Merged:
        work = Work(self.recipe(operands, threads), threads)
        return _Merged(work) if work.recipe.word_count else work

    def of_any_size(self, operands: Sequence[np.ndarray]) -> Callable[[Sequence[np.ndarray]], np.ndarray | None]:
        """The reduction of one contiguous axis as a function of operands of any size that has as many bits.

        The lanes of the kernel depend on no more, and the size is one of its arguments. Where the result is uncertain,
        the function gives None.
        """
        recipe, result_type, is_mean = self.recipe(operands, threads=1), self._type, self._elements.reduction == "mean"
        kernel, steps = recipe.kernel, recipe.nest.reduced[0].steps

        def reduced(operands: Sequence[np.ndarray]) -> np.ndarray | None:
            size, status = operands[0].size, ctypes.c_int64()
            out, divisor = allocated((), result_type), divisor_words(size, is_mean=is_mean)
            numbers = (
                *(address(out), *map(address, operands), ctypes.addressof(status)),
                *(*divisor, 8, size, *steps),
            )
            kernel((ctypes.c_int64 * len(numbers))(*numbers), 0, 1)
            return None if status.value else out

        return reduced

    def recipe(self, operands: Sequence[np.ndarray], threads: int, *, is_exact: bool = False) -> ReductionRecipe:
        """How operands with these strides are reduced on so many threads, into results or into words that merge."""
        elements, plan, target, carried = self._elements, self._elements.plan, jit.target(), self._carried
        width, lanes = elements.element_type.storage.itemsize, lanes_of(carried, target.vector_bytes)
        strides = [*map(broadcast_strides, plan.operands, plan.axes, (operand.strides for operand in operands))]
        size = plan.bytes_of(elements.element_type)
        is_shared = prod(plan.shape) >= LEAST_SUMMED if carried.is_float_sum else size >= LEAST_SHARED_BYTES
        is_shared, is_cached = is_shared and threads > 1, size * len(strides) <= cache_bytes()
        make_nest = partial(make_reduction_nest, plan.shape, strides, elements.axes, widths=width, lanes=lanes)
        nest = make_nest(carried.result_bytes, groups=4 * threads if is_shared and is_cached else 1)
        is_split = is_shared and nest.has_few_groups(threads)
        has_words, result_bytes = is_split or is_exact, carried.result_bytes
        if has_words:
            nest, result_bytes = make_nest(carried.word_bytes), carried.word_bytes
            if carried.is_float_sum and (is_exact or carried.levels):
                levels = EXACT_LEVELS if is_exact else 2 if self._count < _FEW else 1
                carried = carried._replace(levels=levels)
        structure = Structure(
            expression=elements.expression,
            element_type=elements.element_type,
            walks=("vector", *nest.walks),
            outer_loops=0,
            swapped=(False, *[each and width > 1 for each in self._swapped]),
            streams=False,
            has_heads=False,
            target=target,
        )
        written = ReductionStructure(
            elements=structure,
            carried=carried,
            is_row=nest.is_row,
            lanes=nest.lanes,
            vectors=nest.vectors,
            rows=nest.rows,
            output_loops=len(nest.outputs),
            reduced_loops=len(nest.reduced),
            is_part=has_words,
        )
        outputs = prod(self._shape)
        return ReductionRecipe(
            structure=structure,
            carried=carried,
            kernel=jit.compiled(reduction_text, written),
            nest=nest,
            numbers=(*divisor_words(self._count, is_mean=self._elements.reduction == "mean"), 8 * outputs),
            outputs=outputs,
            extents=((0, outputs * result_bytes), *map(extent, plan.operands, strides, (width,) * len(strides))),
            same=(False,) * len(operands),
            result_bytes=size,
            word_count=carried.words if has_words else 0,
            is_split=is_split,
            has_status=True,
        )


class _Merged:
    """A reduction whose outputs are computed by several threads, and merged."""

    def __init__(self, work: Work) -> None:
        self._work, self._recipe = work, work.recipe
        self._merge: Any = jit.compiled(merging_text, self._recipe.carried, self._recipe.structure.target.has_mode)

    def run(self, places: list[int]) -> bool:
        """Compute it; whether all results are certain."""
        (out, *operands), status = places, np.zeros(1, np.int64)
        parts = _words(self._work, operands)
        arguments = (out, address(parts), address(status), *self._recipe.numbers, parts.strides[0], len(parts))
        self._merge((ctypes.c_int64 * len(arguments))(*arguments), 0, self._recipe.outputs)
        return not status[0]


def _words(work: Work, operands: list[int]) -> np.ndarray:
    """What each part of the work carries of operands at these addresses: int64 by part, word and output."""
    recipe = work.recipe
    parts = allocated((len(work.parts) if recipe.is_split else 1, recipe.word_count, recipe.outputs), INT64)
    work.run([address(parts), *operands])
    return parts


def divisor_words(count: int, *, is_mean: bool) -> tuple[int, ...]:
    """The bits of the numbers of ``double_arithmetic.Divisor``, for so many elements, fewer than 2^53."""
    return _WORDS.unpack(_FLOATS.pack(count if is_mean else 1, (count + 1000) * _MOST_LOST))


def lanes_of(carried: Carried, vector_bytes: int) -> int:
    """How many elements a vector holds: so many that nothing waits for the addition before."""
    if carried.reduction in ("min", "max"):
        return 4 * vector_bytes // max(carried.element_type.storage.itemsize, 2)
    if carried.is_float_sum:
        return 2 * vector_bytes // 8
    return vector_bytes if carried.element_type.bits <= 16 else vector_bytes // 2
