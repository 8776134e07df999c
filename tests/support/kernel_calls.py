"""Kernels called directly."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from eltwise.core.dtypes import ElementType
from eltwise.kernels.compiled import Call
from eltwise.kernels.plan import Plan, TypedCall
from eltwise.ops.expression import Expression


def call_of(
    expression: Expression, element_type: ElementType, plan: Plan, operands: Sequence[np.ndarray], out: np.ndarray
) -> Call:
    swapped = tuple(not array.dtype.isnative for array in (out, *operands))
    return Call(TypedCall(expression, element_type, plan), swapped)


def compute(
    expression: Expression, element_type: ElementType, plan: Plan, operands: Sequence[np.ndarray], out: np.ndarray
) -> bool:
    """Compute with a compiled kernel; False where these arrays are not for one."""
    return out.size == 0 or call_of(expression, element_type, plan, operands, out).run(out, operands)
