"""Exact numbers as arrays, and what arithmetics do to them: round, wrap, clamp, flush, convert.

Integers and booleans are Python integers (int64 for types of up to 16 bits); floats are float64, which holds every
value of every float type. Where a sum, a product or a quotient does not fit into float64, its last digit is made odd,
so that rounding to a narrower type is right in every direction (Boldo and Melquiond, "When double rounding is odd",
2005).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from eltwise.core import odd_rounding
from eltwise.core.dtypes import FLOAT64, INT64, ElementType
from eltwise.ops import primitives
from eltwise.ops.expression import Expression
from eltwise.oracle.numbers import FLOAT_LAYOUTS

Values = npt.NDArray[Any]
Change = Callable[[Values], Values]
Mode = Literal["nearest", "toward zero", "odd only"]
Beyond = Literal["saturate", "wrap", "indefinite"]


def _odd_only(scaled: Values) -> Values:
    """Half the last digit is added before cutting: everything between an even number and the next is cut."""
    magnitudes = np.abs(scaled)
    cut: Values = np.floor(magnitudes)
    return np.copysign(np.where((cut % 2 == 1) & (magnitudes - cut >= 0.5), cut + 1, cut), scaled)


_ROUND: dict[Mode, Change] = {"nearest": np.rint, "toward zero": np.trunc, "odd only": _odd_only}


def values_of(array: Values, element_type: ElementType) -> Values:
    """Read the exact values of an array's elements, in its shape."""
    with np.errstate(all="ignore"):
        if element_type.kind == "float":
            return array.astype(np.float64)
        return array.astype(np.int64 if element_type.bits <= 16 else np.object_)


def patterns_of(array: Values, element_type: ElementType) -> Values:
    """Read the bit patterns of an array's elements in C order, with one pattern for every NaN."""
    unsigned = np.dtype(f"u{array.dtype.itemsize}")
    native = np.ascontiguousarray(array, array.dtype.newbyteorder("=")).reshape(-1)
    patterns: Values = native.view(unsigned) & unsigned.type((1 << element_type.bits) - 1)
    layout = FLOAT_LAYOUTS.get(element_type)
    if layout is None:
        return patterns
    first_nan = layout.largest_finite + (2 if layout.has_infinity else 1)
    return np.where(patterns & unsigned.type(layout.sign - 1) >= first_nan, unsigned.type(layout.nan), patterns)


def stored(values: Values, element_type: ElementType) -> Values:
    """Store values as elements of a type and give their patterns: integers wrap, floats are rounded to the nearest."""
    if element_type.kind != "float":
        unsigned = np.dtype(f"u{element_type.storage.itemsize}")
        patterns: Values = (values & ((1 << element_type.bits) - 1)).astype(unsigned)
        return patterns
    with np.errstate(all="ignore"):
        return patterns_of(rounded(values, element_type).astype(element_type.storage), element_type)


def rounded(values: Values, element_type: ElementType, mode: Mode = "nearest") -> Values:
    """Round to a float type; what is beyond its largest number becomes infinity, or NaN in a type without one."""
    if element_type is FLOAT64:
        return values
    with np.errstate(all="ignore"):
        unit = element_type.last_digits(values)
        result = np.where(np.isfinite(values), np.ldexp(_ROUND[mode](np.ldexp(values, -unit)), unit), values)
        is_beyond = np.abs(result) > element_type.largest_finite
    infinities = np.copysign(np.inf, values) if FLOAT_LAYOUTS[element_type].has_infinity else np.nan
    return np.where(is_beyond, infinities, result)


def wrapped(values: Values, element_type: ElementType) -> Values:
    """Reduce integers to the limits of an integer type modulo 2^n."""
    low, _high = element_type.limits
    reduced: Values = ((values - low) & ((1 << element_type.bits) - 1)) + low
    return reduced


def clamped(values: Values, low: float | None, high: float | None, infinities: bool = True) -> Values:
    """Move values of any type beyond limits to the limits, None for no limit; NaN stays, and infinities may stay."""
    result = values
    for limit, function in ((low, np.maximum), (high, np.minimum)):
        result = result if limit is None else function(result, np.asarray(limit).astype(values.dtype))
    return result if infinities else np.where(np.isfinite(values), result, values)


def flushed(values: Values, least: float, keeps_sign: bool = True) -> Values:
    """Turn floats of any type that are smaller than a number into zeros, of their sign or always +0."""
    zeros = np.copysign(values.dtype.type(0), values) if keeps_sign else np.zeros_like(values)
    return np.asarray(np.where(np.abs(values) < values.dtype.type(least), zeros, values))


