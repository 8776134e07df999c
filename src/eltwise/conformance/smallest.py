"""The smallest case that still fails, found by asking the runtime again for single pairs of operands."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from eltwise.conformance.cases import Case
from eltwise.conformance.verdicts import Judged

AskAgain = Callable[[Case], Judged]
"""Asks the runtime for one case, on the same path."""

_REPEATED = 64
"""How often a pair is repeated where it does not fail alone: some kernels are taken for whole vectors only."""


def smallest_failure(failing: Sequence[Judged], ask: AskAgain) -> Judged:
    """Find the smallest case with the verdict that all of the given have.

    Args:
        failing: judged cases of one verdict, at least one.
        ask: asks again.

    Returns:
        A case whose operands have one element each, where that still differs; else the one with the fewest elements.
    """
    # What fails alone shows more than what fails only in company, and a wrong type or shape more than wrong values.
    alone = [judged for judged in failing if judged.beside is None]
    by_size = min([judged for judged in alone if judged.problem] or alone or failing, key=_size)
    differing = [judged for judged in failing if judged.places and not judged.problem]
    if by_size.verdict == "crashed":
        return _one_that_crashes(by_size, ask)
    if by_size.verdict != "differs" or by_size.problem or not differing:
        return by_size
    for candidate in _candidates(differing):
        again = ask(candidate)
        if again.verdict == "differs" and again.places:
            return again
    return by_size


def _one_that_crashes(judged: Judged, ask: AskAgain) -> Judged:
    """The first pair of a large case alone, where that crashes too."""
    a, b = judged.case.a.reshape(-1), judged.case.b.reshape(-1)
    if not a.size or not b.size or max(a.size, b.size) < _REPEATED:
        return judged
    again = ask(_pair(judged.case, a[:1], b[:1]))
    return again if again.verdict == "crashed" else judged


def _pair(case: Case, a: np.ndarray, b: np.ndarray) -> Case:
    attributes = tuple((name, value) for name, value in case.attributes if name != "axis")
    return Case(case.schema, attributes, a, b)


def _size(judged: Judged) -> tuple[bool, int]:
    """Elements of both operands; a case without elements shows nothing and comes last."""
    elements = judged.case.a.size + judged.case.b.size
    return (not judged.case.a.size or not judged.case.b.size, elements)


def _candidates(differing: Sequence[Judged]) -> Iterator[Case]:
    """The simplest failing pair alone and repeated."""
    found = [simplest_pair(judged) for judged in differing]
    _rank, a, b, case = min(found, key=lambda pair: pair[0])
    for count in (1, _REPEATED):
        yield _pair(case, np.repeat(a, count), np.repeat(b, count))


def simplest_pair(judged: Judged) -> tuple[tuple[float, ...], np.ndarray, np.ndarray, Case]:
    """Find the simplest operands at the failing places: finite before others, whole before fractions, small first.

    Returns:
        Its rank, the two operands as arrays of one element, and the case.
    """
    a, b = operands_at(judged.case, judged.places)
    with np.errstate(all="ignore"):
        numbers = [array.astype(np.float64) for array in (a, b)]
        special = np.sum([~np.isfinite(array) for array in numbers], axis=0)
        broken = np.sum([array != np.rint(array) for array in numbers], axis=0)
        large = np.sum([np.abs(np.nan_to_num(array)) for array in numbers], axis=0)
    order = np.lexsort((large, broken, special))
    first = int(order[0])
    rank = (float(special[first]), float(broken[first]), float(large[first]))
    return rank, a[first : first + 1], b[first : first + 1], judged.case


def operands_at(case: Case, places: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """The elements of both operands that meet at flat places of the result."""
    placement = case.placement()
    chosen = np.array(places, np.int64)
    taken = []
    for array, start in ((case.a, placement.a_start), (case.b, placement.b_start)):
        after = len(placement.shape) - start - array.ndim
        laid = array.reshape((1,) * start + array.shape + (1,) * after)
        positions = np.broadcast_to(np.arange(array.size).reshape(laid.shape), placement.shape)
        taken.append(array.reshape(-1)[positions.reshape(-1)[chosen]])
    return taken[0], taken[1]
