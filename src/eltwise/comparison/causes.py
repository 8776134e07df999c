"""The cause of differences: hypotheses that predict every differing bit, tried on a sample, then verified on all of it.

A hypothesis is a way to compute B from A, or A from B. It is named as the cause only if it predicts every element of
the tensor, the equal ones too, and only with enough evidence: few elements, or elements with few digits, can agree
with many hypotheses by chance. One that predicts most but not all is named with its share.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, pairwise
from threading import Lock

import numpy as np

from eltwise.comparison import channel_hypotheses, fitted_hypotheses, place_hypotheses, value_hypotheses
from eltwise.comparison.cause import Cause, Context
from eltwise.comparison.hypotheses import (
    LEAST_BITS_OF_INTEGERS,
    Hypothesis,
    Maker,
    Predicted,
    Problem,
    Sample,
    agrees,
    evidence,
    is_enough,
    predicted_of,
)
from eltwise.comparison.numbers import bits_of, is_float, values_of
from eltwise.comparison.operation_causes import of_operation
from eltwise.comparison.pairs import Pair, converted, same_bits
from eltwise.comparison.place_hypotheses import looks_random
from eltwise.comparison.places import Claim, covered, percent
from eltwise.comparison.scan import Figures, spread
from eltwise.core.dtypes import ElementType
from eltwise.kernels.threads import num_threads, run_together

UNEXPLAINED = "unexplained"
_SAMPLED = 1536
_EQUAL_SAMPLED = 512
_MOST_OF = 0.5
_PIECE = 1 << 20
_LEAST_SHARE_OF_LAST_BIT = 0.9
_LEAST_LAST_BITS = {8: 64, 16: 8}
"""So many elements of a type of so few bits must differ in the last one: there neighbours are common by chance."""

_LEAST_RANGE = 16
"""Integers that differ by 1 must have so many values, or they would do so by chance."""

_LEAST_TAIL = 16


def find_cause(pair: Pair, figures: Figures | None, context: Context, claims: Sequence[Claim] = ()) -> Cause:
    """Find what predicts the differences of a pair.

    Args:
        pair: the pair.
        figures: what was measured of it; None where the shapes differ.
        context: what else is known.
        claims: where all differences lie, if that is known.
    """
    if figures is not None:
        known = context.operation and of_operation(pair, figures, context.operation, context.operands)
        found = known or _fact(figures)
        if found is not None:
            return found
    problem = _problem(pair, figures, context)
    best: tuple[float, Hypothesis, bool] | None = None
    region = _of_region(problem, claims) if claims else iter(())
    backward = problem.swapped if figures is not None else _problem(pair.swapped, None, context)
    for hypothesis, is_reversed in chain(_all(problem, backward), region):
        own = backward if is_reversed else problem
        predicted = predicted_of(hypothesis, own.sample)
        right = agrees(predicted, own.sample.b, pair.element_type)
        bits = evidence(hypothesis, own.sample, right, pair.element_type)
        if not is_enough(bits, pair.element_type):
            continue
        share = _share(right, own.sample.differs, ~agrees(predicted, own.sample.a, pair.element_type))
        if right.all():
            share = verified_share(own.pair, hypothesis.predicted)
            if share == 1.0:
                return _named(hypothesis, own, is_reversed, 1.0)
        if share >= _MOST_OF and is_enough(bits / 2, pair.element_type) and (best is None or share > best[0]):
            best = share, hypothesis, is_reversed
    return _without_full(problem, figures, best)


def _all(problem: Problem, backward: Problem) -> Iterator[tuple[Hypothesis, bool]]:
    makers, reversible = (
        (MAKERS, REVERSIBLE) if problem.has_one_shape else (OF_OTHER_SHAPES, (place_hypotheses.padded,))
    )
    for maker in makers:
        for hypothesis in maker(problem):
            yield hypothesis, False
    for maker in reversible:
        for hypothesis in maker(backward):
            yield hypothesis, True


@dataclass(frozen=True, eq=False)
class _Restricted:
    """What is predicted on some indices of some axes, and A everywhere else."""

    inner: Predicted
    pair: Pair
    claims: tuple[Claim, ...]

    def at(self, indices: np.ndarray) -> np.ndarray:
        """The one or the other for single elements."""
        kept = converted(self.pair.a.at(indices), self.pair.element_type)
        return np.where(covered(self.claims, indices, self.pair.shape), self.inner.at(indices), kept)

    def read(self, start: int, stop: int) -> np.ndarray:
        """The one or the other for a range."""
        is_inside = covered(self.claims, np.arange(start, stop), self.pair.shape)
        kept = self.pair.read_a(start, stop)
        return np.where(is_inside, self.inner.read(start, stop), kept) if is_inside.any() else kept


def _of_region(problem: Problem, claims: Sequence[Claim]) -> Iterator[tuple[Hypothesis, bool]]:
    """The hypotheses on values for the part of the tensor in which all differences lie."""
    sample, wide = (
        Sample(one.indices[inside], one.a[inside], one.b[inside], one.differs[inside])
        for one in (problem.sample, problem.wide)
        for inside in [covered(claims, one.indices, problem.pair.shape)]
    )
    only = replace(problem, sample=sample, wide=wide)
    free = sum(2 * math.log2(claim.size) for claim in claims)
    words = " and ".join(map(str, claims))
    for maker in OF_VALUES:
        for found in maker(only):
            yield (
                replace(
                    found,
                    text=f"on {words}, {found.text}",
                    predicted=_Restricted(found.predicted, problem.pair, tuple(claims)),
                    details=dict(found.details) | {"where": [claim.fields() for claim in claims]},
                    free_bits=found.free_bits + free,
                ),
                False,
            )


def _named(hypothesis: Hypothesis, problem: Problem, is_reversed: bool, share: float) -> Cause:
    a, b = ("B", "A") if is_reversed else ("A", "B")
    text = hypothesis.text.replace("{a}", a).replace("{b}", b)
    details = dict(hypothesis.details) | ({"reversed": True} if is_reversed else {})
    types = problem.pair.a.element_type, problem.pair.b.element_type
    if hypothesis.is_moved and types[0] is not types[1]:
        text += f", as {types[1]} instead of {types[0]}"
    if share < 1:
        text += f"; that predicts {percent(share)} of what differs"
    return Cause(hypothesis.cause, share, text, details)


def _fact(figures: Figures) -> Cause | None:
    """What the figures alone say."""
    counts, differing = figures.counts, figures.differing
    if counts["zero_sign"] == differing:
        return Cause("zero_sign", 1.0, "only the signs of zeros differ")
    if counts["both_nan"] == differing:
        return Cause("nan_bits", 1.0, "both are NaN wherever the bits differ")
    return None


def _problem(pair: Pair, figures: Figures | None, context: Context) -> Problem:
    """The sample that hypotheses are tried on."""
    total = pair.b.size
    even = (np.arange(_EQUAL_SAMPLED) * 2 + 1) * total // (2 * _EQUAL_SAMPLED) if total else np.zeros(0, np.int64)
    even = np.unique(even)
    if figures is None:
        indices = np.unique(np.concatenate([even, np.arange(min(total, 64)), np.arange(max(total - 64, 0), total)]))
        b = converted(pair.b.at(indices), pair.element_type)
        sample = Sample(indices, b, b, np.ones(indices.size, bool))
        return Problem(pair, sample, sample, context.others, has_one_shape=False)
    a, b = pair.at(even)
    equal = same_bits(a, b)
    rest = Sample(even[equal], a[equal], b[equal], np.zeros(int(equal.sum()), bool))
    few, wide = (_joined(figures, most, rest) for most in (_SAMPLED, figures.sample.size))
    return Problem(pair, few, wide, context.others, True, figures.first, figures.differing)


def _joined(figures: Figures, most: int, rest: Sample) -> Sample:
    """A sample of so many elements that differ, and after them some that do not."""
    indices, a, b = (spread(one, most) for one in (figures.sample, figures.sample_a, figures.sample_b))
    parts = ((indices, rest.indices), (a, rest.a), (b, rest.b), (np.ones(indices.size, bool), rest.differs))
    return Sample(*(np.concatenate(part) for part in parts))


def _share(right: np.ndarray, differs: np.ndarray, is_changed: np.ndarray) -> float:
    """The share of what differs, or should, that is right."""
    concerned = int((differs | is_changed).sum())
    return int((right & differs).sum()) / concerned if concerned else 0.0


def verified_share(pair: Pair, predicted: Predicted) -> float:
    """The share of what differs, or should, that is predicted, over all elements; 1 only if every element is."""
    counts = np.zeros(3, np.int64)
    lock = Lock()

    def check(start: int, stop: int) -> None:
        with np.errstate(all="ignore"):
            count(start, stop)

    def count(start: int, stop: int) -> None:
        a, b = converted(pair.a.read(start, stop), pair.element_type) if has_a else None, pair.read_b(start, stop)
        found = predicted.read(start, stop)
        right = agrees(found, b, pair.element_type)
        if a is None:
            concerned, good = np.ones(right.size, bool), right
        else:
            differs = ~same_bits(a, b)
            concerned = differs | ~agrees(found, a, pair.element_type)
            good = right & differs
        with lock:
            counts[:] += np.array([(~right).sum(), good.sum(), concerned.sum()], np.int64)

    has_a = pair.a.shape == pair.b.shape
    total, step = pair.b.size, pair.whole_chunks(_PIECE)
    ends = [*range(0, total, step), total]
    for batch in range(0, len(ends) - 1, 8):
        work = [partial(check, *some) for some in pairwise(ends[batch : batch + 9])]
        run_together(work, num_threads())
        if counts[0] > max(counts[2], total // 64) * (1 - _MOST_OF) and batch:
            return 0.0
    wrong, good, concerned = map(int, counts)
    return 1.0 if not wrong else min(good / max(concerned, 1), 1 - 1e-12)


def _without_full(problem: Problem, figures: Figures | None, best: tuple[float, Hypothesis, bool] | None) -> Cause:
    """What is said where nothing predicts every element."""
    pair = problem.pair
    if figures is None:
        shapes = f"the shape is {list(pair.b.shape)} instead of {list(pair.a.shape)}"
        return Cause("other_shape", 1.0, f"{shapes}, and no rearrangement of A gives B")
    found = _bounded(problem, figures)
    if found is not None and found.share == 1.0:
        return found
    if best is not None:
        _share_of_sample, hypothesis, is_reversed = best
        own = problem.swapped if is_reversed else problem
        share = verified_share(own.pair, hypothesis.predicted)
        if share >= _MOST_OF:
            return _named(hypothesis, own, is_reversed, share)
    return found or _unexplained(pair, figures)


def _bounded(problem: Problem, figures: Figures) -> Cause | None:
    """What says of every differing element where it lies, if not which value it has."""
    own, differing = problem.element_type, figures.differing
    near = int(figures.histogram[1]) if not figures.counts["nan"] else 0
    if differing >= _LEAST_LAST_BITS.get(8 if not is_float(own) or own.bits <= 8 else own.bits, 1) and own.bits > 1:
        if near == differing and _has_range(own, figures):
            words = "every element that differs is a neighbour of the other: another rounding of the last bit"
            return Cause("last_bit", 1.0, words if is_float(own) else "integers differ by 1 wherever they differ")
        if near >= _LEAST_SHARE_OF_LAST_BIT * differing and is_float(own):
            words = f"{percent(near / differing)} of the elements that differ do so in the last bit only"
            return Cause("last_bit", near / differing, words)
    return _at_limits(problem, figures) or _random_tail(problem, figures)


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
    values = values_of(wide.b, own)
    for cause, allowed in (("saturation", limits), ("zeroed", (0,))):
        is_allowed = np.isin(values, allowed)
        if not allowed or not is_allowed[wide.differs].all():
            continue
        common = (int(is_allowed[~wide.differs].sum()) + 1) / (int((~wide.differs).sum()) + 2)
        if figures.differing * -math.log2(common) < LEAST_BITS_OF_INTEGERS:
            continue
        if all(np.isin(values_of(b[~same_bits(a, b)], own), allowed).all() for a, b in _chunks(pair)):
            found = ", ".join(f"{one:g}" for one in np.unique(values[wide.differs]))
            text = f"B is {found} wherever it differs"
            if cause == "saturation":
                text += f", where {pair.b.element_type} ends, as results are that saturate instead of wrapping"
            return Cause(cause, 1.0, text)
    return None


def _chunks(pair: Pair) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    step = pair.whole_chunks(_PIECE)
    for start in range(0, pair.size, step):
        yield pair.read(start, min(start + step, pair.size))


def _random_tail(problem: Problem, figures: Figures) -> Cause | None:
    """Whether from some element on nearly all differ, with exponents that only random bits have."""
    first, total = figures.first, figures.total
    count = total - first
    if first <= 0 or figures.differing < 0.98 * count or count < _LEAST_TAIL:
        return None
    tail = np.unique(np.linspace(first, total - 1, 512).astype(np.int64))
    values = converted(problem.pair.b.at(tail), problem.element_type)
    if not looks_random(values, problem.sample.a, problem.element_type):
        return None
    words = f"from element {first} on, B holds numbers of random size: the tail was not written"
    return Cause("uninitialized", 1.0, words, {"from": first, "elements": count})


def _unexplained(pair: Pair, figures: Figures) -> Cause:
    a, b = pair.at(np.array([figures.first]))
    place = list(map(int, np.unravel_index(figures.first, pair.shape))) if pair.shape else []
    shown = f"first at {place}: 0x{int(bits_of(a)[0]):x} and 0x{int(bits_of(b)[0]):x} as {pair.element_type}"
    return Cause(UNEXPLAINED, 0.0, f"no hypothesis predicts the differences; {shown}")


OF_VALUES: tuple[Maker, ...] = (
    *(value_hypotheses.signs, value_hypotheses.subnormals, value_hypotheses.one_value, value_hypotheses.ranges),
    *(value_hypotheses.digits, fitted_hypotheses.scaled, fitted_hypotheses.offset),
)
"""Those that compute each element from the same element, simplest first."""

MAKERS: tuple[Maker, ...] = (
    *OF_VALUES,
    *(place_hypotheses.stale, place_hypotheses.transposed, place_hypotheses.flipped),
    *(fitted_hypotheses.quantized, fitted_hypotheses.dequantized),
    *(place_hypotheses.uninitialized, place_hypotheses.shifted, place_hypotheses.reordered),
    channel_hypotheses.quantized_by_channel,
)
"""The hypotheses, simplest first: of two that predict the same, the first one is named."""

OF_OTHER_SHAPES: tuple[Maker, ...] = (place_hypotheses.transposed, place_hypotheses.expanded, place_hypotheses.padded)
"""Those for tensors of other shapes."""

REVERSIBLE: tuple[Maker, ...] = (
    value_hypotheses.one_value,
    *(value_hypotheses.subnormals, value_hypotheses.digits, value_hypotheses.ranges, fitted_hypotheses.quantized),
    *(fitted_hypotheses.dequantized, place_hypotheses.uninitialized),
)
"""Those that lose something, so that A may be what B became: they are tried the other way round, too."""
