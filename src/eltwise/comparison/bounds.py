"""What says of every element that differs how it lies to the other, if not which value it has: neighbours, limits."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np

from eltwise.comparison.hypotheses import LEAST_BITS_OF_INTEGERS, Cause, Problem
from eltwise.comparison.numbers import is_float, values_of
from eltwise.comparison.pairs import Pair, same_bits
from eltwise.comparison.places import percent
from eltwise.comparison.scan import Figures
from eltwise.comparison.tails import random_tail
from eltwise.core.dtypes import ElementType

PIECE = 1 << 20
"""So many elements are verified at a time."""

_LEAST_SHARE_OF_LAST_BIT = 0.9
_LEAST_LAST_BITS = {8: 64, 16: 8}
"""So many elements of a type of so few bits must differ in the last one: there neighbours are common by chance."""

_LEAST_RANGE = 16
"""Integers that differ by 1 must have so many values, or they would do so by chance."""


def _last_bit(problem: Problem, figures: Figures) -> Cause | None:
    """Whether all that differ, or nearly all, are neighbours of each other."""
    own, differing = problem.element_type, figures.differing
    near = int(figures.histogram[1]) if not figures.counts["nan"] else 0
    least = _LEAST_LAST_BITS.get(8 if not is_float(own) or own.bits <= 8 else own.bits, 1)
    if differing < least or own.bits == 1:
        return None
    if near == differing and _has_range(own, figures):
        words = "every element that differs is a neighbour of the other: another rounding of the last bit"
        return Cause("last_bit", 1.0, words if is_float(own) else "integers differ by 1 wherever they differ")
    if near >= _LEAST_SHARE_OF_LAST_BIT * differing and is_float(own):
        words = f"{percent(near / differing)} of the elements that differ do so in the last bit only"
        return Cause("last_bit", near / differing, words)
    return None


def _has_range(own: ElementType, figures: Figures) -> bool:
    """Whether neighbours are no matter of course: masks and labels of few values always differ by little."""
    values = figures.sample_a
    return is_float(own) or int(values.max()) - int(values.min()) >= _LEAST_RANGE


def _at_limits(problem: Problem, figures: Figures) -> Cause | None:
    """Whether B is at a limit of its integer type, or 0, wherever it differs; counted over all elements.

    How common these values are where nothing differs says how much evidence that is.
    """
    own, pair, wide = problem.element_type, problem.pair, problem.wide
    if own.bits < 8 or own.kind == "boolean":
        return None
    limits: tuple[int, ...] = pair.b.element_type.limits if pair.b.element_type.is_integer else ()
    for cause, allowed in (("saturation", limits), ("zeroed", (0,))):
        is_allowed = np.isin(wide.y, allowed)
        if not allowed or not is_allowed[: wide.count].all():
            continue
        equal = is_allowed[wide.count :]
        common = (int(equal.sum()) + 1) / (equal.size + 2)
        if figures.differing * -math.log2(common) < LEAST_BITS_OF_INTEGERS:
            continue
        if all(np.isin(values_of(b[~same_bits(a, b)], own), allowed).all() for a, b in _chunks(pair)):
            found = ", ".join(f"{one:g}" for one in np.unique(wide.y[: wide.count]))
            text = f"B is {found} wherever it differs"
            if cause == "saturation":
                text += f", where {pair.b.element_type} ends, as results are that saturate instead of wrapping"
            return Cause(cause, 1.0, text)
    return None


def _chunks(pair: Pair) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    step = pair.whole_chunks(PIECE)
    for start in range(0, pair.size, step):
        yield pair.read(start, min(start + step, pair.size))


BOUNDS: tuple[Callable[[Problem, Figures], Cause | None], ...] = (_last_bit, _at_limits, random_tail)
"""Those and random tails, the most telling first."""
