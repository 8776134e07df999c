"""Hypotheses that move elements: transposed, flipped, shifted, reordered, padded, stale, or not written at all."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from eltwise.comparison.hypotheses import Gathered, Hypothesis, Problem
from eltwise.comparison.numbers import bits_of, is_float, values_of
from eltwise.comparison.pairs import converted
from eltwise.comparison.places import coordinates_of
from eltwise.core.dtypes import ElementType
from eltwise.formats.lazy_tensors import LazyTensor

Shape = Sequence[int]
_MOST_AXES = 5
_LONGEST_LINE = 1 << 16
_LONGEST_REORDERED = 4096
_ROW_SAMPLE = 48
_MOST_RUNS = 8
_MOST_OTHERS = 2000
_LEAST_TAIL = 8
_PERIODS = (1, 2, 4, 8, 16)
_KNOWN_LAYOUTS: dict[tuple[int, ...], str] = {
    (0, 2, 3, 1): "NHWC for NCHW",
    (0, 3, 1, 2): "NCHW for NHWC",
    (2, 3, 1, 0): "HWIO for OIHW",
}


def _moved(
    problem: Problem,
    cause: str,
    text: str,
    place: Callable[[np.ndarray], np.ndarray],
    details: dict[str, object],
    fill: np.generic | None = None,
    free_bits: float = 0.0,
    source: LazyTensor | None = None,
) -> Hypothesis:
    predicted = Gathered(source or problem.pair.a, problem.pair, place, fill)
    return Hypothesis(cause, text, predicted, details, is_moved=True, free_bits=free_bits)


def transposed(problem: Problem) -> Iterator[Hypothesis]:
    """B's elements in memory are those of A with the axes in another order, whatever shape B says."""
    a, b = problem.pair.a.shape, problem.pair.b.shape
    if problem.pair.a.size != problem.pair.b.size:
        return
    if not problem.has_one_shape:
        text = f"the same elements in the same order, as shape {list(b)} instead of {list(a)}"
        yield _moved(problem, "reshaped", text, lambda indices: indices, {"shape": list(b)})
    for axes in _orders(a):
        after = tuple(a[axis] for axis in axes)
        known = _KNOWN_LAYOUTS.get(axes)
        text = f"{{b}} is {{a}} transposed to the axes {list(axes)}" + (f": {known}" if known else "")
        if after != tuple(b):
            text += ", kept as if it had the shape " + str(list(b))
        details: dict[str, object] = {"axes": list(axes)} | ({"layout": known} if known else {})
        yield _moved(problem, "transposed", text, _turned(a, axes), details)


def _orders(shape: Shape) -> Iterator[tuple[int, ...]]:
    """Orders of axes that move elements: all of up to five axes; of more, swaps, the reverse, and moves of one axis."""
    axes = tuple(range(len(shape)))
    orders: Iterable[tuple[int, ...]]
    if len(shape) <= _MOST_AXES:
        orders = itertools.permutations(axes)
    else:
        swaps = (_swapped(axes, i, j) for i, j in itertools.combinations(axes, 2))
        moves = ((*rest[:to], axis, *rest[to:]) for axis in axes for rest in [_without(axes, axis)] for to in axes)
        orders = dict.fromkeys((*swaps, axes[::-1], *moves))
    kept = [axis for axis in axes if shape[axis] != 1]
    seen = {tuple(kept)}
    for order in orders:
        moved = tuple(axis for axis in order if shape[axis] != 1)
        if moved not in seen:
            seen.add(moved)
            yield order


def _swapped(axes: tuple[int, ...], i: int, j: int) -> tuple[int, ...]:
    return tuple(axes[j] if axis == i else axes[i] if axis == j else axis for axis in axes)


def _without(axes: tuple[int, ...], axis: int) -> tuple[int, ...]:
    return tuple(one for one in axes if one != axis)


