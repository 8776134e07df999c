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


def part(evidence: Evidence, depth: int) -> Parted | None:
    """Find a region in which one thing explains all and outside of which another one does.

    On one side it is a single deviation or nothing at all, on the other whatever explains it; that may again be two
    regions, ``depth`` levels deep. Both sides must be large enough to tell.
    """
    regions = regions_of(evidence.where)
    for region, side in _simple_sides(evidence, regions):
        chosen = region.of(evidence.where) == side
        simple, rest = evidence.at(chosen), evidence.at(~chosen)
        found = _explained_simply(simple)
        if found is None or min(len(simple.got), int(rest.wrong.sum())) < _LEAST_WRONG:
            continue
        other = _explained(rest, depth)
        if other is not None:
            return Parted(region, found, other) if side else Parted(region, other, found)
    return None


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


def _explained(evidence: Evidence, depth: int) -> Way | None:
    found = _explained_simply(evidence) or search_composition(evidence)
    if found is not None or depth == 0:
        return found
    return part(evidence, depth - 1)
