"""The kernel that is always there: NumPy's and ml_dtypes' own loops, a step of the formula at a time.

They are exact for every type of the catalog: integers wrap, floats are rounded once a step (float16, bfloat16 and
float8 are computed in float32, which has more than twice their digits).
"""

from __future__ import annotations

import numpy as np

from eltwise.kernels.plan import Plan
from eltwise.spec import Formula

_UFUNCS = {"subtract": np.subtract, "multiply": np.multiply}


def compute(formula: Formula, plan: Plan, a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
    """Compute a formula into ``out``, which may overlap the operands.

    Args:
        formula: the steps.
        plan: where the operands lie in the result.
        a: operand A; any strides, alignment and byte order.
        b: operand B, of the same element type.
        out: a writable array of the plan's shape and that type.
    """
    operands = {"a": a.reshape(plan.a_shape), "b": b.reshape(plan.b_shape)}
    results: list[np.ndarray] = []
    with np.errstate(all="ignore"):
        for index, step in enumerate(formula.steps):
            left, right = (
                results[reference] if isinstance(reference, int) else operands[reference]
                for reference in (step.left, step.right)
            )
            target = out if _out_is_free(formula, index) else np.empty(plan.shape, out.dtype)
            _UFUNCS[step.operation](left, right, out=target, casting="equiv")
            results.append(target)


def _out_is_free(formula: Formula, index: int) -> bool:
    """Whether ``out`` may hold this step's result: no later step reads an operand or the result of an earlier step."""
    later = [reference for step in formula.steps[index + 1 :] for reference in (step.left, step.right)]
    return all(isinstance(reference, int) and reference >= index for reference in later)
