"""Why a runtime's results differ: the simplest known deviation, or composition of few, that predicts every value.

Tried in this order, and the first that leaves no value unexplained is named: one deviation in the order of
``deviations``; a constant result; a wrong alignment; a wrong alignment with one deviation; two deviations; three or
four, built up from the compositions that leave the fewest values unexplained. Every wrong value must be predicted bit
for bit and every right one must stay right, where any NaN equals any NaN. What nothing explains is narrowed down to a
pattern of operands.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from eltwise.conformance.alignments import WRONG_ALIGNMENTS
from eltwise.conformance.arithmetic import SPECIFIED, Deviation, composed, order_matters, predict
from eltwise.conformance.deviations import deviations
from eltwise.conformance.evidence import Difference, Evidence, gather
from eltwise.conformance.narrowing import narrow
from eltwise.conformance.number_arrays import Values

__all__ = ["Difference", "Explanation", "explain"]

_SAMPLED = 48
_COUNTEREXAMPLES = 8
_BEAM = 12
_MOST_COMPOSED = 4


@dataclass(frozen=True)
class Explanation:
    """What explains differences.

    Attributes:
        name: the deviation's name, names joined with `` + `` for a composition, ``unexplained``, or empty where nothing
            differs.
        text: what happens, in words for users.
        leaves: how many wrong values are left unexplained.
    """

    name: str
    text: str
    leaves: int


def explain(differences: Sequence[Difference]) -> Explanation:
    """Explain what a runtime gave for cases of one formula and one element type.

    Args:
        differences: the cases that were judged, each with the exact result and what came; cases without a wrong value
            help to tell explanations apart.

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
    return _explained(evidence, differences) or _unexplained(evidence)


def _explained(evidence: Evidence, differences: Sequence[Difference]) -> Explanation | None:
    trial = _Trial(evidence)
    known = deviations(evidence.formula, evidence.element_type)
    one = trial.first(known)
    if one is not None:
        return Explanation(one.name, one.text, 0)
    return (
        _constant(evidence)
        or _misaligned(differences, known)
        or _of_composition(trial.first(_pairs(known)))
        or _of_composition(_built_up(trial, known))
    )


def _of_composition(deviation: Deviation | None) -> Explanation | None:
    return None if deviation is None else Explanation(deviation.name, deviation.text, 0)


def _constant(evidence: Evidence) -> Explanation | None:
    """One value for everything; it takes several that should differ to tell."""
    if len(evidence.got) < 4 or len(np.unique(evidence.expected)) < 2 or len(np.unique(evidence.got)) > 1:
        return None
    return Explanation("constant result", f"every result has the pattern {int(evidence.got[0]):#x}", 0)


def _misaligned(differences: Sequence[Difference], known: Sequence[Deviation]) -> Explanation | None:
    """Alignments matter only where shapes differ or dimensions can be told apart."""
    found = [(alignment, gather(differences, alignment)) for alignment in WRONG_ALIGNMENTS]
    possible = [(alignment, _Trial(evidence)) for alignment, evidence in found if evidence is not None]
    for alignment, trial in possible:
        if trial.explains(SPECIFIED):
            return Explanation(alignment.name, alignment.text, 0)
    for alignment, trial in possible:
        with_deviation = trial.first(known)
        if with_deviation is not None:
            return Explanation(
                f"{alignment.name} + {with_deviation.name}", f"{alignment.text}; {with_deviation.text}", 0
            )
    return None


def _pairs(known: Sequence[Deviation]) -> Iterator[Deviation]:
    """Compositions of two, the earlier in the list the sooner."""
    places = sorted(combinations(range(len(known)), 2), key=lambda pair: (sum(pair), pair))
    for one, other in places:
        yield from _both_ways(known[one], known[other])


def _both_ways(one: Deviation, other: Deviation) -> Iterator[Deviation]:
    orders = [(one, other), (other, one)] if order_matters(one, other) else [(one, other)]
    for first, second in orders:
        both = composed(first, second)
        if both is not None:
            yield both


def _built_up(trial: _Trial, known: Sequence[Deviation]) -> Deviation | None:
    """Compositions of more than two: the best of fewer, each with one more."""
    best = trial.best(_pairs(known))
    for _more in range(_MOST_COMPOSED - 2):
        longer = [both for one in best for other in known for both in _both_ways(one, other)]
        found = trial.first(longer)
        if found is not None:
            return found
        best = trial.best(longer)
    return None


class _Trial:
    """Tries deviations on a sample of the evidence first; what contradicts one joins the sample."""

    def __init__(self, evidence: Evidence) -> None:
        self._evidence = evidence
        self._places = np.concatenate([_spread(evidence.wrong), _spread(~evidence.wrong)])
        self._sample = evidence.at(self._places)

    def first(self, tried: Iterable[Deviation]) -> Deviation | None:
        """The first deviation that explains everything."""
        return next((deviation for deviation in tried if self.explains(deviation)), None)

    def explains(self, deviation: Deviation) -> bool:
        """Whether a deviation predicts all that came, right and wrong."""
        if self._missed(deviation).any():
            return False
        missed = np.flatnonzero(_prediction(deviation, self._evidence) != self._evidence.got)
        if not missed.size:
            return True
        self._places = np.concatenate([self._places, missed[:_COUNTEREXAMPLES]])
        self._sample = self._evidence.at(self._places)
        return False

    def best(self, tried: Iterable[Deviation]) -> list[Deviation]:
        """The deviations that miss the least of the sample."""
        return sorted(tried, key=lambda deviation: int(self._missed(deviation).sum()))[:_BEAM]

    def _missed(self, deviation: Deviation) -> Values:
        missed: Values = _prediction(deviation, self._sample) != self._sample.got
        return missed


def _prediction(deviation: Deviation, evidence: Evidence) -> Values:
    return predict(deviation, evidence.formula, evidence.element_type, evidence.a, evidence.b)


def _spread(chosen: Values) -> Values:
    """A few of the places where something holds, from the first to the last."""
    places = np.flatnonzero(chosen)
    if places.size <= _SAMPLED:
        return places
    return places[np.linspace(0, places.size - 1, _SAMPLED).astype(np.intp)]


def _unexplained(evidence: Evidence) -> Explanation:
    return Explanation("unexplained", f"unexplained: {narrow(evidence)}", int(evidence.wrong.sum()))
