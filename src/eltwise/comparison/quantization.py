"""Hypotheses on quantization: B on a grid of few levels, B as integers, or A as integers that were scaled again.

A grid has a scale for the whole tensor or for each index of an axis. The differences of levels bound the scale.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from eltwise.comparison.fitted_hypotheses import candidates, factor_bounds, half_ulps, shown
from eltwise.comparison.hypotheses import MOST_OF, Hypothesis, Problem, agrees, computed
from eltwise.comparison.numbers import is_float, values_of
from eltwise.comparison.pairs import Pair, converted
from eltwise.comparison.places import coordinates_of
from eltwise.core.dtypes import FLOAT64, ElementType
from eltwise.oracle.numbers import FLOAT_LAYOUTS

_MOST_LEVELS = 1 << 16
_UNSURE = 0.25
_MOST_CHANNELS, _LEAST_ELEMENTS, _SAMPLED, _PROBED = 4096, 16, 2048, 3
_BITS_OF_A_SCALE = 24.0
_LEAST_OF_CHANNELS = 0.9
_LEVEL_BITS = 2.0


@dataclass(frozen=True)
class _Grid:
    """Between which numbers a scale lies of which all values are multiples, and the least and greatest multiple."""

    low: float
    high: float
    least: int
    most: int


def _grid_of(values: np.ndarray, own: ElementType) -> _Grid | None:
    levels = np.unique(values[np.isfinite(values)])
    if not 3 <= levels.size <= _MOST_LEVELS:
        return None
    steps = levels / np.diff(levels).min()
    for part in (1, 2, 3):
        multiples = np.rint(steps * part)
        if np.abs(steps * part - multiples).max() > _UNSURE or multiples[-1] - multiples[0] > _MOST_LEVELS:
            continue
        used = multiples != 0
        if np.abs(levels[~used]).max(initial=0) > 0:
            continue
        half = half_ulps(levels[used], own) * 1.01
        ends = np.stack([(levels[used] - half) / multiples[used], (levels[used] + half) / multiples[used]])
        low, high = float(ends.min(axis=0).max()), float(ends.max(axis=0).min())
        if 0 < low <= high:
            return _Grid(low, high, int(multiples[0]), int(multiples[-1]))
    return None


def integer_type_of(least: int, most: int) -> tuple[str, int]:
    """The integer type that multiples of a scale fit into, and the zero point.

    >>> integer_type_of(-127, 127), integer_type_of(-10, 245), integer_type_of(-8, 7)
    (('int8', 0), ('uint8', 10), ('int4', 0))
    """
    for bits in (4, 8, 16):
        half = 1 << (bits - 1)
        if -half <= least and most < half:
            return f"int{bits}", 0
        if most - least < 2 * half:
            return f"uint{bits}", max(-least, 0)
    return "int32", 0


def _half(values: np.ndarray) -> np.ndarray:
    return np.asarray(0.5, values.dtype)


def _plain(values: np.ndarray) -> np.ndarray:
    """Zeros without a sign, as integers have."""
    return np.asarray(values + values.dtype.type(0))


Way = Callable[[np.ndarray, np.ndarray], np.ndarray]
WAYS: dict[str, Way] = {
    "nearest even": lambda a, scale: _plain(np.rint(a / scale)),
    "nearest even, reciprocal": lambda a, scale: _plain(np.rint(a * (a.dtype.type(1) / scale))),
    "nearest even, zeros keep their sign": lambda a, scale: np.rint(a / scale),
    "half up": lambda a, scale: _plain(np.floor(a / scale + _half(a))),
    "half away": lambda a, scale: _plain(np.copysign(np.floor(np.abs(a / scale) + _half(a)), a)),
    "toward zero": lambda a, scale: _plain(np.trunc(a / scale)),
    "down": lambda a, scale: _plain(np.floor(a / scale)),
}
"""How quotients by a scale become multiples of it, by name."""


def _on_grid(
    a: np.ndarray, scales: np.ndarray, way: str, limits: tuple[int, int], own: ElementType, is_whole: bool = False
) -> np.ndarray:
    """Quantize and multiply again, with one scale or one for each element; a scale of 0 stands for zeros.

    Integers are left as they are where ``is_whole``.
    """
    values = values_of(a, own)
    multiples = np.clip(WAYS[way](values, scales), *limits)
    return np.asarray(np.where(scales == 0, 0, multiples if is_whole else multiples * scales)).astype(own.storage)


def quantized(problem: Problem) -> Iterator[Hypothesis]:
    """B is A quantized to integers, and either left there or multiplied by the scale again."""
    own, sample = problem.element_type, problem.wide
    of_a, of_b = problem.pair.a.element_type, problem.pair.b.element_type
    if not is_float(own) or own.numpy is None:
        return
    if of_b.is_integer and not of_a.is_integer:
        yield from _to_integers(problem, of_b)
    elif of_a is of_b and own in FLOAT_LAYOUTS:
        few = problem.sample
        fitted = _fitted([(few.a, few.b)], [_grid_of(sample.y, own)], own, MOST_OF)
        if fitted is None:
            return
        way, (scale,), limits = fitted
        kind, zero_point = integer_type_of(*limits)
        scales = np.asarray(scale, values_of(sample.a[:0], own).dtype)
        function = partial(_on_grid, scales=scales, way=way, limits=limits, own=own)
        details = {"scale": scale, "zero_point": zero_point, "type": kind, "rounding": way, "levels": list(limits)}
        text = f"{{b}} is {{a}} quantized to {kind} with scale {shown(scale)} and zero point {zero_point}, and back"
        yield computed("quantized", text, function, details, 2, _LEVEL_BITS)


def quantized_by_channel(problem: Problem) -> Iterator[Hypothesis]:
    """B is A quantized with a scale for each index of an axis, and either left there or multiplied by it again."""
    pair, own = problem.pair, problem.element_type
    types, whole = (pair.a.element_type, pair.b.element_type), pair.b.element_type.is_integer
    if own not in FLOAT_LAYOUTS or not problem.has_one_shape or types[0].is_integer:
        return
    if not (whole or types[0] is types[1]):
        return
    grid_of = partial(_grid_of_integers, limits=types[1].limits) if whole else partial(_grid_of_channel, own=own)
    for axis, size in enumerate(pair.shape):
        if not 1 < size <= _MOST_CHANNELS or pair.size // size < _LEAST_ELEMENTS:
            continue
        probed = dict.fromkeys(int(one) for one in np.linspace(0, size - 1, _PROBED))
        if any(grid_of(*_channel(pair, axis, one)) is None for one in probed):
            continue
        parts = [_channel(pair, axis, number) for number in range(size)]
        fitted = _fitted(parts, [grid_of(a, b) for a, b in parts], own, _LEAST_OF_CHANNELS, whole)
        if fitted is None:
            continue
        way, found, limits = fitted
        kind, zero_point = integer_type_of(*limits)
        scales = np.asarray(found, values_of(problem.sample.a[:0], own).dtype)
        details: dict[str, object] = {"axis": axis, "scales": [float(one) for one in scales[:64]], "type": kind}
        details |= {"zero_point": zero_point, "rounding": way, "levels": list(limits)}
        text = f"{{b}} is {{a}} quantized to {kind} with a scale for each index of axis {axis}"
        text += "" if whole else ", and back"
        free = size * _BITS_OF_A_SCALE * problem.sample.count / max(problem.differing, 1)

        def predict(
            indices: np.ndarray,
            a: np.ndarray,
            axis: int = axis,
            scales: np.ndarray = scales,
            way: str = way,
            limits: tuple[int, int] = limits,
        ) -> np.ndarray:
            return _on_grid(a, scales[coordinates_of(indices, axis, pair.shape)], way, limits, own, whole)

        yield Hypothesis("quantized", text, predict, details, least_bits=_LEVEL_BITS, free_bits=free)


def _channel(pair: Pair, axis: int, number: int) -> tuple[np.ndarray, np.ndarray]:
    """Some evenly spread elements of one slice along an axis, of A and of B."""
    step, count = math.prod(pair.shape[axis + 1 :]), pair.shape[axis]
    rest = pair.size // count
    chosen = np.unique(np.linspace(0, rest - 1, min(rest, _SAMPLED)).astype(np.int64))
    return pair.at(chosen // step * (step * count) + number * step + chosen % step)


def _grid_of_channel(_a: np.ndarray, b: np.ndarray, own: ElementType) -> _Grid | None:
    return _grid_of(values_of(b, own).astype(np.float64), own)


def _grid_of_integers(a: np.ndarray, b: np.ndarray, limits: tuple[int, int]) -> _Grid | None:
    """The grid of which integers are the multiples that quotients are nearest to."""
    inside = (b > limits[0]) & (b < limits[1]) & np.isfinite(a)
    low, high = _scale_bounds(a[inside].astype(np.float64), b[inside].astype(np.float64))
    return _Grid(low, high, *limits) if 0 < low <= high else None


def _fitted(
    parts: Sequence[tuple[np.ndarray, np.ndarray]],
    grids: Sequence[_Grid | None],
    own: ElementType,
    least: float,
    is_whole: bool = False,
) -> tuple[str, list[float], tuple[int, int]] | None:
    """The way to round that fits best, a scale for each part, 0 for one of zeros, and the limits of the multiples."""
    known = [grid for grid in grids if grid is not None]
    if not known or any(grid is None and b.any() for grid, (_a, b) in zip(grids, parts, strict=True)):
        return None
    limits = min(grid.least for grid in known), max(grid.most for grid in known)
    best: tuple[float, str, list[float]] = (-1.0, "", [])
    for way in WAYS:
        quantize = partial(_on_grid, way=way, limits=limits, own=own, is_whole=is_whole)
        scales, shares = [], []
        for grid, (a, b) in zip(grids, parts, strict=True):
            share, scale = (1.0, 0.0) if grid is None else _best_scale(a, b, grid, quantize, own)
            scales.append(scale)
            shares.append(share)
            if share < least:
                break
        else:
            best = max(best, (float(np.mean(shares)), way, scales), key=lambda one: one[0])
            if min(shares) == 1:
                break
    return (best[1], best[2], limits) if best[1] else None


def _best_scale(
    a: np.ndarray, b: np.ndarray, grid: _Grid, quantize: Callable[..., np.ndarray], own: ElementType
) -> tuple[float, float]:
    """How much of a part the best scale between the bounds predicts, and that scale."""
    best = (-1.0, 0.0)
    for scale in candidates(grid.low, grid.high, own):
        scales = np.asarray(scale, values_of(a[:0], own).dtype)
        share = float(agrees(np.ascontiguousarray(quantize(a, scales)), b, own).mean())
        best = max(best, (share, scale), key=lambda one: one[0])
        if share == 1:
            break
    return best


def _to_integers(problem: Problem, whole: ElementType) -> Iterator[Hypothesis]:
    """B holds the quantized integers themselves."""
    own, (a, b), limits = problem.element_type, (problem.wide.x, problem.wide.y), whole.limits
    inside = (b > limits[0]) & (b < limits[1]) & np.isfinite(a)
    a, b = a[inside], b[inside]
    slope, _first = _line(b, a)
    if not slope:
        return
    middle = float(np.median(b - a / slope))
    for zero_point in dict.fromkeys((round(middle), round(middle) - 1, round(middle) + 1)):
        for scale in candidates(*_scale_bounds(a, b - zero_point), FLOAT64):
            for way in WAYS:
                function = partial(_as_integers, way=way, scale=scale, zero_point=zero_point, limits=limits, own=own)
                if problem.sample.fits(function):
                    details = {"scale": scale, "zero_point": zero_point, "rounding": way, "type": whole.name}
                    text = f"{{b}} is {{a}} quantized to {whole} with scale {shown(scale)} and zero point {zero_point}"
                    yield computed("quantized", text, function, details, 2, _LEVEL_BITS)
                    return


def _line(x: np.ndarray, y: np.ndarray) -> tuple[float, int]:
    """The slope between the least and the greatest ``y``, 0 where there is none, and the index of the least."""
    if x.size < 3:
        return 0.0, 0
    first, last = int(np.argmin(y)), int(np.argmax(y))
    return (float(y[last] - y[first]) / float(x[last] - x[first]) if x[last] != x[first] else 0.0), first


def _scale_bounds(a: np.ndarray, multiples: np.ndarray) -> tuple[float, float]:
    """The bounds of the scale where each quotient is within half of its multiple."""
    size, times = np.abs(a), multiples * np.where(a < 0, -1.0, 1.0)
    used = times > 0.5
    if not used.any():
        return 1.0, 0.0
    slack = 1 + 2.0**-22
    low = float((size[used] / (times[used] + 0.5)).max()) / slack
    high = float((size[used] / (times[used] - 0.5)).min()) * slack
    return low, high


def _as_integers(
    a: np.ndarray, way: str, scale: float, zero_point: int, limits: tuple[int, int], own: ElementType
) -> np.ndarray:
    values = values_of(a, own)
    multiples = _plain(WAYS[way](values, np.asarray(scale, values.dtype)))
    return converted(np.clip(multiples + values.dtype.type(zero_point), *limits), own)


def dequantized(problem: Problem) -> Iterator[Hypothesis]:
    """B is ``(A - zero point) * scale`` of integers in A."""
    of_a, of_b, own = problem.pair.a.element_type, problem.pair.b.element_type, problem.element_type
    if own not in FLOAT_LAYOUTS or not of_a.is_integer or of_b.is_integer:
        return
    a, b = problem.wide.x, problem.wide.y
    zeros = np.unique(a[b == 0])
    if zeros.size > 1 or not np.isfinite(b).all() or np.unique(a).size < 3:
        return
    slope, first = _line(b, a)
    zero_point = int(zeros[0]) if zeros.size else round(a[first] - b[first] * slope) if slope else 0
    used = (a != zero_point) & (b != 0)
    for scale in candidates(*factor_bounds(a[used] - zero_point, b[used], own), own) if used.any() else ():
        function = lambda values, scale=scale: (values - values.dtype.type(zero_point)) * values.dtype.type(scale)  # noqa: E731
        if problem.sample.fits(function):
            details = {"scale": scale, "zero_point": zero_point, "type": of_a.name}
            text = f"{{b}} is {{a}} dequantized with scale {shown(scale)} and zero point {zero_point}"
            yield computed("quantized", text, function, details, 2, _LEVEL_BITS)
            return
