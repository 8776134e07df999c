"""Why a runtime's results differ: the simplest known deviation, or composition of few, that predicts every value.

Tried in this order, and the first that leaves no value unexplained is named: one deviation in the order of
``deviations``; a constant result; a wrong alignment; a wrong alignment with one deviation; two deviations; three or
four, built up from the compositions that leave the fewest values unexplained; a wrong alignment with several; two ways
of computing, each in a region of its own, such as the rest that a loop over vectors leaves. Every wrong value must be
predicted bit for bit and every right one must stay right, where any NaN equals any NaN. What nothing explains is
narrowed down to a pattern of operands.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from eltwise.conformance.alignments import SPECIFIED as AS_SPECIFIED
from eltwise.conformance.alignments import WRONG_ALIGNMENTS, Alignment
from eltwise.conformance.arithmetic import SPECIFIED, Deviation
from eltwise.conformance.evidence import Difference, Evidence, gather
from eltwise.conformance.narrowing import narrow
from eltwise.conformance.number_arrays import values_of
from eltwise.conformance.parting import Way, agrees, part
from eltwise.conformance.searching import predicted, search_composition, search_one

__all__ = ["Difference", "Explanation", "explain", "holds"]

_REGIONS_DEEP = 1


@dataclass(frozen=True)
class Explanation:
    """What explains differences.

    Attributes:
        name: the deviation's name, names joined with `` + `` for a composition, ``unexplained``, or empty where nothing
            differs.
        text: what happens, in words for users.
        leaves: how many wrong values are left unexplained.
        deviation: what predicts the values; None where the name says no more than it does.
        alignment: how it pairs the operands.
    """

    name: str
    text: str
    leaves: int
    deviation: Way | None = field(default=None, compare=False, repr=False)
    alignment: Alignment = field(default=AS_SPECIFIED, compare=False, repr=False)


def explain(differences: Sequence[Difference], *, in_regions: bool = True) -> Explanation:
    """Explain what a runtime gave for cases of one formula and one element type.

    Args:
        differences: the cases that were judged, each with the exact result and what came; cases without a wrong value
            help to tell explanations apart.
        in_regions: whether to look for two ways of computing in two regions of elements too, which takes longest.

    Returns:
        The simplest explanation; one that is named ``unexplained`` says for which operands the values are wrong.

    Raises:
        ValueError: where there are none, or they have several formulas or types.
    """
    for difference in differences:
        if difference.got.dtype != difference.expected.dtype:
            text = f"the result is {difference.got.dtype} instead of {difference.expected.dtype}"
            return Explanation("wrong type", text, 0)
        if difference.got.shape != difference.expected.shape:
            text = f"the result has shape {difference.got.shape} instead of {difference.expected.shape}"
            return Explanation("wrong shape", text, 0)
    evidence = gather(differences)
    if evidence is None:
        raise ValueError("a case that must be refused has no expected result")
    if not evidence.wrong.any():
        return Explanation("", "", 0)
    return _explained(evidence, differences, in_regions) or Explanation(
        "unexplained", f"unexplained: {narrow(evidence)}", int(evidence.wrong.sum())
    )


def holds(explanation: Explanation, difference: Difference) -> bool:
    """Whether an explanation predicts all that came for a case, wrong and right."""
    if explanation.deviation is None:
        return False
    evidence = gather([difference], explanation.alignment)
    return evidence is not None and bool(agrees(explanation.deviation, evidence).all())


def _explained(evidence: Evidence, differences: Sequence[Difference], in_regions: bool) -> Explanation | None:
    simple = search_one(evidence) or _constant(evidence)
    if simple is not None:
        return _explanation(simple)
    misaligned = _misalignments(evidence, differences)
    found = _misaligned(misaligned, _as_specified) or _misaligned(misaligned, search_one)
    if found is not None:
        return found
    composition, contradictory = search_composition(evidence)
    if composition is not None:
        return _explanation(composition)
    found = _misaligned(misaligned, lambda other: search_composition(other)[0])
    if found is not None or not in_regions:
        return found
    parted = part(evidence, contradictory, _REGIONS_DEEP)
    return None if parted is None else _explanation(parted)


def _explanation(way: Way) -> Explanation:
    return Explanation(way.name, way.text, 0, way)


def _constant(evidence: Evidence) -> Deviation | None:
    """One value for everything; it takes several that should differ to tell."""
    if len(evidence.got) < 4 or len(np.unique(evidence.expected)) < 2 or len(np.unique(evidence.got)) > 1:
        return None
    one = evidence.got[:1].view(evidence.element_type.storage)
    value = values_of(one, evidence.element_type)
    return Deviation(
        "constant result", f"every result is {one[0]}", result=(lambda values: np.repeat(value, len(values)),)
    )


def _misalignments(evidence: Evidence, differences: Sequence[Difference]) -> list[tuple[Alignment, Evidence]]:
    """The wrong alignments that pair other operands."""
    found = [(alignment, gather(differences, alignment)) for alignment in WRONG_ALIGNMENTS]
    return [(alignment, other) for alignment, other in found if other is not None and not _same_pairs(other, evidence)]


def _misaligned(
    misaligned: Sequence[tuple[Alignment, Evidence]], search: Callable[[Evidence], Deviation | None]
) -> Explanation | None:
    """The first wrong alignment with which a search finds a deviation."""
    for alignment, evidence in misaligned:
        deviation = search(evidence)
        if deviation is SPECIFIED:
            return Explanation(alignment.name, alignment.text, 0, SPECIFIED, alignment)
        if deviation is not None:
            name, text = f"{alignment.name} + {deviation.name}", f"{alignment.text}; {deviation.text}"
            return Explanation(name, text, 0, deviation, alignment)
    return None


def _as_specified(evidence: Evidence) -> Deviation | None:
    return SPECIFIED if predicted(SPECIFIED, evidence).all() else None


def _same_pairs(one: Evidence, other: Evidence) -> bool:
    return bool(((one.a == other.a) | (one.a != one.a)).all() and ((one.b == other.b) | (one.b != one.b)).all())