def _turned(shape: Shape, axes: Sequence[int]) -> Callable[[np.ndarray], np.ndarray]:
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
    shape = problem.pair.a.shape
    if not problem.has_one_shape:
        return
    for axis, size in enumerate(shape):
        if size > 1:
            place = _along(shape, axis, lambda c, size=size: size - 1 - c)  # type: ignore[misc]
            yield _moved(problem, "flipped", f"{{b}} is {{a}} reversed along axis {axis}", place, {"axis": axis})
    if len(shape) > 1:
        total = problem.pair.size
        place = lambda indices: total - 1 - indices  # noqa: E731
        yield _moved(problem, "flipped", "{b} is {a} reversed along all axes", place, {"axis": None})


def _along(shape: Shape, axis: int, change: Callable[[np.ndarray], np.ndarray]) -> Callable[[np.ndarray], np.ndarray]:
    """Indices with another coordinate on one axis; a negative coordinate gives a negative index."""
    step, size = math.prod(shape[axis + 1 :]), shape[axis]

    def place(indices: np.ndarray) -> np.ndarray:
        old = indices // step % size
        new = change(old)
        return np.where(new < 0, -1, indices + (new - old) * step)

    return place


def shifted(problem: Problem) -> Iterator[Hypothesis]:
    """B is A moved by some elements along an axis, or in memory; what comes in is cyclic, zero or a repeated edge."""
    if not problem.has_one_shape or not problem.sample.differs.any():
        return
    shape, start = problem.pair.a.shape, int(problem.sample.indices[problem.sample.differs.sum() // 2])
    if len(shape) > 1:
        for axis, size in enumerate(shape):
            if size > 1:
                step = math.prod(shape[axis + 1 :])
                coordinate = start // step % size
                low = max(0, min(coordinate - _LONGEST_LINE // 2, size - _LONGEST_LINE))
                line = start + (np.arange(low, min(low + _LONGEST_LINE, size)) - coordinate) * step
                for count in _shifts(problem, line):
                    yield from _shifts_of(problem, shape, axis, count, f" along axis {axis}")
    total = problem.pair.size
    low = max(0, min(start - _LONGEST_LINE // 2, total - _LONGEST_LINE))
    for count in _shifts(problem, np.arange(low, min(low + _LONGEST_LINE, total))):
        name = " in memory" if len(shape) > 1 else " along axis 0"
        yield from _shifts_of(problem, (total,), 0, count, name, None if len(shape) > 1 else 0)


def _shifts(problem: Problem, line: np.ndarray) -> list[int]:
    """By how much elements of a line, each of whose values is there once, have moved; at most two answers."""
    a, b = problem.pair.at(line)
    values, (of_a, of_b) = [], ([], [])  # type: ignore[var-annotated]
    for side, array in enumerate((a, b)):
        found, first, counts = np.unique(bits_of(array), return_index=True, return_counts=True)
        values.append(found[counts == 1])
        (of_a, of_b)[side].append(first[counts == 1])
    _common, in_a, in_b = np.intersect1d(values[0], values[1], assume_unique=True, return_indices=True)
    moves = of_b[0][in_b] - of_a[0][in_a]
    found, counts = np.unique(moves[moves != 0], return_counts=True)
    best = np.argsort(-counts, kind="stable")[:2]
    return [int(found[one]) for one in best if counts[one] * 4 >= min(len(line), max(len(moves), 1))] or _of_few(a, b)


def _of_few(a: np.ndarray, b: np.ndarray) -> list[int]:
    """Moves by a few elements, where values repeat."""
    if a.size < 8:
        return []
    x, y = bits_of(a), bits_of(b)
    found = []
    for count in range(1, min(9, a.size // 2)):
        found += [count] if (x[:-count] == y[count:]).all() else []
        found += [-count] if (y[:-count] == x[count:]).all() else []
    return found[:2]


def _shifts_of(
    problem: Problem, shape: Shape, axis: int, count: int, name: str, said: int | None = -1
) -> Iterator[Hypothesis]:
    size = shape[axis]
    zero = np.zeros(1, problem.element_type.storage)[0] if problem.element_type.numpy else None
    free = math.log2(2 * size)
    details: dict[str, object] = {"axis": axis if said == -1 else said, "shift": count}

    def outside(c: np.ndarray) -> np.ndarray:
        return np.where((c - count < 0) | (c - count >= size), -1, c - count)

    ways: tuple[tuple[str, str, Callable[[np.ndarray], np.ndarray], np.generic | None], ...] = (
        ("cyclic", ", cyclically", lambda c: (c - count) % size, None),
        ("zeros", ", with zeros where nothing comes in", outside, zero),
        ("edge", ", with the edge repeated", lambda c: np.clip(c - count, 0, size - 1), None),
        (
            "unchanged",
            ", with the old elements where nothing comes in",
            lambda c: np.where(outside(c) < 0, c, c - count),
            None,
        ),
    )
    for fill, words, change, value in ways:
        text = f"{{b}} is {{a}} shifted by {count}{name}{words}"
        yield _moved(
            problem, "shifted", text, _along(shape, axis, change), details | {"fill": fill}, value, free_bits=free
        )


def reordered(problem: Problem) -> Iterator[Hypothesis]:
    """The slices along an axis are those of A in another order, as the gates of a recurrent network are."""
    shape = problem.pair.a.shape
    if not problem.has_one_shape:
        return
    for axis, size in enumerate(shape):
        rest = problem.pair.size // max(size, 1)
        if not 1 < size <= _LONGEST_REORDERED or rest < 4:
            continue
        order = _order_of(problem, axis, size, rest)
        if order is None:
            continue
        place = _along(shape, axis, lambda c, order=order: order[c])  # type: ignore[misc]
        text = f"the slices along axis {axis} of {{b}} are those of {{a}} in another order{_said(order)}"
        details: dict[str, object] = {"axis": axis, "order": list(map(int, order[:64]))}
        yield _moved(problem, "reordered", text, place, details, free_bits=math.lgamma(size + 1) / math.log(2))


def _said(order: np.ndarray) -> str:
    """An order of few runs in words.

    >>> _said(np.array([2, 3, 0, 1]))
    ': 2 to 3, 0 to 1'
    """
    ends = np.flatnonzero(np.diff(order) != 1)
    if ends.size >= _MOST_RUNS:
        return ""
    starts = np.concatenate([[0], ends + 1])
    stops = np.concatenate([ends, [order.size - 1]])
    runs = (
        f"{order[first]} to {order[last]}" if first < last else f"{order[first]}"
        for first, last in zip(starts, stops, strict=True)
    )
    return f": {', '.join(runs)}"


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
    tried = 0
    for name, other in problem.others.items():
        if other.shape != problem.pair.b.shape or other.element_type is not problem.pair.b.element_type:
            continue
        if name == problem.pair.a.name:
            continue
        tried += 1
        if tried > _MOST_OTHERS:
            return
        few = problem.sample.indices[:16]
        if (bits_of(converted(other.at(few), problem.element_type)) == bits_of(problem.sample.b[:16])).mean() < 0.5:
            continue
        text = f"{{b}} is a copy of another tensor, {name!r}"
        place = lambda indices: indices  # noqa: E731
        yield _moved(problem, "stale_copy", text, place, {"tensor": name}, free_bits=8.0, source=other)


def padded(problem: Problem) -> Iterator[Hypothesis]:
    """A is a part of B, which has a constant, the edge or the mirrored elements around it."""
    a, b = problem.pair.a.shape, problem.pair.b.shape
    if problem.has_one_shape or len(a) != len(b) or not a or 0 in a or any(x > y for x, y in zip(a, b, strict=True)):
        return
    offsets = [sorted({0, y - x, (y - x) // 2, y - x - (y - x) // 2}) for x, y in zip(a, b, strict=True)]
    for before in itertools.islice(itertools.product(*offsets), 256):
        after = [y - x - low for x, y, low in zip(a, b, before, strict=True)]
        pads = [[low, high] for low, high in zip(before, after, strict=True)]
        corner = 0 if any(before) else math.prod(b) - 1
        fill = converted(problem.pair.b.at(np.array([corner])), problem.element_type)
        value = values_of(fill, problem.element_type)[0]
        for way, words in (("constant", f"with {value:g}"), ("edge", "with its edge"), ("reflect", "by reflection")):
            place = _inner(a, b, before, way)
            text = f"{{b}} is {{a}} padded {words} by {pads}"
            details: dict[str, object] = {"pads": pads, "mode": way}
            yield _moved(problem, "padded", text, place, details, fill[0] if way == "constant" else None)


def _inner(a: Shape, b: Shape, before: Sequence[int], way: str) -> Callable[[np.ndarray], np.ndarray]:
    def place(indices: np.ndarray) -> np.ndarray:
        found, is_outside = np.zeros_like(indices), np.zeros(indices.shape, bool)
        for axis, size in enumerate(a):
            inner = coordinates_of(indices, axis, b) - before[axis]
            is_outside |= (inner < 0) | (inner >= size)
            if way == "reflect" and size > 1:
                inner = np.abs((inner + size - 1) % (2 * size - 2) - (size - 1))
            found = found * size + np.clip(inner, 0, size - 1)
        return np.where(is_outside, -1, found) if way == "constant" else found

    return place


def expanded(problem: Problem) -> Iterator[Hypothesis]:
    """B is A broadcast to a larger shape."""
    a, b = problem.pair.a.shape, problem.pair.b.shape
    if problem.has_one_shape or len(a) > len(b) or 0 in a:
        return
    own = (1,) * (len(b) - len(a)) + tuple(a)
    if any(x not in (1, y) for x, y in zip(own, b, strict=True)):
        return

    def place(indices: np.ndarray) -> np.ndarray:
        found = np.zeros_like(indices)
        for axis, size in enumerate(own):
            found = found * size + (coordinates_of(indices, axis, b) if size > 1 else 0)
        return found

    yield _moved(problem, "expanded", f"{{b}} is {{a}} broadcast to {list(b)}", place, {"shape": list(b)})


@dataclass(frozen=True, eq=False)
class _Tail:
    """A up to an index, and a pattern of B's own from there on."""

    problem: Problem
    first: int
    pattern: np.ndarray

    def at(self, indices: np.ndarray) -> np.ndarray:
        """A, or the pattern."""
        kept = converted(self.problem.pair.a.at(indices), self.problem.element_type)
        return np.where(indices < self.first, kept, self.pattern[(indices - self.first) % self.pattern.size])

    def read(self, start: int, stop: int) -> np.ndarray:
        """The same for a range."""
        kept = self.problem.pair.read_a(start, stop)
        if stop <= self.first:
            return kept
        return self.at(np.arange(start, stop))


def uninitialized(problem: Problem) -> Iterator[Hypothesis]:
    """From some element on B holds a repeated pattern, as memory that nobody wrote does."""
    first, total = problem.first, problem.pair.size
    count = total - first
    if not problem.has_one_shape or first <= 0 or count < _LEAST_TAIL or problem.differing * 8 < count * 7:
        return
    ahead = converted(problem.pair.b.at(np.arange(first, min(first + 64, total))), problem.element_type)
    for period in _PERIODS:
        pattern = ahead[:period]
        if period * 4 <= ahead.size and (bits_of(ahead) == np.resize(bits_of(pattern), ahead.size)).all():
            said = ", ".join(f"0x{int(one):x}" for one in bits_of(pattern)[:4])
            text = f"from element {first} on, {{b}} holds only {said}: the tail was not written"
            details: dict[str, object] = {"from": first, "elements": count, "pattern": said}
            yield Hypothesis("uninitialized", text, _Tail(problem, first, pattern), details, 1, least_bits=3.0)
            return


def looks_random(values: np.ndarray, reference: np.ndarray, own: ElementType) -> bool:
    """Whether floats have the exponents of random bits, far from those of a reference."""
    if not is_float(own) or values.size < _LEAST_TAIL:
        return False
    x, y = (np.abs(values_of(one, own).astype(np.float64)) for one in (values, reference))
    usual = y[np.isfinite(y) & (y > 0)]
    middle = float(np.median(usual)) if usual.size else 1.0
    with np.errstate(all="ignore"):
        far = ~np.isfinite(x) | (np.abs(np.log2(x / middle)) > 24)
    return bool(far.mean() > 0.25)
