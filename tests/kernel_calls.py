"""Kernels called directly."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from eltwise.core.dtypes import ElementType
from eltwise.kernels import compiled
from eltwise.kernels.compiled import Recipe
from eltwise.kernels.plan import Plan
from eltwise.ops.expression import Expression


def recipe_of(
    expression: Expression, element_type: ElementType, plan: Plan, operands: Sequence[np.ndarray], out: np.ndarray
) -> Recipe:
    swapped = tuple(not array.dtype.isnative for array in (out, *operands))
    sizes = tuple(operand.shape for operand in operands)
    return compiled.Call(expression, element_type, plan, sizes, swapped).recipe(operands, out)


def compute(
    expression: Expression, element_type: ElementType, plan: Plan, operands: Sequence[np.ndarray], out: np.ndarray
) -> bool:
    """Compute with a compiled kernel; False where these arrays are not for one."""
    return out.size == 0 or recipe_of(expression, element_type, plan, operands, out).run(out, operands)
