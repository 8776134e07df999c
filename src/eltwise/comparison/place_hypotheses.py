"""Hypotheses that move elements: transposed, flipped, shifted, reordered, padded, broadcast, stale, another tail."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

import numpy as np

from eltwise.comparison.hypotheses import BITS_OF_A_NUMBER, LEAST_BITS_OF_INTEGERS, Hypothesis, Problem
from eltwise.comparison.numbers import bits_of, exact_values, shown
from eltwise.comparison.pairs import converted
from eltwise.core.blocks import spread
from eltwise.ir.tensors import Tensor

Shape = Sequence[int]
IndexMap = Callable[[np.ndarray], np.ndarray]
"""Gives for flat indices in B those in A, or for coordinates those there; a negative one stands for a fill value."""
Fill = np.generic | Callable[[np.ndarray], np.ndarray] | None
"""What B has where nothing of A is: one value, or some by their flat indices."""

_MOST_ORDERS = 120
_LONGEST_LINE = 1 << 16
_LONGEST_WINDOW, _WINDOWS = 8, 8
_LONGEST_REORDERED = 4096
_ROW_SAMPLE = 48
_MOST_RUNS = 8
_MOST_PADS = 256
_LEAST_TAIL = 8
_PERIODS = (1, 2, 4, 8, 16)
_LAYOUTS: dict[tuple[int, ...], str] = {
    (0, 2, 3, 1): "NHWC for NCHW",
    (0, 3, 1, 2): "NCHW for NHWC",
    (2, 3, 1, 0): "HWIO for OIHW",
}


def _moved(
    problem: Problem,
    cause: str,
    text: str,
    index_map: IndexMap,
    details: dict[str, object],
    fill: Fill = None,
    free_bits: float = 0.0,
    source: Tensor | None = None,
) -> Hypothesis:
    pair, tensor = problem.pair, source or problem.pair.a

    def predict(indices: np.ndarray, _a: np.ndarray) -> np.ndarray:
        sources = index_map(indices)
        values = pair.as_in_b(converted(tensor.at(np.maximum(sources, 0)), pair.element_type))
        outside = sources < 0
        if fill is not None and outside.any():
            values = values.copy()
            values[outside] = fill(indices[outside]) if callable(fill) else fill
        return values

    return Hypothesis(cause, text, predict, details, free_bits, is_moved=True)


def _mapped(sizes: Shape, steps: Shape, changes: Mapping[int, IndexMap] | None = None) -> IndexMap:
    """Indices in a tensor of some sizes as those in another, by the step that each axis has there.

    Coordinates may change on the way; a negative one gives a negative index.
    """

    def index_map(indices: np.ndarray) -> np.ndarray:
        mapped, is_outside, rest = np.zeros_like(indices), np.zeros(indices.shape, bool), indices
        for axis in reversed(range(len(sizes))):
            rest, coordinates = np.divmod(rest, sizes[axis]) if axis else (rest, rest)
            if changes and axis in changes:
                coordinates = changes[axis](coordinates)
                is_outside |= coordinates < 0
            mapped += coordinates * steps[axis]
        return np.where(is_outside, -1, mapped) if changes else mapped

    return index_map


def _steps(shape: Shape) -> list[int]:
    """How far apart in memory neighbours along each axis are."""
    return [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]


def _same(indices: np.ndarray) -> np.ndarray:
    return indices


def transposed(problem: Problem) -> Iterator[Hypothesis]:
    """B's elements in memory are those of A with the axes in another order, whatever shape B says."""
    a, b = problem.pair.a.shape, problem.pair.b.shape
    if problem.pair.a.size != problem.pair.b.size or not problem.may_be_moved:
        return
    if not problem.has_one_shape:
        text = f"the same elements in the same order, as shape {list(b)} instead of {list(a)}"
        fact = -LEAST_BITS_OF_INTEGERS  # It needs no evidence beside all elements, however few they are.
        yield _moved(problem, "reshaped", text, _same, {"shape": list(b)}, free_bits=fact)
    for axes in _orders(a):
        layout, shape = _LAYOUTS.get(tuple(axes)), [a[axis] for axis in axes]
        text = f"{{b}} is {{a}} transposed to the axes {axes}" + (f": {layout}" if layout else "")
        if shape != list(b):
            text += f", kept as if it had the shape {list(b)}"
        details: dict[str, object] = {"axes": axes} | ({"layout": layout} if layout else {})
        yield _moved(problem, "transposed", text, _mapped(shape, [_steps(a)[axis] for axis in axes]), details)


