"""Reductions of an expression's results, computed by NumPy a block at a time, and what they merge with.

The elements of a block are those of the expression in its element type; whole results are never held. Kernels give the
same where there are some; see ``reduction_call``.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from functools import reduce as fold
from itertools import product
from math import prod
from typing import Literal, TypeAlias

import numpy as np

from eltwise.core.blocks import flat_grid, ranges
from eltwise.core.dtypes import FLOAT64, INT64, UINT64, ElementType
from eltwise.core.shapes import Sizes
from eltwise.kernels import dispatch, numpy_kernel
from eltwise.kernels.exact_sum import MOST_OUTPUTS, ExactSums, FloatSums, IntegerSums
from eltwise.kernels.extremes import Extremes
from eltwise.kernels.plan import Plan, TypedCall, aligned_plan
from eltwise.kernels.threads import run_together
from eltwise.ops.expression import Expression, expression_of

IDENTITY = expression_of("maximum", 1)
"""Of elements that are held as they are."""

Reduction = Literal["sum", "mean", "min", "max"]
Partial: TypeAlias = ExactSums | Extremes
"""What some elements give; partials of the same outputs are merged with ``+``, in any order."""

BLOCK_BYTES = 1 << 18
"""So much is computed before it is added: it fits into the second cache."""

MOST_COLUMNS = 1 << 10
LEAST_ELEMENTS_PER_THREAD = 1 << 18
_PIECES_PER_THREAD = 4
_MOST_ADDED = 1 << 30
"""Kernels add up integers of 64 bits in words that hold so many."""


def default_type(reduction: Reduction, element_type: ElementType) -> ElementType:
    """The type of the result where none is asked for, for elements of a type."""
    if reduction in ("min", "max"):
        return element_type
    if reduction == "mean" or element_type.kind == "float":
        return FLOAT64
    return UINT64 if element_type.kind == "unsigned" else INT64


@dataclass(frozen=True)
class Elements:
    """What is reduced, and how.

    Attributes:
        reduction: which one; a mean is a sum until it is finished.
        expression: computes the elements.
        element_type: of the operands.
        result_type: what the bits of a result are taken for; the expression's own type, or one of its width.
        plan: where the operands lie.
        axes: those of the plan's shape that are reduced, each once and not negative.
        is_squared: whether the squares of results, which are unsigned integers, are added up and not the results.
    """

    reduction: Reduction
    expression: Expression
    element_type: ElementType
    result_type: ElementType
    plan: Plan
    axes: tuple[int, ...]
    is_squared: bool = False

    @property
    def outputs(self) -> Sizes:
        """The sizes of the axes that stay."""
        return tuple(size for axis, size in enumerate(self.plan.shape) if axis not in self.axes)

    @property
    def reduced_sizes(self) -> Sizes:
        """The sizes of the axes that are reduced."""
        return tuple(self.plan.shape[axis] for axis in self.axes)

    @property
    def is_positive(self) -> bool:
        """Whether no element is negative: squares and absolute values of floats are not."""
        *_steps, last = self.expression.steps
        return last.primitive == "absolute" or (last.primitive == "multiply" and len(set(last.operands)) == 1)

    def why_no_kernel(self) -> str:
        """Why no kernel reduces these elements; empty where one does."""
        if self.element_type.bits > 32 and self.element_type.is_integer and prod(self.plan.shape) > _MOST_ADDED:
            return f"more than {_MOST_ADDED} integers of 64 bits are added by NumPy's loops"
        if not self.expression.has_one_type:
            return "elements of several types are computed before they are reduced"
        return dispatch.why_no_kernel(self.expression, self.element_type)


def reduced_by_numpy(elements: Elements, operands: Sequence[np.ndarray], threads: int) -> Partial:
    """Reduce the elements on so many threads at most; see ``partials.reduced``."""
    shape, axes, outputs, inner = elements.plan.shape, elements.axes, elements.outputs, elements.reduced_sizes
    kept_axes = tuple(axis for axis in range(len(shape)) if axis not in axes)
    columns, rows = prod(outputs), prod(inner)
    if not columns or not rows:
        return _joined([_partial(elements, columns, ())], outputs)
    most = BLOCK_BYTES // max(elements.result_type.storage.itemsize, 4)
    least_columns = 1 if len(shape) - 1 in axes else MOST_COLUMNS
    most_columns = min(columns, MOST_OUTPUTS, max(least_columns, most // rows))
    column_boxes = [*flat_grid(outputs, most_columns)]
    row_boxes = [*flat_grid(inner, max(1, most // most_columns))]
    views = [
        np.broadcast_to(operand.reshape(sizes), shape).transpose(*kept_axes, *axes)
        for operand, sizes in zip(operands, elements.plan.operands, strict=True)
    ]
    threads = max(1, min(threads, columns * rows // LEAST_ELEMENTS_PER_THREAD))
    row_ranges = ranges(len(row_boxes), -(-(1 if threads == 1 else threads * _PIECES_PER_THREAD) // len(column_boxes)))
    results: list[list[Partial]] = [[] for _box in column_boxes]

    def compute(number: int, row_range: tuple[int, int]) -> None:
        box = column_boxes[number]
        row_boxes_of_part = row_boxes[slice(*row_range)]
        blocks = (_block(elements, [view[box + row_box] for view in views], len(box)) for row_box in row_boxes_of_part)
        results[number].append(_partial(elements, prod(each.stop - each.start for each in box), blocks))

    run_together([partial(compute, *each) for each in product(range(len(results)), row_ranges)], threads)
    return _joined([fold(operator.add, parts) for parts in results], outputs)


def _block(elements: Elements, operands: Sequence[np.ndarray], rank: int) -> np.ndarray:
    """Elements as rows of outputs, which lie on the first axes of the operands."""
    sizes, values = operands[0].shape, operands[0]
    if elements.expression is not IDENTITY:
        plan = aligned_plan(sizes, (sizes,) * len(operands))
        values = numpy_kernel.planned(TypedCall(elements.expression, elements.element_type, plan))(*operands)
    return values.view(elements.result_type.storage).reshape(prod(sizes[:rank]), -1).T


def _partial(elements: Elements, outputs: int, blocks: Iterable[np.ndarray]) -> Partial:
    """What blocks give, rows of so many outputs."""
    element_type, reduction = elements.result_type, elements.reduction
    if reduction in ("min", "max"):
        none = np.empty((0, outputs), element_type.storage)
        extremes = partial(Extremes.of, reduction, element_type)
        return fold(operator.add, map(extremes, blocks), extremes(none))
    is_float, count = element_type.kind == "float", 0
    sums = FloatSums(outputs) if is_float else IntegerSums(outputs, is_squared=elements.is_squared)
    for block in blocks:
        sums.add(block)
        count += len(block)
    return sums.partial(count)


def _joined(parts: Sequence[Partial], outputs: Sequence[int]) -> Partial:
    return type(parts[0]).joined(parts, outputs)  # type: ignore[arg-type]  # All are of one kind.
