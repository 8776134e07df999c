"""Bind, check, allocate, run: one operation on arrays."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from eltwise.core.dtypes import ElementType
from eltwise.core.errors import ElementTypeError, EltwiseError, ShapeError
from eltwise.core.shapes import of_sizes
from eltwise.engine import quick
from eltwise.engine.arrays import as_array, check_out, exact_scalar, is_scalar
from eltwise.ir.graph import TensorType
from eltwise.ir.infer import elementwise
from eltwise.kernels import dispatch, float_mode
from eltwise.kernels.plan import Plan, make_plan
from eltwise.kernels.pool import POOL
from eltwise.ops.expression import Expression
from eltwise.ops.schema import Operation


def apply(operation: Operation, a: object, b: object, out: np.ndarray | None = None) -> np.ndarray:
    """Run an element-wise operation on two operands.

    Args:
        operation: a row of the catalog with its attributes.
        a: operand A: an array by any array protocol, or a Python number that B's type holds exactly.
        b: operand B, of the same element type.
        out: where the result goes: an array of the result's type and shape, which may overlap the operands.

    Returns:
        ``out``, or a new array.

    Raises:
        EltwiseError: for operands, shapes or types that the operator version does not allow.
    """
    known = quick.CALLS.result(operation, a, b, out)
    if known is not None:
        return known
    if float_mode.is_default() or not float_mode.can_be_set():
        return _checked_and_computed(operation, a, b, out)
    with float_mode.default_mode():  # Numbers are taken in it too.
        return _checked_and_computed(operation, a, b, out)


def _checked_and_computed(operation: Operation, a: object, b: object, out: np.ndarray | None) -> np.ndarray:
    schema = operation.schema
    try:
        (first, a_type), (second, b_type) = _operands(a, b)
        plan = _plan(operation, a_type, b_type, first.shape, second.shape)
        target = allocated(plan.shape, a_type) if out is None else check_out(out, a_type, plan.shape)
    except EltwiseError as error:
        raise error.located(operator=schema.versioned_name) from None
    expression = operation.expression()
    compute(expression, a_type, plan, (first, second), np.asarray(target))
    quick.CALLS.remember(operation, expression, a_type, plan, (first, second), target, out is not None)
    return target


def compute(
    expression: Expression, element_type: ElementType, plan: Plan, operands: Sequence[np.ndarray], out: np.ndarray
) -> None:
    """Compute an expression into ``out``, whatever floating-point mode this thread was left in.

    The arguments are those of ``dispatch.compute``.
    """
    if element_type.is_integer or float_mode.is_default():
        dispatch.compute(expression, element_type, plan, operands, out)
        return
    with float_mode.default_mode():
        dispatch.compute(expression, element_type, plan, operands, out)


def _operands(a: object, b: object) -> tuple[tuple[np.ndarray, ElementType], tuple[np.ndarray, ElementType]]:
    if is_scalar(a) and is_scalar(b):
        raise ElementTypeError(
            "two Python numbers have no element type",
            operand="operands A and B",
            hint="make one of them an array, for example numpy.float32(2)",
        )
    if is_scalar(a):
        second, element_type = as_array(b, "operand B")
        return (exact_scalar(a, element_type, "operand A"), element_type), (second, element_type)
    first, element_type = as_array(a, "operand A")
    if is_scalar(b):
        return (first, element_type), (exact_scalar(b, element_type, "operand B"), element_type)
    return (first, element_type), as_array(b, "operand B")


@lru_cache(maxsize=4096)
def _plan(
    operation: Operation, a_type: ElementType, b_type: ElementType, a: tuple[int, ...], b: tuple[int, ...]
) -> Plan:
    """The checked plan of a call, kept for the next call with the same types and shapes."""
    _result, found = elementwise(operation, TensorType(a_type, of_sizes(a)), TensorType(b_type, of_sizes(b)))
    return make_plan(found, a, b, a_type.storage.itemsize)


def allocated(sizes: tuple[int, ...], element_type: ElementType) -> np.ndarray:
    """Make an array for a result; its values are not set.

    Raises:
        ShapeError: where no memory is left for it.
    """
    try:
        return POOL.empty(sizes, element_type.storage)
    except (MemoryError, ValueError):  # NumPy's word for what exceeds the address space.
        raise ShapeError("the result does not fit into memory", got=f"shape ({of_sizes(sizes)})") from None
