"""What a runtime's answers in one circumstance amount to: that it runs, or what it does instead and why. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import numpy as np

from eltwise.conformance.cells import Cell
from eltwise.conformance.explainer import Explainer
from eltwise.conformance.questions import Subject as Question
from eltwise.conformance.verdicts import Judged
from eltwise.oracle import same_bits
from eltwise.passes.company import Company
from eltwise.report.reasons import KEPT_WIDER, LEFT_OUT, NOT_BY_VALUE, TOGETHER, meaning, reasons
from eltwise.targets.table import RUNS, Answer, Kind

_LONGEST_WORDS = 300
_OF_THE_CASE = re.compile(
    r"(?:,? (?:node )?with name| In Node,)? ?[('\"]*(?:case|result|before|between|after|made)\d.*| In Node, .*"
)
"""What names the nodes of the case's own model and says their shapes, which are nothing to other models."""
_ENDS: dict[str, Kind] = {"hung": "hangs", "crashed": "crashes"}

Reasons = tuple[tuple[str, ...], str]
"""The deviations that explain wrong values, by name, and what they do."""


def answer_of(judged: Sequence[Judged], question: Question, explainer: Explainer) -> Answer:
    """What a runtime did in all cases of one circumstance."""
    return _answer(judged, lambda found: _explained(found, question, explainer))


def company_answer_of(company: Company, judged: Sequence[Judged], question: Question, explainer: Explainer) -> Answer:
    """What a runtime did in one company; what it does to the node alone explains it best, where it does."""
    return _answer(judged, lambda found: _company_reasons(company, found, question, explainer))


def _answer(judged: Sequence[Judged], explain: Callable[[Sequence[Judged]], Reasons]) -> Answer:
    verdicts = {item.verdict for item in judged}
    for verdict, kind in _ENDS.items():
        if verdict in verdicts:
            return Answer(kind, words=_words_of(judged, verdict))
    if verdicts == {"ok"}:
        return RUNS
    names, words = (
        explain([item for item in judged if item.verdict != "refused"]) if "differs" in verdicts else ((), "")
    )
    if "refused" not in verdicts:
        return Answer("differs", names, words)
    refused: Kind = "refused" if verdicts == {"refused"} else "refused in part"
    return Answer(refused, names, _words_of(judged, "refused"))


def _company_reasons(company: Company, judged: Sequence[Judged], question: Question, explainer: Explainer) -> Reasons:
    wrong = [item for item in judged if item.verdict == "differs"]
    if company.is_with_neutral and all(_is_left_out(item, company) for item in wrong):
        return (LEFT_OUT,), NOT_BY_VALUE[LEFT_OUT]
    if not company.before and not company.is_with_neutral:
        return _explained(judged, question, explainer)
    if company.before == "cast":
        return (KEPT_WIDER,), NOT_BY_VALUE[KEPT_WIDER]
    as_alone = explainer.again(judged)
    return _reasons(question, as_alone.name) if as_alone else ((TOGETHER,), NOT_BY_VALUE[TOGETHER])


def _is_left_out(judged: Judged, company: Company) -> bool:
    """Whether what differs is the operand itself, or only zeros of another sign."""
    pair, own = judged.compared, judged.case.a if company.slot == "a" else judged.case.b
    if pair is None:
        return False
    expected, got = (array.reshape(-1)[list(judged.places)] for array in pair)
    given = np.broadcast_to(own, pair[0].shape).reshape(-1)[list(judged.places)]
    return same_bits(got, given) or not (expected.any() or got.any())


def _words_of(judged: Sequence[Judged], verdict: str) -> str:
    words = next(item.answer.words for item in judged if item.verdict == verdict)
    return general(words)


def general(words: str) -> str:
    """A runtime's words without what they say of the model of the case.

    >>> general("no implementation for Sub(6) node with name 'case0'")
    'no implementation for Sub(6)'
    >>> general("not implemented for op: opset1::Subtract result0 (opset1::Parameter a0[0]:u8[2])")
    'not implemented for op: opset1::Subtract'
    """
    return " ".join(_OF_THE_CASE.sub("", words).split())[:_LONGEST_WORDS]


def _explained(judged: Sequence[Judged], question: Question, explainer: Explainer) -> Reasons:
    """The deviations that explain wrong values, by name, and what they do."""
    wrong = [item for item in judged if item.verdict == "differs"]
    names = list(dict.fromkeys(item.problem for item in wrong if item.problem))
    names += [explainer.explain(judged).name] if any(item.places and not item.problem for item in wrong) else []
    return _reasons(question, " + ".join(names))


def _reasons(question: Question, explanation: str) -> Reasons:
    """The deviations that an explanation names, and what they do."""
    place = ("", "", str(question.schema), question.element_type.name, question.rule, "static")
    cell = Cell(*place, "differs", explanation)
    found = reasons(cell)
    return found, "; ".join(filter(None, (meaning(reason, cell) for reason in found)))
