"""The nearest float to a real number that is not known exactly, and yet proved.

An estimate in float64 with a wide margin decides where all numbers within the margin have one nearest float. Elsewhere
Arb's ball arithmetic encloses the number with more and more digits, until the whole ball has one.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from eltwise.core.dtypes import ElementType
from eltwise.oracle.numbers import FLOAT_LAYOUTS, FloatLayout, decode, encode

Floats = npt.NDArray[np.float64]

MARGIN = 2.0**-40
"""The relative error that a float64 estimate may have; tests show that none has a 16th of it."""

_PRECISIONS = tuple(128 << step for step in range(7))
"""The digits that balls are computed with, in turn; the last one is for what may be an exact tie, and is not."""

_WIDEST = Fraction(1, 1 << 30)
"""How many units in the last place a ball may be wide where it says what was rounded away."""

_FARTHEST = 5000
"""The largest exponent of two, positive or negative, that is written out; no float type comes near it."""


class UndecidedError(ArithmeticError):
    """A ball of the most digits still rounds to two floats."""


def nearest_to_estimates(estimates: Floats, element_type: ElementType) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """The numbers of a type narrower than float64 that are nearest to estimates, and which of them are proved."""
    with np.errstate(all="ignore"):
        low, high = (nearest(estimates * (1 + side * MARGIN), element_type) for side in (-1, 1))
    return low, (low == high) & ~np.isnan(estimates)


def nearest(values: Floats, element_type: ElementType) -> Floats:
    """The nearest numbers of a type, ties to even; infinite beyond the largest."""
    layout = FLOAT_LAYOUTS[element_type]
    units = np.ldexp(1.0, unit_exponents(values, element_type))
    rounded = np.rint(values / units) * units
    largest = decode(element_type, layout.largest_finite)
    assert isinstance(largest, Fraction)
    return np.asarray(np.where(np.abs(rounded) > float(largest), np.copysign(np.inf, values), rounded))


def nearest_to_ball(ball: Callable[[], Any], element_type: ElementType) -> tuple[int, float]:
    """The pattern of the float that is nearest to what a ball encloses, and what was rounded away, within 2^-30 units.

    Args:
        ball: computes it with the digits of the context.
        element_type: a float type.

    Raises:
        UndecidedError: where 8,192 digits do not decide the rounding.
    """
    from flint import ctx

    layout = FLOAT_LAYOUTS[element_type]
    for precision in _PRECISIONS:
        with ctx.workprec(precision):
            enclosure = ball()
            if not enclosure.is_finite():
                continue
            low, high = _fraction(enclosure.lower()), _fraction(enclosure.upper())
        patterns = encode(element_type, low), encode(element_type, high)
        if len({pattern & ~layout.sign if not pattern & (layout.sign - 1) else pattern for pattern in patterns}) == 1:
            value = decode(element_type, patterns[1])
            if not isinstance(value, Fraction):
                return patterns[1], 0.0
            unit = _unit(value, layout)
            if high - low <= unit * _WIDEST or precision == _PRECISIONS[-1]:
                return patterns[1], float(((low + high) / 2 - value) / unit)
    raise UndecidedError(f"{_PRECISIONS[-1]} digits do not decide the nearest {element_type}")


def residues(estimates: Floats, rounded: Floats, element_type: ElementType) -> Floats:
    """What was rounded away of estimates, in units of the last place of the results."""
    with np.errstate(all="ignore"):
        units = np.ldexp(1.0, unit_exponents(rounded, element_type))
        return np.where(np.isfinite(rounded), (estimates - rounded) / units, 0.0)


def unit_exponents(values: Floats, element_type: ElementType) -> npt.NDArray[np.int64]:
    """The exponents of two of the units in the last place of finite numbers of a type."""
    layout = FLOAT_LAYOUTS[element_type]
    return _exponents(values, layout) - layout.mantissa_bits


def _exponents(values: Floats, layout: FloatLayout) -> npt.NDArray[np.int64]:
    _digits, exponents = np.frexp(values)
    return np.asarray(np.maximum(exponents.astype(np.int64) - 1, layout.least_exponent))


def _fraction(exact: Any) -> Fraction:
    """An exact ball as a fraction; beyond every float type, as a number that is beyond them too."""
    mantissa, exponent = map(int, exact.man_exp())
    if not mantissa:
        return Fraction(0)
    magnitude = mantissa.bit_length() + exponent
    if abs(magnitude) > _FARTHEST:
        mantissa, exponent = (1 if mantissa > 0 else -1), (_FARTHEST if magnitude > 0 else -_FARTHEST)
    return mantissa * Fraction(2) ** exponent


def _unit(value: Fraction, layout: FloatLayout) -> Fraction:
    """The unit in the last place of a float."""
    return Fraction(2) ** (int(_exponents(np.array([float(value)]), layout)[0]) - layout.mantissa_bits)
