"""Reductions of an expression's results: computed a block at a time in cache, and taken in before the next one.

The elements of a block are those of the expression in its element type; whole results are never held. A block is rows
of outputs: what is reduced lies in rows, what is kept in columns. In memory the elements of an output lie side by side,
or the outputs do, as the operands have it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from functools import reduce as fold
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

import numpy as np

from eltwise.core.blocks import flat_grid, ranges
from eltwise.core.dtypes import ElementType
from eltwise.core.shapes import Sizes
from eltwise.kernels import dispatch, numpy_kernel
from eltwise.kernels.exact_sum import MOST_LANES, ElementsKernel, ExactSums, FloatSums, IntegerSums, SquareSums
from eltwise.kernels.extremes import ExtremeBlocks, Extremes
from eltwise.kernels.plan import Plan, aligned_plan
from eltwise.kernels.pool import LEAST_BYTES, POOL
from eltwise.kernels.records import address
from eltwise.kernels.threads import num_threads, run_together
from eltwise.ops.expression import Expression

if TYPE_CHECKING:
    from eltwise.kernels.compiled import Call

Reduction = Literal["sum", "mean", "min", "max"]
Partial: TypeAlias = ExactSums | Extremes
"""What some elements give; partials of the same outputs are merged with ``+``, in any order."""

BLOCK_BYTES = 1 << 18
"""So much is computed before it is taken in: it fits into the second cache."""

LEAST_ROW = 32
"""Fewer elements of an output do not lie side by side: the work on a row would take longer than that on its vectors."""

MOST_COLUMNS = 1 << 10
MOST_OUTPUTS = 1 << 14
"""So many outputs have their digits in cache."""

LEAST_ELEMENTS_PER_THREAD = 1 << 18
_PIECES_PER_THREAD = 4
LEAST_COMPILED = 1 << 15
"""A reduction of fewer elements is computed by NumPy's loops."""


@dataclass(frozen=True)
class Elements:
    """What is reduced.

    Attributes:
        expression: computes the elements.
        element_type: of the operands.
        result_type: what the bits of a result are taken for; the expression's own type, or one of its width.
        plan: where the operands lie.
        is_squared: whether the squares of results, which are unsigned integers, are added up and not the results.
    """

    expression: Expression
    element_type: ElementType
    result_type: ElementType
    plan: Plan
    is_squared: bool = False


