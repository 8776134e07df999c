"""The primitives that are sums of real numbers, rounded once: of any number of operands, and with a constant.

Sources: ONNX's Sum, Mean and Shrink; what they leave open is decided in docs/semantics.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from math import ceil, floor, inf
from typing import Any

import numpy as np

from eltwise.core.casting import cast
from eltwise.core.dtypes import FLOAT64, ElementType, of_numpy
from eltwise.core.odd_rounding import Doubles, double, odd, quotient, total, two_product, two_sum
from eltwise.ops.primitive import FLOATING, NUMERIC, Interval, Primitive, of_kinds, with_out

LEAST_SUM, MOST_SUM = 2.0**-900, 2.0**990
"""The sizes of sums between which no product of float64 loses digits or overflows."""


def _of_sum(arrays: Sequence[np.ndarray], divisor: int) -> np.ndarray:
    """The real sum over a divisor: with float64, rounded to odd; of float64 with Python's fractions where need be."""
    element_type, share = of_numpy(arrays[0].dtype), 2.0 ** -len(arrays).bit_length()
    with np.errstate(all="ignore"):
        plain = reduce(np.add, (double(array) * share for array in arrays))  # Infinite only where an operand is.
        values = [np.empty(plain.shape) for _array in arrays]
        for value, array in zip(values, arrays, strict=True):
            np.copyto(value, array)
        is_finite = reduce(np.logical_and, map(np.isfinite, values))
        total, lost = _parts(values)
        if element_type is FLOAT64:
            is_safe = reduce(np.logical_and, (np.abs(value) < MOST_SUM * share for value in values))
            if divisor > 1:
                is_safe &= (np.abs(total + lost) > LEAST_SUM) | (total + lost == 0)
                total, lost = _divided(total, lost, double(divisor))
            near = np.where(is_finite, np.where(lost == 0, total, total + lost), plain)
            result = _rounded(values, divisor, is_finite & ~is_safe, near)
        else:
            exact = odd(total, lost)
            result = np.where(is_finite, exact if divisor == 1 else quotient(exact, double(divisor)), plain)
        is_negative = reduce(np.logical_and, map(np.signbit, values))
        result = np.where(is_negative & (result == 0), -0.0, result)
    return cast(result, FLOAT64, element_type, saturate=False)


def _parts(values: Sequence[Doubles]) -> tuple[Doubles, Doubles]:
    """The sum, and what that lost, rounded to odd: parts are added until each is what rounding the next one lost."""
    parts, is_changed = list(values), True
    while is_changed:
        is_changed = False
        for index in range(1, len(parts)):
            larger, smaller = two_sum(parts[index], parts[index - 1])
            is_changed |= bool(((larger != parts[index]) & np.isfinite(larger)).any())
            parts[index], parts[index - 1] = larger, smaller
    zero = np.zeros_like(parts[0])
    *smaller_ones, lost, total = zero, zero, *parts
    return total, odd(lost, reduce(lambda first, second: np.where(second == 0, first, second), smaller_ones))


def _divided(total: Doubles, lost: Doubles, divisor: Doubles) -> tuple[Doubles, Doubles]:
    """A quotient of a sum near to the real one, and what it lacks, rounded to odd."""
    total, lost = two_sum(total, lost)
    nearest = total / divisor
    back, beyond = two_product(nearest, divisor)
    return nearest, quotient(odd(*two_sum((total - back) - beyond, lost)), divisor)


def _rounded(values: Sequence[Doubles], divisor: int, chosen: np.ndarray, others: Doubles) -> Doubles:
    """The float64 nearest to real sums over a divisor where they are chosen."""
    result = np.array(others)
    if not chosen.any():
        return result
    from fractions import Fraction  # Few sums need it, and it takes long to load.

    def nearest(*each: float) -> float:
        exact = sum(map(Fraction, each), Fraction(0)) / divisor
        try:
            return float(exact)
        except OverflowError:
            return inf if exact > 0 else -inf

    result[chosen] = [nearest(*row) for row in zip(*(each[chosen].tolist() for each in values), strict=True)]
    return result


def _shrunk(x: np.ndarray, *, bias: float, lambd: float) -> np.ndarray:
    """X - bias above lambd, x + bias below -lambd, else 0; of integers it is truncated and saturates."""
    element_type = of_numpy(x.dtype)
    with np.errstate(all="ignore"):
        if element_type.is_integer:
            least, greatest = limits(element_type, lambd)
            inner = np.where(x > greatest, _moved(x, element_type, -bias), x.dtype.type(0))
            return np.where(x < least, _moved(x, element_type, bias), inner)
        values = double(x)
        moved = np.where(values < -lambd, bias, -bias)
        result = values + moved if element_type is FLOAT64 else total(values, moved)
        result = np.where((values > lambd) | (values < -lambd), result, 0.0)
    return cast(result, FLOAT64, element_type, saturate=False)


def _moved(x: np.ndarray, element_type: ElementType, number: float) -> np.ndarray:
    """Integers and a number: the sum without its fraction, which saturates."""
    sums, modulus = [], 1 << element_type.bits
    for addend, bound in saturating(element_type, number):
        nearest = np.minimum(x, bound) if addend > 0 else np.maximum(x, bound)
        sums.append(nearest + np.array(addend % modulus, np.uint64).astype(x.dtype))
    return np.asarray(np.maximum(sums[0], 0) + np.minimum(sums[1], 0))


def limits(element_type: ElementType, lambd: float) -> tuple[int, int]:
    """The integers between which, both included, those of a type lie whose magnitude is no larger than a number.

    Beyond the type they are the next integers to it.
    """
    low, high = element_type.limits
    return ceil(min(max(-lambd, low), high + 1)), floor(max(min(lambd, high), low - 1))


def saturating(element_type: ElementType, number: float) -> list[tuple[int, int]]:
    """The next integers below and above a number, as addends: each with the last integer whose sum is in the type.

    A sum that begins at that integer where it would begin beyond saturates, modulo 2 to the number of bits.
    """
    low, high = element_type.limits
    nearest = max(min(number, high - low), low - high)
    return [(each, (high if each > 0 else low) - each) for each in (floor(nearest), ceil(nearest))]


def _primitive(name: str, numpy: Any, **fields: Any) -> Primitive:
    return Primitive(
        name=name,
        numpy=of_kinds(with_out(numpy), NUMERIC if name == "shrink" else FLOATING),
        value_range=lambda *operands: Interval(min(each.low for each in operands), max(each.high for each in operands)),
        rounds=True,
        widens=False,
        **fields,
    )


SUMS = (
    _primitive("sum", lambda *arrays: _of_sum(arrays, 1), is_variadic=True),
    _primitive("mean", lambda *arrays: _of_sum(arrays, len(arrays)), is_variadic=True),
    _primitive("shrink", _shrunk, parameters=("bias", "lambd")),
)
