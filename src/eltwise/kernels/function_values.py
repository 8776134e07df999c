"""Real functions of arrays with NumPy, each rounded once: an estimate, and 192 digits where it does not decide. Pure.

It serves where no kernel can be compiled, and the types below 16 bits; its bits are those of kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import Any

import numpy as np

from eltwise.core.casting import cast
from eltwise.core.dtypes import FLOAT64, ElementType, of_numpy
from eltwise.kernels import estimates, real_formulas
from eltwise.kernels.angle_estimates import FARTHEST_ANGLE
from eltwise.kernels.arrays import Array
from eltwise.kernels.float64_estimates import CIRCULAR, estimated, estimated_pair, is_tiny
from eltwise.kernels.soft_floats import Soft, of_float, rounded, rounded_to_odd


def evaluate(name: str, parameters: Mapping[str, float], array: np.ndarray) -> np.ndarray:
    """Compute a function of every element of floats of any type and shape with NumPy.

    Returns:
        A new array of the same shape and type with the nearest elements, ties to even. Results beyond a float8 type are
        what it has for infinities.
    """
    element_type = of_numpy(array.dtype)
    if element_type.bits == 8:
        return np.asarray(_of_all(name, tuple(parameters.items()), element_type)[array.view(np.uint8)])
    return _evaluated(name, parameters, array)


@lru_cache(maxsize=256)
def _of_all(name: str, parameters: tuple[tuple[str, float], ...], element_type: ElementType) -> np.ndarray:
    """A function of all numbers of a type of 8 bits, by their bits."""
    return _evaluated(name, dict(parameters), np.arange(256, dtype=np.uint8).view(element_type.storage))


def _evaluated(name: str, parameters: Mapping[str, float], array: np.ndarray) -> np.ndarray:
    element_type = of_numpy(array.dtype)
    with np.errstate(all="ignore"):
        wide = array.astype(np.float64)
        exact = partial(real_formulas.FORMULAS[name], **parameters)
        if element_type is FLOAT64:
            x = Array(wide)
            result, undecided = estimated(name, parameters, x, *estimated_pair(name, parameters, x))
            decide(result.values, undecided, element_type, exact, wide)
            return result.values
        values = np.asarray(estimates.FORMULAS[name](Array(wide), **parameters).values)
        undecided = differ(values * (1 - estimates.ERROR), values * (1 + estimates.ERROR), element_type)
        if name in estimates.EXACT_IN_DOUBLE:
            undecided &= is_tiny(Array(wide), estimates.TINY)
        if name == "hard_sigmoid":
            undecided &= estimates.is_hard_sigmoid_inexact(Array(wide), **parameters)
        undecided &= np.isfinite(values) & np.isfinite(wide)
        if name in CIRCULAR:
            undecided |= (np.abs(wide) > FARTHEST_ANGLE) & np.isfinite(wide)
        decide(values, undecided, element_type, exact, wide)
        return cast(values, FLOAT64, element_type, False)


def differ(low: np.ndarray, high: np.ndarray, element_type: ElementType) -> np.ndarray:
    """Flags where two float64 are rounded to different elements of a type."""
    below, above = (cast(each, FLOAT64, element_type, False).astype(np.float64) for each in (low, high))
    return np.asarray((below != above) & ~(np.isnan(below) & np.isnan(above)))  # Some types have NaN for infinities.


def decide(
    values: np.ndarray, undecided: np.ndarray, element_type: ElementType, formula: Callable[..., Soft], *operands: Any
) -> None:
    """Replace estimates where these do not decide.

    Args:
        values: estimates, as float64; they become the nearest numbers, or for narrower types numbers that are rounded
            to the nearest ones. A real zero has the sign of its estimate.
        undecided: flags of those that are replaced.
        element_type: what they are rounded to.
        formula: the function, to 192 digits.
        *operands: its float64 operands, of the same shape.
    """
    for index in zip(*np.nonzero(undecided), strict=True):
        real = formula(*(of_float(float(each[index])) for each in operands))
        is_double = element_type is FLOAT64
        nearest = rounded(real, FLOAT64.digits, FLOAT64.least_exponent) if is_double else rounded_to_odd(real)
        values[index] = nearest if real.mantissa else np.copysign(0.0, values[index])