def reduced(
    reduction: Reduction,
    elements: Elements,
    operands: Sequence[np.ndarray],
    axes: Sequence[int],
    most_threads: int | None = None,
) -> Partial:
    """Reduce the elements over axes of the plan's shape.

    Args:
        reduction: which one; a mean is a sum until it is finished.
        elements: what is reduced.
        operands: any strides and byte order.
        axes: those that are reduced, each once and not negative.
        most_threads: how many threads share the work at most; by default as many as large calls.

    Returns:
        The partial of all outputs, in the shape of the axes that are kept.
    """
    shape, size = elements.plan.shape, prod(elements.plan.shape)
    kept = tuple(axis for axis in range(len(shape)) if axis not in axes)
    outputs = tuple(shape[axis] for axis in kept)
    count, columns = prod(shape[axis] for axis in axes), prod(outputs)
    taker = partial(_taker, reduction, elements)
    if size == 0:
        begins = range(0, max(columns, 1), MOST_OUTPUTS)
        return _joined([taker(min(MOST_OUTPUTS, columns - begin)).partial(count) for begin in begins], outputs)
    has_kernel = _has_kernel(elements, size)
    most = BLOCK_BYTES // max(elements.result_type.storage.itemsize, 4)
    if size <= most and not has_kernel:
        call, whole = numpy_kernel.planned(elements.expression, elements.element_type, elements.plan), taker(columns)
        values = call(*operands).view(elements.result_type.storage)
        whole.add(values.transpose(*axes, *kept).reshape(count, columns), slice(0, columns))
        return _joined([whole.partial(count)], outputs)
    views, is_inner = _views(elements.plan, operands, axes, kept)
    is_row = columns < MOST_LANES or (is_inner and count >= LEAST_ROW)
    most_rows, most_columns = _block_sizes(count, columns, most, is_row=is_row)
    row_cuts, column_cuts = cuts(views[0].shape[len(kept) :], most_rows), cuts(outputs, most_columns)
    threads = max(1, min(most_threads or num_threads(), size // LEAST_ELEMENTS_PER_THREAD))
    pieces = 1 if threads == 1 else threads * _PIECES_PER_THREAD
    column_ranges = ranges(len(column_cuts.starts), max(pieces, -(-columns // MOST_OUTPUTS)))
    row_ranges = ranges(len(row_cuts.starts), -(-pieces // len(column_ranges)))
    work = _Work(elements, views, taker, is_row, has_kernel)
    found: list[list[Partial]] = [[] for _range in column_ranges]

    def compute(number: int, row_range: tuple[int, int]) -> None:
        found[number].append(work.partial(row_cuts.some(*row_range), column_cuts.some(*column_ranges[number])))

    run_together([partial(compute, *each) for each in product(range(len(found)), row_ranges)], threads)
    return _joined([fold(operator.add, parts) for parts in found], outputs)


def _views(
    plan: Plan, operands: Sequence[np.ndarray], axes: Sequence[int], kept: Sequence[int]
) -> tuple[list[np.ndarray], bool]:
    """The operands, broadcast, with the axes that are kept first; and whether one that is reduced is the innermost."""
    shape = plan.shape
    views = [
        np.broadcast_to(operand.reshape(padded), shape) for operand, padded in zip(operands, plan.operands, strict=True)
    ]
    largest = max(views, key=lambda view: sum(size for size, stride in zip(shape, view.strides, strict=True) if stride))
    strides = [abs(stride) for stride in largest.strides]
    long = [axis for axis in range(len(shape)) if shape[axis] > 1]
    is_inner = min(long, key=lambda axis: (strides[axis], -axis), default=0) in axes
    order = (*kept, *sorted(axes, key=lambda axis: -strides[axis]))
    views = [view.transpose(order) for view in views]
    if all(view.flags.c_contiguous for view in views):
        views = [view.reshape(*view.shape[: len(kept)], -1) for view in views]
    return views, is_inner


def _block_sizes(rows: int, columns: int, most: int, *, is_row: bool) -> tuple[int, int]:
    """The rows and columns of a block of at most so many elements, as long as may be in memory."""
    if is_row:
        most_rows = min(rows, most)
        return most_rows, max(1, min(columns, most // most_rows, MOST_OUTPUTS))
    most_columns = min(columns, max(MOST_COLUMNS, min(most // rows, MOST_OUTPUTS)))
    return max(1, min(rows, most // most_columns)), most_columns


class Cuts(NamedTuple):
    """Blocks of a shape, in C order: for each where it starts and its sizes."""

    starts: np.ndarray
    sizes: np.ndarray

    def some(self, first: int, last: int) -> Cuts:
        """A range of the blocks."""
        return Cuts(self.starts[first:last], self.sizes[first:last])

    def by_sizes(self) -> Iterator[tuple[Sizes, np.ndarray]]:
        """The sizes that there are, and for each block whether it has them."""
        for sizes in dict.fromkeys(map(tuple, self.sizes.tolist())):
            yield sizes, (self.sizes == sizes).all(axis=1)


def cuts(shape: Sizes, elements: int) -> Cuts:
    """Divide a shape without zeros into blocks of at most so many elements, which lie side by side."""
    grid = flat_grid(shape, elements)
    starts = grid.starts()
    return Cuts(starts, np.minimum(np.array(grid.step, np.int64), np.array(shape, np.int64) - starts))


@dataclass(frozen=True)
class _Work:
    """The work on a call.

    Attributes:
        elements: what is reduced.
        views: the operands, broadcast, with the axes that are kept first.
        taker: makes what blocks of so many outputs are added to.
        is_row: whether the elements of an output lie side by side in a block, rather than the outputs.
        has_kernel: whether a kernel computes the elements.
    """

    elements: Elements
    views: Sequence[np.ndarray]
    taker: Callable[[int], _Taker]
    is_row: bool
    has_kernel: bool

    def partial(self, rows: Cuts, columns: Cuts) -> Partial:
        """The partial of some rows and columns."""
        outputs, counts = columns.sizes.prod(axis=1), rows.sizes.prod(axis=1)
        taker, begins = self.taker(int(outputs.sum())), np.cumsum(outputs) - outputs
        for (column_sizes, has_columns), (row_sizes, has_rows) in product(columns.by_sizes(), rows.by_sizes()):
            of_columns, of_rows = columns.starts[has_columns], rows.starts[has_rows]
            starts = np.hstack([np.repeat(of_columns, len(of_rows), axis=0), np.tile(of_rows, (len(of_columns), 1))])
            block = self._block(prod(row_sizes), prod(column_sizes))
            out = block.T.reshape(*column_sizes, *row_sizes)
            compute = self._kernel(out, starts) if self.has_kernel else self._by_numpy(out, starts)
            places = np.repeat(begins[has_columns], len(of_rows))
            if isinstance(compute, ElementsKernel) and isinstance(taker, FloatSums):
                taker.add_blocks(compute, block, places, is_row=self.is_row)
                continue
            for number, place in enumerate(places.tolist()):
                compute(number)
                taker.add(block, slice(place, place + block.shape[1]))
        return taker.partial(int(counts.sum()))

    def _block(self, rows: int, outputs: int) -> np.ndarray:
        """Rows of outputs; what lies side by side is followed by zeros up to a whole vector, and begins at a page."""
        beside, others = (rows, outputs) if self.is_row else (outputs, rows)
        padded = -(-beside // MOST_LANES) * MOST_LANES
        memory = POOL.empty((max(others * padded, LEAST_BYTES),), self.elements.result_type.storage)
        whole = memory[: others * padded].reshape(others, padded)
        whole[:, beside:] = 0
        return whole[:, :beside].T if self.is_row else whole[:, :beside]

    def _by_numpy(self, out: np.ndarray, starts: np.ndarray) -> Callable[[int], object]:
        """What computes the blocks of the shape of ``out`` that start there into it, by their numbers."""
        expression, element_type = self.elements.expression, self.elements.element_type
        call = numpy_kernel.planned(expression, element_type, aligned_plan(out.shape, (out.shape,) * len(self.views)))
        own = out.view(expression.result_type(element_type).storage)

        def compute(number: int) -> None:
            cut = tuple(slice(start, start + size) for start, size in zip(starts[number], out.shape, strict=True))
            call(*[view[cut] for view in self.views], own)

        return compute

    def _kernel(self, out: np.ndarray, starts: np.ndarray) -> ElementsKernel:
        """The same by a kernel."""
        operands = [view[tuple(slice(0, size) for size in out.shape)] for view in self.views]
        swapped = (False, *[not operand.dtype.isnative for operand in operands])
        recipe = _call(self.elements.expression, self.elements.element_type, out.shape, swapped).recipe(operands, out)
        (part,) = recipe.parts(1)
        words = part.arguments([address(out), *map(address, self.views)])
        steps = np.array([view.strides for view in self.views], np.int64).reshape(len(operands), out.ndim)
        addresses = starts @ steps.T + np.array(words[1 : 1 + len(operands)])
        return ElementsKernel(recipe.kernel, words, part.first, part.last, addresses)


@lru_cache(maxsize=256)  # Reductions have blocks of few shapes, and a block takes less time than its loop nest.
def _call(expression: Expression, element_type: ElementType, shape: Sizes, swapped: tuple[bool, ...]) -> Call:
    from eltwise.kernels import compiled  # Small calls must not pay for it.

    plan = aligned_plan(shape, (shape,) * expression.operands)
    return compiled.Call(expression, element_type, plan, swapped)


_Taker: TypeAlias = FloatSums | IntegerSums | ExtremeBlocks


def _taker(reduction: Reduction, elements: Elements, outputs: int) -> _Taker:
    element_type = elements.result_type
    if reduction in ("min", "max"):
        return ExtremeBlocks("minimum" if reduction == "min" else "maximum", element_type, outputs)
    if elements.is_squared:
        return SquareSums(element_type, outputs)
    return (FloatSums if element_type.kind == "float" else IntegerSums)(element_type, outputs)


def _joined(parts: Sequence[Partial], outputs: Sizes) -> Partial:
    return type(parts[0]).joined(parts, outputs)  # type: ignore[arg-type]  # All are of one kind.


def _has_kernel(elements: Elements, count: int) -> bool:
    """Whether a kernel computes the elements."""
    mode = dispatch.mode()
    if mode == "numpy" or (mode == "auto" and count < LEAST_COMPILED):
        return False
    return not dispatch.why_no_kernel(elements.expression, elements.element_type)


def why_not_at_once(elements: Elements) -> str:
    """Why no kernel computes a reduction from the operands to the results; empty where one does."""
    if elements.is_squared and elements.element_type.bits > 32:
        return "the squares of 64-bit integers are added by NumPy's loops"
    if elements.element_type.is_integer and elements.expression.divides:
        return "divisors are checked first"
    return dispatch.why_no_kernel(elements.expression, elements.element_type)
