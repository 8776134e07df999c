"""The kernel that is always there: NumPy's and ml_dtypes' own loops, a step of the expression at a time.

They are exact for every type of the catalog: integers wrap, floats are rounded once a step (float16, bfloat16 and
float8 are computed in float32, which has more than twice their digits).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from math import prod

import numpy as np

from eltwise.core.dtypes import ElementType
from eltwise.kernels.plan import Plan, Sizes
from eltwise.ops.expression import Expression

_BLOCK_BYTES = 1 << 18
"""Results between two steps are held for blocks of this size, so that no call needs memory for a whole one."""


def compute(
    expression: Expression, element_type: ElementType, plan: Plan, operands: Sequence[np.ndarray], out: np.ndarray
) -> None:
    """Compute an expression into ``out``, which may overlap the operands.

    Args:
        expression: the steps.
        element_type: of the operands.
        plan: where the operands lie in the result.
        operands: any strides, alignment and byte order.
        out: a writable array of the plan's shape and that type.
    """
    views = [
        operand if operand.shape == padded else operand.reshape(padded)
        for operand, padded in zip(operands, plan.operands, strict=True)
    ]
    with np.errstate(all="ignore"):
        if len(expression.steps) == 1:
            _last_step(expression, element_type, views, out)
            return
        if out.nbytes <= _BLOCK_BYTES:
            _steps(expression, element_type, views, out)
            return
        apart = [view.copy() if _overlaps(view, out) else view for view in views]
        for block in _blocks(plan.shape, _BLOCK_BYTES // out.itemsize):
            _steps(expression, element_type, [_cut(view, block) for view in apart], out[block])


def _steps(expression: Expression, element_type: ElementType, operands: list[np.ndarray], out: np.ndarray) -> None:
    values = list(operands)
    for step in expression.steps[:-1]:
        function = step.definition.numpy_function(element_type)
        values.append(np.asarray(function(*(values[value] for value in step.operands))))
    _last_step(expression, element_type, values, out)


def _last_step(expression: Expression, element_type: ElementType, values: list[np.ndarray], out: np.ndarray) -> None:
    last = expression.steps[-1]
    function = last.definition.numpy_function(element_type)
    function(*(values[value] for value in last.operands), out=out, casting="equiv")


def _overlaps(operand: np.ndarray, out: np.ndarray) -> bool:
    same = operand.shape == out.shape and operand.strides == out.strides and operand.ctypes.data == out.ctypes.data
    return not same and np.may_share_memory(operand, out)


def _blocks(shape: Sizes, elements: int) -> Iterator[tuple[slice, ...]]:
    """Cut a shape into blocks of at most so many elements, as slices of its first dimensions."""
    cut = next(axis for axis in range(len(shape)) if prod(shape[axis + 1 :]) <= elements)
    step = max(1, elements // max(prod(shape[cut + 1 :]), 1))
    ranges = [[slice(index, index + 1) for index in range(size)] for size in shape[:cut]]
    yield from product(*ranges, [slice(begin, begin + step) for begin in range(0, shape[cut], step)])


def _cut(view: np.ndarray, block: tuple[slice, ...]) -> np.ndarray:
    """The part of an operand that a block of the result reads; what is broadcast stays."""
    return view[tuple(part if size != 1 else slice(None) for part, size in zip(block, view.shape, strict=False))]
