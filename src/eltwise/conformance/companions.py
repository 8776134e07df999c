"""Values that are wrong only beside another node: in a model with other cases, but not alone.

Runtimes share things between the nodes of a model, kernels for example, and may take one for another.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from eltwise.conformance.cases import Case
from eltwise.conformance.explainer import Explainer
from eltwise.conformance.mixtures import UNEXPLAINED
from eltwise.conformance.verdicts import Judged

BESIDE = "wrong beside another node"
"""The explanation of such values: they are nothing that could be computed from the operands."""

AskTogether = Callable[[Sequence[Case]], list[Judged]]
"""Asks for some cases in one model; gives nothing where that does not work."""


def apart(
    judged: Sequence[Judged], groups: Sequence[Sequence[Case]], ask: AskTogether, explainer: Explainer
) -> list[Judged]:
    """Ask alone for what no arithmetic explains and was asked with others; add what was different there.

    Args:
        judged: the cases of one cell.
        groups: which were asked together.
        ask: asks again.
        explainer: tells whether an arithmetic explains the values.

    Returns:
        The cases, each judged by what came for it alone, and those again that were wrong only beside another node,
        with the problem ``BESIDE``.
    """
    together = {id(case): group for group in groups if len(group) > 1 for case in group}
    suspects = [item for item in judged if item.places and id(item.case) in together]
    if not suspects or UNEXPLAINED not in explainer.explain(judged).name:
        return list(judged)
    made: list[Judged] = []
    for item in judged:
        if item not in suspects:
            made.append(item)
            continue
        alone = ask([item.case])
        if not alone or _is_same(alone[0], item):
            made.append(item)
            continue
        beside = _companion(item.case, together[id(item.case)], alone[0], ask)
        made += [alone[0], replace(item, problem=BESIDE, beside=beside)]
    return made


def _companion(case: Case, group: Sequence[Case], alone: Judged, ask: AskTogether) -> Case | None:
    """The smallest other case of a group beside which a case comes out otherwise than alone; None if no one does it."""
    others = sorted((other for other in group if other is not case), key=lambda other: other.a.size + other.b.size)
    for other in others:
        both = ask([other, case])
        if len(both) == 2 and not _is_same(both[1], alone):
            return other
    return None


def _is_same(one: Judged, other: Judged) -> bool:
    """Whether the same bits came, of which none differ where any NaN came for any other."""
    if one.answer.array is None or other.answer.array is None:
        return one.answer.array is other.answer.array
    return one.places == other.places and one.answer.array.tobytes() == other.answer.array.tobytes()
