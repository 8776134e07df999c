"""Two ways of computing that explain evidence together, each in its own region of elements."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from eltwise.conformance.arithmetic import SPECIFIED, Deviation
from eltwise.conformance.deviations import deviations
from eltwise.conformance.evidence import Evidence
from eltwise.conformance.number_arrays import Values
from eltwise.conformance.regions import Region, regions_of
from eltwise.conformance.searching import predicted, search_composition, search_one

_SAMPLED = 4096
_LEAST_WRONG = 4
_PARTED_AGAIN = 2


@dataclass(frozen=True)
class Parted:
    """One way of computing in a region, another one elsewhere."""

    region: Region
    inside: Way
    outside: Way

    @property
    def name(self) -> str:
        """What it is called."""
        return f"{self.inside.name} ({self.region.text}), elsewhere {self.outside.name}"

    @property
    def text(self) -> str:
        """What happens, as a clause for users."""
        return f"{self.region.text}: {self.inside.text}; elsewhere: {self.outside.text}"


Way = Deviation | Parted
"""How a runtime computes."""


def agrees(way: Way, evidence: Evidence) -> Values:
    """Which of the values that came a way of computing predicts."""
    if isinstance(way, Deviation):
        return predicted(way, evidence)
    inside = way.region.of(evidence.where)
    result = np.empty(len(inside), bool)
    for part_of, chosen in ((way.inside, inside), (way.outside, ~inside)):
        result[chosen] = agrees(part_of, evidence.at(chosen))
    return result


def part(evidence: Evidence, contradictory: Values, depth: int) -> Parted | None:
    """Find a region in which one thing explains all and outside of which another one does.

    On one side it is a single deviation or nothing at all, on the other whatever explains it; that may again be two
    regions, ``depth`` levels deep. Both sides must be large enough to tell.

    Args:
        evidence: what no composition explains as a whole.
        contradictory: places of it that together contradict all compositions.
        depth: how often a side may be parted again.
    """
    contradictions = [contradictory]
    again = []
    for region, side in _simple_sides(evidence, regions_of(evidence.where)):
        chosen = region.of(evidence.where) == side
        simple, rest = evidence.at(chosen), evidence.at(~chosen)
        if min(len(simple.got), int(rest.wrong.sum())) < _LEAST_WRONG:
            continue
        found = _explained_simply(simple)
        if found is None:
            continue
        other = _explained_simply(rest)
        if other is None and not any((~chosen)[places].all() for places in contradictions):
            other, places = search_composition(rest)
            contradictions.append(np.flatnonzero(~chosen)[places])
        if other is not None:
            return _parted(region, side, found, other)
        again.append((int(simple.wrong.sum()), region, side, found))
    return _parted_again(evidence, again, depth) if depth > 0 else None


def _parted_again(evidence: Evidence, sides: list[tuple[int, Region, bool, Deviation]], depth: int) -> Parted | None:
    """Part what is left beside the simple sides that explain the most wrong values."""
    for wrong, region, side, found in sorted(sides, key=lambda entry: -entry[0])[:_PARTED_AGAIN]:
        rest = evidence.at(region.of(evidence.where) != side)
        other = part(rest, np.arange(len(rest.got)), depth - 1) if wrong else None
        if other is not None:
            return _parted(region, side, found, other)
    return None


def _parted(region: Region, side: bool, found: Way, other: Way) -> Parted:
    return Parted(region, found, other) if side else Parted(region, other, found)


def _simple_sides(evidence: Evidence, regions: list[Region]) -> list[tuple[Region, bool]]:
    """The regions, and their outsides, of which a single deviation explains a sample."""
    places = np.unique(np.linspace(0, len(evidence.got) - 1, _SAMPLED).astype(np.intp))
    sample = evidence.at(places)
    known = (SPECIFIED, *deviations(evidence.formula, evidence.element_type))
    matches = [predicted(deviation, sample) for deviation in known]
    found = []
    for region in regions:
        inside = region.of(sample.where)
        for side in (True, False):
            if any(match[inside == side].all() for match in matches):
                found.append((region, side))
    return found


def _explained_simply(evidence: Evidence) -> Deviation | None:
    return search_one(evidence) if evidence.wrong.any() else SPECIFIED
