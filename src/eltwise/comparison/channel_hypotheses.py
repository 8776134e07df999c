"""Quantization with a scale for each channel: on one axis, every slice of B has a grid of its own."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from eltwise.comparison.fitted_hypotheses import WAYS, Way, candidates, grid_of, integer_type_of
from eltwise.comparison.hypotheses import Hypothesis, Problem, agrees
from eltwise.comparison.numbers import values_of
from eltwise.comparison.pairs import Pair, converted
from eltwise.comparison.places import coordinates_of
from eltwise.core.dtypes import FLOAT64, ElementType
from eltwise.oracle.numbers import FLOAT_LAYOUTS

_MOST_CHANNELS = 4096
_LEAST_ELEMENTS = 16
_SAMPLED = 2048
_PROBED = 3
_BITS_OF_A_SCALE = 24.0
_LEAST_SHARE = 0.9


@dataclass(frozen=True, eq=False)
class Channels:
    """The slices of a pair along an axis.

    Attributes:
        pair: the pair.
        axis: the axis.
    """

    pair: Pair
    axis: int

    @property
    def count(self) -> int:
        """How many there are."""
        return self.pair.shape[self.axis]

    def some(self, channel: int) -> tuple[np.ndarray, np.ndarray]:
        """Some evenly spread elements of one, of A and of B."""
        step, rest = math.prod(self.pair.shape[self.axis + 1 :]), self.pair.size // self.count
        chosen = np.unique(np.linspace(0, rest - 1, min(rest, _SAMPLED)).astype(np.int64))
        return self.pair.at(chosen // step * (step * self.count) + channel * step + chosen % step)


@dataclass(frozen=True, eq=False)
class ByChannel:
    """A quantized and multiplied again; a scale of 0 stands for a channel of zeros.

    Attributes:
        channels: the slices.
        scales: the scale of each.
        way: how quotients are rounded.
        least: the least multiple.
        most: the greatest multiple.
    """

    channels: Channels
    scales: np.ndarray
    way: Way
    least: int
    most: int

    def at(self, indices: np.ndarray) -> np.ndarray:
        """Quantize single elements."""
        pair = self.channels.pair
        return self._quantized(converted(pair.a.at(indices), pair.element_type), indices)

    def read(self, start: int, stop: int) -> np.ndarray:
        """Quantize a range."""
        return self._quantized(self.channels.pair.read_a(start, stop), np.arange(start, stop))

    def _quantized(self, values: np.ndarray, indices: np.ndarray) -> np.ndarray:
        pair = self.channels.pair
        scales = self.scales[coordinates_of(indices, self.channels.axis, pair.shape)]
        return _on_grid(values, scales, self.way, (self.least, self.most), pair.element_type)


def quantized_by_channel(problem: Problem) -> Iterator[Hypothesis]:
    """B is A quantized with a scale for each index of an axis, and multiplied by the scales again."""
    pair, own = problem.pair, problem.element_type
    if own not in FLOAT_LAYOUTS or pair.a.element_type is not pair.b.element_type:
        return
    for axis, size in enumerate(pair.shape):
        if not 1 < size <= _MOST_CHANNELS or pair.size // size < _LEAST_ELEMENTS:
            continue
        predicted = _fitted(Channels(pair, axis), own)
        if predicted is None:
            continue
        kind, zero_point = integer_type_of(predicted.least, predicted.most)
        details: dict[str, object] = {"axis": axis, "scales": [float(one) for one in predicted.scales[:64]]}
        details |= {"type": kind, "zero_point": zero_point, "rounding": predicted.way.name}
        details["levels"] = [predicted.least, predicted.most]
        text = f"{{b}} is {{a}} quantized to {kind} with a scale for each index of axis {axis}, and back"
        share = float(problem.sample.differs.sum()) / max(problem.differing, 1)
        free = size * _BITS_OF_A_SCALE * share
        yield Hypothesis("quantized", text, predicted, details, least_bits=2.0, free_bits=free)


def _fitted(channels: Channels, own: ElementType) -> ByChannel | None:
    """A scale for each channel, and the way to round that fits best; None if a channel has no grid."""
    probed = dict.fromkeys(int(one) for one in np.linspace(0, channels.count - 1, _PROBED))
    if any(_grid(channels.some(channel)[1], own) is None for channel in probed):
        return None
    some = [channels.some(channel) for channel in range(channels.count)]
    grids = [_grid(b, own) for _a, b in some]
    known = [number for number, grid in enumerate(grids) if grid is not None]
    if any(grid is None and b.any() for grid, (_a, b) in zip(grids, some, strict=True)):
        return None
    limits = min(grid[2] for grid in grids if grid), max(grid[3] for grid in grids if grid)
    best: tuple[float, ByChannel] | None = None
    for way in WAYS:
        scales, shares = np.zeros(channels.count, values_of(some[0][0][:0], own).dtype), []
        for number in known:
            grid = grids[number]
            assert grid is not None
            scales[number], share = _scale(*some[number], grid, way, limits, own)
            shares.append(share)
            if share < _LEAST_SHARE:
                break
        else:
            if best is None or float(np.mean(shares)) > best[0]:
                best = float(np.mean(shares)), ByChannel(channels, scales, way, *limits)
            if min(shares) == 1:
                break
    return best[1] if best else None


def _grid(b: np.ndarray, own: ElementType) -> tuple[float, float, int, int] | None:
    return grid_of(values_of(b, own).astype(np.float64), own)


def _scale(
    a: np.ndarray,
    b: np.ndarray,
    grid: tuple[float, float, int, int],
    way: Way,
    limits: tuple[int, int],
    own: ElementType,
) -> tuple[float, float]:
    """The number between the bounds that predicts most of a channel, and how much of it."""
    best = (0.0, -1.0)
    for scale in candidates(grid[0], grid[1], own):
        scales = np.full(a.shape, scale, values_of(a[:0], own).dtype)
        share = float(agrees(_on_grid(a, scales, way, limits, own), b, own).mean())
        if share > best[1]:
            best = scale, share
        if share == 1:
            break
    return best


def _on_grid(values: np.ndarray, scales: np.ndarray, way: Way, limits: tuple[int, int], own: ElementType) -> np.ndarray:
    with np.errstate(all="ignore"):
        wide = values if own is FLOAT64 else values.astype(np.float32)
        multiples = np.clip(way.round(wide, scales), *limits)
        return np.asarray(np.where(scales == 0, 0, multiples * scales)).astype(own.storage)
