"""Which kernel computes a call: a compiled one where it is faster, else NumPy's own loops. Both give the same bits."""

from __future__ import annotations

import numpy as np

from eltwise.dtypes import BFLOAT16, FLOAT16, ElementType
from eltwise.kernels import numpy_path
from eltwise.kernels.plan import Plan
from eltwise.spec import Formula

LEAST_BYTES = 1 << 20
"""Below this size of the result NumPy's own loops are as fast as a kernel, and nearer."""

LEAST_BYTES_OF_HALVES = 1 << 13
"""The same for float16 and bfloat16, whose loops in NumPy and ml_dtypes are many times slower than memory."""


def compute(
    formula: Formula, element_type: ElementType, plan: Plan, a: np.ndarray, b: np.ndarray, out: np.ndarray
) -> None:
    """Compute a formula into ``out``, which may overlap the operands.

    Args:
        formula: the steps.
        element_type: of all three arrays.
        plan: where the operands lie in the result.
        a: operand A; any strides, alignment and byte order.
        b: operand B.
        out: a writable array of the plan's shape.
    """
    if out.nbytes >= (LEAST_BYTES_OF_HALVES if element_type in (FLOAT16, BFLOAT16) else LEAST_BYTES):
        from eltwise.kernels import compiled  # Small calls must not pay for it.

        if compiled.takes(element_type, a, b, out):
            compiled.compute(formula, element_type, plan, a, b, out)
            return
    numpy_path.compute(formula, plan, a, b, out)
