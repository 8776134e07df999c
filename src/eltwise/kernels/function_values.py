"""Real functions of arrays with NumPy, each rounded once: an estimate, and 192 digits where it does not decide. Pure.

It serves where no kernel can be compiled, and the types below 16 bits; its bits are those of kernels.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from eltwise.core.casting import cast
from eltwise.core.dtypes import FLOAT64, of_numpy
from eltwise.kernels import estimates, real_formulas
from eltwise.kernels.float64_estimates import CIRCULAR, estimated
from eltwise.kernels.soft_floats import rounded, rounded_to_odd
from eltwise.kernels.vectors import Array


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
    result, undecided = estimated(name, parameters, Array(x))
    for index in zip(*np.nonzero(undecided), strict=True):
        real = real_formulas.FORMULAS[name](real_formulas.of_float(float(x[index])), **parameters)
        result.values[index] = rounded(real, FLOAT64.digits, FLOAT64.least_exponent)
    return result.values
