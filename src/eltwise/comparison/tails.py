"""A tail that nobody wrote: from some element on B holds a repeated pattern, or numbers of random size."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from eltwise.comparison.hypotheses import Cause, Hypothesis, Problem
from eltwise.comparison.numbers import bits_of, is_float, values_of
from eltwise.comparison.pairs import converted
from eltwise.comparison.scan import Figures
from eltwise.core.dtypes import ElementType

_LEAST_TAIL, _LEAST_RANDOM, _SAMPLED = 8, 16, 512
_PERIODS = (1, 2, 4, 8, 16)


def uninitialized(problem: Problem) -> Iterator[Hypothesis]:
    """From some element on B holds a repeated pattern, as memory that nobody wrote does."""
    first, total = problem.first, problem.pair.size
    count = total - first
    if first <= 0 or count < _LEAST_TAIL or problem.differing * 8 < count * 7:
        return
    ahead = converted(problem.pair.b.at(np.arange(first, min(first + 64, total))), problem.element_type)
    for period in _PERIODS:
        pattern = ahead[:period]
        if period * 4 <= ahead.size and (bits_of(ahead) == np.resize(bits_of(pattern), ahead.size)).all():
            said = ", ".join(f"0x{int(one):x}" for one in bits_of(pattern)[:4])
            text = f"from element {first} on, {{b}} holds only {said}: the tail was not written"
            details: dict[str, object] = {"from": first, "elements": count, "pattern": said}
            predict = lambda indices, a: np.where(indices < first, a, pattern[(indices - first) % pattern.size])  # noqa: E731, B023
            yield Hypothesis("uninitialized", text, predict, details, 1, least_bits=3.0)
            return


def random_tail(problem: Problem, figures: Figures) -> Cause | None:
    """Whether from some element on nearly all differ, with exponents that only random bits have."""
    first, total = figures.first, figures.total
    count = total - first
    if first <= 0 or figures.differing < 0.98 * count:
        return None
    tail = np.unique(np.linspace(first, total - 1, _SAMPLED).astype(np.int64))
    values = converted(problem.pair.b.at(tail), problem.element_type)
    if not _looks_random(values, problem.sample.a, problem.element_type):
        return None
    words = f"from element {first} on, B holds numbers of random size: the tail was not written"
    return Cause("uninitialized", 1.0, words, {"from": first, "elements": count})


def _looks_random(values: np.ndarray, reference: np.ndarray, own: ElementType) -> bool:
    """Whether floats have the exponents of random bits, far from those of a reference."""
    if not is_float(own) or values.size < _LEAST_RANDOM:
        return False
    x, y = (np.abs(values_of(one, own).astype(np.float64)) for one in (values, reference))
    usual = y[np.isfinite(y) & (y > 0)]
    middle = float(np.median(usual)) if usual.size else 1.0
    with np.errstate(all="ignore"):
        far = ~np.isfinite(x) | (np.abs(np.log2(x / middle)) > 24)
    return bool(far.mean() > 0.25)
