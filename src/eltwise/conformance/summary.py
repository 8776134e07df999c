"""One test result out of all cases of a test: the worst outcome, its explanation, its smallest example."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from eltwise.conformance.cases import LETTERS, Case
from eltwise.conformance.compare import CaseResult
from eltwise.conformance.explain import Explainer
from eltwise.conformance.results import OUTCOMES, Example, Failing, Outcome, TestResult, shown
from eltwise.core.escaping import shortened
from eltwise.faults.families import (
    AFFECTED_BY_OTHER_NODES,
    FLOAT_MODE_CHANGED,
    NOT_REPRODUCIBLE,
    OPERANDS_CHANGED,
    OTHER_SHAPE,
    OTHER_TYPE,
)

_LARGEST_STORED = 4096
_LONGEST_MESSAGE = 1000
_REPEATED = 64
"""How often operands are repeated if they do not fail alone: some kernels are used for whole vectors only."""


def worst_of(results: Sequence[CaseResult]) -> tuple[Outcome, list[CaseResult]]:
    """The worst outcome of some cases, and those that have it."""
    outcome: Outcome = max((item.outcome for item in results), key=OUTCOMES.index, default="ok")
    return outcome, [item for item in results if item.outcome == outcome]


def smaller_cases(results: Sequence[CaseResult]) -> list[Case]:
    """What may show the worst outcome of a test better than its cases: one element an operand, alone and repeated."""
    outcome, items = worst_of(results)
    if outcome == "crashed" and (smallest := _smallest_seen(items).case).size > len(smallest.operands):
        firsts = [operand.reshape(-1)[:1] for operand in smallest.operands]
        return [_of_elements(smallest, firsts)] if all(first.size for first in firsts) else []
    differing = [item for item in items if item.wrong and not item.problem]
    if outcome != "differs" or not differing or _smallest_seen(items).problem:
        return []
    _rank, operands, case = min((_simplest_operands(item) for item in differing), key=lambda ranked: ranked[0])
    return [_of_elements(case, [np.repeat(operand, count) for operand in operands]) for count in (1, _REPEATED)]


def summary(
    names: tuple[str, str, str, str, str, str],
    results: Sequence[CaseResult],
    not_run: int,
    smaller: Sequence[CaseResult],
    explainer: Explainer,
) -> TestResult:
    """Make the result of a test.

    Args:
        names: the runtime and its version, the operator version, the element type, the broadcast rule and the source.
        results: of all cases that were run.
        not_run: how many were not.
        smaller: what came for the ``smaller_cases``.
        explainer: explains with the catalog of faults.
    """
    outcome, items = worst_of(results)
    changed = [item for item in results if item.answer.mode]
    notes = list(_notes(results, changed, not_run))
    if outcome == "ok":
        if not changed:
            return TestResult(*names, "ok", total=len(results), message="; ".join(notes))
        first, counts = min(changed, key=lambda item: item.case.size), (len(changed), len(results))
        failing, message = Failing(first.case), "; ".join(notes)
        return TestResult(
            *names, "differs", ((FLOAT_MODE_CHANGED,),), *counts, _example(first), message, failing, message
        )
    reasons, explanation = (
        _explained(results, items, explainer) if outcome == "differs" else ((), items[0].answer.message)
    )
    shows = (item for item in smaller if item.outcome == outcome and (item.wrong or outcome == "crashed"))
    smallest = next(shows, None) or _smallest_seen(items)
    message = shortened("; ".join(part for part in (explanation, *notes) if part), _LONGEST_MESSAGE)
    counts = _counts(outcome, results, items)
    return TestResult(*names, outcome, reasons, *counts, _example(smallest), message, _failing(smallest), explanation)


def _explained(
    results: Sequence[CaseResult], items: Sequence[CaseResult], explainer: Explainer
) -> tuple[tuple[tuple[str, ...], ...], str]:
    """The reasons by the slugs of their faults, and what to say."""
    names: list[tuple[str, ...]] = [(problem,) for problem in dict.fromkeys(item.problem for item in items) if problem]
    messages = [_problem_in_words(item) for item in items if item.problem][:1]
    for reason in explainer.explain(results)[0]:
        names.append(reason.slugs)
        messages.append(reason.text)
    return tuple(names), "; ".join(filter(None, messages))


def _smallest_seen(items: Sequence[CaseResult]) -> CaseResult:
    # What fails alone shows more than what fails beside others, and a wrong type or shape more than wrong values.
    alone = [item for item in items if item.problem != AFFECTED_BY_OTHER_NODES]
    return min([item for item in alone if item.problem] or alone or items, key=_size)


def _of_elements(case: Case, operands: Sequence[np.ndarray]) -> Case:
    attributes = tuple((name, value) for name, value in case.attributes if name != "axis")
    only_typed = case.operands[len(operands) :]  # Whose elements are not read.
    return replace(case, attributes=attributes, operands=(*operands, *only_typed))


def _size(item: CaseResult) -> tuple[bool, int]:
    """The elements of all operands; a case without elements shows nothing and comes last."""
    return any(not operand.size for operand in item.case.operands), item.case.size


def _simplest_operands(item: CaseResult) -> tuple[tuple[float, ...], tuple[np.ndarray, ...], Case]:
    """The rank of the simplest operands at the failing indices (finite, whole, small), they as arrays, and the case."""
    operands = item.case.operands_at(np.array(item.wrong, np.int64))
    with np.errstate(all="ignore"):
        numbers = np.array([operand.astype(np.float64) for operand in operands])
        special = np.sum(~np.isfinite(numbers), axis=0)
        fractions = np.sum(numbers != np.rint(numbers), axis=0)
        large = np.sum(np.abs(np.nan_to_num(numbers)), axis=0)
    first = int(np.lexsort((large, fractions, special))[0])
    rank = float(special[first]), float(fractions[first]), float(large[first])
    return rank, tuple(operand[first : first + 1] for operand in operands), item.case


def _problem_in_words(item: CaseResult) -> str:
    if item.problem == AFFECTED_BY_OTHER_NODES:
        return f"{item.case} gives other values in one model with others than alone"
    if item.problem == OPERANDS_CHANGED:
        return item.answer.message
    if item.problem == NOT_REPRODUCIBLE:
        return f"{item.case} gives other values when it is run again"
    assert item.expected is not None
    came = item.answer.message if item.got is None else f"gave {item.got.dtype}{list(item.got.shape)}"
    return f"{came} instead of {item.expected.dtype}{list(item.expected.shape)}"


def _counts(outcome: Outcome, results: Sequence[CaseResult], items: Sequence[CaseResult]) -> tuple[int, int]:
    """Elements if values differ; else cases, of those that could have the outcome."""
    if outcome == "differs":
        compared = [
            item for item in results if item.expected is not None and (item.problem or item.answer.kind == "result")
        ]
        return sum(item.wrong_count for item in compared), sum(item.elements for item in compared)
    must_work = {"refused": True, "accepted": False}.get(outcome)
    return len(items), sum(must_work is None or (item.expected is not None) == must_work for item in results)


def _notes(results: Sequence[CaseResult], changed: Sequence[CaseResult], not_run: int) -> Iterator[str]:
    """How many cases had which outcome, if not all had the same, and what else there is to say of them."""
    counts = Counter(item.outcome for item in results)
    if len(counts) > 1:
        parts = ", ".join(f"{counts[outcome]} {outcome}" for outcome in OUTCOMES if counts[outcome])
        yield f"of {len(results)} cases {parts}"
    if not_run:
        yield f"{not_run} more cases were not run"
    if changed:
        share = f"{len(changed)} of {len(results)} cases"
        yield f"left the thread's floating-point mode changed after {share}: {changed[0].answer.mode}"


def _failing(item: CaseResult) -> Failing | None:
    """The case, unless it is too large to be stored."""
    if sum(case.size for case in (item.case, *item.co_resident)) > _LARGEST_STORED:
        return None
    got = item.got if item.got is not None and item.got.size <= _LARGEST_STORED else None
    return Failing(item.case, got, item.co_resident)


def _example(item: CaseResult) -> Example | None:
    """The operands and results at the first failing index; None if there is no element to show."""
    index, expected = item.wrong[0] if item.wrong else 0, item.expected
    if expected is None or (item.problem and not item.wrong):
        operands = tuple(operand.reshape(-1)[:1] for operand in item.case.operands)
    else:
        operands = item.case.operands_at(np.array([index])) if expected.size else ()
    if not operands or not all(operand.size for operand in operands):
        return None
    example = {letter: shown(operand, 0) for letter, operand in zip(LETTERS, operands, strict=False)}
    is_other = item.problem in (OTHER_TYPE, OTHER_SHAPE)  # Their elements do not correspond.
    results = {"expected": None if is_other else expected, "got": None if is_other else item.got}
    return example | {
        name: None if array is None or array.size <= index else shown(array, index) for name, array in results.items()
    }
