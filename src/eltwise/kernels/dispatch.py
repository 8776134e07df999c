"""Which kernel computes a call: a compiled one where it is faster, else NumPy's own loops. Both give the same bits."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from functools import cache
from typing import Literal

import numpy as np

from eltwise.core.dtypes import BFLOAT16, FLOAT16, ElementType
from eltwise.core.errors import AttributeValueError
from eltwise.kernels import numpy_kernel
from eltwise.kernels.plan import Plan
from eltwise.kernels.scalar import compiles
from eltwise.ops.expression import Expression

LEAST_BYTES = 1 << 20
"""Below this size of the result NumPy's own loops are as fast as a kernel, and nearer."""

LEAST_BYTES_OF_HALVES = 1 << 13
"""The same for float16 and bfloat16, whose loops in NumPy and ml_dtypes are many times slower than memory."""

_VARIABLE = "ELTWISE_KERNELS"

Mode = Literal["auto", "numpy", "compiled"]


def compute(
    expression: Expression, element_type: ElementType, plan: Plan, operands: Sequence[np.ndarray], out: np.ndarray
) -> None:
    """Compute an expression into ``out``, which may overlap the operands.

    Args:
        expression: the steps.
        element_type: of all arrays.
        plan: where the operands lie in the result.
        operands: any strides, alignment and byte order.
        out: a writable array of the plan's shape.
    """
    if out.nbytes >= least_bytes(element_type) and has_kernel(element_type):
        from eltwise.kernels import compiled  # Small calls must not pay for it.

        if compiled.compute(expression, element_type, plan, operands, out):
            return
    numpy_kernel.compute(expression, element_type, plan, operands, out)


def least_bytes(element_type: ElementType) -> int:
    """From which size of the result on a kernel is taken."""
    match mode():
        case "compiled":
            return 0
        case "numpy":
            return 1 << 63
        case _:
            return LEAST_BYTES_OF_HALVES if element_type in (FLOAT16, BFLOAT16) else LEAST_BYTES


@cache
def mode() -> Mode:
    """What ``ELTWISE_KERNELS`` asks for: ``numpy`` or ``compiled`` for every size; by default what is faster.

    Raises:
        AttributeValueError: for any other value.
    """
    asked = os.environ.get(_VARIABLE, "") or "auto"
    if asked not in ("auto", "numpy", "compiled"):
        raise AttributeValueError(
            "this is no kind of kernels", operand=_VARIABLE, got=repr(asked), allowed="auto, numpy, compiled"
        )
    return asked  # type: ignore[return-value]


@cache
def has_compiler() -> bool:
    """Whether llvmlite works here; where it does not, one notice says so."""
    try:
        import_compiler()
    except (ImportError, OSError, RuntimeError) as error:
        warnings.warn(
            f"eltwise computes without compiled kernels, which is slower: {error}", RuntimeWarning, stacklevel=2
        )
        return False
    return True


def has_kernel(element_type: ElementType) -> bool:
    """Whether calls on this type can be computed by a kernel here."""
    return compiles(element_type) and has_compiler()


def import_compiler() -> None:
    """Load the compiler.

    Raises:
        ImportError, OSError, RuntimeError: where it is missing or does not work.
    """
    from eltwise.kernels import jit

    jit.target()
