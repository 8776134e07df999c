"""Hypotheses that move elements: transposed, flipped, shifted, reordered, padded, broadcast, or stale."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from eltwise.comparison.hypotheses import Hypothesis, Problem, free_bits_of
from eltwise.comparison.numbers import bits_of, is_float, values_of
from eltwise.comparison.pairs import converted
from eltwise.comparison.places import coordinates_of
from eltwise.formats.lazy_tensors import LazyTensor

Shape = Sequence[int]
Place = Callable[[np.ndarray], np.ndarray]
"""Gives for flat indices in B those in A; one that is negative stands for a fill value."""

_MOST_AXES = 5
_LONGEST_LINE = 1 << 16
_LONGEST_REORDERED = 4096
_ROW_SAMPLE = 48
_MOST_RUNS = 8
_MOST_PADS = 256
_KNOWN_LAYOUTS: dict[tuple[int, ...], str] = {
    (0, 2, 3, 1): "NHWC for NCHW",
    (0, 3, 1, 2): "NCHW for NHWC",
    (2, 3, 1, 0): "HWIO for OIHW",
}


def _moved(
    problem: Problem,
    cause: str,
    text: str,
    place: Place,
    details: dict[str, object],
    fill: np.generic | None = None,
    free_bits: float = 0.0,
    source: LazyTensor | None = None,
) -> Hypothesis:
    pair, tensor = problem.pair, source or problem.pair.a
    is_rounded = pair.b.element_type is not pair.element_type and is_float(pair.b.element_type)

    def predict(indices: np.ndarray, _a: np.ndarray) -> np.ndarray:
        places = place(indices)
        found = converted(tensor.at(np.maximum(places, 0)), pair.element_type)
        if is_rounded:  # B's own type keeps less of a value than the type that both are read as.
            found = converted(found.astype(pair.b.storage), pair.element_type)
        return found if fill is None else np.where(places < 0, fill, found)

    return Hypothesis(cause, text, predict, details, is_moved=True, free_bits=free_bits)


def transposed(problem: Problem) -> Iterator[Hypothesis]:
    """B's elements in memory are those of A with the axes in another order, whatever shape B says."""
    a, b = problem.pair.a.shape, problem.pair.b.shape
    if problem.pair.a.size != problem.pair.b.size or not problem.may_be_moved:
        return
    if not problem.has_one_shape:
        text = f"the same elements in the same order, as shape {list(b)} instead of {list(a)}"
        yield _moved(problem, "reshaped", text, lambda indices: indices, {"shape": list(b)})
    for axes in _orders(a):
        known = _KNOWN_LAYOUTS.get(axes)
        text = f"{{b}} is {{a}} transposed to the axes {list(axes)}" + (f": {known}" if known else "")
        if tuple(a[axis] for axis in axes) != tuple(b):
            text += ", kept as if it had the shape " + str(list(b))
        details: dict[str, object] = {"axes": list(axes)} | ({"layout": known} if known else {})
        yield _moved(problem, "transposed", text, _turned(a, axes), details)


def _orders(shape: Shape) -> Iterator[tuple[int, ...]]:
    """Orders of axes that move elements: all of up to five axes; of more, swaps, the reverse, and moves of one axis."""
    axes = tuple(range(len(shape)))
    orders: Iterable[tuple[int, ...]] = itertools.permutations(axes)
    if len(shape) > _MOST_AXES:
        pairs = itertools.combinations(axes, 2)
        swaps = (tuple({i: j, j: i}.get(axis, axis) for axis in axes) for i, j in pairs)
        rests = ((axis, [one for one in axes if one != axis]) for axis in axes)
        moves = ((*rest[:to], axis, *rest[to:]) for axis, rest in rests for to in axes)
        orders = dict.fromkeys((*swaps, axes[::-1], *moves))
    seen = {tuple(axis for axis in axes if shape[axis] != 1)}
    for order in orders:
        moved = tuple(axis for axis in order if shape[axis] != 1)
        if moved not in seen:
            seen.add(moved)
            yield order


def _turned(shape: Shape, axes: Sequence[int]) -> Place:
    """For indices into the transposed tensor, those in the tensor itself."""
    after = [shape[axis] for axis in axes]
    steps = [math.prod(shape[axis + 1 :]) for axis in axes]

    def place(indices: np.ndarray) -> np.ndarray:
        found, rest = np.zeros_like(indices), indices
        for size, step in zip(reversed(after), reversed(steps), strict=True):
            rest, coordinate = np.divmod(rest, size)
            found = found + coordinate * step
        return found

    return place