def as_floats(values: Values, element_type: ElementType, mode: Mode = "nearest") -> Values:
    """Convert integers of up to 64 bits to a float type, rounded once."""
    if element_type is FLOAT64:
        return values.astype(np.float64)
    # What float64 has too few digits for gets an odd last digit where something is lost.
    magnitudes = np.abs(values)
    shortened = (magnitudes >> 11 << 11) | np.where((magnitudes & 0x7FF) != 0, 0x800, 0)
    floats = np.where((magnitudes >> 53) > 0, shortened, magnitudes).astype(np.float64)
    return rounded(np.where(values < 0, -floats, floats), element_type, mode)


_integers = np.frompyfunc(int, 1, 1)
"""Python's integers, of any size, of Python's numbers."""


def as_integers(values: Values, element_type: ElementType, beyond: Beyond) -> Values:
    """Cut floats to integers; ``beyond`` says what becomes of those outside an integer type, and of NaN.

    ``saturate`` gives the nearest limit and 0 for NaN, ``wrap`` the value modulo 2^n and 0 for what is not finite,
    ``indefinite`` the lower limit, as x86's conversions do.
    """
    low, high = element_type.limits
    cut = np.trunc(values)
    whole: Values = _integers(np.where(np.isfinite(cut), cut, 0.0).astype(object))
    if beyond == "wrap":
        return wrapped(whole, element_type)
    if beyond == "indefinite":
        return np.where((cut >= low) & (cut <= high), whole, low)
    whole[cut > high], whole[cut < low] = high, low
    return whole


@dataclass(frozen=True)
class StepPolicy:
    """What is retained of the result of each step.

    Attributes:
        element_type: the type that results are brought to; None retains all digits.
        mode: how floats are rounded.
        clamps: whether integers beyond the type are clamped to its limits; else they wrap.
    """

    element_type: ElementType | None = None
    mode: Mode = "nearest"
    clamps: bool = False

    def retain(self, values: Values) -> Values:
        """Bring values to what is retained of them; booleans stay."""
        if self.element_type is None or values.dtype == np.bool_:
            return values
        if not self.element_type.is_integer:
            return rounded(values, self.element_type, self.mode)
        return clamped(values, *self.element_type.limits) if self.clamps else wrapped(values, self.element_type)

    def apply(self, primitive: str, *operands: Values, **parameters: Any) -> Values:
        """Compute a primitive of exact values; the quotient of an integer and 0 is that of the integer and 1."""
        record = primitives.find(primitive)
        if record.result == "to":
            return values_of(record.numpy_function(FLOAT64)(*operands, **parameters), parameters["to"])
        is_float = operands[record.main].dtype == np.float64
        function = record.numpy_function(FLOAT64 if is_float else INT64)
        if record.divides and not is_float:
            operands = (operands[0], np.where(operands[1] == 0, 1, operands[1]))
        with np.errstate(all="ignore"):
            if operands[record.main].dtype == np.object_:
                function = _OF_PYTHON_INTEGERS.get(function, function)
            if is_float and record.rounds and self.element_type is not FLOAT64:
                function = EXACT.get(function, function)  # Of others float64 has enough digits.
            result: Values = function(*operands, **parameters)
        return self.retain(result)

    def evaluate(self, expression: Expression, operands: Sequence[Values]) -> Values:
        """Compute an expression of exact values, step by step."""
        values = list(operands)
        for step in expression.steps:
            operands_of_step = (values[number] for number in step.operands)
            values.append(self.apply(step.primitive, *operands_of_step, **dict(step.parameters)))
        return values[-1]


def _remainder_of_dividend(a: Values, b: Values) -> Values:
    """The remainder that has the sign of the dividend."""
    remainders = np.abs(a) % np.abs(b)
    return np.where(a < 0, -remainders, remainders)


_OF_PYTHON_INTEGERS: dict[Callable[..., Any], Callable[..., Values]] = {np.fmod: _remainder_of_dividend}
"""What NumPy does not compute of Python's integers."""

EXACT: dict[Callable[..., Any], Callable[..., Values]] = {
    np.add: odd_rounding.total,
    np.subtract: lambda a, b: odd_rounding.total(a, -b),
    np.multiply: odd_rounding.product,
    np.divide: odd_rounding.quotient,
}
"""The same with results rounded to odd, for each function of a primitive that rounds."""
