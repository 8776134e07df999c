"""Hypotheses on quantization: B on a grid of few levels, B as integers, or A as integers that were scaled again.

A grid has a scale for the whole tensor or for each index of an axis. The differences of levels bound the scale. Numbers
without their fractions are those of a grid of scale 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from eltwise.comparison.bounds import PIECE
from eltwise.comparison.fitted_hypotheses import best_fit, candidates, factor_bounds
from eltwise.comparison.grids import Grid, grid_of, middle_of, scales_of
from eltwise.comparison.hypotheses import BITS_OF_A_NUMBER, MOST_OF, Hypothesis, Problem, Sample, agrees, computed
from eltwise.comparison.numbers import shown, values_of
from eltwise.comparison.pairs import Pair, converted
from eltwise.comparison.places import coordinates_of
from eltwise.core.blocks import spread
from eltwise.core.dtypes import ElementType
from eltwise.oracle.numbers import FLOAT_LAYOUTS

_MOST_CHANNELS, _LEAST_ELEMENTS, _SAMPLED, _PROBED = 4096, 16, 2048, 3
_LEAST_OF_CHANNELS = 0.9
_LEVEL_BITS = 2.0

ROUNDINGS: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "rounded": lambda a, scale: np.rint(a / scale),
    "rounded by the reciprocal": lambda a, scale: np.rint(a * (a.dtype.type(1) / scale)),
    "truncated": lambda a, scale: np.trunc(a / scale),
    "floored": lambda a, scale: np.floor(a / scale),
    "rounded up": lambda a, scale: np.ceil(a / scale),
    "rounded with ties up": lambda a, scale: np.floor(a / scale + a.dtype.type(0.5)),
    "rounded with ties away from zero": lambda a, scale: np.copysign(
        np.floor(np.abs(a / scale) + a.dtype.type(0.5)), a
    ),
}
"""How quotients by a scale become integers, in words."""


@dataclass(frozen=True)
class _Quantizing:
    """How A becomes integers, and whether these stay or are multiplied by the scale again."""

    element_type: ElementType
    is_whole: bool
    limits: tuple[float, float]
    zero_point: int = 0
    keeps_zero_sign: bool = False
    rounding: str = "rounded"

    def __call__(self, a: np.ndarray, scales: np.ndarray | float) -> np.ndarray:
        """Quantize with one scale or one for each element; a scale of 0 stands for zeros."""
        values = values_of(a, self.element_type)
        scales = np.asarray(scales, values.dtype)
        steps = ROUNDINGS[self.rounding](values, scales)
        steps = steps + values.dtype.type(self.zero_point) if self.zero_point else steps
        steps = np.clip(steps, *self.limits)
        steps = steps if self.is_whole else steps * scales
        steps = np.where(scales == 0, 0, steps if self.keeps_zero_sign else steps + values.dtype.type(0))
        return converted(steps, self.element_type)


_Fitted = tuple[float, _Quantizing, list[float]]
"""The share that is predicted, by what, with which scales."""

Parts = Sequence[tuple[np.ndarray, np.ndarray]]
"""Elements of A and of B with one scale each."""


def quantized(problem: Problem) -> Iterator[Hypothesis]:
    """B is A quantized to integers, and either left there or multiplied by the scale again."""
    plain, wide = _quantizing(problem), problem.wide
    if plain is None:
        return
    parts = [(problem.sample.a, problem.sample.b)]
    if _is_whole(problem.sample):
        fitted = _fitted(parts, [(1.0, 1.0, 0, 0)], replace(plain, is_whole=True), MOST_OF)
        if fitted is not None:
            kind = "integers" if plain.limits[1] == math.inf else problem.pair.b.element_type.name
            details = {"scale": 1.0, "zero_point": 0, "rounding": fitted[1].rounding}
            predict = partial(fitted[1], scales=1.0)
            text = f"{{b}} is {{a}} {fitted[1].rounding} to {kind}"
            yield replace(computed("quantized", text, predict, details, 0, _LEVEL_BITS), is_stepped=True)
    best: _Fitted | None = None
    for zero_point in _zero_points(wide.x, wide.y / _unit(wide.y, plain), plain):
        chosen = replace(plain, zero_point=zero_point)
        grid = _grid(wide.x, wide.y, chosen)
        if grid is not None and not plain.is_whole:
            grid = (*grid[:2], *_extremes(problem.pair, grid))
        fitted = _fitted(parts, [grid], chosen, MOST_OF)
        if fitted is not None and (best is None or fitted[0] > best[0]):
            best = fitted
    if best is not None:
        yield _named(problem, *best[1:])


def packed(problem: Problem) -> Iterator[Hypothesis]:
    """B is A in the blocks of B's file, each of which has a scale of its own; the library of the format packs them."""
    pair, packing = problem.pair, problem.pair.b.source.packing
    if packing is None or problem.element_type not in FLOAT_LAYOUTS:
        return
    size = packing.size

    def predict(indices: np.ndarray, a: np.ndarray) -> np.ndarray:
        first, count = (int(indices[0]), indices.size) if indices.size else (0, 0)
        if not (first % size or count % size) and np.array_equal(indices, np.arange(first, first + count)):
            numbers, values = np.arange(count // size), a  # The blocks are there as a whole.
            rows = np.arange(count) // size
        else:
            numbers, rows = np.unique(indices // size, return_inverse=True)
            values = converted(pair.a.at((numbers[:, None] * size + np.arange(size)).reshape(-1)), pair.element_type)
        blocks = values_of(values, pair.element_type).astype(np.float32).reshape(numbers.size, size)
        return converted(packing.through(blocks)[rows, indices % size], pair.element_type)

    text = f"{{b}} is {{a}} quantized to {packing.name} in blocks of {size} elements, and back"
    yield Hypothesis("quantized", text, predict, {"type": packing.name}, 0.0, _LEVEL_BITS, is_stepped=True)


def _is_whole(sample: Sample) -> bool:
    """Whether most elements of B that differ are integers, also without the most common one, such as 0 of a ReLU."""
    y = sample.y[: sample.count]
    values, counts = np.unique(y, return_counts=True)
    is_other = y != values[np.argmax(counts)] if values.size else np.zeros(0, bool)
    is_whole = y == np.rint(y)
    return bool(is_other.any() and is_whole.mean() >= MOST_OF and is_whole[is_other].mean() >= MOST_OF)


def quantized_by_channel(problem: Problem) -> Iterator[Hypothesis]:
    """B is A quantized with a scale for each index of an axis, and either left there or multiplied by it again."""
    pair, plain = problem.pair, _quantizing(problem)
    if plain is None:
        return
    for axis, size in enumerate(pair.shape):
        if not 1 < size <= _MOST_CHANNELS or pair.size // size < _LEAST_ELEMENTS:
            continue
        if any(_grid(*_channel(pair, axis, int(one)), plain) is None for one in spread(size, _PROBED)):
            continue
        parts = [_channel(pair, axis, number) for number in range(size)]
        fitted = _fitted(parts, [_grid(*part, plain) for part in parts], plain, _LEAST_OF_CHANNELS)
        if fitted is not None:
            yield _named(problem, *fitted[1:], axis)


def _named(problem: Problem, quantizing: _Quantizing, scales: Sequence[float], axis: int | None = None) -> Hypothesis:
    """The hypothesis of one scale, or of one for each index of an axis."""
    kind, back = integer_type_of(*quantizing.limits)
    if quantizing.is_whole:
        kind, back = problem.pair.b.element_type.name, 0
    zero_point = back + quantizing.zero_point
    details: dict[str, object] = {"zero_point": zero_point, "type": kind, "rounding": quantizing.rounding}
    if axis is None:
        details |= {"scale": scales[0]}
        text, free = f"with scale {shown(scales[0])} and zero point {zero_point}", 2 * BITS_OF_A_NUMBER
    else:
        details |= {"axis": axis, "scales": scales[:64]}
        text = f"with a scale for each index of axis {axis}"
        free = len(scales) * BITS_OF_A_NUMBER * problem.sample.count / max(problem.figures.differing, 1)

    def predict(indices: np.ndarray, a: np.ndarray) -> np.ndarray:
        channels = 0 if axis is None else coordinates_of(indices, axis, problem.pair.shape)
        return quantizing(a, np.array(scales)[channels])

    text += "" if quantizing.rounding == "rounded" else f", {quantizing.rounding}"
    text = f"{{b}} is {{a}} quantized to {kind} {text}" + ("" if quantizing.is_whole else ", and back")
    if not quantizing.is_whole and zero_point != back:
        details["zero_point_back"] = back
        text += f" with zero point {back}"
    return Hypothesis("quantized", text, predict, details, free, _LEVEL_BITS, is_stepped=True)


def _quantizing(problem: Problem) -> _Quantizing | None:
    """What is known of a quantization from the types and the signs of zeros; None where there can be none."""
    element_type, of_a, of_b, wide = (
        problem.element_type,
        problem.pair.a.element_type,
        problem.pair.b.element_type,
        problem.wide,
    )
    if element_type not in FLOAT_LAYOUTS or of_a.is_integer or not (of_b.is_integer or of_a is of_b):
        return None
    if of_b.is_integer:
        return _Quantizing(element_type, True, of_b.limits)
    keeps = bool(np.signbit(wide.y[wide.y == 0]).any())
    return _Quantizing(element_type, False, (-math.inf, math.inf), keeps_zero_sign=keeps)


def _channel(pair: Pair, axis: int, number: int) -> tuple[np.ndarray, np.ndarray]:
    """Some evenly spread elements of one slice along an axis, of A and of B."""
    step, count = math.prod(pair.shape[axis + 1 :]), pair.shape[axis]
    rest = pair.size // count
    chosen = spread(rest, _SAMPLED)
    return pair.at(chosen // step * (step * count) + number * step + chosen % step)


def _unit(b: np.ndarray, plain: _Quantizing) -> float:
    """What multiples of a scale are divided by to be integers, about; 1 where there is no scale."""
    grid = None if plain.is_whole else grid_of(b, plain.element_type)
    return 1.0 if grid is None else middle_of(*grid[:2])


def _grid(a: np.ndarray, b: np.ndarray, plain: _Quantizing) -> Grid | None:
    """The grid that B shows: what multiples of a scale allow, and the quotients that are nearest to them."""
    (least, most), multiples, levels = plain.limits, (0, 0), None
    x, y = (values_of(each, plain.element_type).astype(np.float64) for each in (a, b))
    if not plain.is_whole:
        levels = grid_of(y, plain.element_type)
        if levels is None:
            return None
        y = np.rint(y / middle_of(*levels[:2]))
        least, most = multiples = levels[2:]
    inside = (y > least) & (y < most) & np.isfinite(x)
    low, high = scales_of(x[inside], y[inside] - plain.zero_point)
    if levels is not None:  # Other roundings than to nearest allow other quotients.
        both = max(low, levels[0]), min(high, levels[1])
        low, high = both if both[0] <= both[1] else levels[:2]
    return (low, high, *multiples) if 0 < low <= high else None


def _extremes(pair: Pair, grid: Grid) -> tuple[int, int]:
    """The least and greatest multiple in all of B: those of the largest values are often equal in A, in no sample."""
    scale, multiples = middle_of(*grid[:2]), [grid[2], grid[3]]
    for start, stop in pair.ranges(PIECE):
        levels = np.rint(values_of(pair.read_b(start, stop), pair.element_type).astype(np.float64) / scale)
        if (finite := levels[np.isfinite(levels)]).size:
            multiples += int(finite.min()), int(finite.max())
    return min(multiples), max(multiples)


def _fitted(parts: Parts, grids: Sequence[Grid | None], plain: _Quantizing, least: float) -> _Fitted | None:
    """The rounding that fits best, with a scale for each part: 0 for one of zeros; None if some part does not fit."""
    fitted = [grid for grid in grids if grid is not None]
    if not fitted or any(grid is None and b.any() for grid, (_a, b) in zip(grids, parts, strict=True)):
        return None
    if not plain.is_whole:
        plain = replace(plain, limits=(min(grid[2] for grid in fitted), max(grid[3] for grid in fitted)))
    best: _Fitted = (0.0, plain, [])
    tried = [np.array([0.0] if grid is None else [*candidates(*grid[:2])]) for grid in grids]
    for rounding in ROUNDINGS:
        quantizing, shares, scales = replace(plain, rounding=rounding), [], []
        for numbers, (a, b) in zip(tried, parts, strict=True):
            share, scale = _best_scale(numbers, quantizing, a, b)
            shares.append(share)
            scales.append(scale)
            if share < least:
                break
        else:
            best = max(best, (float(np.mean(shares)), quantizing, scales), key=lambda one: one[0])
            if min(shares) == 1:
                break
    return best if best[0] else None


def _best_scale(scales: np.ndarray, quantizing: _Quantizing, a: np.ndarray, b: np.ndarray) -> tuple[float, float]:
    """The largest share of B that one of some scales gives, and the first such scale; 0 and 0 where there are none."""
    best = 0.0, 0.0
    for some in (scales[:1], scales[1:]):  # Mostly the first one is right, or none is.
        if some.size and best[0] < 1:
            right = agrees(quantizing(a, some[:, None]), b, quantizing.element_type)
            counts = np.count_nonzero(right, axis=1)
            first = int(np.argmax(counts))
            best = max(best, (int(counts[first]) / b.size, float(some[first])), key=lambda one: one[0])
    return best


def integer_type_of(least: float, most: float) -> tuple[str, int]:
    """The integer type that multiples of a scale fit into, and the zero point.

    >>> integer_type_of(-127, 127), integer_type_of(-10, 245), integer_type_of(-8, 7)
    (('int8', 0), ('uint8', 10), ('int4', 0))
    """
    for bits in (4, 8, 16):
        half = 1 << (bits - 1)
        if -half <= least and most < half:
            return f"int{bits}", 0
        if most - least < 2 * half:
            return f"uint{bits}", max(-int(least), 0)
    return "int32", 0


def _zero_points(a: np.ndarray, b: np.ndarray, plain: _Quantizing) -> Sequence[int]:
    """The integers that 0 may have become: 0 first where it should have, then the nearest."""
    low, high = plain.limits
    middle = _at_zero(a, np.where((b > low) & (b < high), b, np.nan))
    nearest = [] if middle is None else [round(middle) + step for step in (0, -1, 1)]
    return list(dict.fromkeys(nearest if plain.is_whole else [0, *nearest]))


def _at_zero(x: np.ndarray, y: np.ndarray) -> float | None:
    """The y where x is 0 on a line through points; None if there is no such line."""
    used = np.isfinite(x) & np.isfinite(y)
    x, y = x[used], y[used]
    if np.unique(x).size < 3:
        return None
    aside = x - x.mean()
    intercept = float(y.mean() - x.mean() * (aside * y).sum() / (aside * aside).sum())
    return intercept if math.isfinite(intercept) else None


def dequantized(problem: Problem) -> Iterator[Hypothesis]:
    """B is ``(A - zero point) * scale`` of integers in A."""
    of_a, element_type, a, b = problem.pair.a.element_type, problem.element_type, problem.wide.x, problem.wide.y
    if element_type not in FLOAT_LAYOUTS or not of_a.is_integer or problem.pair.b.element_type.is_integer:
        return
    middle = _at_zero(b, a)
    zero_point = 0 if middle is None else round(middle)
    used = (a != zero_point) & (b != 0) & np.isfinite(b)
    scales = candidates(*factor_bounds(a[used] - zero_point, b[used], element_type)) if used.any() else ()

    def predict(values: np.ndarray, scale: float) -> np.ndarray:
        return np.asarray((values - values.dtype.type(zero_point)) * values.dtype.type(scale))

    scale = best_fit(scales, predict, problem.sample)
    if scale is not None:
        details = {"scale": scale, "zero_point": zero_point, "type": of_a.name}
        text = f"{{b}} is {{a}} dequantized with scale {shown(scale)} and zero point {zero_point}"
        yield computed("quantized", text, partial(predict, scale=scale), details, 2 * BITS_OF_A_NUMBER, _LEVEL_BITS)
