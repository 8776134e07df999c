"""Faults that act jointly, found step by step: of those that predict the most results, each with one more."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from eltwise.faults.catalog import faults_of
from eltwise.faults.record import Fault, Operation, combined

_LEAST_BITS = 16
"""So many bits of wrong results are evidence for one fault of some hundred; each that acts with it needs as many."""

_MOST_PARTS = 4
_MOST_EXTENDED = 8
"""So many candidates are extended at each step; with twice as many nothing else was found."""

Parts = tuple[Fault, ...]


def joint_faults(
    operation: Operation, predicted: Callable[[Fault], int], size: int, wrong: int
) -> Iterator[list[Fault]]:
    """Find faults of an operation that act jointly and predict all of some results.

    Args:
        operation: the operation.
        predicted: how many of the results a fault predicts.
        size: how many results there are.
        wrong: how many are wrong, whose bits are the evidence.

    Yields:
        Those of two parts, then of three and more, simplest first; none where not enough results are wrong, and of
        conversions, whose stages are in the catalog jointly.
    """
    singles = [*faults_of(operation).values()]
    if any(fault.parts for fault in singles):
        return
    best: list[tuple[int, Parts]] = [(predicted(fault), (fault,)) for fault in singles]
    most = min(_MOST_PARTS, wrong * operation.result_type.bits // _LEAST_BITS)
    for _count in range(2, most + 1):
        tried: dict[tuple[str, ...], tuple[int, Parts]] = {}
        for _score, parts in sorted(best, key=lambda each: -each[0])[:_MOST_EXTENDED]:
            for extended in _extended(parts, singles):
                slugs = tuple(fault.slug for fault in extended)
                if slugs not in tried and _is_defined(extended, operation):
                    tried[slugs] = predicted(combined(extended)), extended
        complete = [parts for score, parts in tried.values() if score == size]
        yield [combined(parts) for parts in _simplest(complete, singles)]
        best = [*tried.values()]


def together(faults: Sequence[Fault], operation: Operation) -> Fault | None:
    """Some faults of an operation as one, if they may act jointly; None for others, as wrong alignments."""
    slugs, singles = {slug for fault in faults for slug in fault.slugs}, [*faults_of(operation).values()]
    parts = tuple(fault for fault in singles if fault.slug in slugs)
    is_joint = len(parts) == len(slugs) <= _MOST_PARTS and not any(fault.parts for fault in singles)
    return combined(parts) if is_joint and _is_defined(parts, operation) else None


def _extended(parts: Parts, singles: Sequence[Fault]) -> Iterator[Parts]:
    """The parts with one more, in the order of the catalog first; behind and before them where that makes a change."""
    slugs = {part.slug for part in parts}  # Which take less time to compare than faults.
    for fault in singles:
        if fault.slug not in slugs:
            yield _ordered((*parts, fault), singles)
            if any(_meet(fault, part) for part in parts):
                yield from ((*parts, fault), (fault, *parts))


def _meet(one: Fault, other: Fault) -> bool:
    """Whether two faults change something at the same stage, one after the other."""
    return any(getattr(one, stage) and getattr(other, stage) for stage in ("before", "steps", "after"))


def _is_defined(parts: Parts, operation: Operation) -> bool:
    """Whether one part at most computes, and none computes with integers what another one has made floats of."""
    if sum(fault.compute is not None for fault in parts) > 1:
        return False
    *others, last = parts
    if not operation.element_type.is_integer or not any(map(_makes_floats, parts)):
        return True
    return _makes_floats(last) and not any(_makes_floats(fault) or fault.after for fault in others)


def _makes_floats(fault: Fault) -> bool:
    element_type = None if fault.steps is None else fault.steps.element_type
    return element_type is not None and element_type.kind == "float"


def _ordered(parts: Parts, singles: Sequence[Fault]) -> Parts:
    slugs = {part.slug for part in parts}
    return tuple(fault for fault in singles if fault.slug in slugs)


def _simplest(complete: Sequence[Parts], singles: Sequence[Fault]) -> list[Parts]:
    """One order of each set of parts, that of the catalog where it is among them; the sets in the order of it."""
    ordered = {parts: [singles.index(fault) for fault in parts] for parts in complete}
    by_set: dict[frozenset[int], Parts] = {}
    for parts, numbers in sorted(ordered.items(), key=lambda each: (sorted(each[1]), each[1])):
        by_set.setdefault(frozenset(numbers), parts)
    return list(by_set.values())
