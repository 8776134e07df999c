"""The cause of differences: hypotheses that predict every differing bit, tried on a sample, then verified on all of it.

A hypothesis is a way to compute B from A, or A from B. It is named as the cause only if it predicts every element of
the tensor, the equal ones too, and only with enough evidence: few elements, or elements with few digits, can agree
with many hypotheses by chance. One that predicts most but not all is named with its share.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from threading import Lock

import numpy as np

from eltwise.comparison import place_hypotheses as place
from eltwise.comparison import quantization
from eltwise.comparison import value_hypotheses as value
from eltwise.comparison.bounds import BOUNDS, LOOSE_BOUNDS, PIECE
from eltwise.comparison.fitted_hypotheses import cancelled, offset, scaled
from eltwise.comparison.hypotheses import (
    MOST_OF,
    Cause,
    ComparisonSettings,
    Generate,
    Hypothesis,
    Predict,
    Problem,
    Sample,
    agrees,
    evidence,
    is_enough,
)
from eltwise.comparison.matching import Copies
from eltwise.comparison.numbers import bits_of
from eltwise.comparison.pairs import Pair, converted, same_bits
from eltwise.comparison.places import Claim, covered
from eltwise.comparison.scan import Figures
from eltwise.comparison.value_hypotheses import narrowings
from eltwise.core.blocks import spread
from eltwise.core.shares import percent
from eltwise.kernels.threads import num_threads, run_together

UNEXPLAINED, COPIED = "unexplained", "operand_copied"
_SAMPLED, _EQUAL_SAMPLED, _ENDS_SAMPLED = 1536, 512, 64
_PIECES_AT_ONCE = 8
_BETWEEN_STEPS = 0.5
"""The share of elements that another rounding brings to the same step by chance."""

_NEARLY_ALL = 0.9
"""What predicts so much of what differs, bit for bit, says more than how small the differences are."""

OF_VALUES: tuple[Generate, ...] = (
    *(value.signs, value.subnormals, value.one_value, value.ranges, value.digits),
    *(scaled, offset, cancelled),
)
"""Those that compute each element from the same element, simplest first."""

GENERATORS: tuple[Generate, ...] = (
    *(*OF_VALUES, place.stale, place.transposed, place.flipped, quantization.packed, quantization.quantized),
    quantization.dequantized,
    *(place.unrelated_tail, place.shifted, place.reordered, quantization.quantized_by_channel),
)
"""The hypotheses, simplest first: of two that predict the same, the first one is named."""

OF_OTHER_SHAPES: tuple[Generate, ...] = (place.transposed, place.expanded, place.padded)
"""Those for tensors of other shapes."""

REVERSIBLE: tuple[Generate, ...] = (
    *(value.one_value, value.signs, value.subnormals, value.digits, value.ranges, quantization.quantized),
    *(quantization.packed, quantization.dequantized, place.unrelated_tail, place.padded, place.transposed),
    *(scaled, offset, place.expanded, place.shifted),
)
"""Those that lose something, such as a shape, so that A may be what B became; tried the other way round, too."""


def find_cause(pair: Pair, figures: Figures, settings: ComparisonSettings, claims: Sequence[Claim] = ()) -> Cause:
    """Find what predicts the differences of a pair, of which ``figures`` has nothing where the shapes differ.

    ``claims`` say where all differences lie, if that is known.
    """
    best: tuple[float, Hypothesis, Problem] | None = None
    problem, fact = _problem(pair, figures, settings.copies), _fact(figures)
    of_operation = (find(problem, settings) for find in (value.of_operation, value.of_operation_jointly))
    faults = ((fault, problem) for fault in chain.from_iterable(of_operation))
    for hypothesis, problem_of in chain(faults, () if fact else _hypotheses(problem, claims)):
        share = _share_of_sample(hypothesis, problem_of.sample)
        if share == 1.0:
            share = verified_share(problem_of.pair, hypothesis.predict)
        if share == 1.0:
            cause = _named(hypothesis, problem_of.is_reversed)
            return _with_rival(cause, hypothesis, problem, settings)
        if MOST_OF <= share < 1.0 and (best is None or share > best[0]):
            best = share, hypothesis, problem_of
    if problem.has_one_shape:
        return fact or _in_part(problem, best)
    shapes = f"the shape is {list(pair.b.shape)} instead of {list(pair.a.shape)}"
    rest = "no hypothesis explains it" if pair.a.size or pair.b.size else "neither has elements"
    return Cause("other_shape", 1.0, f"{shapes}, and {rest}")


def _with_rival(cause: Cause, hypothesis: Hypothesis, problem: Problem, settings: ComparisonSettings) -> Cause:
    """The cause; of a fault of an operation with another one that predicts all of these elements, too.

    That an operand is the result is named last: where that one is constant, much else leads to it.
    """
    operation = settings.operation
    if operation is None:
        return cause
    for other in value.of_operation(problem, settings):
        if value.is_rival(hypothesis, other, operation) and _is_right(other, problem):
            first, second = (hypothesis, other) if hypothesis.cause != COPIED else (other, hypothesis)
            text = f"{first.text}, or {second.text}: these values do not tell which"
            return _named(replace(first, text=text), is_reversed=False)
    return cause


def _is_right(hypothesis: Hypothesis, problem: Problem) -> bool:
    """Whether a hypothesis predicts every element."""
    return _share_of_sample(hypothesis, problem.sample) == 1.0 == verified_share(problem.pair, hypothesis.predict)


def explained_by(cause: str, pair: Pair, is_reversed: bool) -> Cause | None:
    """The rounding of that name, of A or of B where that is reversed, if it predicts every element of a pair."""
    if pair.a.shape != pair.b.shape:
        return None
    pair = pair.swapped if is_reversed else pair
    hypothesis = next((one for _digits, one in narrowings(pair.element_type) if one.cause == cause), None)
    if hypothesis is None or verified_share(pair, hypothesis.predict) < 1.0:
        return None
    return _named(hypothesis, is_reversed)


def _hypotheses(problem: Problem, claims: Sequence[Claim]) -> Iterator[tuple[Hypothesis, Problem]]:
    """All of them, with the pair that each is about: as it is, the other way round, and the part that differs."""
    generators, backward = GENERATORS, problem.swapped
    if not problem.has_one_shape:
        generators = OF_OTHER_SHAPES
        backward = replace(_problem(backward.pair, problem.figures, problem.copies), is_reversed=True)
    yield from ((one, problem) for generate in generators for one in generate(problem))
    yield from ((one, backward) for generate in generators if generate in REVERSIBLE for one in generate(backward))
    if claims:
        yield from ((one, problem) for one in _of_region(problem, claims))


def _of_region(problem: Problem, claims: Sequence[Claim]) -> Iterator[Hypothesis]:
    """The hypotheses on values for the part of the tensor in which all differences lie."""
    shape = problem.pair.shape
    few, wide = (one.masked(covered(claims, one.indices, shape)) for one in (problem.sample, problem.wide))
    only = replace(problem, sample=few, wide=wide)
    free = sum(2 * math.log2(claim.size) for claim in claims)
    for generate in OF_VALUES:
        for hypothesis in generate(only):
            yield replace(
                hypothesis,
                text=f"on {' and '.join(map(str, claims))}, {hypothesis.text}",
                predict=_restricted(hypothesis.predict, claims, shape),
                details=dict(hypothesis.details) | {"where": [claim.to_dict() for claim in claims]},
                free_bits=hypothesis.free_bits + free,
            )


def _restricted(predict: Predict, claims: Sequence[Claim], shape: Sequence[int]) -> Predict:
    """What is predicted where all claims hold, and A everywhere else."""
    return lambda indices, a: np.where(covered(claims, indices, shape), predict(indices, a), a)


def _share_of_sample(hypothesis: Hypothesis, sample: Sample) -> float:
    """The share of what differs, or should, that is right in the sample; 0 without enough evidence, 1 for all of it."""
    predicted = hypothesis.predict(sample.indices, sample.a)
    right = agrees(predicted, sample.b, sample.element_type)
    if not sample.has_most(right):
        return 0.0
    bits = evidence(hypothesis, sample, right)
    if right.all():
        return float(is_enough(bits, sample.element_type))
    is_concerned = ~agrees(predicted, sample.a, sample.element_type)
    is_concerned[: sample.count] = True
    share = int(right[: sample.count].sum()) / int(is_concerned.sum())
    is_telling = _is_telling(hypothesis, sample, predicted, share) and is_enough(bits / 2, sample.element_type)
    return share if is_telling else 0.0


def _is_telling(hypothesis: Hypothesis, sample: Sample, predicted: np.ndarray, share: float) -> bool:
    """Whether a share of what differs, or should, is more than chance: than few values in any order, or other steps.

    Halfway from chance to all of it is asked for, of steps of what differs.
    """
    if not (hypothesis.is_moved or hypothesis.is_stepped):
        return share >= MOST_OF
    values, counts = np.unique(bits_of(np.ascontiguousarray(predicted)), return_counts=True)
    expected = bits_of(sample.b[: sample.count])
    indices = np.minimum(np.searchsorted(values, expected), values.size - 1)
    by_chance = float(np.where(values[indices] == expected, counts[indices], 0).mean()) / int(counts.sum())
    right = agrees(predicted, sample.b, sample.element_type)[: sample.count]
    is_step = not hypothesis.is_stepped or right.mean() >= _halfway_from(_BETWEEN_STEPS)
    return bool(share >= _halfway_from(by_chance) and is_step)


def _halfway_from(share: float) -> float:
    return share + MOST_OF * (1 - share)


def _named(hypothesis: Hypothesis, is_reversed: bool, share: float = 1.0) -> Cause:
    a, b = ("B", "A") if is_reversed else ("A", "B")
    text = hypothesis.text.replace("{a}", a).replace("{b}", b)
    details = dict(hypothesis.details) | ({"reversed": True} if is_reversed else {})
    if share < 1:
        text += f"; that predicts {percent(share)} of what differs, or should"
    return Cause(hypothesis.cause, share, text, details)


def _fact(figures: Figures) -> Cause | None:
    """What the figures alone say."""
    if not figures.differing:
        return None
    if figures.counts["zero_sign"] == figures.differing:
        return Cause("zero_sign", 1.0, "only the signs of zeros differ")
    if figures.counts["both_nan"] == figures.differing:
        return Cause("nan_bits", 1.0, "both are NaN wherever the bits differ")
    return None


def _problem(pair: Pair, figures: Figures, copies: Copies) -> Problem:
    """The sample that hypotheses are tried on."""
    total, element_type = pair.b.size, pair.element_type
    even = spread(total, _EQUAL_SAMPLED)
    if pair.a.shape != pair.b.shape:
        ends = np.arange(min(total, _ENDS_SAMPLED)), np.arange(max(total - _ENDS_SAMPLED, 0), total)
        indices = np.unique(np.concatenate([even, *ends]))
        b = converted(pair.b.at(indices), element_type)
        sample = Sample(element_type, indices, b, b, indices.size)
        return Problem(pair, figures, sample, sample, copies)
    a, b = pair.at(even)
    rest = Sample(element_type, even, a, b, 0).masked(same_bits(a, b))
    few, wide = (_joined(figures, most, rest) for most in (_SAMPLED, figures.sample.size))
    return Problem(pair, figures, few, wide, copies)


def _joined(figures: Figures, most: int, rest: Sample) -> Sample:
    """A sample of so many elements that differ, and after them those that do not."""
    parts = ((figures.sample, rest.indices), (figures.sample_a, rest.a), (figures.sample_b, rest.b))
    indices, a, b = (np.concatenate([one[spread(one.size, most)], equal]) for one, equal in parts)
    return Sample(rest.element_type, indices, a, b, min(figures.sample.size, most))


def verified_share(pair: Pair, predict: Predict) -> float:
    """The share of what differs, or should, that is predicted, over all elements; 1 only if every element is."""
    counts, lock = np.zeros(3, np.int64), Lock()

    def check(start: int, stop: int) -> None:
        with np.errstate(all="ignore"):
            of_range = _counted(pair, predict, start, stop)
        with lock:
            counts[:] += of_range

    work, total = [partial(check, *some) for some in pair.ranges(PIECE)], pair.b.size
    for batch in range(0, len(work), _PIECES_AT_ONCE):
        run_together(work[batch : batch + _PIECES_AT_ONCE], num_threads())
        if counts[0] > max(counts[2], total // 64) * (1 - MOST_OF) and batch:
            return 0.0
    wrong, good, concerned = map(int, counts)
    return 1.0 if not wrong else min(good / max(concerned, 1), 1 - 1e-12)


def _counted(pair: Pair, predict: Predict, start: int, stop: int) -> tuple[int, int, int]:
    """How many elements of a range are wrong, right where it counts, and how many count."""
    b, has_a = pair.read_b(start, stop), pair.a.shape == pair.b.shape
    a = pair.read_a(start, stop) if has_a else b
    predicted = predict(np.arange(start, stop), a)
    right = agrees(predicted, b, pair.element_type)
    if not has_a:
        return int((~right).sum()), int(right.sum()), right.size
    differs = ~same_bits(a, b)
    concerned = differs | ~agrees(predicted, a, pair.element_type)
    return int((~right).sum()), int((right & differs).sum()), int(concerned.sum())


def _in_part(problem: Problem, best: tuple[float, Hypothesis, Problem] | None) -> Cause:
    """What is said where nothing predicts every element; a bound says less than what predicts nearly every one."""
    bounded, predicted = None, None if best is None else _verified(*best[1:])
    is_nearly_all = predicted is not None and predicted.share >= _NEARLY_ALL
    for find in (*BOUNDS, *(() if is_nearly_all else LOOSE_BOUNDS)):
        bound = find(problem)
        if bound is not None and bound.share == 1.0:
            return bound
        bounded = bounded or bound
    if bounded is not None and bounded.share >= _NEARLY_ALL and not is_nearly_all:
        return bounded
    return predicted or bounded or _unexplained(problem.pair, problem.figures)


def _verified(hypothesis: Hypothesis, problem: Problem) -> Cause | None:
    """The hypothesis with what it predicts of all elements, if that is enough."""
    share = verified_share(problem.pair, hypothesis.predict)
    predicted = hypothesis.predict(problem.sample.indices, problem.sample.a)
    is_telling = _is_telling(hypothesis, problem.sample, predicted, share)
    return _named(hypothesis, problem.is_reversed, share) if is_telling else None


def _unexplained(pair: Pair, figures: Figures) -> Cause:
    a, b = pair.at(np.array([figures.worst]))
    coordinates = list(map(int, np.unravel_index(figures.worst, pair.shape))) if pair.shape else []
    bits = f"0x{int(bits_of(a)[0]):x} and 0x{int(bits_of(b)[0]):x} as {pair.element_type}"
    shown = f"the largest at {coordinates}: {a[0]!s} and {b[0]!s}, {bits}"
    return Cause(UNEXPLAINED, 0.0, f"no hypothesis predicts the differences; {shown}")