def _orders(shape: Shape) -> Iterator[list[int]]:
    """Other orders of the axes; those of size 1 stay, and of many others the first ones do."""
    moving = [axis for axis, size in enumerate(shape) if size != 1]
    for order in itertools.islice(itertools.permutations(moving), 1, _MOST_ORDERS):
        to = dict(zip(moving, order, strict=True))
        yield [to.get(axis, axis) for axis in range(len(shape))]


def flipped(problem: Problem) -> Iterator[Hypothesis]:
    """The order of the elements along an axis, or of all of them, is reversed."""
    shape, total = problem.pair.a.shape, problem.pair.size
    if not problem.may_be_moved:
        return
    for axis, size in enumerate(shape):
        if size > 1:
            index_map = _mapped(shape, _steps(shape), {axis: lambda c, size=size: size - 1 - c})  # type: ignore[misc]
            yield _moved(problem, "flipped", f"{{b}} is {{a}} reversed along axis {axis}", index_map, {"axis": axis})
    if len(shape) > 1:
        text = "{b} is {a} reversed along all axes"
        yield _moved(problem, "flipped", text, lambda indices: total - 1 - indices, {"axis": None})


def shifted(problem: Problem) -> Iterator[Hypothesis]:
    """B is A moved by some elements along an axis, or in memory; what comes in is cyclic, zero or a repeated edge."""
    sample, shape, total = problem.sample, problem.pair.a.shape, problem.pair.size
    if not sample.count or not problem.may_be_moved:
        return
    start = int(sample.indices[sample.count // 2])
    lines: list[tuple[Shape, int, int | None]] = [(shape, axis, axis) for axis, size in enumerate(shape) if size > 1]
    lines += [((total,), 0, None)] if len(shape) > 1 else []
    for line_shape, axis, shown_axis in lines:
        step, size = _steps(line_shape)[axis], line_shape[axis]
        coordinate = start // step % size
        low = max(0, min(coordinate - _LONGEST_LINE // 2, size - _LONGEST_LINE))
        line = start + (np.arange(low, min(low + _LONGEST_LINE, size)) - coordinate) * step
        a, b = problem.pair.at(line)
        for count in _shifts(bits_of(problem.pair.as_in_b(a)), bits_of(b)):
            yield from _shifts_of(problem, line_shape, axis, count, shown_axis)


def _shifts(a: np.ndarray, b: np.ndarray) -> list[int]:
    """By how much short windows of a line have moved, where they are there once; at most two answers."""
    length = min(_LONGEST_WINDOW, max(a.size // 2, 1))
    windows, moves = np.lib.stride_tricks.sliding_window_view(a, length), Counter[int]()
    for start in spread(a.size - length + 1, _WINDOWS):
        starts = np.flatnonzero((windows == b[start : start + length]).all(axis=1))
        moves.update([int(start - starts[0])] if starts.size == 1 else [])
    return [count for count, _times in moves.most_common(3) if count][:2]


def _shifts_of(problem: Problem, shape: Shape, axis: int, count: int, shown_axis: int | None) -> Iterator[Hypothesis]:
    size, direction = shape[axis], " in memory" if shown_axis is None else f" along axis {axis}"
    zero = np.zeros(1, problem.element_type.storage)[0] if problem.element_type.numpy else None

    def moved(c: np.ndarray, other: np.ndarray | int) -> np.ndarray:
        return np.where((c - count < 0) | (c - count >= size), other, c - count)

    ways: tuple[tuple[str, str, IndexMap, np.generic | None], ...] = (
        ("cyclic", "cyclically", lambda c: (c - count) % size, None),
        ("zeros", "with zeros where nothing comes in", lambda c: moved(c, -1), zero),
        ("edge", "with the edge repeated", lambda c: np.clip(c - count, 0, size - 1), None),
        ("unchanged", "with the old elements where nothing comes in", lambda c: moved(c, c), None),
    )
    for fill, how, change, value in ways:
        text = f"{{b}} is {{a}} shifted by {count}{direction}, {how}"
        details: dict[str, object] = {"axis": shown_axis, "shift": count, "fill": fill}
        index_map, free = _mapped(shape, _steps(shape), {axis: change}), math.log2(2 * size)
        yield _moved(problem, "shifted", text, index_map, details, value, free)


def reordered(problem: Problem) -> Iterator[Hypothesis]:
    """The slices along an axis are those of A in another order, as the gates of a recurrent network are."""
    shape = problem.pair.a.shape
    for axis, size in enumerate(shape) if problem.may_be_moved else ():
        rest = problem.pair.size // max(size, 1)
        order = _order_of(problem, axis, size, rest) if 1 < size <= _LONGEST_REORDERED and rest >= 4 else None
        if order is not None:
            index_map = _mapped(shape, _steps(shape), {axis: lambda c, order=order: order[c]})  # type: ignore[misc]
            text = f"the slices along axis {axis} of {{b}} are those of {{a}} in another order{_text_of(order)}"
            details: dict[str, object] = {"axis": axis, "order": list(map(int, order[:64]))}
            free = math.lgamma(size + 1) / math.log(2)
            yield _moved(problem, "reordered", text, index_map, details, free_bits=free)


def _text_of(order: np.ndarray) -> str:
    """An order of few runs in words.

    >>> _text_of(np.array([2, 3, 0, 1]))
    ': 2 to 3, 0 to 1'
    """
    runs = np.split(order, np.flatnonzero(np.diff(order) != 1) + 1)
    if len(runs) > _MOST_RUNS:
        return ""
    return ": " + ", ".join(f"{run[0]} to {run[-1]}" if run.size > 1 else f"{run[0]}" for run in runs)


def _order_of(problem: Problem, axis: int, size: int, rest: int) -> np.ndarray | None:
    """Which slice of A each slice of B is, as far as some elements of each tell; None if any is another."""
    step = _steps(problem.pair.a.shape)[axis]
    chosen = spread(rest, _ROW_SAMPLE)
    base = chosen // step * (step * size) + chosen % step
    indices = (np.arange(size)[:, None] * step + base[None, :]).reshape(-1)
    a, b = problem.pair.at(indices)
    a, b = (bits_of(one).reshape(size, -1) for one in (problem.pair.as_in_b(a), b))
    rows: dict[bytes, list[int]] = {}
    for number in reversed(range(size)):
        rows.setdefault(a[number].tobytes(), []).append(number)
    order = np.empty(size, np.int64)
    for number in range(size):
        same = rows.get(b[number].tobytes())
        if not same:
            return None
        order[number] = same.pop()
    return None if (order == np.arange(size)).all() else order


def stale(problem: Problem) -> Iterator[Hypothesis]:
    """B equals another tensor of A."""
    for other in problem.copies.of(problem.pair.b):
        if other.name != problem.pair.a.name:
            text = f"{{b}} is a copy of another tensor, {other.name!r}"
            yield _moved(problem, "stale_copy", text, _same, {"tensor": other.name}, free_bits=8.0, source=other)


def padded(problem: Problem) -> Iterator[Hypothesis]:
    """A is a part of B, which has a constant around it; or any other elements, if they are no more than half of it."""
    a, b = problem.pair.a.shape, problem.pair.b.shape
    if len(a) != len(b) or not a or 0 in a or any(x > y for x, y in zip(a, b, strict=True)):
        return
    offsets = [sorted({0, y - x, (y - x) // 2, y - x - (y - x) // 2}) for x, y in zip(a, b, strict=True)]
    others = list[Hypothesis]()
    for before in itertools.islice(itertools.product(*offsets), _MOST_PADS):
        pads = [[low, y - x - low] for x, y, low in zip(a, b, before, strict=True)]
        corner = 0 if any(before) else math.prod(b) - 1
        fill = _of_b(problem, np.array([corner]))
        changes: dict[int, IndexMap] = {
            axis: lambda c, low=low, size=size: np.where(c - low < size, c - low, -1)  # type: ignore[misc]
            for axis, (low, size) in enumerate(zip(before, a, strict=True))
        }
        way = partial(_padded, problem, pads, _mapped(b, _steps(a), changes))
        yield way("constant", shown(exact_values(fill, problem.element_type)[0]), fill[0])
        # Elements that are any are no evidence, so that more of it is asked for.
        others.append(way("other elements", "other elements", partial(_of_b, problem), LEAST_BITS_OF_INTEGERS))
    yield from others if math.prod(b) <= 2 * math.prod(a) else ()


def _padded(
    problem: Problem,
    pads: Sequence[Sequence[int]],
    index_map: IndexMap,
    mode: str,
    by: str,
    fill: Fill,
    free: float = 0.0,
) -> Hypothesis:
    details: dict[str, object] = {"pads": pads, "mode": mode}
    return _moved(problem, "padded", f"{{b}} is {{a}} padded with {by} by {pads}", index_map, details, fill, free)


def _of_b(problem: Problem, indices: np.ndarray) -> np.ndarray:
    return converted(problem.pair.b.at(indices), problem.element_type)


def expanded(problem: Problem) -> Iterator[Hypothesis]:
    """B is A broadcast to a larger shape."""
    a, b = problem.pair.a.shape, problem.pair.b.shape
    padded = (1,) * (len(b) - len(a)) + tuple(a)
    if len(a) <= len(b) and 0 not in a and all(x in (1, y) for x, y in zip(padded, b, strict=True)):
        index_map = _mapped(b, [step if size > 1 else 0 for size, step in zip(padded, _steps(padded), strict=True)])
        yield _moved(problem, "expanded", f"{{b}} is {{a}} broadcast to {list(b)}", index_map, {"shape": list(b)})


def unrelated_tail(problem: Problem) -> Iterator[Hypothesis]:
    """From some element on B holds a repeated pattern, as memory does that nobody wrote, and zeros that were set."""
    first, total = problem.figures.first, problem.pair.size
    count = total - first
    if first <= 0 or count < _LEAST_TAIL or problem.figures.differing * 8 < count * 7:
        return
    start, ahead = (
        converted(problem.pair.b.at(np.arange(index, min(index + 64, total))), problem.element_type)
        for index in (0, first)
    )
    for period in _PERIODS:
        pattern = ahead[:period]
        if period * 4 <= ahead.size and (bits_of(ahead) == np.resize(bits_of(pattern), ahead.size)).all():
            if (bits_of(start) == np.resize(np.roll(bits_of(pattern), first % period), start.size)).all():
                return  # All of B is so, and the first elements of A are the same by chance.
            examples = ", ".join(f"0x{int(one):x}" for one in bits_of(pattern)[:4])
            text = f"from element {first} on, {{b}} holds only {examples}"
            details: dict[str, object] = {"from": first, "elements": count, "pattern": examples}
            predict = lambda indices, a: np.where(indices < first, a, pattern[(indices - first) % pattern.size])  # noqa: E731, B023
            yield Hypothesis("unrelated_tail", text, predict, details, BITS_OF_A_NUMBER, 3.0)
            return
