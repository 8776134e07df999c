"""The primitives that are sums of real numbers, rounded once: of any number of operands, and with a constant.

Sources: ONNX's Sum, Mean and Shrink; what they leave open is decided in docs/semantics.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np

from eltwise.core.casting import cast
from eltwise.core.dtypes import FLOAT64, of_numpy
from eltwise.core.odd_rounding import Doubles, double, odd, quotient, total, two_sum
from eltwise.ops.primitive import FLOATING, NUMERIC, Interval, Primitive, of_kinds, with_out

if TYPE_CHECKING:
    from fractions import Fraction


def _summed(*arrays: np.ndarray) -> np.ndarray:
    return _of_sum(arrays, lambda nearest: nearest, lambda exact: exact)


def _mean(*arrays: np.ndarray) -> np.ndarray:
    count = len(arrays)
    return _of_sum(arrays, lambda nearest: quotient(nearest, double(count)), lambda exact: exact / count)


def _of_sum(
    arrays: Sequence[np.ndarray], in_doubles: Callable[[Doubles], Doubles], exactly: Callable[[Fraction], Fraction]
) -> np.ndarray:
    """A function of the real sum; float64 is computed with Python's fractions, others with float64 rounded to odd."""
    element_type = of_numpy(arrays[0].dtype)
    with np.errstate(all="ignore"):
        plain = reduce(np.add, map(double, arrays))
        values = [np.empty(plain.shape) for _array in arrays]
        for value, array in zip(values, arrays, strict=True):
            np.copyto(value, array)
        is_finite = reduce(np.logical_and, map(np.isfinite, values))
        if element_type is FLOAT64:
            from fractions import Fraction  # Few sums need it, and it takes long to load.

            result = _rounded(lambda *each: exactly(sum(map(Fraction, each), Fraction(0))), values, is_finite, plain)
        else:
            result = np.where(is_finite, in_doubles(_odd_sum(values)), plain)
        is_negative = reduce(np.logical_and, map(np.signbit, values))
        result = np.where(is_negative & (result == 0), -0.0, result)
    return cast(result, FLOAT64, element_type, saturate=False)


def _odd_sum(values: Sequence[Doubles]) -> Doubles:
    """The sum rounded to odd: parts are added until each one is what rounding the next larger one lost."""
    parts, is_changed = list(values), True
    while is_changed:
        is_changed = False
        for index in range(1, len(parts)):
            larger, smaller = two_sum(parts[index], parts[index - 1])
            is_changed |= bool(((larger != parts[index]) & np.isfinite(larger)).any())
            parts[index], parts[index - 1] = larger, smaller
    lost = reduce(lambda first, second: np.where(second == 0, first, second), parts[:-1], np.zeros_like(parts[0]))
    return odd(parts[-1], lost)


def _rounded(
    function: Callable[..., Fraction], values: Sequence[Doubles], chosen: np.ndarray, others: Doubles
) -> Doubles:
    """The nearest float64 of exact numbers where they are chosen."""

    def nearest(*each: float) -> float:
        exact = function(*each)
        try:
            return float(exact)
        except OverflowError:
            return inf if exact > 0 else -inf

    result = np.array(others)
    columns = [each[chosen].tolist() for each in values]
    result[chosen] = [nearest(*row) for row in zip(*columns, strict=True)]
    return result


def _shrunk(x: np.ndarray, *, bias: float, lambd: float) -> np.ndarray:
    """X - bias above lambd, x + bias below -lambd, else 0; of integers it is truncated and saturates."""
    element_type = of_numpy(x.dtype)
    if element_type.is_integer and element_type.bits == 64:
        from fractions import Fraction

        low, high = element_type.limits

        def exact(value: int) -> int:
            moved = Fraction(bias) if value < -lambd else Fraction(-bias) if value > lambd else Fraction(-value)
            return min(max(int(value + moved), low), high)

        return np.asarray(np.frompyfunc(exact, 1, 1)(x.astype(object)), object).astype(element_type.storage)
    with np.errstate(all="ignore"):
        values = double(x)
        moved = np.where(values < -lambd, bias, -bias)
        result = values + moved if element_type is FLOAT64 else total(values, moved)
        result = np.where((values > lambd) | (values < -lambd), result, 0.0)
    return cast(result, FLOAT64, element_type, saturate=False)


def _primitive(name: str, numpy: Any, **fields: Any) -> Primitive:
    return Primitive(
        name=name,
        operands=("T",),
        notation=f"{name}({{}})",
        numpy=of_kinds(with_out(numpy), NUMERIC if name == "shrink" else FLOATING),
        llvm={},
        value_range=lambda *operands: Interval(min(each.low for each in operands), max(each.high for each in operands)),
        rounds=True,
        widens=False,
        libraries={},
        **fields,
    )


SUMS = (
    _primitive("sum", _summed, is_variadic=True),
    _primitive("mean", _mean, is_variadic=True),
    _primitive("shrink", _shrunk, parameters=("bias", "lambd")),
)
