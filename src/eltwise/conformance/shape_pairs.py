"""The shape pairs that reach the hard places of each broadcast rule: what must work, and what must be refused.

Which is which is not written here: the oracle decides it for each pair.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

Sizes = tuple[int, ...]
ShapePair = tuple[Sizes, Sizes]


def _pairs(text: str) -> tuple[ShapePair, ...]:
    """Pairs written as ``2x3 3``; ``-`` is a scalar.

    >>> _pairs("2x3 3, - 1")
    (((2, 3), (3,)), ((), (1,)))
    """
    read = [[_sizes(shape) for shape in pair.split()] for pair in text.split(",")]
    return tuple((a, b) for a, b in read)


def _sizes(text: str) -> Sizes:
    return () if text == "-" else tuple(map(int, text.split("x")))


FEW_PAIRS: tuple[ShapePair, ...] = (
    *_pairs("- -, 0 1, 3 -, - 3, 3x3 3, 2x3 2x1, 2x1 1x3, 8x1x6x1 7x1x5, 3 4, 2x3 2"),
    ((1, 2) * 6, (2, 1) * 6),
)
"""A few of them, and two that do not broadcast."""

HARD_PAIRS: tuple[ShapePair, ...] = (*_pairs("2x0x3 1x1x3"), ((2,) + (1,) * 63, ()))
"""Pairs on which runtimes are known to fail."""

NUMPY_PAIRS: tuple[ShapePair, ...] = (
    *FEW_PAIRS,
    *HARD_PAIRS,
    *_pairs("1 -, 0 -, 1 0, 0 2, 0x3 3, 3 3, 2x3 3, 1x3 2x1, 3 3x3, 3x3x3 3x1, 2x3x4x5 5, 2x3x4x5 3x4, 2x3x4x5 1x1"),
    *_pairs("4x5 2x3x4x5, 2x1x3x1 4x1x2, 256x5 256x5, 2x3 2x3, 2x0x3 2x0x3"),
    ((1, 2) * 6, (1, 2) * 6),
    ((2,) + (1,) * 10 + (3,), (3,)),
    ((1,) * 63 + (3,), (2,) + (1,) * 63),
)
"""Rank 0, empty, one side, both sides, square, up to rank 64, and pairs that do not broadcast."""


def _onto(text: str, axis: int | None) -> Iterator[tuple[Sizes, Sizes, int | None]]:
    return ((a, b, axis) for a, b in _pairs(text))


FEW_ONTO: tuple[tuple[Sizes, Sizes, int | None], ...] = (
    *_onto("- -, 2x3 -, 2x3 1x1, 2x3 2x3, 2x3 3, 3x3x3 3, 3x3x3 3x3, 2x3x4x5 4x5", None),
    *_onto("2x3 -, 2x3 2x3, 2x3 2x1, 2x3 2, 3x3 3, 3x3x3 3, 3x3x3 3x3, 2x3x4x5 2x3, 2x3x4 2x1x4", 0),
    *_onto("2x3 1, 0x3 3, 3x3 3, 3x3x3 3, 3x3x3 3x3, 3x3x3 3x1, 2x3x4x5 3x4", 1),
    *_onto("3x3x3 3", 2),
    *_onto("2x3 3", -1),
    ((1, 2) * 6, (1, 2, 1), 8),
    *_onto("2x3 2, 3 3x3, 2x3x4x5 3x4", None),
    *_onto("2x3 3", 0),
    *_onto("2x3 4", 1),
    *_onto("2x3 3", 2),
    *_onto("2x3 3", -2),
)
"""A few of what ``one_directional`` has: every axis, squares, ones inside, and what must be refused."""

_ONTO = [a for a, _scalar in _pairs("- -, 1 -, 3 -, 0x3 -, 2x3 -, 3x3 -, 2x1 -, 1x3x1 -, 3x3x3 -, 2x3x4 -, 2x1x4 -")]
_ONTO.append((2, 3, 4, 5))
_LARGE_ONTO: tuple[Sizes, ...] = ((1, 2) * 6, (1,) * 60 + (2, 3, 1, 2))


def one_directional() -> Iterator[tuple[Sizes, Sizes, int | None]]:
    """Every run of each A's shape as B, changed at each place, with every axis from too low to too high and unset."""
    for a in _ONTO:
        for b in _candidates(a):
            for axis in (None, *range(-2, len(a) + 2)):
                yield a, b, axis
    for a in _LARGE_ONTO:
        for start, length in ((0, len(a)), (0, 2), (len(a) - 3, 3), (len(a) - 4, 2)):
            for axis in (None, start, start + 1):
                yield a, a[start : start + length], axis


def _candidates(a: Sizes) -> list[Sizes]:
    """Runs of A, runs with 1s in them, one-element shapes, and shapes that do not fit."""
    runs = {a[start:end] for start, end in product(range(len(a) + 1), repeat=2) if start <= end}
    changed = {
        (*run[:index], size, *run[index + 1 :])
        for run in runs
        for index in range(len(run))
        for size in (1, run[index] + 1)
    }
    changed |= {(1,) * (len(run) - 1) + run[-1:] for run in runs} | {run[:1] + (1,) * (len(run) - 1) for run in runs}
    ones = {(1,) * rank for rank in range(len(a) + 2)}
    extended = {(1, *a), (*a, 1), (2, *a), (0,), (*a[:1], 0)}
    return sorted(runs | changed | ones | extended)
