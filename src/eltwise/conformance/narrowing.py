"""Which operands fail: the shortest description that holds for all failing pairs and for as few others as can be.

A description is a conjunction of up to three facts, searched among those that hold for every failing pair.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

import numpy as np

from eltwise.conformance.evidence import Evidence
from eltwise.conformance.facts import Fact, facts_of
from eltwise.conformance.number_arrays import Values
from eltwise.conformance.regions import regions_of

_LISTED_PAIRS = 2
_MOST_FACTS = 3
_SEARCHED_FACTS = 40


def narrow(evidence: Evidence) -> str:
    """Describe the failing pairs of evidence in which something fails, with counts of distinct pairs.

    Where the same pair has several results, the places of the failing elements are described instead.

    Returns:
        For example ``only a=200, b=13`` or ``where a < b and b >= 128 (37 of 41 such pairs)``.
    """
    several = evidence.pairs_with_several_results
    if several:
        return f"{several} pairs of operands have several results each{_in_region(evidence)}"
    distinct = evidence.at(np.array([places[0] for places in evidence.pairs]))
    failing = int(distinct.wrong.sum())
    if failing <= _LISTED_PAIRS:
        return "only " + " and ".join(_pairs(distinct))
    if failing == len(distinct.wrong):
        return f"everywhere (all {failing} pairs)"
    best = _best(facts_of(distinct), distinct.wrong)
    if best is None:
        return f"{failing} of {len(distinct.wrong)} pairs, without a pattern that is known"
    matching = int(_all_hold(best).sum())
    return f"where {' and '.join(fact.text for fact in best)} ({failing} of {matching} such pairs)"


def _in_region(evidence: Evidence) -> str:
    """The smallest region that all failing elements lie in, where there is one."""
    regions = [(region, region.of(evidence.where)) for region in regions_of(evidence.where)]
    holding = [(region, int(inside.sum())) for region, inside in regions if inside[evidence.wrong].all()]
    if not holding:
        return ""
    region, size = min(holding, key=lambda entry: entry[1])
    return f", {region.text} ({int(evidence.wrong.sum())} of {size} such elements)"


def _best(facts: Sequence[Fact], wrong: Values) -> Sequence[Fact] | None:
    """The conjunction with the fewest passing pairs, the shortest of those, the one of the simplest facts of those."""
    useful = [(place, fact) for place, fact in enumerate(facts) if fact.holds[wrong].all() and not fact.holds.all()]
    rarest = sorted(useful, key=lambda entry: int(entry[1].holds.sum()))[:_SEARCHED_FACTS]
    choices = [
        tuple(facts[place] for place in places) for places in _conjunctions(sorted(place for place, _fact in rarest))
    ]
    return min(choices, key=lambda choice: (int(_all_hold(choice).sum()), len(choice)), default=None)


def _conjunctions(places: Sequence[int]) -> Iterator[tuple[int, ...]]:
    for length in range(1, _MOST_FACTS + 1):
        yield from combinations(places, length)


def _all_hold(facts: Sequence[Fact]) -> Values:
    together: Values = np.logical_and.reduce([fact.holds for fact in facts])
    return together


def _pairs(evidence: Evidence) -> list[str]:
    return [f"a={evidence.a[place]}, b={evidence.b[place]}" for place in np.flatnonzero(evidence.wrong)]
