"""Many cases in one model, and few models: what is found is the same as one at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

import numpy as np
import pytest

from eltwise import runtimes
from eltwise.conformance import run as conformance_run
from eltwise.conformance.cases import SOURCE_NAMES, SOURCES, Case
from eltwise.conformance.compare import References
from eltwise.conformance.explain import Explainer
from eltwise.conformance.results import OUTCOMES
from eltwise.conformance.run import RunSettings, run_tests
from eltwise.conformance.runner import CaseRunner
from eltwise.conformance.selection import Job, Selection
from eltwise.conformance.suite import cases_of
from eltwise.conformance.variants import variants
from eltwise.runtimes import Answer, Host, find
from eltwise.runtimes.registry import RULES

REFERENCES = References()


class Planned(CaseRunner):
    """Runs cases on a runtime that refuses some, or dies of them, and gives the reference results of all others."""

    def __init__(self, refuses: Callable[[Case], object], dies: Callable[[Case], bool], together: int = 1) -> None:
        super().__init__(Host(find("onnx-reference")), REFERENCES, most_together=together, is_thrifty=together > 1)
        self.refuses, self.dies, self.asked = refuses, dies, 0

    def _answers(self, cases: Sequence[Case]) -> list[Answer]:
        self.asked += 1
        if any(map(self.dies, cases)):
            return [Answer("crashed", message="SIGFPE")] * len(cases)
        results = [REFERENCES.of(case) for case in cases]
        refused = [self.refuses(case) or result is None for case, result in zip(cases, results, strict=True)]
        if any(refused):
            return [Answer("refused", message=f"no {next(filter(None, refused))}")] * len(cases)
        return [Answer("result", (result,)) for result in results]


def has_scalar(case: Case) -> bool:
    return any(operand.ndim == 0 for operand in case.operands)


TESTS = {
    (str(variant), source): cases_of(variant, source, "quick", 0, True)
    for variant in variants()
    for source in SOURCES
    if str(variant.schema) == "Sub-14" and source in variant.sources
}
"""The tests with models of one operator version."""


def nothing(_case: Case) -> bool:
    return False


@pytest.mark.parametrize(
    ("refuses", "dies", "most"),
    [
        (nothing, nothing, 0.3),
        (lambda _case: True, nothing, 0.3),
        (lambda case: case.element_type.name == "uint8", nothing, 0.4),
        (has_scalar, nothing, 0.6),
        (lambda case: has_scalar(case) and case.context.constants == (0,), nothing, 0.5),
        (lambda case: (has_scalar(case) and "a scalar") or case.context.is_dynamic, nothing, 0.6),
        (nothing, lambda case: case.operands[0].shape == (8, 1, 6, 1) and case.element_type.bits == 8, 0.5),
    ],
    ids=["nothing", "everything", "a type", "scalars", "scalars that are constants", "two kinds", "dies of a shape"],
)
def test_few_models_find_what_single_ones_find(
    refuses: Callable[[Case], bool], dies: Callable[[Case], bool], most: float
) -> None:
    few, single = Planned(refuses, dies, 512), Planned(refuses, dies)
    every = [case for cases in TESTS.values() for case in cases]
    for runner in (few, single):
        runner.run(every)
    assert few.asked < most * single.asked
    for test, cases in TESTS.items():
        outcomes = {case: single.results[case].outcome for case in cases if case in single.results}
        found = {case: few.results[case].outcome for case in cases if case in few.results}
        assert max(found.values(), key=OUTCOMES.index) == max(outcomes.values(), key=OUTCOMES.index), test
        assert found.items() <= outcomes.items() or "crashed" in found.values(), test


class EndedByTwo(Planned):
    """Ends where two of some cases are in one model."""

    def __init__(self, fatal: Sequence[Case]) -> None:
        super().__init__(nothing, nothing, 512)
        self.fatal = set(fatal)

    def _answers(self, cases: Sequence[Case]) -> list[Answer]:
        ends = len(self.fatal.intersection(cases)) > 1
        return [Answer("crashed", message="SIGFPE")] * len(cases) if ends else super()._answers(cases)


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_what_cases_of_a_test_end_together_is_a_crash_of_this_test(count: int) -> None:
    tests = [cases for (name, _source), cases in TESTS.items() if "uint8" in name][:count]
    for fatal in tests:
        runner = EndedByTwo(fatal)
        runner.run([case for cases in tests for case in cases])
        crashed = {case for case, result in runner.results.items() if result.outcome == "crashed"}
        assert crashed
        assert crashed <= {*fatal}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["onnxruntime", "openvino", "openvino-onnx"])
def test_runtimes_give_the_same_in_one_model_as_in_many(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither constant folding nor common subexpressions nor fusion change what a case gives beside others."""
    runtime = next(runtime for runtime in runtimes.RUNTIMES if runtime.name == name)
    if not runtime.is_installed:
        pytest.skip(f"{name} is not installed; the extra 'runtimes' has it")
    ops = ("Sub-14",) if "ai.onnx" in runtime.domains else ("Subtract-1",)
    selection = Selection((runtime,), ops, ("float32", "uint8"), ("numpy",))
    found = []
    for together in (512, 1):
        monkeypatch.setitem(conformance_run._MOST_TOGETHER, "quick", together)
        tests = run_tests(selection, RunSettings("quick"), lambda *_: None).tests
        # What is wrong beside other nodes only cannot be seen in many models.
        beside = "affected_by_other_nodes"
        found.append({test.key: {test.outcome, *test.faults} - {beside} for test in tests if beside not in test.faults})
    assert {key: faults for key, faults in found[0].items() if found[1].get(key) != faults} == {}
    assert len(found[0]) > 0.8 * len(found[1])