def flipped(problem: Problem) -> Iterator[Hypothesis]:
    """The order of the elements along an axis, or of all of them, is reversed."""
    shape, total = problem.pair.a.shape, problem.pair.size
    if not problem.may_be_moved:
        return
    for axis, size in enumerate(shape):
        if size > 1:
            place = _along(shape, axis, lambda c, size=size: size - 1 - c)  # type: ignore[misc]
            yield _moved(problem, "flipped", f"{{b}} is {{a}} reversed along axis {axis}", place, {"axis": axis})
    if len(shape) > 1:
        text = "{b} is {a} reversed along all axes"
        yield _moved(problem, "flipped", text, lambda indices: total - 1 - indices, {"axis": None})


def _along(shape: Shape, axis: int, change: Place) -> Place:
    """Indices with another coordinate on one axis; a negative coordinate gives a negative index."""
    step, size = math.prod(shape[axis + 1 :]), shape[axis]

    def place(indices: np.ndarray) -> np.ndarray:
        old = indices // step % size
        new = change(old)
        return np.where(new < 0, -1, indices + (new - old) * step)

    return place


def shifted(problem: Problem) -> Iterator[Hypothesis]:
    """B is A moved by some elements along an axis, or in memory; what comes in is cyclic, zero or a repeated edge."""
    sample, shape, total = problem.sample, problem.pair.a.shape, problem.pair.size
    if not sample.count or not problem.may_be_moved:
        return
    start = int(sample.indices[sample.count // 2])
    lines: list[tuple[Shape, int, int | None, str]]
    lines = [(shape, axis, axis, f" along axis {axis}") for axis, size in enumerate(shape) if size > 1]
    lines += [((total,), 0, None, " in memory")] if len(shape) > 1 else []
    for own, axis, said, words in lines:
        step, size = math.prod(own[axis + 1 :]), own[axis]
        coordinate = start // step % size
        low = max(0, min(coordinate - _LONGEST_LINE // 2, size - _LONGEST_LINE))
        line = start + (np.arange(low, min(low + _LONGEST_LINE, size)) - coordinate) * step
        for count in _shifts(problem, line):
            yield from _shifts_of(problem, own, axis, count, words, said)


def _shifts(problem: Problem, line: np.ndarray) -> list[int]:
    """By how much elements of a line, each of whose values is there once, have moved; at most two answers."""
    a, b = map(bits_of, problem.pair.at(line))
    once = [np.unique(one, return_index=True, return_counts=True) for one in (a, b)]
    (of_a, from_), (of_b, to) = ((found[counts == 1], first[counts == 1]) for found, first, counts in once)
    _common, in_a, in_b = np.intersect1d(of_a, of_b, assume_unique=True, return_indices=True)
    moves = to[in_b] - from_[in_a]
    found, counts = np.unique(moves[moves != 0], return_counts=True)
    best = np.argsort(-counts, kind="stable")[:2]
    least = min(len(line), max(len(moves), 1))
    return [int(found[one]) for one in best if counts[one] * 4 >= least] or _of_few(a, b)


def _of_few(a: np.ndarray, b: np.ndarray) -> list[int]:
    """Moves by a few elements, where values repeat."""
    found = []
    for count in range(1, min(9, a.size // 2)) if a.size >= 8 else ():
        found += [count] if (a[:-count] == b[count:]).all() else []
        found += [-count] if (b[:-count] == a[count:]).all() else []
    return found[:2]


def _shifts_of(
    problem: Problem, shape: Shape, axis: int, count: int, words: str, said: int | None
) -> Iterator[Hypothesis]:
    size = shape[axis]
    zero = np.zeros(1, problem.element_type.storage)[0] if problem.element_type.numpy else None

    def outside(c: np.ndarray) -> np.ndarray:
        return np.where((c - count < 0) | (c - count >= size), -1, c - count)

    ways: tuple[tuple[str, str, Place, np.generic | None], ...] = (
        ("cyclic", "cyclically", lambda c: (c - count) % size, None),
        ("zeros", "with zeros where nothing comes in", outside, zero),
        ("edge", "with the edge repeated", lambda c: np.clip(c - count, 0, size - 1), None),
        ("unchanged", "with the old elements where nothing comes in", lambda c: _or_old(outside(c), c), None),
    )
    for fill, how, change, value in ways:
        text = f"{{b}} is {{a}} shifted by {count}{words}, {how}"
        details: dict[str, object] = {"axis": said, "shift": count, "fill": fill}
        yield _moved(
            problem, "shifted", text, _along(shape, axis, change), details, value, free_bits=free_bits_of(2 * size)
        )


def _or_old(new: np.ndarray, old: np.ndarray) -> np.ndarray:
    return np.where(new < 0, old, new)


def reordered(problem: Problem) -> Iterator[Hypothesis]:
    """The slices along an axis are those of A in another order, as the gates of a recurrent network are."""
    shape = problem.pair.a.shape
    for axis, size in enumerate(shape) if problem.may_be_moved else ():
        rest = problem.pair.size // max(size, 1)
        order = _order_of(problem, axis, size, rest) if 1 < size <= _LONGEST_REORDERED and rest >= 4 else None
        if order is not None:
            place = _along(shape, axis, lambda c, order=order: order[c])  # type: ignore[misc]
            text = f"the slices along axis {axis} of {{b}} are those of {{a}} in another order{_said(order)}"
            details: dict[str, object] = {"axis": axis, "order": list(map(int, order[:64]))}
            yield _moved(problem, "reordered", text, place, details, free_bits=math.lgamma(size + 1) / math.log(2))


def _said(order: np.ndarray) -> str:
    """An order of few runs in words.

    >>> _said(np.array([2, 3, 0, 1]))
    ': 2 to 3, 0 to 1'
    """
    runs = np.split(order, np.flatnonzero(np.diff(order) != 1) + 1)
    if len(runs) > _MOST_RUNS:
        return ""
    return ": " + ", ".join(f"{run[0]} to {run[-1]}" if run.size > 1 else f"{run[0]}" for run in runs)


def _order_of(problem: Problem, axis: int, size: int, rest: int) -> np.ndarray | None:
    """Which slice of A each slice of B is, as far as some elements of each tell; None if any is another."""
    step = math.prod(problem.pair.a.shape[axis + 1 :])
    chosen = np.unique(np.linspace(0, rest - 1, _ROW_SAMPLE).astype(np.int64))
    base = chosen // step * (step * size) + chosen % step
    indices = (np.arange(size)[:, None] * step + base[None, :]).reshape(-1)
    a, b = (bits_of(one).reshape(size, -1) for one in problem.pair.at(indices))
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
            details: dict[str, object] = {"tensor": other.name}
            yield _moved(problem, "stale_copy", text, lambda indices: indices, details, free_bits=8.0, source=other)


def padded(problem: Problem) -> Iterator[Hypothesis]:
    """A is a part of B, which has a constant, the edge or the mirrored elements around it."""
    a, b = problem.pair.a.shape, problem.pair.b.shape
    if len(a) != len(b) or not a or 0 in a or any(x > y for x, y in zip(a, b, strict=True)):
        return
    offsets = [sorted({0, y - x, (y - x) // 2, y - x - (y - x) // 2}) for x, y in zip(a, b, strict=True)]
    for before in itertools.islice(itertools.product(*offsets), _MOST_PADS):
        pads = [[low, y - x - low] for x, y, low in zip(a, b, before, strict=True)]
        corner = 0 if any(before) else math.prod(b) - 1
        fill = converted(problem.pair.b.at(np.array([corner])), problem.element_type)
        value = values_of(fill, problem.element_type)[0]
        for way, words, change in (
            ("constant", f"with {value:g}", lambda c, _size: c),
            ("edge", "with its edge", lambda c, size: np.clip(c, 0, size - 1)),
            ("reflect", "by reflection", lambda c, size: np.abs((c + size - 1) % max(2 * size - 2, 1) - (size - 1))),
        ):
            text = f"{{b}} is {{a}} padded {words} by {pads}"
            details: dict[str, object] = {"pads": pads, "mode": way}
            place = _inner(a, b, lambda c, axis, change=change, low=before: change(c - low[axis], a[axis]))  # type: ignore[misc]
            yield _moved(problem, "padded", text, place, details, fill[0] if way == "constant" else None)


def expanded(problem: Problem) -> Iterator[Hypothesis]:
    """B is A broadcast to a larger shape."""
    a, b = problem.pair.a.shape, problem.pair.b.shape
    own = (1,) * (len(b) - len(a)) + tuple(a)
    if len(a) <= len(b) and 0 not in a and all(x in (1, y) for x, y in zip(own, b, strict=True)):
        place = _inner(own, b, lambda c, axis: c if own[axis] > 1 else np.zeros_like(c))
        yield _moved(problem, "expanded", f"{{b}} is {{a}} broadcast to {list(b)}", place, {"shape": list(b)})


def _inner(a: Shape, b: Shape, change: Callable[[np.ndarray, int], np.ndarray]) -> Place:
    """For indices in B those in A, of which each coordinate is a function of that in B; -1 for those outside of A."""

    def place(indices: np.ndarray) -> np.ndarray:
        found, is_outside = np.zeros_like(indices), np.zeros(indices.shape, bool)
        for axis, size in enumerate(a):
            inner = change(coordinates_of(indices, axis, b), axis)
            is_outside |= (inner < 0) | (inner >= size)
            found = found * size + inner
        return np.where(is_outside, -1, found)

    return place
