"""The search for the simplest deviation, or composition of few, that predicts every value of some evidence."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations

import numpy as np

from eltwise.conformance.arithmetic import Deviation, Predictor, composed, order_matters, predict
from eltwise.conformance.deviations import deviations
from eltwise.conformance.evidence import Evidence
from eltwise.conformance.number_arrays import Values

_SAMPLED = 48
_COUNTEREXAMPLES = 8
_BEAM = 12
_MOST_COMPOSED = 4


def search_one(evidence: Evidence) -> Deviation | None:
    """The first of the known deviations that explains everything."""
    return Trial(evidence).search(deviations(evidence.formula, evidence.element_type))[0]


def search_composition(evidence: Evidence) -> tuple[Deviation | None, Values]:
    """The first composition of two that explains everything; else one of three or four.

    Those are built up: each of the best compositions so far, with one more deviation.

    Returns:
        The composition; and, of use without one, places of the evidence that together contradict all that were tried.
    """
    if evidence.pairs_with_several_results:
        return None, np.arange(len(evidence.got))
    trial = Trial(evidence)
    known = deviations(evidence.formula, evidence.element_type)
    found, best = trial.search(_pairs(known))
    for _more in range(_MOST_COMPOSED - 2):
        if found is not None:
            break
        found, best = trial.search(both for one in best for other in known for both in _both_ways(one, other))
    return found, trial.places


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


class Trial:
    """Tries deviations on a sample of the evidence first; what contradicts one joins the sample."""

    def __init__(self, evidence: Evidence) -> None:
        self._evidence = evidence
        self._sample_at(np.concatenate([_spread(evidence.wrong), _spread(~evidence.wrong)]))

    def _sample_at(self, places: Values) -> None:
        sample = self._evidence.at(places)
        self.places, self._got = places, sample.got
        self._predictor = Predictor(sample.formula, sample.element_type, sample.a, sample.b)

    def search(self, tried: Iterable[Deviation]) -> tuple[Deviation | None, list[Deviation]]:
        """Find the first deviation that explains everything; without one, those that miss the least of the sample."""
        counted: list[tuple[int, Deviation]] = []
        for deviation in tried:
            missed = int(np.count_nonzero(self._predictor.predict(deviation) != self._got))
            if missed == 0 and self._explains_all(deviation):
                return deviation, []
            counted.append((missed, deviation))
        return None, [deviation for _missed, deviation in sorted(counted, key=lambda entry: entry[0])[:_BEAM]]

    def _explains_all(self, deviation: Deviation) -> bool:
        """Whether a deviation that explains the sample predicts all that came, right and wrong."""
        missed = np.flatnonzero(~predicted(deviation, self._evidence))
        if missed.size:
            self._sample_at(np.concatenate([self.places, missed[:_COUNTEREXAMPLES]]))
        return not missed.size


def predicted(deviation: Deviation, evidence: Evidence) -> Values:
    """Which of the values that came a deviation predicts."""
    prediction = predict(deviation, evidence.formula, evidence.element_type, evidence.a, evidence.b)
    agrees: Values = prediction == evidence.got
    return agrees


def _spread(chosen: Values) -> Values:
    """A few of the places where something holds, spread evenly; the ends, which are often special, stay out of many."""
    places = np.flatnonzero(chosen)
    if places.size <= _SAMPLED:
        return places
    return places[(np.arange(_SAMPLED) * 2 + 1) * places.size // (2 * _SAMPLED)]
