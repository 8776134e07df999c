"""Why a cell's results differ where one reason is not enough: a runtime may take another kernel for another shape.

Each reason found must predict every value of the cases that it is given for; which cases it is not given for is said.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from eltwise.conformance.explaining import Difference, Explanation, holds
from eltwise.conformance.verdicts import wrong_places

UNEXPLAINED = "unexplained"
_MOST_REASONS = 4
_MOST_REFINED = 2
_MOST_SHAPES_NAMED = 3


Explain = Callable[[Sequence[Difference], bool], Explanation]
"""Explains some cases as one; the second argument says whether to look for two ways of computing as well."""


@dataclass(frozen=True)
class Reason:
    """An explanation and the cases with wrong values that it is for."""

    explanation: Explanation
    cases: tuple[Difference, ...]


@dataclass(frozen=True)
class Cause:
    """Why the values of a cell are wrong.

    Attributes:
        explanation: one explanation where one deviation predicts every value of the failing cases. Else the names of
            several, those of the most elements first, joined with ``; ``; ``unexplained`` is the last where some have
            none.
        reasons: the explanations one by one.
    """

    explanation: Explanation
    reasons: tuple[Reason, ...]


def find_cause(differences: Sequence[Difference], explain: Explain) -> Cause:
    """Explain all values that came in a cell.

    Args:
        differences: every case that gave a result of the right type and shape, with wrong values and without.
        explain: explains cases that may have one reason.
    """
    failing = [difference for difference in differences if wrong_places(difference.got, difference.expected)]
    right = [difference for difference in differences if not _is_among(difference, failing)]
    left = sorted(failing, key=lambda difference: -difference.expected.size)
    reasons: list[Reason] = []
    while left and len(reasons) < _MOST_REASONS:
        reasons.append(_reason(left, () if reasons else right, explain))
        left = [difference for difference in left if not _is_among(difference, reasons[-1].cases)]
    if left:
        reasons.append(Reason(Explanation(UNEXPLAINED, "the other cases were not examined", 0), tuple(left)))
    joined = _with_exceptions(reasons[0], right) if len(reasons) == 1 else _joined(reasons)
    return Cause(joined, tuple(reasons))


def _reason(failing: Sequence[Difference], right: Sequence[Difference], explain: Explain) -> Reason:
    """Explain the largest case, then as many others with it as the explanation, refined where it can be, holds for."""
    lead = [failing[0]]
    explanation = explain(lead, True)
    if explanation.name == UNEXPLAINED:
        return Reason(explanation, (failing[0],))
    for _time in range(_MOST_REFINED):
        misfit = next((other for other in (*failing, *right) if not holds(explanation, other)), None)
        if misfit is None:
            return Reason(explanation, tuple(failing))
        refined = explain([*lead, misfit], False)
        if refined.name == UNEXPLAINED:
            break
        lead, explanation = [*lead, misfit], refined
    held = tuple(other for other in failing if other is failing[0] or holds(explanation, other))
    return Reason(explanation, held)


def _with_exceptions(reason: Reason, right: Sequence[Difference]) -> Explanation:
    """One reason, and for which right cases it does not hold."""
    explanation = reason.explanation
    if explanation.deviation is None:
        return explanation
    exceptions = [difference for difference in right if not holds(explanation, difference)]
    if not exceptions:
        return explanation
    return replace(explanation, text=f"{explanation.text}, but not where {_shapes(exceptions)}")


def _joined(reasons: Sequence[Reason]) -> Explanation:
    """Several reasons, each with the cases that it is for; the unexplained ones last."""
    ordered = sorted(reasons, key=lambda reason: reason.explanation.name == UNEXPLAINED)
    names = "; ".join(dict.fromkeys(reason.explanation.name for reason in ordered))
    texts = [f"{reason.explanation.text} (where {_shapes(reason.cases)})" for reason in ordered]
    return Explanation(names, "; ".join(texts), sum(reason.explanation.leaves for reason in reasons))


def _shapes(cases: Sequence[Difference]) -> str:
    """The operands' shapes of some cases in words."""
    shapes = dict.fromkeys(f"{list(difference.case.a.shape)}-{list(difference.case.b.shape)}" for difference in cases)
    named = ", ".join(list(shapes)[:_MOST_SHAPES_NAMED])
    more = len(shapes) - _MOST_SHAPES_NAMED
    return f"the shapes are {named}" + (f" and {more} others" if more > 0 else "")


def _is_among(difference: Difference, others: Sequence[Difference]) -> bool:
    return any(difference is other for other in others)
