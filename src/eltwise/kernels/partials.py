"""Reductions to what merges with that of other elements, by a kernel where one is worth it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from eltwise.core.dtypes import ElementType
from eltwise.kernels import dispatch
from eltwise.kernels.reduction import Elements, Partial, Reduction, reduced_by_numpy
from eltwise.kernels.threads import num_threads

if TYPE_CHECKING:
    from eltwise.kernels.reduction_call import ReductionCall


def reduced(
    reduction: Reduction,
    elements: Elements,
    operands: Sequence[np.ndarray],
    axes: Sequence[int],
    most_threads: int | None = None,
) -> Partial:
    """Reduce the elements over axes of the plan's shape.

    Args:
        reduction: which one; a mean is a sum until it is finished.
        elements: what is reduced.
        operands: any strides and byte order.
        axes: those that are reduced, each once and not negative.
        most_threads: how many threads share the work at most; by default as many as large calls.

    Returns:
        The partial of all outputs, in the shape of the axes that are kept.
    """
    threads = most_threads or num_threads()
    if is_compiled(elements):
        result = kernel_call(reduction, elements, axes, elements.result_type, operands).partial(operands, threads)
        if result is not None:
            return result
    return reduced_by_numpy(reduction, elements, operands, axes, threads)


def is_compiled(elements: Elements) -> bool:
    """Whether a kernel computes a reduction that is made once."""
    return dispatch.is_large_reduction(elements.plan.shape) and not elements.why_no_kernel()


def kernel_call(
    reduction: Reduction,
    elements: Elements,
    axes: Sequence[int],
    result_type: ElementType,
    operands: Sequence[np.ndarray],
) -> ReductionCall:
    """The call of a kernel on arrays like these; see ``ReductionCall``."""
    swapped = tuple(not operand.dtype.isnative for operand in operands)
    return _kernel_call(reduction, elements, tuple(axes), result_type, swapped)


@lru_cache(maxsize=64)  # Files and arrays of Dask have blocks of few shapes.
def _kernel_call(*arguments: Any) -> ReductionCall:
    from eltwise.kernels.reduction_call import ReductionCall  # Small reductions must not pay for it.

    return ReductionCall(*arguments)
