"""Real functions of arrays with NumPy, each rounded once: an estimate, and 192 digits where it does not decide. Pure.

It serves where no kernel can be compiled, and the types below 16 bits; its bits are those of kernels.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from math import inf
from typing import NamedTuple

import numpy as np

from eltwise.core.casting import cast
from eltwise.core.dtypes import BFLOAT16, FLOAT16, FLOAT32, FLOAT64, of_numpy
from eltwise.kernels import estimates, real_formulas
from eltwise.kernels.pairs import Pair
from eltwise.kernels.soft_floats import rounded, rounded_to_odd
from eltwise.kernels.vectors import Array, F

CIRCULAR = ("cos", "sin", "tan")

FARTHEST = dict.fromkeys(CIRCULAR, estimates.FARTHEST_ANGLE) | dict.fromkeys(
    ("gelu", "gelu_tanh", "mish", "swish"), 2.0**20
)
"""Functions of which pairs are no estimates of larger arguments."""

LEAST, MOST = 2.0**-960, 2.0**960
"""The sizes between which pairs of float64 keep their digits."""


class _Layout(NamedTuple):
    """How many digits a float type has, and the exponent of its least subnormal."""

    precision: int
    lowest: int


LAYOUTS = {
    BFLOAT16: _Layout(8, -133),
    FLOAT16: _Layout(11, -24),
    FLOAT32: _Layout(24, -149),
    FLOAT64: _Layout(53, -1074),
}


def evaluate(name: str, parameters: Mapping[str, float], array: np.ndarray) -> np.ndarray:
    """Compute a function of every element with NumPy.

    Args:
        name: one of the functions of float32.
        parameters: its attributes, all of them.
        array: floats of any type and shape.

    Returns:
        A new array of the same shape and type with the nearest elements, ties to even. Results beyond a float8 type are
        what it has for infinities.
    """
    element_type = of_numpy(array.dtype)
    assert element_type is not None
    with np.errstate(all="ignore"):
        wide = array.astype(np.float64)
        if element_type is FLOAT64:
            return _float64(name, parameters, wide)
        formula, exact_formula = estimates.FORMULAS[name], real_formulas.FORMULAS[name]
        values = np.asarray(formula(Array(wide), **parameters).values)
        sides = (cast(values * (1 + sign * estimates.ERROR), FLOAT64, element_type, False) for sign in (-1, 1))
        low, high = (side.astype(np.float64) for side in sides)
        undecided = low != high
        if name in estimates.INEXACT:
            undecided &= estimates.INEXACT[name](Array(wide), **parameters).values != 0
        undecided &= np.isfinite(values) & np.isfinite(wide)
        if name in CIRCULAR:
            undecided |= (np.abs(wide) > estimates.FARTHEST_ANGLE) & np.isfinite(wide)
        for index in zip(*np.nonzero(undecided), strict=True):
            real = exact_formula(real_formulas.of_float(float(wide[index])), **parameters)
            values[index] = rounded_to_odd(real)
        return cast(values, FLOAT64, element_type, False)


def _float64(name: str, parameters: Mapping[str, float], x: np.ndarray) -> np.ndarray:
    """A function of float64, computed with NumPy in an own error state."""
    formula, exact_formula = estimates.FORMULAS[name], real_formulas.FORMULAS[name]
    argument = bounded(name, Array(x))
    near = formula(argument, **parameters).values
    pair = formula(Pair(argument, argument.constant(0.0)), **parameters)
    values, size = np.array(np.broadcast_to(pair.high.values, x.shape)), np.abs(pair.high.values)
    low, high = (pair.high.values + (pair.low.values + sign * size * estimates.PAIR_ERROR) for sign in (-1, 1))
    undecided = (low != high) | ~((size >= LEAST) & (size <= MOST))
    undecided |= np.abs(x) > FARTHEST.get(name, inf)
    is_tiny = (np.abs(x) < LEAST) & (x != 0)
    special = ((near == 0) & ~is_tiny) | ~np.isfinite(near) | ~np.isfinite(x)
    undecided |= is_tiny
    values[special] = np.broadcast_to(near, x.shape)[special]
    for sign in (-1, 1):
        values[x == sign * inf] = limit(name, parameters, sign)
    for index in zip(*np.nonzero(undecided & ~special), strict=True):
        real = exact_formula(real_formulas.of_float(float(x[index])), **parameters)
        values[index] = rounded(real, *LAYOUTS[FLOAT64])
    return values


def bounded(name: str, x: F) -> F:
    """Arguments of which estimates of float64 say whether they are of the function's domain."""
    return abs(x).where("ogt", estimates.FARTHEST_ANGLE, x * 0.0 + 1.0, x) if name in CIRCULAR else x


def limit(name: str, parameters: Mapping[str, float], sign: int) -> float:
    """The value at an infinity; estimates there are those at large numbers."""
    with np.errstate(all="ignore"):
        value = float(estimates.FORMULAS[name](Array(np.array(sign * inf)), **parameters).values)
    if abs(value) > MOST:
        return math.copysign(inf, value)
    return math.copysign(0.0, value) if abs(value) < LEAST else value
