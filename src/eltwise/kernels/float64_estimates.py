"""Real functions of float64: what estimates give, and where they do not decide; in vectors and in arrays. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from math import inf
from typing import Any

import numpy as np

from eltwise.kernels import estimates
from eltwise.kernels.angle_estimates import FARTHEST_ANGLE
from eltwise.kernels.arrays import Array
from eltwise.kernels.pairs import Pair
from eltwise.kernels.vectors import F

CIRCULAR = ("cos", "sin", "tan")

_FARTHEST = dict.fromkeys(CIRCULAR, FARTHEST_ANGLE) | dict.fromkeys(("gelu", "gelu_tanh", "mish", "swish"), 2.0**20)
"""Functions of which pairs are no estimates of larger arguments."""

_CLAMPED = ("hard_sigmoid", "hard_swish", "hsigmoid")

_LEAST, _MOST = 2.0**-960, 2.0**960
"""The sizes between which pairs of float64 keep their digits."""


def estimated_pair(name: str, parameters: Mapping[str, float], x: F) -> tuple[Pair[F], Any]:
    """The sums of two float64 that estimate a function's values, and flags where they do not decide these.

    Where no flag is set the first one plus the second is the value, rounded. Flags are set for all values that are
    infinite, NaN, or too small or large for pairs, most of those that are 0, and for arguments that are but for 0.
    """
    pair, size = estimates.FORMULAS[name](Pair(x, x.constant(0.0)), **parameters), abs(x)
    unsure = is_unsure(pair.high, pair.low, abs(pair.high) * estimates.PAIR_ERROR)
    if name in _CLAMPED:  # Many of their values are zeros, which are exact where x is none.
        unsure = unsure & (pair.high.flags("une", 0.0) | pair.low.flags("une", 0.0) | x.flags("oeq", 0.0))
    unsure = unsure | is_tiny(x, _LEAST)
    return pair, unsure | size.flags("ugt", _FARTHEST[name]) if name in _FARTHEST else unsure


def estimated(name: str, parameters: Mapping[str, float], x: F, pair: Pair[F], undecided: Any) -> tuple[F, Any]:
    """The results of a function, and flags where they are not decided, given what ``estimated_pair`` gives.

    What one float64 gives of 0, infinities, poles and NaN is the result; else the pair is an estimate.
    """
    near, size = estimates.FORMULAS[name](_bounded(name, x), **parameters), abs(x)
    # Terms that cancel may leave nothing in one float64.
    is_left = pair.high.flags("one", 0.0) & x.flags("one", 0.0)
    is_ordinary = (is_tiny(x, _LEAST) | is_left | near.flags("one", 0.0)) & abs(near).flags("olt", inf)
    is_ordinary = is_ordinary & size.flags("olt", inf)
    result = (pair.high + pair.low).chosen(is_ordinary, near)
    for sign in (-1, 1):
        result = x.where("oeq", sign * inf, _limit(name, parameters, sign), result)
    # Which NaN a sum of two gives depends on their order, which compilers change.
    return (x + x).chosen(x.flags("une", x), result), undecided & is_ordinary


def is_tiny(x: F, limit: float) -> Any:
    """Flags of numbers other than 0 whose magnitudes are below a limit."""
    return abs(x).flags("olt", limit) & x.flags("one", 0.0)


def is_unsure(high: F, low: F, error: F) -> Any:
    """Flags where sums of two float64 within an error have several nearest numbers, or pairs lose digits."""
    below, above, size = high + (low - error), high + (low + error), abs(high)
    return below.flags("une", above) | size.flags("ult", _LEAST) | size.flags("ugt", _MOST)


def _bounded(name: str, x: F) -> F:
    """Arguments of which estimates of float64 say whether they are of the function's domain."""
    return abs(x).where("ogt", FARTHEST_ANGLE, x * 0.0 + 1.0, x) if name in CIRCULAR else x


def _limit(name: str, parameters: Mapping[str, float], sign: int) -> float:
    """The value at an infinity; estimates there are those at large numbers."""
    with np.errstate(all="ignore"):
        value = float(estimates.FORMULAS[name](Array(np.array(sign * inf)), **parameters).values)
    if abs(value) > _MOST:
        return math.copysign(inf, value)
    return math.copysign(0.0, value) if abs(value) < _LEAST else value
