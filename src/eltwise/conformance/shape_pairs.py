"""The shape pairs that reach the hard places of each broadcast rule: what must work, and what must be refused.

Which is which is not written here: the oracle decides it for each pair.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

Sizes = tuple[int, ...]
ShapePair = tuple[Sizes, Sizes]

NUMPY_PAIRS: tuple[ShapePair, ...] = (
    ((), ()),
    ((), (3,)),
    ((3,), ()),
    ((1,), ()),
    ((0,), ()),
    ((0,), (1,)),
    ((1,), (0,)),
    ((0,), (2,)),
    ((0, 3), (3,)),
    ((2, 0, 3), (1, 1, 3)),
    ((3,), (3,)),
    ((3,), (4,)),
    ((2, 3), (3,)),
    ((2, 3), (2,)),
    ((2, 3), (2, 1)),
    ((2, 1), (1, 3)),
    ((1, 3), (2, 1)),
    ((3, 3), (3,)),
    ((3,), (3, 3)),
    ((3, 3, 3), (3, 1)),
    ((2, 3, 4, 5), (5,)),
    ((2, 3, 4, 5), (3, 4)),
    ((2, 3, 4, 5), (1, 1)),
    ((4, 5), (2, 3, 4, 5)),
    ((8, 1, 6, 1), (7, 1, 5)),
    ((2, 1, 3, 1), (4, 1, 2)),
    ((256, 5), (256, 5)),
    ((2, 3), (2, 3)),
    ((2, 0, 3), (2, 0, 3)),
    ((1, 2) * 6, (1, 2) * 6),
    ((2,) + (1,) * 10 + (3,), (3,)),
    ((1, 2) * 6, (2, 1) * 6),
    ((1,) * 63 + (3,), (2,) + (1,) * 63),
    ((2,) + (1,) * 63, ()),
)
"""Rank 0, empty, one side, both sides, square, up to rank 64, and pairs that do not broadcast."""

FEW_PAIRS: tuple[ShapePair, ...] = (
    ((), ()),
    ((3,), ()),
    ((), (3,)),
    ((0,), (1,)),
    ((3, 3), (3,)),
    ((2, 3), (2, 1)),
    ((2, 1), (1, 3)),
    ((8, 1, 6, 1), (7, 1, 5)),
    ((1, 2) * 6, (2, 1) * 6),
    ((3,), (4,)),
    ((2, 3), (2,)),
)
"""A few of them, and two that do not broadcast."""

FEW_ONTO: tuple[tuple[Sizes, Sizes, int | None], ...] = (
    ((), (), None),
    ((2, 3), (), None),
    ((2, 3), (), 0),
    ((2, 3), (1,), 1),
    ((2, 3), (1, 1), None),
    ((2, 3), (2, 3), None),
    ((2, 3), (2, 3), 0),
    ((0, 3), (3,), 1),
    ((2, 3), (2, 1), 0),
    ((2, 3), (3,), None),
    ((2, 3), (3,), -1),
    ((2, 3), (2,), 0),
    ((3, 3), (3,), 0),
    ((3, 3), (3,), 1),
    ((3, 3, 3), (3,), None),
    ((3, 3, 3), (3,), 0),
    ((3, 3, 3), (3,), 1),
    ((3, 3, 3), (3,), 2),
    ((3, 3, 3), (3, 3), None),
    ((3, 3, 3), (3, 3), 0),
    ((3, 3, 3), (3, 3), 1),
    ((3, 3, 3), (3, 1), 1),
    ((2, 3, 4, 5), (3, 4), 1),
    ((2, 3, 4, 5), (4, 5), None),
    ((2, 3, 4, 5), (2, 3), 0),
    ((2, 3, 4), (2, 1, 4), 0),
    ((1, 2) * 6, (1, 2, 1), 8),
    ((2, 3), (2,), None),
    ((2, 3), (3,), 0),
    ((2, 3), (4,), 1),
    ((2, 3), (3,), 2),
    ((2, 3), (3,), -2),
    ((3,), (3, 3), None),
    ((2, 3, 4, 5), (3, 4), None),
)
"""A few of what ``one_directional`` has: every axis, squares, ones inside, and what must be refused."""

_ONTO: tuple[Sizes, ...] = (
    (),
    (1,),
    (3,),
    (0, 3),
    (2, 3),
    (3, 3),
    (2, 1),
    (1, 3, 1),
    (3, 3, 3),
    (2, 3, 4),
    (2, 1, 4),
    (2, 3, 4, 5),
)
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
        (*run[:place], size, *run[place + 1 :])
        for run in runs
        for place in range(len(run))
        for size in (1, run[place] + 1)
    }
    changed |= {(1,) * (len(run) - 1) + run[-1:] for run in runs} | {run[:1] + (1,) * (len(run) - 1) for run in runs}
    ones = {(1,) * rank for rank in range(len(a) + 2)}
    extended = {(1, *a), (*a, 1), (2, *a), (0,), (*a[:1], 0)}
    return sorted(runs | changed | ones | extended)
