"""Reductions of an expression's results: computed a block at a time in cache, and taken in before the next one.

The elements of a block are those of the expression in its element type; whole results are never held. Blocks are rows
of outputs: what is reduced lies in rows, what is kept in columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod
from typing import Any, Literal, TypeAlias

import numpy as np

from eltwise.core.dtypes import ElementType
from eltwise.kernels import dispatch, numpy_kernel
from eltwise.kernels.exact_sum import ElementsKernel, ExactSums, FloatSums, IntegerSums, joined
from eltwise.kernels.extremes import ExtremeBlocks, Extremes
from eltwise.kernels.plan import Plan, Sizes
from eltwise.kernels.sum_kernel import LEAST_EXPONENT
from eltwise.kernels.threads import num_threads, run_together
from eltwise.ops.expression import Expression

Reduction = Literal["sum", "mean", "min", "max"]
Partial: TypeAlias = ExactSums | Extremes
"""What some elements give; partials of the same outputs are merged with ``+``, in any order."""

Cut = tuple[slice, ...]

BLOCK_BYTES = 1 << 18
"""So much is computed before it is taken in: it fits into the second cache."""

MOST_COLUMNS = 1 << 10
LEAST_ELEMENTS_PER_THREAD = 1 << 18
_PIECES_PER_THREAD = 4
LEAST_COMPILED = 1 << 16
"""A reduction of fewer elements is computed by NumPy's loops."""


