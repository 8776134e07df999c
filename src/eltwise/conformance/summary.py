"""One test result out of all cases of a test: the worst outcome, its explanation, its smallest example."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np

from eltwise.conformance.compare import CaseResult, worst
from eltwise.conformance.fault_models.catalog import BESIDE_ANOTHER, MODE_CHANGED
from eltwise.conformance.fault_models.explain import Explainer
from eltwise.conformance.results import OUTCOMES, Example, Outcome, Shown, TestResult, shown, stored
from eltwise.conformance.suite import Variant

_LARGEST_STORED = 4096
_LONGEST_MESSAGE = 1000

Shrink = Callable[[Sequence[CaseResult]], CaseResult]
"""Finds the smallest failing case among some of one outcome."""


def summarized(
    runtime: tuple[str, str],
    variant: Variant,
    source: str,
    results: Sequence[CaseResult],
    not_run: int,
    explainer: Explainer,
    shrink: Shrink,
) -> TestResult:
    """Make the result of a test.

    Args:
        runtime: the runtime's name and its version.
        variant: what was tested.
        source: the operand source.
        results: all cases that were run.
        not_run: how many were not.
        explainer: explains differences.
        shrink: finds the smallest failing case.
    """
    test = (*runtime, str(variant.schema), variant.element_type.name, variant.rule, source)
    outcome = worst([item.outcome for item in results])
    changed = [item for item in results if item.answer.mode]
    notes = [*_mixture(results, not_run), *_mode_note(changed, len(results))]
    if outcome == "ok" and not changed:
        return TestResult(*test, "ok", total=len(results), message="; ".join(notes))
    if outcome == "ok":
        first = min(changed, key=lambda item: item.case.size)
        counts = len(changed), len(results)
        return TestResult(
            *test, "differs", ((MODE_CHANGED,),), *counts, _example(first), "; ".join(notes), stored(first.case)
        )
    failing = [item for item in results if item.outcome == outcome]
    reasons, words = _explained(outcome, results, failing, explainer)
    smallest = shrink(failing)
    case = stored(smallest.case, _kept(smallest), smallest.beside) if _is_small(smallest) else None
    message = "; ".join(part for part in (words, *notes) if part)[:_LONGEST_MESSAGE]
    counts = _counts(outcome, results, failing)
    return TestResult(*test, outcome, reasons, *counts, _example(smallest), message, case, words)


def _explained(
    outcome: Outcome, results: Sequence[CaseResult], failing: Sequence[CaseResult], explainer: Explainer
) -> tuple[tuple[tuple[str, ...], ...], str]:
    """The reasons by the names of their fault models, and what to say."""
    if outcome != "differs":
        return (), failing[0].answer.words
    problems = dict.fromkeys(item.problem for item in failing if item.problem)
    names: list[tuple[str, ...]] = [(problem,) for problem in problems]
    words = [_problem_in_words(item) for item in failing if item.problem][:1]
    if any(item.wrong and not item.problem for item in failing):
        found = explainer.explain([item.compared for item in results if item.compared is not None])
        names += [reason.names for reason in found]
        words += [reason.text for reason in found]
    return tuple(names), "; ".join(filter(None, words))


def _problem_in_words(item: CaseResult) -> str:
    assert item.expected is not None
    if item.problem == BESIDE_ANOTHER:
        company = "others" if item.beside is None else str(item.beside)
        return f"{item.case} gives other values in one model with {company} than alone"
    wanted = f"{item.expected.dtype}{list(item.expected.shape)}"
    came = item.answer.words if item.got is None else f"gave {item.got.dtype}{list(item.got.shape)}"
    return f"{came} instead of {wanted}"


def _counts(outcome: Outcome, results: Sequence[CaseResult], failing: Sequence[CaseResult]) -> tuple[int, int]:
    """Elements if values differ; else cases, of those that could have the outcome."""
    if outcome == "differs":
        compared = [item for item in results if item.expected is not None and item.answer.kind == "result"]
        return sum(item.wrong_count for item in compared), sum(item.elements for item in compared)
    must_work = {"refused": True, "accepted": False}.get(outcome)
    return len(failing), sum(must_work is None or (item.expected is not None) == must_work for item in results)


def _mixture(results: Sequence[CaseResult], not_run: int) -> list[str]:
    """How many cases had which outcome, if not all had the same."""
    counts = Counter(item.outcome for item in results)
    notes = []
    if len(counts) > 1:
        parts = ", ".join(f"{counts[outcome]} {outcome}" for outcome in OUTCOMES if counts[outcome])
        notes.append(f"of {len(results)} cases {parts}")
    if not_run:
        notes.append(f"{not_run} more cases were not run")
    return notes


def _mode_note(changed: Sequence[CaseResult], count: int) -> list[str]:
    if not changed:
        return []
    return [
        f"left the thread's floating-point mode changed after {len(changed)} of {count} cases: {changed[0].answer.mode}"
    ]


def _is_small(item: CaseResult) -> bool:
    return item.case.size + (item.beside.size if item.beside else 0) <= _LARGEST_STORED


def _kept(item: CaseResult) -> np.ndarray | None:
    """What came, unless it is too large."""
    return item.got if item.got is not None and item.got.size <= _LARGEST_STORED else None


def _example(item: CaseResult) -> Example | None:
    """The operands and results at the first failing index; None if there is no element to show."""
    if item.expected is None or (item.problem and not item.wrong):
        if not all(operand.size for operand in item.case.operands):
            return None
        index, operands = 0, tuple(operand.reshape(-1)[:1] for operand in item.case.operands)
    elif not item.expected.size:
        return None
    else:
        index = item.wrong[0] if item.wrong else 0
        operands = item.case.operands_at(np.array([index]))
    elements = tuple(shown(operand, 0) for operand in operands)
    return Example(elements, _shown_at(item.expected, index), _shown_at(item.got, index))


def _shown_at(array: np.ndarray | None, index: int) -> Shown | None:
    return None if array is None or array.size <= index else shown(array, index)
