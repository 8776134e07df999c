"""What specifications define: which values of an operand have a stated result, whatever the other operands are.

Where this says no, any answer of a runtime is as good as another. Sources as for the functions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from eltwise.core.dtypes import ElementType
from eltwise.oracle.elements import element_type_of

Array = npt.NDArray[Any]
Flags = npt.NDArray[np.bool_]


def is_defined(function: str, index: int, values: Array, parameters: Mapping[str, object]) -> Flags:
    """Which values of an operand have a result that a specification states.

    >>> is_defined("shift_left", 1, np.array([0, 7, 8], np.uint8), {}).tolist()
    [True, True, False]
    """
    with np.errstate(all="ignore"):
        return _DOMAINS.get((function, index), _every)(values, parameters)


def _every(values: Array, _parameters: Mapping[str, object]) -> Flags:
    return np.ones(values.shape, bool)


def _is_castable(values: Array, parameters: Mapping[str, object]) -> Flags:
    """Floats that are truncated to an integer within the limits."""
    target = parameters["to"]
    if not isinstance(target, ElementType) or not target.is_integer or element_type_of(values).kind != "float":
        return _every(values, parameters)
    low, high = target.limits
    whole = np.trunc(values.astype(np.float64))
    return np.asarray((whole >= low) & (whole < high + 1))


def _is_number(values: Array, _parameters: Mapping[str, object]) -> Flags:
    return np.asarray(~np.isnan(values.astype(np.float64)))


def _is_scale(values: Array, _parameters: Mapping[str, object]) -> Flags:
    numbers = values.astype(np.float64)
    return np.asarray(np.isfinite(numbers) & (numbers > 0))


def _is_amount(values: Array, _parameters: Mapping[str, object]) -> Flags:
    return np.asarray((values >= 0) & (values < element_type_of(values).bits))


def _is_exponent(values: Array, parameters: Mapping[str, object]) -> Flags:
    """Integers from 0 on: no specification states what a negative power of an integer is."""
    return _every(values, parameters) if element_type_of(values).kind == "float" else np.asarray(values >= 0)


def _is_divisor(values: Array, parameters: Mapping[str, object]) -> Flags:
    """Integers but 0; -1 is left out too, by which the least value has no quotient."""
    if element_type_of(values).kind == "float":
        return _every(values, parameters)
    numbers = values.astype(np.int64) if values.dtype.itemsize < 8 else values
    is_minus_one = numbers == -1 if element_type_of(values).kind == "signed" else np.zeros(values.shape, bool)
    return np.asarray((numbers != 0) & ~is_minus_one)


def _has_no_minus_zero(values: Array, parameters: Mapping[str, object]) -> Flags:
    """All but -0, of which either zero is a result."""
    if element_type_of(values).kind != "float":
        return _every(values, parameters)
    numbers = values.astype(np.float64)
    return np.asarray(~((numbers == 0) & np.signbit(numbers)))


_DOMAINS: dict[tuple[str, int], Callable[[Array, Mapping[str, object]], Flags]] = {
    ("cast", 0): _is_castable,
    ("quantize", 0): _is_number,
    ("quantize", 1): _is_scale,
    ("dequantize", 1): _is_scale,
    ("shift_left", 1): _is_amount,
    ("shift_right", 1): _is_amount,
    ("power", 1): _is_exponent,
    ("modulo", 1): _is_divisor,
    ("fmod", 1): _is_divisor,
    ("clip", 1): _is_number,
    ("clip", 2): _is_number,
    ("relu", 0): _has_no_minus_zero,
    ("sign", 0): _has_no_minus_zero,
}
"""By the function and the index of the operand."""
