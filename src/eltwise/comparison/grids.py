"""Grids of values: the scale of which all are multiples, as each of them bounds it, which was rounded."""

from __future__ import annotations

import math

import numpy as np

from eltwise.comparison.fitted_hypotheses import half_ulps
from eltwise.comparison.hypotheses import MOST_OF
from eltwise.core.dtypes import ElementType

_MOST_LEVELS = 1 << 16
_UNSURE = 0.25
"""A step between two levels is that of the grid if the rounding of both is no more of it."""

Grid = tuple[float, float, int, int]
"""Between which numbers a scale lies of which all values are multiples, and the least and greatest multiple."""


def grid_of(values: np.ndarray, element_type: ElementType) -> Grid | None:
    """The grid of values that are multiples of a scale, each of which was rounded.

    Of most of them it must be more than their type gives: all floats of some size are multiples of its last digit.
    """
    values = values[np.isfinite(values)]
    levels = np.unique(values)
    if not 3 <= levels.size <= _MOST_LEVELS:
        return None
    points = np.union1d(levels, 0.0)
    halves = half_ulps(points, element_type) * (1 + 2.0**-20)
    steps, errors = np.diff(points), halves[1:] + halves[:-1]
    is_sure = errors <= _UNSURE * steps
    if not is_sure.any():
        return None
    nearest = np.argmin(np.where(is_sure, steps, np.inf))
    order = np.argsort(np.abs(points), kind="stable")[1:]
    for part in (1, 2, 3):
        low, high = (float(steps[nearest] + sign * errors[nearest]) / part for sign in (-1, 1))
        bounds = _narrowed(low, high, np.abs(points[order]), halves[order])
        if bounds is not None and np.mean(half_ulps(values, element_type) <= _UNSURE * bounds[0]) >= MOST_OF:
            least, most = np.rint(levels[[0, -1]] / middle_of(*bounds))
            return (*bounds, int(least), int(most))
    return None


def _narrowed(low: float, high: float, sizes: np.ndarray, halves: np.ndarray) -> tuple[float, float] | None:
    """Between which of some numbers a scale lies of which sizes are multiples; they are in order."""
    for size, half in zip(sizes.tolist(), halves.tolist(), strict=True):
        middle = middle_of(low, high)
        if not 0 < middle < math.inf or size / _MOST_LEVELS > middle:
            return None
        multiple = max(round(size / middle), 1)
        low, high = max(low, (size - half) / multiple), min(high, (size + half) / multiple)
        if not 0 < low <= high:
            return None
    return low, high


def middle_of(low: float, high: float) -> float:
    """The middle of two numbers, whose sum may be infinite; 0 of the smallest ones."""
    return low / 2 + high / 2


def scales_of(x: np.ndarray, levels: np.ndarray) -> tuple[float, float]:
    """Between which numbers a scale lies by which quotients are rounded to these integers; no numbers of none."""
    size, times = np.abs(x), levels * np.where(x < 0, -1.0, 1.0)
    used = times > 0.5
    if not used.any():
        return 0.0, 0.0
    slack = 1 + 2.0**-22
    return float((size[used] / (times[used] + 0.5)).max()) / slack, float(
        (size[used] / (times[used] - 0.5)).min()
    ) * slack
