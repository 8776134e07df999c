"""Calls of reductions that kernels compute from the operands to the results, on one thread or several."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Hashable, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from eltwise.core.dtypes import ElementType
from eltwise.kernels import jit
from eltwise.kernels.carried import WORDS, Carried, merging_text
from eltwise.kernels.compiled import LEAST_BYTES_PER_PIECE, PIECES_PER_THREAD, Part, Work, extent
from eltwise.kernels.order import broadcast_strides
from eltwise.kernels.pool import allocated
from eltwise.kernels.records import address
from eltwise.kernels.reduction import Elements, Reduction
from eltwise.kernels.reduction_kernel import ReductionStructure, reduction_text
from eltwise.kernels.reduction_nest import ReductionNest, make_reduction_nest
from eltwise.kernels.structure import Structure
from eltwise.kernels.threads import num_threads

_EXTREMES = {"min": "minimum", "max": "maximum"}
_MOST_STRIDES = 64
_FEW = 1 << 16
"""Sums of fewer floats lie midway between two results often enough that threads compute them twice as exactly."""

EXACT_DIVISOR, _SLACK = 1 << 26, 2.0**-74
"""A divisor of more than 26 bits leaves a remainder of which so much of the quotient may be lost."""

_MOST_LOST = 2.0**-52
"""The share of what was added to a second part that one addition may lose, twice over."""


class ReductionRecipe(NamedTuple):
    """What is the same for all calls with the same types, shapes and strides; see ``compiled.Recipe``.

    Attributes:
        structure: the operands, and what their kernel is made for.
        kernel: the compiled kernel.
        nest: the loops.
        numbers: the kernel's arguments between the addresses and the loops.
        outputs: how many results there are.
        extents: for each array, the result first, its first byte and the one after its last, from its address.
        same: for each operand whether it lies as the result does: never.
        result_bytes: the size of an operand of the elements' shape.
        is_part: whether each part has all outputs and writes what they carry, rather than the results of its own.
        has_status: that the kernel says whether it could compute the result.
    """

    structure: Structure
    kernel: jit.Kernel
    nest: ReductionNest
    numbers: tuple[int, ...]
    outputs: int
    extents: tuple[tuple[int, int], ...]
    same: tuple[bool, ...]
    result_bytes: int
    is_part: bool
    has_status: bool = True

    def count(self, most: int) -> int:
        """Into about how many parts the work is cut, at most so many."""
        return max(1, min(most, self.result_bytes // LEAST_BYTES_PER_PIECE))

    def parts(self, most: int) -> list[Part]:
        """Cut the work into at most so many parts, which are computed in any order."""
        count, nest = self.count(most), self.nest
        splits, part_bytes = (
            (nest.by_elements(count), WORDS * 8 * self.outputs) if self.is_part else (nest.by_groups(count), 0)
        )
        found = []
        for number, split in enumerate(splits):
            loops = [*([nest.columns] if nest.columns else []), *split.reduced, *nest.kept]
            geometry = [word for loop in loops for word in (loop.size, *loop.steps)]
            starts = (number * part_bytes, *split.starts, 0)
            found.append(Part(starts, (*self.numbers, *geometry), split.first, split.last))
        return found

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
        name = _EXTREMES.get(reduction, reduction)
        self._carried = Carried(name, elements.result_type, elements.is_squared, result_bytes)
        self._carried_in_parts = self._carried._replace(is_double=self._carried.is_float_sum and self._count < _FEW)
        self._work: dict[Hashable, _Whole | _Parts] = {}

    def __call__(self, *operands: np.ndarray) -> np.ndarray | None:
        """The results; None where one is uncertain."""
        key = (num_threads(), *[operand.strides for operand in operands])
        work = self._work.get(key)
        if work is None:
            if len(self._work) >= _MOST_STRIDES:
                self._work.clear()
            work = self._work[key] = self._new_work(operands)
        out = allocated(self._shape, self._type)
        return out if work.run(out, [*map(address, operands)]) else None

    def recorded_recipe(self, operands: Sequence[np.ndarray], _out: np.ndarray) -> ReductionRecipe | None:
        """How the native entry computes calls like this one; None where it cannot."""
        recipe = self._recipe(operands, is_part=False)
        return None if self._is_in_parts(recipe) else recipe

    def _is_in_parts(self, recipe: ReductionRecipe) -> bool:
        threads = num_threads()
        return threads > 1 and recipe.nest.has_few_groups(recipe.count(threads * PIECES_PER_THREAD))

    def _new_work(self, operands: Sequence[np.ndarray]) -> _Whole | _Parts:
        threads, recipe = num_threads(), self._recipe(operands, is_part=False)
        if not self._is_in_parts(recipe):
            return _Whole(Work(recipe, threads))
        return _Parts(Work(self._recipe(operands, is_part=True), threads), self._carried_in_parts, recipe)

    def _recipe(self, operands: Sequence[np.ndarray], *, is_part: bool) -> ReductionRecipe:
        elements, plan, target = self._elements, self._elements.plan, jit.target()
        element_type, carried = elements.element_type, self._carried_in_parts if is_part else self._carried
        strides = [*map(broadcast_strides, plan.operands, plan.axes, (operand.strides for operand in operands))]
        result_bytes = carried.word_bytes if is_part else carried.result_bytes
        width = element_type.storage.itemsize
        nest = make_reduction_nest(
            plan.shape, strides, self._axes, result_bytes, width, lanes_of(carried, target.vector_bytes)
        )
        structure = Structure(
            expression=elements.expression,
            element_type=element_type,
            walks=("vector", *nest.walks),
            outer_loops=0,
            swapped=(False, *[each and width > 1 for each in self._swapped]),
            streams=False,
            has_heads=False,
            target=target,
        )
        own = ReductionStructure(
            structure, carried, nest.is_row, nest.lanes, nest.vectors, len(nest.kept), len(nest.reduced), is_part
        )
        outputs = prod(self._shape)
        extents = ((0, outputs * result_bytes), *map(extent, plan.operands, strides, (width,) * len(strides)))
        return ReductionRecipe(
            structure=structure,
            kernel=jit.compiled(reduction_text, own),
            nest=nest,
            numbers=(*self._divisor(), 8 * outputs),
            outputs=outputs,
            extents=extents,
            same=(False,) * len(operands),
            result_bytes=plan.bytes_of(element_type),
            is_part=is_part,
        )

    def _divisor(self) -> tuple[int, ...]:
        """The bits of the numbers of ``double_arithmetic.Divisor``."""
        count = self._count if self._reduction == "mean" else 1
        low = count % EXACT_DIVISOR if count > EXACT_DIVISOR else count
        slack = _SLACK if count > EXACT_DIVISOR else 0.0
        numbers = (float(count), float(count - low), float(low), slack, (self._count + 1000) * _MOST_LOST)
        return struct.unpack("5q", struct.pack("5d", *numbers))


class _Whole:
    """A reduction whose kernel writes the results."""

    def __init__(self, work: Work) -> None:
        self._work = work

    def run(self, out: np.ndarray, operands: list[int]) -> bool:
        """Compute it; whether all results are certain."""
        return self._work.run([address(out), *operands])


class _Parts:
    """A reduction whose outputs are computed by several threads, and merged."""

    def __init__(self, work: Work, carried: Carried, recipe: ReductionRecipe) -> None:
        self._work, self._recipe = work, recipe
        self._merge: Any = jit.compiled(merging_text, carried, recipe.structure.target.has_mode)

    def run(self, out: np.ndarray, operands: list[int]) -> bool:
        """Compute it; whether all results are certain."""
        count, outputs, status = len(self._work.parts), self._recipe.outputs, np.zeros(1, np.int64)
        words = np.empty((count, WORDS, outputs), np.int64)
        self._work.run([address(words), *operands])
        arguments = (address(out), address(words), address(status), *self._recipe.numbers, words.strides[0], count)
        self._merge((ctypes.c_int64 * len(arguments))(*arguments), 0, outputs)
        return not status[0]


def lanes_of(carried: Carried, vector_bytes: int) -> int:
    """How many elements a vector holds: so many that nothing waits for the addition before."""
    if carried.reduction in ("minimum", "maximum"):
        return 4 * vector_bytes // max(carried.element_type.storage.itemsize, 2)
    if carried.is_float_sum:
        return 2 * vector_bytes // 8
    return vector_bytes if carried.element_type.bits <= 16 else vector_bytes // 2
