"""Reductions to what merges with that of other elements, by a kernel where one is worth it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from eltwise.kernels import dispatch
from eltwise.kernels.reduction import Elements, Partial, reduced_by_numpy
from eltwise.kernels.threads import num_threads

if TYPE_CHECKING:
    from eltwise.kernels.reduction_call import ReductionCall


def reduced(elements: Elements, operands: Sequence[np.ndarray], most_threads: int | None = None) -> Partial:
    """Reduce elements.

    Args:
        elements: what is reduced, and how.
        operands: any strides and byte order.
        most_threads: how many threads share the work at most; by default as many as large calls.

    Returns:
        The partial of all outputs, in the shape of the axes that are kept.
    """
    threads = most_threads or num_threads()
    if is_compiled(elements):
        result = kernel_call(elements, operands).partial(operands, threads)
        if result is not None:
            return result
    return reduced_by_numpy(elements, operands, threads)


def is_compiled(elements: Elements) -> bool:
    """Whether a kernel computes a reduction that is made once."""
    return dispatch.is_large_reduction(elements.plan.shape) and not elements.why_no_kernel()


def kernel_call(elements: Elements, operands: Sequence[np.ndarray]) -> ReductionCall:
    """The call of a kernel on arrays like these; see ``ReductionCall``."""
    return _kernel_call(elements, tuple(not operand.dtype.isnative for operand in operands))


@lru_cache(maxsize=64)  # Files and arrays of Dask have blocks of few shapes.
def _kernel_call(elements: Elements, swapped: tuple[bool, ...]) -> ReductionCall:
    from eltwise.kernels.reduction_call import ReductionCall  # Small reductions must not pay for it.

    return ReductionCall(elements, swapped)