def test_a_quick_run_tests_the_rules_that_an_attribute_chooses_with_some_types() -> None:
    runtime = find("eltwise")
    everything, quick = list(Selection((runtime,)).jobs()), list(Selection((runtime,)).jobs("quick"))
    assert list(Selection((runtime,), rules=RULES, sources=SOURCE_NAMES).jobs("quick")) == everything
    newest = {job.variant for job in everything if job.variant.rule == "numpy" and not job.variant.is_repeated}
    assert newest < {job.variant for job in quick}
    assert len(quick) < len(everything) * 0.8
    for rule in RULES:
        assert schemas_of(quick, rule) == schemas_of(everything, rule)


def schemas_of(jobs: list[Job], rule: str) -> set[str]:
    return {str(job.variant.schema) for job in jobs if job.variant.rule == rule}


class Broken(Host):
    """A process that has broken its memory, until it is replaced."""

    is_running = True

    def run(self, program: object, inputs: object, *, only_load: bool = False) -> Answer:  # type: ignore[override]
        del program, inputs, only_load
        if self.is_running:
            return Answer("refused", message="Converting input model std::bad_alloc")
        return Answer("result", (EXPECTED,))

    def end(self) -> None:
        self.is_running = False


class InModels(Host):
    """Right alone; gives the results of a model with several cases by what is planted."""

    def __init__(self, planted: Callable[[list[np.ndarray]], list[np.ndarray]]) -> None:
        super().__init__(find("onnx-reference"))
        self.planted = planted

    is_running = True

    def run(self, program: object, inputs: Sequence[np.ndarray], **_options: object) -> Answer:  # type: ignore[override]
        del program
        pairs = zip(inputs[::2], inputs[1::2], strict=True)
        results = [np.asarray(a - b) for a, b in pairs]
        return Answer("result", tuple(self.planted(results) if len(results) > 1 else results))


def now_and_then() -> Callable[[list[np.ndarray]], list[np.ndarray]]:
    runs = list[int]()

    def planted(results: list[np.ndarray]) -> list[np.ndarray]:
        runs.append(len(results))
        return results if len(runs) > 1 else [array + np.uint8(7) for array in results]

    return planted


@pytest.mark.parametrize(
    ("planted", "problem"),
    [
        (lambda results: results[1:], "affected_by_other_nodes"),
        (lambda results: [*results[1:], results[0]], "affected_by_other_nodes"),
        (lambda results: [array * np.uint8(3) + np.uint8(7) for array in results], "affected_by_other_nodes"),
        (now_and_then(), "not_reproducible"),
    ],
    ids=["fewer results", "results in another order", "other values", "once"],
)
def test_what_is_right_alone_is_blamed_on_the_model_if_it_comes_again(
    planted: Callable[[list[np.ndarray]], list[np.ndarray]], problem: str
) -> None:
    shapes: list[tuple[int, ...]] = [(5,), (2, 3), (4,)]
    operands = [tuple(np.arange(prod(shape), dtype=np.uint8).reshape(shape) for _ in "ab") for shape in shapes]
    cases = [Case(CASE.schema, (), pair) for pair in operands]
    runner = CaseRunner(InModels(planted), REFERENCES, most_together=8)
    runner.run(cases)
    runner.separate(cases, Explainer())
    items = [item for each in (runner.results, runner.co_resident) for item in each.values()]
    wrong = [item for item in items if item.outcome == "differs"]
    assert {item.problem for item in wrong} == {problem}
    for item in wrong:
        assert {*item.co_resident} <= {*cases} - {item.case}


CASE = TESTS["Sub-14/uint8/numpy", "static"][0]
EXPECTED = CASE.expected()


def test_what_a_broken_process_refuses_is_asked_again() -> None:
    assert CaseRunner(Broken(find("onnx-reference")), REFERENCES).run([CASE])[CASE].outcome == "ok"
