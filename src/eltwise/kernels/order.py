"""The order of a result in memory: that of the operands, as NumPy's ``order="K"`` has it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from eltwise.core.dtypes import ElementType
from eltwise.core.shapes import Sizes
from eltwise.kernels.plan import Axes, Plan
from eltwise.kernels.pool import allocated

Strides = tuple[int, ...]


def broadcast_strides(sizes: Sizes, axes: Axes, strides: Strides) -> Strides:
    """An operand's strides along the result's axes: 0 where it is broadcast."""
    steps = dict(zip(axes, strides, strict=True))
    return tuple(0 if size == 1 else steps[axis] for axis, size in enumerate(sizes))


def new_result(plan: Plan, operands: Sequence[np.ndarray], element_type: ElementType) -> np.ndarray:
    """Make an array for the result of operands, in their order; its values are not set.

    Raises:
        ShapeError: where no memory is left for it.
    """
    if len(plan.shape) < 2 or all(operand.flags.c_contiguous for operand in operands):
        return allocated(plan.shape, element_type)
    order = _order(plan, [operand.strides for operand in operands])
    result = allocated(tuple(plan.shape[axis] for axis in order), element_type)
    return result.transpose(np.argsort(order))


def result_strides(plan: Plan, strides: Sequence[Strides], element_type: ElementType) -> Strides:
    """The strides of a new result of operands with these strides."""
    result, step = [0] * len(plan.shape), element_type.storage.itemsize
    for axis in reversed(_order(plan, strides)):
        result[axis] = step
        step *= max(plan.shape[axis], 1)
    return tuple(result)


def _order(plan: Plan, strides: Sequence[Strides]) -> list[int]:
    """The axes of a result from the outermost to the innermost.

    They are sorted by the operands' strides, as NumPy's iterators sort them: an axis moves outwards past those that
    have smaller strides, and where operands disagree, the axes stay as they are.
    """
    steps = [broadcast_strides(*each) for each in zip(plan.operands, plan.axes, strides, strict=True)]
    order: list[int] = []  # From the innermost.
    for axis in reversed(range(len(plan.shape))):
        index = len(order)
        for position in reversed(range(len(order))):
            pairs = [(abs(step[order[position]]), abs(step[axis])) for step in steps]
            pairs = [pair for pair in pairs if 0 not in pair]
            if any(inner <= outer for inner, outer in pairs):
                break
            if pairs:
                index = position
        order.insert(index, axis)
    return order[::-1]
