"""Reductions by the oracle's numbers: exact sums of fractions, rounded at one place, and extremes by comparison.

Nothing here is shared with the engine: there are no digits and no blocks, an element is a number.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from eltwise.core.dtypes import BOOL, ElementType
from eltwise.oracle.elements import Elements, OracleRefusal, array_of, element_type_of, elements_of
from eltwise.oracle.exact import Numbers, decoded
from eltwise.oracle.functions import FUNCTIONS
from eltwise.oracle.numbers import Special, encode

ReductionName = Literal["sum", "mean", "min", "max"]


def reduce(
    reduction: ReductionName, elements: npt.NDArray[Any], axes: Sequence[int], target: ElementType
) -> npt.NDArray[Any]:
    """Reduce elements over axes exactly, and round each result once to an element type.

    Args:
        reduction: what is computed.
        elements: of an element type that runs; booleans are 0 and 1.
        axes: those that are reduced, not negative.
        target: the element type of the result; minima and maxima have that of the elements.

    Raises:
        OracleRefusal: where a sum of integers is beyond the target, or there is no result of no elements.
    """
    remaining = [axis for axis in range(elements.ndim) if axis not in axes]
    results = []
    for outer in itertools.product(*(range(elements.shape[axis]) for axis in remaining)):
        index: list[Any] = [slice(None)] * elements.ndim
        for axis, position in zip(remaining, outer, strict=True):
            index[axis] = position
        results.append(_reduced(reduction, elements_of(np.asarray(elements[tuple(index)])), target))
    return array_of(target, results, tuple(elements.shape[axis] for axis in remaining))


def _reduced(reduction: ReductionName, elements: Elements, target: ElementType) -> int:
    numbers, (source, bits) = decoded(elements), elements
    assert isinstance(numbers.denominators, int)
    if not bits.size and reduction != "sum":
        raise OracleRefusal(f"the {reduction} of no elements")
    if reduction in ("min", "max"):
        return int(bits[_extreme(reduction == "max", numbers)])
    infinities = {
        Special.NEGATIVE_INFINITY if negative else Special.POSITIVE_INFINITY
        for negative in numbers.negative[numbers.infinite]
    }
    if numbers.nan.any() or len(infinities) > 1:
        return encode(target, Special.NAN)
    if infinities:
        return encode(target, infinities.pop())
    total = Fraction(sum(numbers.numerators), numbers.denominators)
    if not target.is_integer:
        return encode(target, total / (bits.size if reduction == "mean" else 1))
    if not source.is_integer and source is not BOOL:
        raise OracleRefusal(f"a sum that is no integer in {target}")
    if not target.limits[0] <= total <= target.limits[1]:
        raise OracleRefusal(f"the sum {total} overflows {target}")
    return encode(target, int(total))


def _extreme(wants_largest: bool, numbers: Numbers) -> int:
    """The position of the first extreme; a NaN goes before all others, and -0 is below +0."""
    if numbers.nan.any():
        return int(np.argmax(numbers.nan))
    keys = list(zip(numbers.ranks, numbers.numerators, ~numbers.negative, strict=True))
    return keys.index(max(keys) if wants_largest else min(keys))


def absolute_differences(a: npt.NDArray[Any], b: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """abs(a - b) of arrays of one shape: of integers exactly in the unsigned type, of floats rounded once.

    >>> absolute_differences(np.int8([127]), np.int8([-128])).tolist()
    [255]
    """
    source = element_type_of(a)
    if source.is_integer:
        exact = np.abs(decoded(elements_of(a)).numerators - decoded(elements_of(b)).numerators)
        return np.asarray(exact.astype(f"u{a.dtype.itemsize}").reshape(a.shape))
    rounded = FUNCTIONS["subtract"].compute(elements_of(a), elements_of(b))
    return array_of(*FUNCTIONS["absolute"].compute(rounded), a.shape)
