"""The search for the simplest deviation, or composition of few, that predicts every value of some evidence."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations

import numpy as np

from eltwise.conformance.arithmetic import Deviation, composed, order_matters, predict
from eltwise.conformance.deviations import deviations
from eltwise.conformance.evidence import Evidence
from eltwise.conformance.number_arrays import Values

_SAMPLED = 48
_COUNTEREXAMPLES = 8
_BEAM = 12
_MOST_COMPOSED = 4


def search_one(evidence: Evidence) -> Deviation | None:
    """The first of the known deviations that explains everything."""
    return Trial(evidence).first(deviations(evidence.formula, evidence.element_type))


def search_composition(evidence: Evidence) -> Deviation | None:
    """The first composition of two that explains everything; else one of three or four."""
    trial = Trial(evidence)
    known = deviations(evidence.formula, evidence.element_type)
    return trial.first(_pairs(known)) or _built_up(trial, known)


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


def _built_up(trial: Trial, known: Sequence[Deviation]) -> Deviation | None:
    """Compositions of more than two: the best of fewer, each with one more."""
    best = trial.best(_pairs(known))
    for _more in range(_MOST_COMPOSED - 2):
        longer = [both for one in best for other in known for both in _both_ways(one, other)]
        found = trial.first(longer)
        if found is not None:
            return found
        best = trial.best(longer)
    return None


class Trial:
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
        missed = np.flatnonzero(~predicted(deviation, self._evidence))
        if not missed.size:
            return True
        self._places = np.concatenate([self._places, missed[:_COUNTEREXAMPLES]])
        self._sample = self._evidence.at(self._places)
        return False

    def best(self, tried: Iterable[Deviation]) -> list[Deviation]:
        """The deviations that miss the least of the sample."""
        return sorted(tried, key=lambda deviation: int(self._missed(deviation).sum()))[:_BEAM]

    def _missed(self, deviation: Deviation) -> Values:
        return ~predicted(deviation, self._sample)


def predicted(deviation: Deviation, evidence: Evidence) -> Values:
    """Which of the values that came a deviation predicts."""
    prediction = predict(deviation, evidence.formula, evidence.element_type, evidence.a, evidence.b)
    agrees: Values = prediction == evidence.got
    return agrees


def _spread(chosen: Values) -> Values:
    """A few of the places where something holds, from the first to the last."""
    places = np.flatnonzero(chosen)
    if places.size <= _SAMPLED:
        return places
    return places[np.linspace(0, places.size - 1, _SAMPLED).astype(np.intp)]
