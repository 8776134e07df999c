"""Calls of reductions that kernels compute from the operands to the results, on one thread or several."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from math import prod
from typing import Any, NamedTuple

import numpy as np

from eltwise.core.dtypes import INT64, ElementType
from eltwise.kernels import jit
from eltwise.kernels.carried import Carried, merging_text
from eltwise.kernels.compiled import LEAST_BYTES_PER_PIECE, PIECES_PER_THREAD, Part, Work, extent
from eltwise.kernels.exact_sum import EXACT_LEVELS, float_sums, integer_sums
from eltwise.kernels.extremes import Extremes
from eltwise.kernels.float_sum import exact_additions
from eltwise.kernels.order import broadcast_strides
from eltwise.kernels.plan import Plan, aligned_plan
from eltwise.kernels.pool import allocated
from eltwise.kernels.records import address
from eltwise.kernels.reduction import EXTREMES, Elements, Partial, Reduction
from eltwise.kernels.reduction_kernel import ReductionStructure, reduction_text
from eltwise.kernels.reduction_nest import ReductionNest, make_reduction_nest
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


class ReductionRecipe(NamedTuple):
    """What is the same for all calls with the same types, shapes and strides; see ``compiled.Recipe``.

    Attributes:
        structure: the operands, and what their kernel is made for.
        carried: what the kernel carries.
        kernel: the compiled kernel.
        nest: the loops.
        numbers: the kernel's arguments between the addresses and the loops.
        outputs: how many results there are.
        extents: for each array, the result first, its first byte and the one after its last, from its address.
        same: for each operand whether it lies as the result does: never.
        result_bytes: the size of an operand of the elements' shape.
        word_count: how many words the kernel writes for each output, rather than its result; 0 for results.
        is_split: whether each part has all outputs, and writes words, rather than all elements of some outputs.
        has_status: that the kernel says whether it could compute the result.
    """

    structure: Structure
    carried: Carried
    kernel: jit.Kernel
    nest: ReductionNest
    numbers: tuple[int, ...]
    outputs: int
    extents: tuple[tuple[int, int], ...]
    same: tuple[bool, ...]
    result_bytes: int
    word_count: int
    is_split: bool
    has_status: bool = True

    def parts(self, most: int) -> list[Part]:
        """Cut the work into at most so many parts, which are computed in any order."""
        count, nest = count_of(self.result_bytes, most), self.nest
        splits = nest.by_elements(count) if self.is_split else nest.by_groups(count)
        part_bytes = self.word_count * 8 * self.outputs if self.is_split else 0
        parts = []
        for number, split in enumerate(splits):
            loops = [*([nest.columns] if nest.columns else []), *split.reduced, *nest.outer]
            geometry = [word for loop in loops for word in (loop.size, *loop.steps)]
            starts = (number * part_bytes, *split.starts, 0)
            parts.append(Part(starts, (*self.numbers, *geometry), split.first, split.last))
        return parts

    def overlaps(self, _places: Sequence[int]) -> bool:
        """Whether a result shares memory with an operand: it is always new."""
        return False


class ReductionCall:
    """A reduction of arrays of known types and shapes; what depends on their strides is built at the first call.

    Args:
        reduction: which one.
        elements: what is reduced; there are some.
        axes: those that are reduced.
        result_type: of the results: the one that is taken where none is asked for.
        swapped: for each operand whether its bytes are in the other order.
    """

    def __init__(
        self,
        reduction: Reduction,
        elements: Elements,
        axes: Sequence[int],
        result_type: ElementType,
        swapped: tuple[bool, ...],
    ) -> None:
        shape = elements.plan.shape
        self._elements, self._axes, self._type, self._swapped = elements, tuple(axes), result_type, swapped
        self._shape = tuple(size for axis, size in enumerate(shape) if axis not in axes)
        self._count = prod(shape[axis] for axis in axes)
        self._reduction = reduction
        result_bytes = result_type.storage.itemsize
        self._carried = Carried(
            EXTREMES.get(reduction, reduction),
            elements.result_type,
            elements.is_squared,
            result_bytes,
            is_positive=elements.is_positive,
        )
        # A kernel of any size computes all sizes of as many bits.
        if self._carried.is_float_sum and 1 << self._count.bit_length() <= exact_additions(elements.result_type):
            self._carried = self._carried._replace(levels=0)
        self._work: dict[Hashable, _Whole | _Parts] = {}

    def __call__(self, *operands: np.ndarray) -> np.ndarray | None:
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
        return out if work.run(out, [*map(address, operands)]) else None

    def partial(self, operands: Sequence[np.ndarray], threads: int) -> Partial | None:
        """What merges with the partials of other elements; None where the words that are carried do not hold it."""
        if self._reduction in EXTREMES:
            result = self._results(operands, threads)
            return None if result is None else Extremes(EXTREMES[self._reduction], self._type, self._count, result)
        recipe = self.recipe(operands, threads, is_exact=True)
        work = Work(recipe, threads)
        parts = allocated((len(work.parts) if recipe.is_split else 1, recipe.word_count, recipe.outputs), INT64)
        work.run([address(parts), *map(address, operands)])
        if not self._carried.is_float_sum:
            return integer_sums(parts, self._count, self._shape)
        return float_sums(parts, self._elements.result_type, self._count, self._shape)

    def recorded_recipe(self, operands: Sequence[np.ndarray], _out: np.ndarray) -> ReductionRecipe | None:
        """How the native entry computes calls like this one; None where it cannot."""
        recipe = self.recipe(operands, num_threads())
        return None if recipe.word_count else recipe

    def _new_work(self, operands: Sequence[np.ndarray], threads: int) -> _Whole | _Parts:
        recipe = self.recipe(operands, threads)
        return (_Parts if recipe.word_count else _Whole)(Work(recipe, threads))

    def recipe(self, operands: Sequence[np.ndarray], threads: int, *, is_exact: bool = False) -> ReductionRecipe:
        """How operands with these strides are reduced on so many threads, into results or into words that merge."""
        elements, plan, target, carried = self._elements, self._elements.plan, jit.target(), self._carried
        width, lanes = elements.element_type.storage.itemsize, lanes_of(carried, target.vector_bytes)
        strides = [*map(broadcast_strides, plan.operands, plan.axes, (operand.strides for operand in operands))]
        make_nest = partial(make_reduction_nest, plan.shape, strides, self._axes, widths=width, lanes=lanes)
        nest, size = make_nest(carried.result_bytes), plan.bytes_of(elements.element_type)
        is_shared = prod(plan.shape) >= LEAST_SUMMED if carried.is_float_sum else size >= LEAST_SHARED_BYTES
        most = threads * PIECES_PER_THREAD if is_shared else 1
        is_split = threads > 1 and nest.has_few_groups(count_of(size, most))
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
            kept_loops=len(nest.outer),
            reduced_loops=len(nest.reduced),
            is_part=has_words,
        )
        outputs = prod(self._shape)
        return ReductionRecipe(
            structure=structure,
            carried=carried,
            kernel=jit.compiled(reduction_text, written),
            nest=nest,
            numbers=(*divisor_words(self._count, is_mean=self._reduction == "mean"), 8 * outputs),
            outputs=outputs,
            extents=((0, outputs * result_bytes), *map(extent, plan.operands, strides, (width,) * len(strides))),
            same=(False,) * len(operands),
            result_bytes=size,
            word_count=carried.words if has_words else 0,
            is_split=is_split,
        )


class ReductionBySize:
    """Reductions of all elements of contiguous arrays of one shape, whose number is an argument of their kernel.

    Args:
        reduction: which one.
        elements_of: what is reduced, by where the operands lie.
        result_type: of the results.
        swapped: for each operand whether its bytes are in the other order.
    """

    def __init__(
        self,
        reduction: Reduction,
        elements_of: Callable[[Plan], Elements],
        result_type: ElementType,
        swapped: tuple[bool, ...],
    ) -> None:
        self._reduction, self._elements_of, self._type, self._swapped = reduction, elements_of, result_type, swapped
        self._recipes: dict[int, ReductionRecipe] = {}

    def __call__(self, operands: Sequence[np.ndarray]) -> np.ndarray | None:
        """The result; None where it is uncertain. There is at least one element."""
        size = operands[0].size
        recipe = self._recipes.get(size.bit_length()) or self._new_recipe(operands)
        out, status = allocated((), self._type), ctypes.c_int64()
        divisor = divisor_words(size, is_mean=self._reduction == "mean")
        numbers = (
            *(address(out), *map(address, operands), ctypes.addressof(status)),
            *(*divisor, 8, size, *recipe.nest.reduced[0].steps),
        )
        recipe.kernel((ctypes.c_int64 * len(numbers))(*numbers), 0, 1)
        return None if status.value else out

    def _new_recipe(self, operands: Sequence[np.ndarray]) -> ReductionRecipe:
        """The recipe for all sizes of so many bits: the lanes of the kernel depend on no more."""
        size, flat = operands[0].size, [operand.reshape(-1) for operand in operands]
        elements = self._elements_of(aligned_plan((size,), ((size,),) * len(flat)))
        recipe = ReductionCall(self._reduction, elements, (0,), self._type, self._swapped).recipe(flat, threads=1)
        self._recipes[size.bit_length()] = recipe
        return recipe


class _Whole:
    """A reduction whose kernel writes the results."""

    def __init__(self, work: Work) -> None:
        self._work = work

    def run(self, out: np.ndarray, operands: list[int]) -> bool:
        """Compute it; whether all results are certain."""
        return self._work.run([address(out), *operands])


class _Parts:
    """A reduction whose outputs are computed by several threads, and merged."""

    def __init__(self, work: Work) -> None:
        self._work, self._recipe = work, work.recipe
        self._merge: Any = jit.compiled(merging_text, self._recipe.carried, self._recipe.structure.target.has_mode)

    def run(self, out: np.ndarray, operands: list[int]) -> bool:
        """Compute it; whether all results are certain."""
        count, outputs, status = len(self._work.parts), self._recipe.outputs, np.zeros(1, np.int64)
        parts = allocated((count, self._recipe.word_count, outputs), INT64)
        self._work.run([address(parts), *operands])
        arguments = (address(out), address(parts), address(status), *self._recipe.numbers, parts.strides[0], count)
        self._merge((ctypes.c_int64 * len(arguments))(*arguments), 0, outputs)
        return not status[0]


def divisor_words(count: int, *, is_mean: bool) -> tuple[int, ...]:
    """The bits of the numbers of ``double_arithmetic.Divisor``, for so many elements, fewer than 2^53."""
    return _WORDS.unpack(_FLOATS.pack(count if is_mean else 1, (count + 1000) * _MOST_LOST))


def count_of(size: int, most: int) -> int:
    """Into about how many parts the work on operands of so many bytes is cut, at most so many."""
    return max(1, min(most, size // LEAST_BYTES_PER_PIECE))


def lanes_of(carried: Carried, vector_bytes: int) -> int:
    """How many elements a vector holds: so many that nothing waits for the addition before."""
    if carried.reduction in ("minimum", "maximum"):
        return 4 * vector_bytes // max(carried.element_type.storage.itemsize, 2)
    if carried.is_float_sum:
        return 2 * vector_bytes // 8
    return vector_bytes if carried.element_type.bits <= 16 else vector_bytes // 2
