"""Reductions of an expression's results: computed a block at a time in cache, and taken in before the next one.

The elements of a block are those of the expression in its element type; whole results are never held. Blocks are rows
of outputs: what is reduced lies in rows, what is kept in columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import product
from math import prod
from threading import Lock
from typing import Literal, TypeAlias

import numpy as np

from eltwise.core.dtypes import ElementType
from eltwise.kernels import dispatch, numpy_kernel
from eltwise.kernels.exact_sum import ExactSums, FloatSums, IntegerSums, joined
from eltwise.kernels.extremes import ExtremeBlocks, Extremes
from eltwise.kernels.native import Records, is_possible
from eltwise.kernels.numpy_kernel import Run
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


def reduced(reduction: Reduction, elements: Elements, operands: Sequence[np.ndarray], axes: Sequence[int]) -> Partial:
    """Reduce the elements over axes of the plan's shape.

    Args:
        reduction: which one; a mean is a sum until it is finished.
        elements: what is reduced.
        operands: any strides and byte order.
        axes: those that are reduced, each once and not negative.

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
    work = _Work(
        reduction,
        elements,
        views,
        _function(elements.expression, elements.element_type, is_compiled=prod(shape) >= LEAST_COMPILED),
    )
    row_cuts, column_cuts = list(cuts(row_shape, most_rows)), list(cuts(columns, most_columns))
    threads = max(1, min(num_threads(), prod(shape) // LEAST_ELEMENTS_PER_THREAD))
    parts = 1 if threads == 1 else min(len(row_cuts), -(-threads * _PIECES_PER_THREAD // len(column_cuts)))
    found: list[tuple[Cut, list[Partial]]] = [(cut, []) for cut in column_cuts]
    pieces = [
        work.piece(row_cuts[len(row_cuts) * part // parts : len(row_cuts) * (part + 1) // parts], cut, partials)
        for cut, partials in found
        for part in range(parts)
    ]
    run_together(pieces, threads, keep=operands)
    merged = [(cut, _merged(partials)) for cut, partials in found]
    return merged[0][1] if len(merged) == 1 else _joined(merged, outputs)


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
    reduction: Reduction
    elements: Elements
    views: Sequence[np.ndarray]
    function: Callable[..., np.ndarray]

    def piece(self, row_cuts: Sequence[Cut], column_cut: Cut, partials: list[Partial]) -> Callable[[], None]:
        """The work on some rows of some columns; it appends its partial."""
        return lambda: partials.append(self.partial(row_cuts, column_cut))

    def partial(self, row_cuts: Sequence[Cut], column_cut: Cut) -> Partial:
        outputs = tuple(part.stop - part.start for part in column_cut)
        columns, function, views = prod(outputs), self.function, self.views
        most_rows = max(prod(part.stop - part.start for part in cut) for cut in row_cuts)
        taker = _taker(self.reduction, self.elements.result_type, most_rows, columns)
        own = self.elements.expression.result_type(self.elements.element_type).storage
        outs: dict[Sizes, np.ndarray] = {}
        for row_cut in row_cuts:
            cut = (*row_cut, *column_cut)
            arrays = [view[cut] for view in views]
            shape = arrays[0].shape
            out = outs.get(shape)
            if out is None:
                out = outs[shape] = taker.block[: prod(shape) // columns].view(own).reshape(shape)
            function(*arrays, out=out)
            taker.add(out.size // columns)
        return (taker.partial() if isinstance(taker, ExtremeBlocks) else taker.sums()).reshaped(outputs)


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


# ---- the expression on blocks


@dataclass
class _Blocks:
    """An expression on blocks, whose calls are found without running Python once they are known."""

    expression: Expression
    element_type: ElementType
    is_compiled: bool
    records: Records
    runs: dict[object, Run] = field(default_factory=dict)
    lock: Lock = field(default_factory=Lock)

    def __call__(self, *arrays: np.ndarray, out: np.ndarray) -> np.ndarray:
        key = (*[(array.shape, array.dtype) for array in arrays], out.shape)
        run = self.runs.get(key)
        if run is None:
            run = self.runs[key] = self._run(arrays, out.shape)
        run(*arrays, out)
        if not isinstance(run, numpy_kernel.Call) and is_possible():
            with self.lock:
                if not self.records.has(arrays):
                    run.add_to(self.records, arrays, out)  # type: ignore[attr-defined]
        return out

    def _run(self, arrays: Sequence[np.ndarray], shape: Sizes) -> Run:
        plan = Plan(shape, tuple(array.shape for array in arrays))
        if not self.is_compiled:
            return numpy_kernel.Call(self.expression, self.element_type, plan)
        from eltwise.kernels import compiled

        swapped = (False, *[not array.dtype.isnative for array in arrays])
        return compiled.Call(self.expression, self.element_type, plan, plan.operands, swapped)


@lru_cache(maxsize=256)
def _blocks(expression: Expression, element_type: ElementType, is_compiled: bool) -> Callable[..., np.ndarray]:
    records = Records(expression.operands)
    return records.builtin(_Blocks(expression, element_type, is_compiled, records), "elements")


def _function(expression: Expression, element_type: ElementType, *, is_compiled: bool) -> Callable[..., np.ndarray]:
    """The function that computes blocks into ``out``."""
    mode = dispatch.mode()
    wants_kernel = mode == "compiled" or (mode == "auto" and is_compiled)
    return _blocks(expression, element_type, wants_kernel and not dispatch.why_no_kernel(expression, element_type))
