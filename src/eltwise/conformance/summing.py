"""One record of the results out of all cases of a cell: the worst verdict, its explanation, its smallest example."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np

from eltwise.conformance.cells import VERDICTS, Cell, Example, Shown, Verdict, shown, stored
from eltwise.conformance.companions import BESIDE
from eltwise.conformance.explainer import Explainer
from eltwise.conformance.questions import Subject
from eltwise.conformance.smallest import operands_at
from eltwise.conformance.verdicts import Judged
from eltwise.core.dtypes import of_numpy
from eltwise.core.errors import ElementTypeError

MODE_CHANGED = "changed floating-point mode"
"""The explanation of a cell whose values are right but whose runtime left the thread in another mode."""

_LARGEST_STORED = 4096
_LONGEST_MESSAGE = 1000

Shrink = Callable[[Sequence[Judged]], Judged]
"""Finds the smallest failing case among some of one verdict, asking again where that helps."""


def cell_of(
    runtime: str,
    version: str,
    subject: Subject,
    path: str,
    judged: Sequence[Judged],
    not_asked: int,
    explainer: Explainer,
    shrink: Shrink,
) -> Cell:
    """Make the record of a cell.

    Args:
        runtime: the runtime's name.
        version: its version.
        subject: the operator version, element type and rule.
        path: how the operands reached the operator.
        judged: all cases that were asked.
        not_asked: how many were not.
        explainer: explains differences.
        shrink: finds the smallest failing case.
    """
    place = (runtime, version, str(subject.schema), subject.element_type.name, subject.rule, path)
    verdict = worst(item.verdict for item in judged)
    failing = [item for item in judged if item.verdict == verdict]
    changed = [item for item in judged if item.answer.mode]
    notes = [*_mixture(judged, not_asked), *_mode_note(changed, len(judged))]
    if verdict == "ok":
        if not changed:
            return Cell(*place, "ok", total=len(judged), message="; ".join(notes))
        first = min(changed, key=lambda item: item.case.a.size)
        return Cell(
            *place,
            "differs",
            MODE_CHANGED,
            len(changed),
            len(judged),
            _example(first),
            "; ".join(notes),
            stored(first.case),
        )
    explanation, words = _explained(verdict, judged, failing, explainer)
    smallest = shrink(failing)
    case = stored(smallest.case, _kept(smallest), smallest.beside) if _is_small(smallest) else None
    message = "; ".join(part for part in (words, *notes) if part)[:_LONGEST_MESSAGE]
    return Cell(*place, verdict, explanation, *_counts(verdict, judged, failing), _example(smallest), message, case)


def worst(verdicts: object) -> Verdict:
    """The worst of some verdicts; ``ok`` of none."""
    found = set(verdicts) if not isinstance(verdicts, str) else {verdicts}  # type: ignore[call-overload]
    return next((verdict for verdict in reversed(VERDICTS) if verdict in found), "ok")


def _explained(
    verdict: Verdict, judged: Sequence[Judged], failing: Sequence[Judged], explainer: Explainer
) -> tuple[str, str]:
    """The explanation by name, and what is to be said with it."""
    if verdict != "differs":
        return "", failing[0].answer.words
    problems = list(dict.fromkeys(item.problem for item in failing if item.problem))
    words = [_problem_in_words(item) for item in failing if item.problem][:1]
    if any(item.places for item in failing):
        explanation = explainer.explain(judged)
        problems.append(explanation.name)
        words.append(explanation.text)
    return " + ".join(filter(None, problems)), "; ".join(filter(None, words))


def _problem_in_words(judged: Judged) -> str:
    assert judged.expected is not None
    if judged.problem == BESIDE:
        company = "others" if judged.beside is None else str(judged.beside)
        return f"{judged.case} gives other values in one model with {company} than alone"
    wanted = f"{judged.expected.dtype}{list(judged.expected.shape)}"
    got = judged.answer.array
    came = judged.answer.words if got is None else f"gave {got.dtype}{list(got.shape)}"
    return f"{came} where {wanted} must come"


def _counts(verdict: Verdict, judged: Sequence[Judged], failing: Sequence[Judged]) -> tuple[int, int]:
    """Elements where values differ; else cases, of those that could have the verdict."""
    if verdict == "differs":
        came = [item for item in judged if item.expected is not None and item.answer.kind in ("result", "odd")]
        return sum(item.wrong for item in came), sum(item.elements for item in came)
    must_work = {"refused": True, "accepted": False}.get(verdict)
    asked = [item for item in judged if must_work is None or (item.expected is not None) == must_work]
    return len(failing), len(asked)


def _mixture(judged: Sequence[Judged], not_asked: int) -> list[str]:
    """How many cases had which verdict, where not all had the same."""
    counts = Counter(item.verdict for item in judged)
    notes = []
    if len(counts) > 1:
        parts = ", ".join(f"{counts[verdict]} {verdict}" for verdict in VERDICTS if counts[verdict])
        notes.append(f"of {len(judged)} cases {parts}")
    if not_asked:
        notes.append(f"{not_asked} cases more were not asked")
    return notes


def _mode_note(changed: Sequence[Judged], asked: int) -> list[str]:
    if not changed:
        return []
    return [
        f"left the thread's floating-point mode changed after {len(changed)} of {asked} cases: {changed[0].answer.mode}"
    ]


def _is_small(judged: Judged) -> bool:
    cases = [judged.case, *([] if judged.beside is None else [judged.beside])]
    return sum(case.a.size + case.b.size for case in cases) <= _LARGEST_STORED


def _kept(judged: Judged) -> np.ndarray | None:
    """What came, where it is of a type that can be stored and not larger than what must come."""
    got = judged.answer.array
    return got if got is not None and got.size <= _LARGEST_STORED and _is_known(got) else None


def _is_known(array: np.ndarray) -> bool:
    try:
        of_numpy(array.dtype)
    except ElementTypeError:
        return False
    return True


def _example(judged: Judged) -> Example | None:
    """The operands and results at the first failing place; None where there is no element to show."""
    expected, got = judged.expected, judged.answer.array
    if expected is None or (judged.problem and not judged.places):
        if not judged.case.a.size or not judged.case.b.size:
            return None
        a, b, place = judged.case.a.reshape(-1)[:1], judged.case.b.reshape(-1)[:1], 0
    else:
        if not expected.size:
            return None
        place = judged.places[0] if judged.places else 0
        a, b = operands_at(judged.case, [place])
    return Example(shown(a, 0), shown(b, 0), _shown_at(expected, place), _shown_at(got, place))


def _shown_at(array: np.ndarray | None, place: int) -> Shown | None:
    return None if array is None or array.size <= place or not _is_known(array) else shown(array, place)
