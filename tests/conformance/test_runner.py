"""A quick run asks a runtime less, and finds the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from eltwise.conformance.cases import SOURCES, Case
from eltwise.conformance.compare import References
from eltwise.conformance.run import Job, Selection
from eltwise.conformance.runner import CaseRun, CaseRunner
from eltwise.conformance.suite import Groups, groups, variants
from eltwise.runtimes import Answer, Host, find
from eltwise.runtimes.registry import RULES

REFERENCES = References()


class Planned(CaseRunner):
    """Runs cases on a runtime that refuses some, and gives the reference results of all others."""

    def __init__(self, refuses: Callable[[Case], bool], thrifty: bool, known: dict[object, str]) -> None:
        super().__init__(Host(find("onnx-reference")), "model", REFERENCES, thrifty, known)
        self.refuses, self.asked = refuses, 0

    def _answers(self, cases: Sequence[Case]) -> list[Answer]:
        self.asked += 1
        results = [REFERENCES.of(case) for case in cases]
        if any(result is None or self.refuses(case) for case, result in zip(cases, results, strict=True)):
            return [Answer("refused", words="no")] * len(cases)
        return [Answer("result", (result,)) for result in results]


def has_scalar(case: Case) -> bool:
    return any(operand.ndim == 0 for operand in case.operands)


TESTS: list[dict[str, Groups]] = [
    {source: groups(variant, source, "quick", 0, True) for source in SOURCES if source in variant.sources}
    for variant in variants()
    if str(variant.schema) == "Sub-14"
]
"""The tests with models of one operator version, for each type."""


def run(refuses: Callable[[Case], bool], thrifty: bool) -> tuple[list[dict[str, CaseRun]], list[int]]:
    known: dict[object, str] = {}
    runners = [Planned(refuses, thrifty, known) for _tests in TESTS]
    runs = [runner.run_tests(tests) for runner, tests in zip(runners, TESTS, strict=True)]
    return runs, [runner.asked for runner in runners]


@pytest.mark.parametrize(
    "refuses",
    [lambda _case: False, lambda _case: True, has_scalar, lambda case: has_scalar(case) and not case.context.constants],
    ids=["nothing", "everything", "scalars", "scalars that are inputs"],
)
def test_a_quick_run_finds_in_fewer_models_what_a_full_one_finds(refuses: Callable[[Case], bool]) -> None:
    (quick, few), (full, many) = run(refuses, True), run(refuses, False)
    assert sum(few) < sum(many)
    for one, other in zip(quick, full, strict=True):
        for source, done in one.items():
            outcomes = {result.case: result.outcome for result in other[source].results}
            found = {result.case: result.outcome for result in done.results}
            assert found.items() <= outcomes.items()
            assert set(found.values()) == set(outcomes.values())
            assert len(done.results) + done.not_run == len(outcomes)


def test_what_one_type_showed_is_not_searched_for_with_the_next() -> None:
    _runs, asked = run(has_scalar, True)
    assert max(asked[4:]) < asked[0] / 1.5


def test_a_quick_run_tests_the_rules_that_an_attribute_chooses_with_some_types() -> None:
    runtime = find("eltwise")
    everything, quick = list(Selection((runtime,)).jobs()), list(Selection((runtime,)).jobs("quick"))
    assert list(Selection((runtime,), rules=RULES).jobs("quick")) == everything
    assert {job.variant for job in everything if job.variant.rule == "numpy"} < {job.variant for job in quick}
    assert len(quick) < len(everything) * 0.75
    for rule in RULES:
        assert schemas_of(quick, rule) == schemas_of(everything, rule)


def schemas_of(jobs: list[Job], rule: str) -> set[str]:
    return {str(job.variant.schema) for job in jobs if job.variant.rule == rule}


class Broken(Host):
    """A process that has broken its memory, until it is replaced."""

    is_running = True  # type: ignore[assignment]

    def run(self, program: object, inputs: object, *, only_load: bool = False) -> Answer:
        del program, inputs, only_load
        if self.is_running:
            return Answer("refused", words="Converting input model std::bad_alloc")
        return Answer("result", (EXPECTED,))

    def end(self) -> None:
        self.is_running = False


CASE = TESTS[0]["static"][0][0]
EXPECTED = CASE.expected()


def test_what_a_broken_process_refuses_is_asked_again() -> None:
    runner = CaseRunner(Broken(find("onnx-reference")), "static", REFERENCES, thrifty=True)
    assert runner.alone(CASE).outcome == "ok"
