"""Reductions of the oracle: exact sums of fractions, rounded at one place, and extremes by comparison.

Nothing here is shared with the engine: there are no digits and no blocks, an element is a number.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from eltwise.core.dtypes import ElementType
from eltwise.oracle.evaluation import OracleRefusal, array_of, bits_of, element_type_of
from eltwise.oracle.numbers import Number, Special, decode, encode

ReductionName = Literal["sum", "mean", "min", "max"]

_INFINITIES = (Special.NEGATIVE_INFINITY, Special.POSITIVE_INFINITY)


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
    source = element_type_of(elements)
    kept = [axis for axis in range(elements.ndim) if axis not in axes]
    results = []
    for outer in itertools.product(*(range(elements.shape[axis]) for axis in kept)):
        place: list[Any] = [slice(None)] * elements.ndim
        for axis, position in zip(kept, outer, strict=True):
            place[axis] = position
        bits = bits_of(np.asarray(elements[tuple(place)]))
        results.append(_reduced(reduction, source, bits, target))
    return array_of(target, results, tuple(elements.shape[axis] for axis in kept))


def _reduced(reduction: ReductionName, source: ElementType, bits: list[int], target: ElementType) -> int:
    numbers = [decode(source, each) for each in bits]
    if not numbers and reduction != "sum":
        raise OracleRefusal(f"the {reduction} of no elements")
    if reduction in ("min", "max"):
        return bits[_extreme(reduction == "max", numbers)]
    total = exact_sum(numbers)
    if target.is_integer:
        if not isinstance(total, int):
            raise OracleRefusal(f"a sum that is no integer in {target}")
        if not target.limits[0] <= total <= target.limits[1]:
            raise OracleRefusal(f"the sum {total} overflows {target}")
        return encode(target, total)
    if isinstance(total, Special):
        return encode(target, total)
    return encode(target, Fraction(total) / (len(numbers) if reduction == "mean" else 1))


def exact_sum(numbers: Sequence[Number]) -> Number:
    """The exact sum: NaN with a NaN or with both infinities; two zeros of any sign are +0.

    >>> exact_sum([Fraction(1, 3), Fraction(2, 3), Special.NEGATIVE_ZERO])
    Fraction(1, 1)
    """
    special = {number for number in numbers if isinstance(number, Special)}
    if Special.NAN in special or special.issuperset(_INFINITIES):
        return Special.NAN
    for infinity in _INFINITIES:
        if infinity in special:
            return infinity
    finite = [number for number in numbers if not isinstance(number, Special)]
    if all(isinstance(number, int) for number in finite) and not special:
        return sum(int(number) for number in finite)
    return sum((Fraction(number) for number in finite), Fraction(0))


def _extreme(wants_largest: bool, numbers: Sequence[Number]) -> int:
    """The position of the first extreme; a NaN goes before all others, and -0 is below +0."""

    def key(position: int) -> tuple[int, Fraction, bool]:
        number = numbers[position]
        if number is Special.NAN:
            return 2 if wants_largest else -2, Fraction(0), True
        if number in _INFINITIES:
            return 1 if number is Special.POSITIVE_INFINITY else -1, Fraction(0), True
        if isinstance(number, Special):
            return 0, Fraction(0), False
        return 0, Fraction(number), True

    return (max if wants_largest else min)(range(len(numbers)), key=key)


def absolute_differences(a: npt.NDArray[Any], b: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """abs(a - b) of arrays of one shape: of integers exactly in the unsigned type, of floats rounded once.

    >>> absolute_differences(np.int8([127]), np.int8([-128])).tolist()
    [255]
    """
    source = element_type_of(a)
    if source.is_integer:
        pairs = zip(bits_of(a), bits_of(b), strict=True)
        values = [abs(_finite(source, x) - _finite(source, y)) for x, y in pairs]
        return np.array(values, f"u{a.dtype.itemsize}").reshape(a.shape)
    results = []
    for x, y in zip(bits_of(a), bits_of(b), strict=True):
        difference = exact_sum([decode(source, x), _negated(decode(source, y))])
        results.append(encode(source, _magnitude(difference)))
    return array_of(source, results, a.shape)


def _finite(element_type: ElementType, bits: int) -> int:
    number = decode(element_type, bits)
    assert isinstance(number, int)
    return number


_OPPOSITES: dict[Number, Number] = {
    Special.POSITIVE_INFINITY: Special.NEGATIVE_INFINITY,
    Special.NEGATIVE_INFINITY: Special.POSITIVE_INFINITY,
}


def _negated(number: Number) -> Number:
    if isinstance(number, Special):
        return _OPPOSITES.get(number, number)
    return -number


def _magnitude(number: Number) -> Number:
    if number is Special.NAN:
        return number
    if isinstance(number, Special):
        return Fraction(0) if number is Special.NEGATIVE_ZERO else Special.POSITIVE_INFINITY
    return number if number >= 0 else -number
