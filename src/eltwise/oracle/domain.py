"""What specifications define: which values of an operand have a stated result, whatever the other operands are.

Where this says no, any answer of a runtime is as good as another. Sources as for the functions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from eltwise.core.dtypes import INT32, ElementType
from eltwise.oracle.elements import element_type_of
from eltwise.oracle.numbers import FLOAT_LAYOUTS, decode

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


def _is_convertible(values: Array, parameters: Mapping[str, object]) -> Flags:
    """What OpenVINO's text states: numbers that the type has but for rounding to a float, and negative ones modulo 2^n.

    It states neither how fractions are rounded to integers nor what becomes of other numbers beyond the limits.
    """
    target, source = parameters["to"], element_type_of(values)
    assert isinstance(target, ElementType)
    if source.kind != "float":
        if not target.is_integer or not source.is_integer:
            return _every(values, parameters)
        low, high = target.limits
        return np.asarray([value <= high and (value >= low or target.kind == "unsigned") for value in map(int, values)])
    numbers = values.astype(np.float64)
    if target.kind == "float":
        largest = float(decode(target, FLOAT_LAYOUTS[target].largest_finite))  # type: ignore[arg-type]
        return np.asarray(~np.isfinite(numbers) | (np.abs(numbers) <= largest))
    is_whole = np.isfinite(numbers) & (np.trunc(numbers) == numbers)
    return np.asarray(is_whole & _is_castable(values, parameters))


def _is_number(values: Array, _parameters: Mapping[str, object]) -> Flags:
    return np.asarray(~np.isnan(values.astype(np.float64)))


def _is_scale(values: Array, _parameters: Mapping[str, object]) -> Flags:
    numbers = values.astype(np.float64)
    return np.asarray(np.isfinite(numbers) & (numbers > 0))


def _is_zero_point(values: Array, parameters: Mapping[str, object]) -> Flags:
    """All but other numbers than 0 of int32, which has no zero point."""
    return np.asarray(values == 0) if element_type_of(values) is INT32 else _every(values, parameters)


def _is_amount(values: Array, _parameters: Mapping[str, object]) -> Flags:
    return np.asarray((values >= 0) & (values < element_type_of(values).bits))


def _is_exponent(values: Array, parameters: Mapping[str, object]) -> Flags:
    """Integers from 0 on: no specification states what a negative power of an integer is."""
    return _every(values, parameters) if element_type_of(values).kind == "float" else np.asarray(values >= 0)


def _is_divisor(values: Array, parameters: Mapping[str, object]) -> Flags:
    """Integers but 0."""
    return _every(values, parameters) if element_type_of(values).kind == "float" else np.asarray(values != 0)


def _is_dividend(values: Array, parameters: Mapping[str, object]) -> Flags:
    """Integers but the least, which has no quotient by -1."""
    element_type = element_type_of(values)
    if element_type.kind != "signed":
        return _every(values, parameters)
    return np.asarray(values.astype(np.int64) != element_type.limits[0])


def _has_sign(values: Array, parameters: Mapping[str, object]) -> Flags:
    """What is less than, equal to or greater than 0, as NaN is not; and not -0, of which either zero is a result."""
    return _is_number(values, parameters) & _has_no_minus_zero(values, parameters)


def _has_no_minus_zero(values: Array, parameters: Mapping[str, object]) -> Flags:
    """All but -0, of which either zero is a result."""
    if element_type_of(values).kind != "float":
        return _every(values, parameters)
    numbers = values.astype(np.float64)
    return np.asarray(~((numbers == 0) & np.signbit(numbers)))


_DIVIDING = ("divide", "floor_divide", "modulo", "fmod")

_DOMAINS: dict[tuple[str, int], Callable[[Array, Mapping[str, object]], Flags]] = {
    ("cast", 0): _is_castable,
    ("convert", 0): _is_convertible,
    ("quantize", 0): _is_number,
    ("quantize", 1): _is_scale,
    ("dequantize", 1): _is_scale,
    ("dequantize", 2): _is_zero_point,
    ("fake_quantize", 0): _is_number,
    ("shift_left", 1): _is_amount,
    ("shift_right", 1): _is_amount,
    ("power", 1): _is_exponent,
    **{(name, 0): _is_dividend for name in _DIVIDING},
    **{(name, 1): _is_divisor for name in _DIVIDING},
    ("clip", 1): _is_number,
    ("clip", 2): _is_number,
    ("relu", 0): _has_no_minus_zero,
    ("sign", 0): _has_sign,
}
"""By the function and the index of the operand."""
