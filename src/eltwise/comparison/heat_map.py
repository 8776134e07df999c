"""A small picture of where differences lie: the largest one in each cell of a grid over the two most telling axes."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from eltwise.comparison.numbers import gaps
from eltwise.comparison.pairs import Pair
from eltwise.comparison.places import coordinates_of
from eltwise.comparison.scan import Figures
from eltwise.report.pictures import grid_url

MOST_ROWS, MOST_COLUMNS = 64, 96
_BINS = 32


@dataclass(frozen=True, eq=False)
class HeatMap:
    """The largest difference in each cell.

    Attributes:
        axes: the axes downwards and to the right; -1 for an axis that the tensor does not have.
        grid: the largest absolute difference of a cell, NaN where none was seen.
        seen: how many differing elements went into it.
    """

    axes: tuple[int, int]
    grid: np.ndarray
    seen: int

    @property
    def limits(self) -> tuple[float, float]:
        """The least and the largest finite difference of a cell; 0 where there is none."""
        positive = self.grid[np.isfinite(self.grid) & (self.grid > 0)]
        return (float(positive.min()), float(positive.max())) if positive.size else (0.0, 0.0)

    def url(self) -> str:
        """The picture as an address that holds it: each cell a pixel, stronger for more digits of difference."""
        with np.errstate(all="ignore"):
            digits = np.log10(np.where(np.isfinite(self.grid) & (self.grid > 0), self.grid, np.nan))
            low, high = np.log10(self.limits)
        level = (digits - low) / (high - low) if high > low else np.ones_like(digits)
        level = np.where(np.isnan(digits), 1.0, level)  # Infinities and zeros of another sign.
        return grid_url(np.where(np.isnan(self.grid), np.nan, level))


def heat_map(pair: Pair, figures: Figures) -> HeatMap | None:
    """Draw the sampled places of a pair; None where nothing differs."""
    sample, shape = figures.sample, pair.shape
    if not sample.size:
        return None
    with np.errstate(all="ignore"):
        sizes = gaps(figures.sample_a, figures.sample_b, pair.element_type).astype(np.float64)
    sizes = np.where(np.isnan(sizes), np.inf, sizes)
    long = [axis for axis, size in enumerate(shape) if size > 1]
    if len(long) < 2:
        axis, size = long[0] if long else -1, math.prod(shape)
        columns = min(size, MOST_COLUMNS)
        return _drawn((-1, axis), (1, columns), np.zeros_like(sample), sample * columns // size, sizes)
    down, right = _telling(sample, shape)
    rows, columns = min(shape[down], MOST_ROWS), min(shape[right], MOST_COLUMNS)
    y, x = (coordinates_of(sample, axis, shape) for axis in (down, right))
    return _drawn((down, right), (rows, columns), y * rows // shape[down], x * columns // shape[right], sizes)


def _drawn(axes: tuple[int, int], size: tuple[int, int], y: np.ndarray, x: np.ndarray, sizes: np.ndarray) -> HeatMap:
    grid = np.full(size, -1.0)
    np.maximum.at(grid, (y, x), sizes)
    return HeatMap(axes, np.where(grid < 0, np.nan, grid), sizes.size)


def _telling(sample: np.ndarray, shape: tuple[int, ...]) -> tuple[int, int]:
    """The two axes on which the places are least even; of axes that are alike, the longest."""
    scores = []
    for axis, size in enumerate(shape):
        if size > 1:
            bins = min(size, _BINS)
            counts = np.bincount(coordinates_of(sample, axis, shape) * bins // size, minlength=bins)
            uneven = float(counts.std() / counts.mean()) if counts.size else 0.0
            scores.append((round(uneven, 1), size, -axis))
    chosen = sorted(-axis for _uneven, _size, axis in sorted(scores, reverse=True)[:2])
    return chosen[0], chosen[1]