@dataclass(frozen=True)
class Elements:
    """What is reduced.

    Attributes:
        expression: computes the elements.
        element_type: of the operands.
        result_type: what the bits of a result are taken for; the expression's own type, or one of its width.
        plan: where the operands lie.
    """

    expression: Expression
    element_type: ElementType
    result_type: ElementType
    plan: Plan


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
    shape = elements.plan.shape
    kept = tuple(axis for axis in range(len(shape)) if axis not in axes)
    outputs = tuple(shape[axis] for axis in kept)
    if 0 in shape:
        return _empty(reduction, elements.result_type, outputs, prod(shape[axis] for axis in axes))
    views = [
        np.broadcast_to(operand.reshape(padded), shape)
        for operand, padded in zip(operands, elements.plan.operands, strict=True)
    ]
    largest = max(views, key=lambda view: sum(size for size, stride in zip(shape, view.strides, strict=True) if stride))
    strides = [abs(stride) for stride in largest.strides]
    rows_first = sorted(axes, key=lambda axis: -strides[axis])
    long = [axis for axis in range(len(shape)) if shape[axis] > 1]
    is_inner = not kept or min(long, key=lambda axis: (strides[axis], -axis), default=0) in axes
    views = [view.transpose(*rows_first, *kept) for view in views]
    row_shape, columns = tuple(shape[axis] for axis in rows_first), outputs
    if not kept and all(view.flags.c_contiguous for view in views):
        views, row_shape = [view.reshape(-1) for view in views], (prod(shape),)
    most = BLOCK_BYTES // max(elements.result_type.storage.itemsize, 4)
    most_rows, most_columns = _block_sizes(prod(row_shape), prod(columns), most, is_inner=is_inner)
    work = _Work(reduction, elements, views, _has_kernel(elements, prod(shape)))
    row_cuts, column_cuts = list(cuts(row_shape, most_rows)), list(cuts(columns, most_columns))
    threads = max(1, min(most_threads or num_threads(), prod(shape) // LEAST_ELEMENTS_PER_THREAD))
    count = 1 if threads == 1 else threads * _PIECES_PER_THREAD
    found: list[tuple[Cut, list[Partial]]] = [(cut, []) for cut in column_cuts]
    groups = [found[begin:end] for begin, end in _ranges(len(found), count)]
    row_ranges = _ranges(len(row_cuts), -(-count // len(groups)))
    pieces = [work.piece(row_cuts[begin:end], group) for group in groups for begin, end in row_ranges]
    run_together(pieces, threads)
    merged = [(cut, _merged(partials)) for cut, partials in found]
    return merged[0][1] if len(merged) == 1 else _joined(merged, outputs)


def _ranges(size: int, parts: int) -> list[tuple[int, int]]:
    """Cut so many things into at most so many ranges, none of them empty."""
    parts = min(size, parts)
    return [(size * part // parts, size * (part + 1) // parts) for part in range(parts)]


def _block_sizes(rows: int, columns: int, most: int, *, is_inner: bool) -> tuple[int, int]:
    """The rows and columns of a block of at most so many elements; with ``is_inner`` rows lie side by side."""
    if is_inner:
        most_rows = min(rows, most)
        return most_rows, max(1, min(columns, most // most_rows, 4 * MOST_COLUMNS))
    most_columns = min(columns, MOST_COLUMNS)
    return max(1, min(rows, most // most_columns)), most_columns


def cuts(shape: Sizes, elements: int) -> Iterator[Cut]:
    """Cut a shape without zeros into blocks of at most so many elements."""
    if prod(shape) <= elements:
        yield tuple(slice(0, size) for size in shape)
        return
    axis = next(axis for axis in range(len(shape)) if prod(shape[axis + 1 :]) <= elements)
    step = max(1, elements // prod(shape[axis + 1 :]))
    ranges = [[slice(index, index + 1) for index in range(size)] for size in shape[:axis]]
    inner = [slice(0, size) for size in shape[axis + 1 :]]
    last = [slice(begin, min(begin + step, shape[axis])) for begin in range(0, shape[axis], step)]
    for before in product(*ranges, last):
        yield (*before, *inner)


@dataclass(frozen=True)
class _Work:
    """The work on a call.

    Attributes:
        reduction: which one.
        elements: what is reduced.
        views: the operands, broadcast, with the axes that are reduced first.
        has_kernel: whether a kernel computes the elements.
    """

    reduction: Reduction
    elements: Elements
    views: Sequence[np.ndarray]
    has_kernel: bool

    def piece(self, row_cuts: Sequence[Cut], columns: Sequence[tuple[Cut, list[Partial]]]) -> Callable[[], None]:
        """The work on some rows of some columns; it appends its partials."""

        def run() -> None:
            prepared: dict[object, Any] = {}
            for column_cut, partials in columns:
                partials.append(self.partial(row_cuts, column_cut, prepared))

        return run

    def partial(self, row_cuts: Sequence[Cut], column_cut: Cut, prepared: dict[object, Any]) -> Partial:
        """The partial of some rows and columns; what was prepared for blocks of the same shapes is used again."""
        outputs = tuple(part.stop - part.start for part in column_cut)
        columns = prod(outputs)
        most_rows = max(prod(part.stop - part.start for part in cut) for cut in row_cuts)
        if outputs not in prepared:
            prepared[outputs] = _taker(self.reduction, self.elements.result_type, most_rows, columns)
        taker: FloatSums | IntegerSums | ExtremeBlocks = prepared[outputs]
        own = self.elements.expression.result_type(self.elements.element_type).storage
        by_shape: dict[Sizes, list[Cut]] = {}
        for row_cut in row_cuts:
            cut = (*row_cut, *column_cut)
            by_shape.setdefault(tuple(part.stop - part.start for part in cut), []).append(cut)
        for shape, same in by_shape.items():
            rows = prod(shape) // columns
            out = taker.block[:rows].view(own).reshape(shape)
            if not self.has_kernel:
                compute = self._by_numpy(same[0], out)
                for cut in same:
                    compute(cut)
                    taker.add(rows)
                continue
            key = ("kernel", outputs, shape)
            if key not in prepared:
                prepared[key] = self._kernel(same[0], out)
            kernel, first = prepared[key]
            addresses = self._addresses(same, first)
            if isinstance(taker, FloatSums) and taker.takes_kernels:
                taker.add_blocks(rows, kernel, addresses)
                continue
            for operands in addresses.tolist():
                kernel.words[1 : 1 + len(operands)] = operands
                kernel.kernel(kernel.words, kernel.first, kernel.last)
                taker.add(rows)
        return taker.partial().reshaped(outputs)

    def _by_numpy(self, cut: Cut, out: np.ndarray) -> Callable[[Cut], object]:
        """What computes blocks of the shape of a cut into ``out``."""
        plan = Plan(out.shape, tuple(view[cut].shape for view in self.views))
        call = numpy_kernel.planned(self.elements.expression, self.elements.element_type, plan)
        return lambda cut: call(*[view[cut] for view in self.views], out)

    def _kernel(self, cut: Cut, out: np.ndarray) -> tuple[ElementsKernel, list[int]]:
        """The kernel that computes blocks of the shape of a cut into ``out``, and its operands for one at the start."""
        from eltwise.kernels import compiled  # Small calls must not pay for it.

        operands = [view[cut] for view in self.views]
        plan = Plan(out.shape, tuple(operand.shape for operand in operands))
        swapped = (False, *[not operand.dtype.isnative for operand in operands])
        call = compiled.Call(self.elements.expression, self.elements.element_type, plan, plan.operands, swapped)
        recipe = call.recipe(operands, out)
        (part,) = recipe.parts(1)
        words = part.arguments([out.ctypes.data, *[view.ctypes.data for view in self.views]])
        return ElementsKernel(recipe.kernel, words, part.first, part.last), words[1 : 1 + len(operands)]

    def _addresses(self, same: Sequence[Cut], first: Sequence[int]) -> np.ndarray:
        """The addresses of the operands of blocks."""
        rank = len(same[0])
        starts = np.array([[index.start for index in cut] for cut in same], np.int64).reshape(len(same), rank)
        steps = np.array([view.strides for view in self.views], np.int64).reshape(len(self.views), rank)
        return np.ascontiguousarray(starts @ steps.T + np.array(first, np.int64))


def _taker(
    reduction: Reduction, element_type: ElementType, rows: int, columns: int
) -> FloatSums | IntegerSums | ExtremeBlocks:
    if reduction in ("min", "max"):
        return ExtremeBlocks("minimum" if reduction == "min" else "maximum", element_type, rows, columns)
    return (FloatSums if element_type.kind == "float" else IntegerSums)(element_type, rows, columns)


def _empty(reduction: Reduction, element_type: ElementType, outputs: Sizes, count: int) -> Partial:
    """The partial of no elements, or of no outputs."""
    if reduction in ("min", "max"):
        function: Literal["minimum", "maximum"] = "minimum" if reduction == "min" else "maximum"
        return Extremes(function, element_type, count, np.zeros(outputs, element_type.storage))
    exponent = LEAST_EXPONENT if element_type.kind == "float" else 0
    return ExactSums(exponent, count, 0, np.zeros((0, *outputs), np.int64), np.zeros(outputs, np.uint8))


def _merged(partials: Sequence[Partial]) -> Partial:
    merged = partials[0]
    for partial in partials[1:]:
        merged = merged + partial  # type: ignore[operator]  # All are of one kind.
    return merged


def _joined(parts: list[tuple[Cut, Partial]], outputs: Sizes) -> Partial:
    """One partial of those of all columns."""
    sums = [(cut, part) for cut, part in parts if isinstance(part, ExactSums)]
    if sums:
        return joined(sums, outputs)
    first = parts[0][1]
    assert isinstance(first, Extremes)
    values = np.empty(outputs, first.values.dtype)
    for cut, part in parts:
        assert isinstance(part, Extremes)
        values[cut] = part.values
    return Extremes(first.function, first.element_type, first.count, values)


def _has_kernel(elements: Elements, count: int) -> bool:
    """Whether a kernel computes the elements."""
    mode = dispatch.mode()
    if mode == "numpy" or (mode == "auto" and count < LEAST_COMPILED):
        return False
    return not dispatch.why_no_kernel(elements.expression, elements.element_type)
