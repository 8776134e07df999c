"""What says of every element that differs how it lies to the other, if not which value it has."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from eltwise.comparison.hypotheses import LEAST_BITS_OF_FLOATS, LEAST_BITS_OF_INTEGERS, Cause, Problem, agrees
from eltwise.comparison.low_rank import low_rank
from eltwise.comparison.numbers import exact_values, is_float, shown, values_of
from eltwise.comparison.pairs import Pair, converted, same_bits
from eltwise.comparison.value_hypotheses import narrower, neighbours
from eltwise.core.blocks import spread
from eltwise.core.dtypes import ElementType
from eltwise.core.shares import percent

PIECE = 1 << 20
"""So many elements are verified at a time."""

_LEAST_SHARE_OF_LAST_BIT = 0.9
_LEAST_LAST_BITS = {8: 64, 16: 8}
"""So many elements of a type of so few bits must differ in the last one: there neighbours are common by chance."""

_LEAST_RANGE = 16
"""Integers that differ by 1 must have so many values, or they would do so by chance."""

_LEAST_DIGITS_OF_NOISE, _MOST_NOISE, _FEWEST = 24, 16, 16
"""Of how many binary digits a type must be, and how many rounding steps of the largest value are noise, if at least one
of so many elements differs."""

_LEAST_RANDOM, _SAMPLED = 16, 512
_FAR, _LEAST_SHARE_OF_FAR = 24, 0.25
"""So many binary digits lie between numbers of one tensor and a quarter of random bits, at least."""

_USUAL = (0.01, 0.99)
"""Between these shares of the numbers of A, from the smallest on, lie those of usual size."""


def _last_bit(problem: Problem) -> Cause | None:
    """Whether all that differ, or nearly all, are neighbours of each other."""
    element_type, figures, differing = problem.element_type, problem.figures, problem.figures.differing
    near = int(figures.histogram[1]) if not (figures.counts["nan"] or figures.counts["infinity"]) else 0
    least = _LEAST_LAST_BITS.get(8 if not is_float(element_type) or element_type.bits <= 8 else element_type.bits, 1)
    if differing < least or element_type.bits == 1:
        return None
    # Masks and labels of few values always differ by little.
    values = figures.sample_a
    if near == differing and (is_float(element_type) or int(values.max()) - int(values.min()) >= _LEAST_RANGE):
        text = "every element that differs is a neighbour of the other: another rounding of the last bit"
        return Cause("last_bit", 1.0, text if is_float(element_type) else "integers differ by 1 wherever they differ")
    if near >= _LEAST_SHARE_OF_LAST_BIT * differing and is_float(element_type):
        text = f"{percent(near / differing)} of the elements that differ do so in the last bit only"
        return Cause("last_bit", near / differing, text)
    return None


def _at_limits(problem: Problem) -> Cause | None:
    """Whether B is at a limit of an integer type, or 0, wherever it differs; counted over all elements.

    How common these values are where nothing differs says how much evidence that is. Of numbers of another type only
    their sizes tell whether they were beyond the limits.
    """
    element_type, pair, wide = problem.element_type, problem.pair, problem.wide
    if element_type.bits < 8 or element_type.kind == "boolean":
        return None
    is_one = pair.a.element_type is pair.b.element_type
    limits: tuple[int, ...] = element_type.limits if is_one and element_type.is_integer else ()
    for cause, allowed in (("saturation", limits), ("zeroed", (0,))):
        is_allowed = np.isin(wide.y, allowed)
        if not allowed or not is_allowed[: wide.count].all():
            continue
        equal = is_allowed[wide.count :]
        common = (int(equal.sum()) + 1) / (equal.size + 2)
        if problem.figures.differing * -math.log2(common) < LEAST_BITS_OF_INTEGERS:
            continue
        values = _values_that_differ(pair, allowed)
        if values:
            text = f"B is {', '.join(sorted(sorted(values), key=float))} wherever it differs"
            if cause == "saturation":
                text += f", where {element_type} ends, as results are that saturate instead of wrapping"
                text += ", or zeros that were set" if values == {"0"} else ""
            return Cause(cause, 1.0, text)
    return None


def _values_that_differ(pair: Pair, allowed: tuple[int, ...]) -> set[str]:
    """The values of B wherever it differs, zeros by their sign, over all elements; none where one is not allowed."""
    values = set[str]()
    for start, stop in pair.ranges(PIECE):
        a, b = pair.read(start, stop)
        different = exact_values(b[~same_bits(a, b)], pair.element_type)
        if not np.isin(different, np.array(allowed).astype(different.dtype)).all():
            return set()
        is_zero = different == 0
        signs = np.unique(np.signbit(different[is_zero].astype(np.float64))).tolist()
        values |= {"-0" if is_negative else "0" for is_negative in signs}
        values.update(map(shown, np.unique(different[~is_zero]).tolist()))
    return values


def _random_tail(problem: Problem) -> Cause | None:
    """Whether from some element on nearly all differ, with exponents that only random bits have.

    Zeros, infinities and NaN are no evidence: activations, masks and failed operations leave them, too.
    """
    element_type, figures = problem.element_type, problem.figures
    first, count = figures.first, figures.total - figures.first
    if first <= 0 or figures.differing < 0.98 * count or count < _LEAST_RANDOM or not is_float(element_type):
        return None
    tail = first + spread(count, _SAMPLED)
    values = np.abs(values_of(converted(problem.pair.b.at(tail), element_type), element_type).astype(np.float64))
    usual = np.abs(problem.sample.x)
    usual = usual[np.isfinite(usual) & (usual > 0)]
    least, most = np.quantile(usual, _USUAL) if usual.size else (1.0, 1.0)
    small, large = np.ldexp(least, -_FAR), np.ldexp(most, _FAR)
    is_far = np.isfinite(values) & (values > 0) & ((values < small) | (values > large))
    if is_far.mean() <= _LEAST_SHARE_OF_FAR:
        return None
    text = f"from element {first} on, B holds numbers of random size"
    return Cause("unrelated_tail", 1.0, text, {"from": first, "elements": count})


def _noise(problem: Problem) -> Cause | None:
    """Whether no difference is larger than some rounding steps of the largest value, as of sums in another order.

    Of types of few digits that says nothing: a step of training is no larger either.
    """
    element_type, figures = problem.element_type, problem.figures
    types = {problem.pair.a.element_type, problem.pair.b.element_type}
    if not (is_float(element_type) and types == {element_type}) or element_type.digits < _LEAST_DIGITS_OF_NOISE:
        return None
    epsilon = 2.0 ** (1 - element_type.digits)
    if figures.counts["nan"] or not math.isfinite(figures.max_abs) or figures.differing * _FEWEST < figures.total:
        return None
    factor = figures.max_abs / (epsilon * figures.largest or math.inf)
    if factor > _MOST_NOISE or figures.differing * -math.log2(2 * max(factor, 0.5) * epsilon) < LEAST_BITS_OF_FLOATS:
        return None
    text = (
        f"no difference is larger than {math.ceil(factor * 10) / 10:g} eps of the largest value "
        f"({figures.largest:.3g}, eps {epsilon:.3g}): noise, as of sums in another order"
    )
    return Cause("noise", 1.0, text, {"factor": factor, "largest": figures.largest})


def _narrowed(problem: Problem) -> Cause | None:
    """Whether each element of B, or of A, is one of the two numbers of a narrower type next to the other."""
    if not is_float(problem.element_type) or problem.element_type.numpy is None:
        return None
    for side, (a, b) in ((problem, "AB"), (problem.swapped, "BA")):
        for narrow in narrower(side.element_type):
            if problem.figures.differing * narrow.digits >= LEAST_BITS_OF_INTEGERS and _are_next(side, narrow):
                text = f"every element of {b} is one of the two {narrow} numbers next to {a}'s: "
                text += f"{a} is rounded to {narrow}, neither always to nearest nor always toward zero"
                return Cause(f"{narrow}_rounding", 1.0, text, {"reversed": True} if side.is_reversed else {})
    return None


def _are_next(problem: Problem, narrow: ElementType) -> bool:
    """Whether all of B are numbers of a narrower type next to those of A; a sample tells mostly that they are not."""
    element_type, pair, sample = problem.element_type, problem.pair, problem.sample

    def are_next(a: np.ndarray, b: np.ndarray) -> bool:
        lower, upper = neighbours(a, element_type, narrow)
        return bool((agrees(lower, b, element_type) | agrees(upper, b, element_type)).all())

    return are_next(sample.a, sample.b) and all(are_next(*pair.read(*ends)) for ends in pair.ranges(PIECE))


BOUNDS: tuple[Callable[[Problem], Cause | None], ...] = (_last_bit, _at_limits, _random_tail)
"""The most telling first."""

LOOSE_BOUNDS: tuple[Callable[[Problem], Cause | None], ...] = (_narrowed, _noise, low_rank)
"""Those that leave each value open."""
