"""The kernel that is always there: NumPy's and ml_dtypes' own loops, a step of the formula at a time.

They are exact for every type of the catalog: integers wrap, floats are rounded once a step (float16, bfloat16 and
float8 are computed in float32, which has more than twice their digits).
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from eltwise.kernels.plan import Plan
from eltwise.spec import Formula

_UFUNCS = {"subtract": np.subtract, "multiply": np.multiply, "add": np.add}


def compute(formula: Formula, plan: Plan, a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
    """Compute a formula into ``out``, which may overlap the operands.

    Args:
        formula: the steps.
        plan: where the operands lie in the result.
        a: operand A; any strides, alignment and byte order.
        b: operand B, of the same element type.
        out: a writable array of the plan's shape and that type.
    """
    first = a if a.shape == plan.a_shape else a.reshape(plan.a_shape)
    second = b if b.shape == plan.b_shape else b.reshape(plan.b_shape)
    results: list[np.ndarray] = []
    with np.errstate(all="ignore"):
        for step, is_free in zip(formula.steps, _out_is_free(formula), strict=True):
            left, right = (
                results[reference] if isinstance(reference, int) else (first if reference == "a" else second)
                for reference in (step.left, step.right)
            )
            target = out if is_free else np.empty(plan.shape, out.dtype)
            _UFUNCS[step.operation](left, right, out=target, casting="equiv")
            results.append(target)


@lru_cache(maxsize=64)
def _out_is_free(formula: Formula) -> tuple[bool, ...]:
    """For each step, whether ``out`` may hold its result: no later step reads an operand or an earlier result."""
    free = []
    for index in range(len(formula.steps)):
        later = [reference for step in formula.steps[index + 1 :] for reference in (step.left, step.right)]
        free.append(all(isinstance(reference, int) and reference >= index for reference in later))
    return tuple(free)
