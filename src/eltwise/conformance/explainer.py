"""The memory of explanations: the same results are explained once, and what explained some is tried first on others."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Sequence

from eltwise.conformance.explaining import Difference, Explanation, explain, holds
from eltwise.conformance.mixtures import UNEXPLAINED, find_cause
from eltwise.conformance.verdicts import Judged


class Explainer:
    """Explains the cells of one run; several threads may ask it."""

    def __init__(self) -> None:
        self._cells: dict[bytes, Explanation] = {}
        self._cases: dict[tuple[bytes, bool], Explanation] = {}
        self._learnt: dict[object, list[Explanation]] = {}
        self._lock = threading.Lock()

    def explain(self, judged: Sequence[Judged]) -> Explanation:
        """Explain the values that came for the cases of one cell, wrong and right ones."""
        differences = _differences(judged)
        key = _digest(differences)
        if key not in self._cells:
            self._cells[key] = find_cause(differences, self._explain_cases).explanation
        return self._cells[key]

    def again(self, judged: Sequence[Judged]) -> Explanation | None:
        """The explanation of other cases of the same subject that holds for these, too; None where none does."""
        cases = _differences(judged)
        return self._learnt_of(cases) if cases else None

    def _learnt_of(self, cases: Sequence[Difference]) -> Explanation | None:
        with self._lock:
            learnt = list(self._learnt.get(_subject(cases), ()))
        return next((found for found in learnt if all(holds(found, case) for case in cases)), None)

    def _explain_cases(self, cases: Sequence[Difference], in_regions: bool) -> Explanation:
        """Explain some cases as one: as they were explained before, as others were, or anew."""
        key = (_digest(cases), in_regions)
        if key not in self._cases:
            self._cases[key] = self._found(cases, in_regions)
        return self._cases[key]

    def _found(self, cases: Sequence[Difference], in_regions: bool) -> Explanation:
        if explanation := self._learnt_of(cases):
            return explanation
        explanation = explain(cases, in_regions=in_regions)
        if explanation.name != UNEXPLAINED:
            with self._lock:
                learnt = self._learnt.setdefault(_subject(cases), [])
                if explanation.name not in [one.name for one in learnt]:
                    learnt.append(explanation)
        return explanation


def _differences(judged: Sequence[Judged]) -> list[Difference]:
    """The cases whose values can be compared."""
    return [Difference(item.case, *pair) for item in judged for pair in (item.compared,) if pair is not None]


def _subject(cases: Sequence[Difference]) -> tuple[str, str]:
    """What cases must have in common for one explanation to serve them."""
    return cases[0].case.formula, cases[0].expected.dtype.name


def _digest(differences: Sequence[Difference]) -> bytes:
    made = hashlib.sha256()
    for difference in differences:
        case = difference.case
        about = (case.formula, case.placement(), case.a.dtype.name, case.a.shape, case.b.shape, case.attributes)
        made.update(repr(about).encode())
        for array in (case.a, case.b, difference.got):
            made.update(array.tobytes())
    return made.digest()
