"""Why a cell's results differ where one reason is not enough: a runtime may take another kernel for another shape.

Each reason found must predict every value of the cases that it is given for; which cases it is not given for is said.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from eltwise.conformance.explaining import Difference, Explanation, explain, holds
from eltwise.conformance.verdicts import wrong_places

UNEXPLAINED = "unexplained"
_MOST_REASONS = 4
_MOST_REFINED = 2
_MOST_SHAPES_NAMED = 3


@dataclass(frozen=True)
class _Reason:
    explanation: Explanation
    cases: tuple[Difference, ...]


def explain_cell(differences: Sequence[Difference]) -> Explanation:
    """Explain all values that came in a cell.

    Args:
        differences: every case that gave a result of the right type and shape, with wrong values and without.

    Returns:
        One explanation where one deviation predicts every value of every case. Else the reasons of the cases with wrong
        values, those of the most first, their names joined with ``; ``; ``unexplained`` is one where some have none.
    """
    failing = sorted(
        (difference for difference in differences if wrong_places(difference.got, difference.expected)),
        key=lambda difference: -difference.expected.size,
    )
    right = [difference for difference in differences if not any(difference is other for other in failing)]
    reasons: list[_Reason] = []
    left = failing
    while left and len(reasons) < _MOST_REASONS:
        reason = _reason(left, right if not reasons else ())
        reasons.append(reason)
        left = [difference for difference in left if not any(difference is other for other in reason.cases)]
    if left:
        reasons.append(_Reason(Explanation(UNEXPLAINED, "further cases were not examined", 0), tuple(left)))
    if len(reasons) == 1:
        return _with_exceptions(reasons[0], right)
    return _joined(reasons)


def _reason(failing: Sequence[Difference], right: Sequence[Difference]) -> _Reason:
    """Explain the largest case, then as many others with it as the explanation, refined where it can be, holds for."""
    lead = [failing[0]]
    explanation = explain(lead)
    if explanation.name == UNEXPLAINED:
        return _Reason(explanation, (failing[0],))
    for _time in range(_MOST_REFINED):
        misfit = next((other for other in (*failing, *right) if not holds(explanation, other)), None)
        if misfit is None:
            return _Reason(explanation, tuple(failing))
        refined = explain([*lead, misfit])
        if refined.name == UNEXPLAINED:
            break
        lead, explanation = [*lead, misfit], refined
    held = tuple(other for other in failing if other is failing[0] or holds(explanation, other))
    return _Reason(explanation, held)


def _with_exceptions(reason: _Reason, right: Sequence[Difference]) -> Explanation:
    """One reason, and for which right cases it does not hold."""
    explanation = reason.explanation
    if explanation.deviation is None:
        return explanation
    exceptions = [difference for difference in right if not holds(explanation, difference)]
    text = f"{explanation.text}, but not where {_shapes(exceptions)}" if exceptions else explanation.text
    return Explanation(explanation.name, text, 0, explanation.deviation, explanation.alignment)


def _joined(reasons: Sequence[_Reason]) -> Explanation:
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
