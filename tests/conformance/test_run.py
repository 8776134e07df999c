"""The comparison is proved able to fail: planted runtimes, each in its own process, get their outcome and its cause."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from eltwise import runtimes
from eltwise.conformance.cases import SOURCE_NAMES, Case
from eltwise.conformance.compare import References
from eltwise.conformance.operators import newer_version
from eltwise.conformance.report import ConformanceReport, read_results, results_of
from eltwise.conformance.results import Extent, TestResult
from eltwise.conformance.run import RunSettings, run_tests
from eltwise.conformance.selection import Job, Selection
from eltwise.conformance.suite import cases_of
from eltwise.conformance.variants import Variant, variants
from eltwise.core.errors import FileFormatError, UnsupportedError
from eltwise.core.exit_codes import ExitCode
from eltwise.ops.registry import ELEMENTWISE
from eltwise.ops.schema import is_arithmetic

PLANTED = str(Path(__file__).parents[1] / "support" / "planted.py")
CHANGING_ITSELF = """
import os, eltwise
def run(op, a, b):
    if a.dtype == "int32":
        with open(__file__, "a") as file:
            file.write("#")
        os._exit(3)
    return eltwise.operator(op)(a, b)
"""


def quiet(_done: int, _count: int, _text: str) -> None:
    """Hear of the progress and say nothing."""


def run(
    function: str, op: str = "Sub-14", type_: str = "uint8", rule: str = "", limit: float = 20.0
) -> list[TestResult]:
    known = {runtime.name for runtime in runtimes.RUNTIMES}
    runtime = runtimes.find(function if function in known else f"{PLANTED}:{function}")
    selection = Selection((runtime,), (op,), (type_,), (rule,) if rule else ())
    results = run_tests(selection, RunSettings("quick", 0, limit, 1), quiet)
    assert results.not_started == {}
    assert not results.interrupted
    return list(results.tests)


@pytest.mark.parametrize(
    ("function", "op", "type_", "rule", "explanation"),
    [
        ("saturating", "Sub-14", "uint8", "", "saturation"),
        ("saturating", "Subtract-1", "int8", "none", "saturation"),
        ("computing_in_float32", "Sub-7", "float64", "", "float32_arithmetic"),
        ("ignoring_axis", "Sub-6", "int32", "", "axis_ignored"),
        ("ignoring_axis", "Subtract-1", "float32", "pdpd", "axis_ignored"),
        ("flushing_subnormals", "Sub-14", "bfloat16", "", "subnormal_results_flushed"),
        ("flushing_subnormals", "Mul-14", "float32", "", "subnormal_results_flushed"),
        ("adding_no_zeros", "Add-14", "float32", "", "zeros_not_added"),
        ("swapping_operands", "Sub-14", "int32", "", "swapped_operands"),
        ("losing_the_sign_of_zero", "Sub-14", "float16", "", "sign_of_zero_lost"),
        ("rounding_once", "SquaredDifference-1", "float16", "numpy", "float32_arithmetic"),
        ("off_by_one_at_one_pair", "Sub-14", "uint8", "", "unexplained"),
        ("widening", "Sub-7", "float16", "", "other_type"),
        ("giving_lists", "Sub-7", "float32", "", "other_type"),
        ("losing_a_dimension", "Sub-7", "float32", "", "other_shape"),
        ("broadcasting_without_leave", "Sub-6", "float32", "", "axis_ignored"),
    ],
)
def test_a_fault_is_found_named_and_shown(function: str, op: str, type_: str, rule: str, explanation: str) -> None:
    (test,) = run(function, op, type_, rule)
    assert (test.source, test.outcome) == ("call", "differs")
    assert explanation in test.explanation
    assert ("unexplained" in test.explanation) == (explanation == "unexplained")
    assert 0 < test.wrong <= test.total
    assert test.example is not None
    assert test.version.startswith("1.2 (file ")
    if explanation.startswith("other_"):
        assert test.explanation == explanation
    elif "other_shape" not in test.explanation:  # Else the example is of that.
        assert test.wrong < test.total
        assert test.example["expected"] != test.example["got"]


@pytest.mark.parametrize("function", ["wrong_now_and_then", "giving_the_last_result"])
def test_a_result_that_does_not_come_again_is_named_so(function: str) -> None:
    (test,) = run(function, "Add-14", "uint8")
    assert test.outcome == "differs"
    assert "not_reproducible" in test.faults
    assert "when it is run again" in test.message


def test_few_elements_that_a_fault_predicts_by_chance_are_no_cause() -> None:
    """One scalar of many wrong results is what it would be with every sum rounded toward zero."""
    (test,) = run("rounding_away", "Add-14", "float32")
    assert (test.outcome, test.explanation) == ("differs", "unexplained")


def test_one_wrong_pair_of_one_type_is_shown_alone() -> None:
    (test,) = run("off_by_one_at_one_pair")
    assert test.example is not None
    assert [test.example[name] and test.example[name].value for name in "ab"] == ["200", "13"]
    assert test.failing is not None
    assert [operand.shape for operand in test.failing.case.operands] == [(1,), (1,)]


@pytest.mark.parametrize(
    ("function", "op", "type_", "outcome", "said"),
    [
        ("raising", "Sub-14", "uint8", "refused", ["there is no kernel for this"]),
        ("raising_foreign_words", "Sub-14", "uint8", "refused", ["caf\\udce9"]),
        ("refusing_scalars", "Sub-14", "float32", "refused", ["no scalars here", "ok"]),
        ("taking_any_shape", "Sub-7", "float32", "accepted", []),
        ("off_by_one_at_one_pair", "Sub-14", "int8", "ok", []),
        ("exact", "Sub-6", "int32", "ok", []),
        ("printing", "Sub-6", "int32", "ok", []),
    ],
)
def test_what_a_runtime_refuses_and_takes_is_told_in_its_words(
    function: str, op: str, type_: str, outcome: str, said: list[str]
) -> None:
    (test,) = run(function, op, type_)
    assert (test.outcome, test.explanation) == (outcome, "")
    assert all(words in test.message for words in said)
    assert (test.failing is None) == (test.wrong == 0) == (outcome == "ok")
    wholly = ("raising", "raising_foreign_words", "taking_any_shape")
    assert (test.wrong == test.total) == (function in wholly)
    ConformanceReport((test,)).to_json().encode()


def test_who_writes_to_its_operands_is_wrong_whatever_it_gives() -> None:
    (test,) = run("writing_into_operands", "Sub-6", "int32")
    assert (test.outcome, test.explanation) == ("differs", "operands_changed")
    assert "it wrote to its input 1" in test.message
    assert test.failing is not None
    assert 0 < test.wrong <= test.total
    assert ConformanceReport((test,)).exit_code is ExitCode.FINDINGS
    assert results_of(ConformanceReport((test,)).to_json().encode()).tests == (test,)


@pytest.mark.parametrize(
    ("function", "words"), [("leaving", "exit code 3: out of order"), ("reading_nothing", "SIGSEGV")]
)
def test_a_crash_is_an_outcome_and_the_run_goes_on(function: str, words: str) -> None:
    tests = run(function, "Subtract-1", "uint4")
    assert [test.broadcast for test in tests] == ["none", "numpy", "pdpd"]
    for test in tests:
        assert test.outcome == "crashed"
        assert words in test.message
        assert test.wrong <= test.total
        assert "not run" in test.message
        assert "in one model" not in test.message
        assert test.failing is not None
        assert function == "leaving" or test.failing.case.operands[0].size == 1


def test_a_function_is_judged_on_what_it_takes(tmp_path: Path) -> None:
    """It computes operands of two types as NumPy does, which no test asks of a library either."""
    (tmp_path / "mine.py").write_text("import numpy as np\ndef run(op, a, b):\n    return np.subtract(a, b)\n")
    selection = Selection((runtimes.find(f"{tmp_path / 'mine.py'}:run"),), ("Sub-14",), (), ("numpy",), ("call",))
    results = run_tests(selection, RunSettings("quick", processes=1), quiet)
    assert {test.outcome for test in results.tests} == {"ok"}


def test_another_file_is_another_version(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    text = "from __future__ import annotations\nfrom dataclasses import KW_ONLY, dataclass\n"
    text += "@dataclass\nclass Options:\n    _: KW_ONLY\n    scale: int = 1\n"
    text += "def run(op, a, b, **attributes):\n    return a - b * Options().scale\n"
    file.write_text(text)
    selection = Selection((runtimes.find(f"{file}:run"),), ("Sub-7",), ("int32",), (), ("call",))
    known = run_tests(selection, RunSettings("quick", processes=1), quiet)
    assert known.tests[0].outcome == "ok"
    assert run_tests(selection, RunSettings("quick", processes=1), quiet, known).tests == known.tests
    file.write_text(text.replace("= 1", "= 2"))
    with pytest.raises(FileFormatError, match="another version of"):
        run_tests(selection, RunSettings("quick", processes=1), quiet, known)


def test_a_runtime_that_is_changed_while_it_is_tested_is_tested_no_further(tmp_path: Path) -> None:
    """What was tested before stays, and what the others do."""
    file, exact = tmp_path / "mine.py", runtimes.find(f"{PLANTED}:exact")
    file.write_text(CHANGING_ITSELF)
    selection = Selection(
        (runtimes.find(f"{file}:run"), exact), ("Sub-7",), ("float32", "int32", "int64"), (), ("call",)
    )
    results = run_tests(selection, RunSettings("thorough", processes=1), quiet)
    assert list(results.not_started) == [f"{file}:run"]
    assert "was changed while it was in use" in str(results)
    assert {(test.runtime == exact.name, test.dtype, test.outcome) for test in results.tests} == {
        (False, "float32", "ok"),
        *((True, name, "ok") for name in ("float32", "int32", "int64")),
    }
    assert results.exit_code is ExitCode.NOT_ESTABLISHED
    assert len({test.version for test in results.tests if test.runtime != exact.name}) == 1


def test_a_crash_that_comes_later_is_blamed_on_what_caused_it() -> None:
    tests = run("breaking_its_memory", "Subtract-1", "uint4")
    assert [(test.broadcast, test.outcome) for test in tests] == [("none", "ok"), ("numpy", "crashed"), ("pdpd", "ok")]
    test = tests[1]
    assert test.wrong == 1
    assert test.failing is not None
    assert [operand.shape for operand in test.failing.case.operands] == [(2, 0, 3), (1, 1, 3)]
    assert "it answered, and then the process ended with SIGABRT" in test.message
    assert "not run" not in test.message


def test_a_hang_is_an_outcome_and_the_run_goes_on() -> None:
    by_rule = {test.broadcast: test for test in run("hanging", "Subtract-1", "uint4", limit=0.5)}
    assert by_rule["numpy"].outcome == "hung"
    assert "within 0.5 seconds" in by_rule["numpy"].message
    assert by_rule["numpy"].failing is not None
    assert by_rule["numpy"].failing.case.operands[0].shape == (3, 3)
    assert by_rule["none"].outcome == "ok"


def test_an_answer_that_is_late_once_is_no_hang(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = tmp_path / "log"
    monkeypatch.setenv("PLANTED_LOG", str(log))
    assert {test.outcome for test in run("late_once", "Subtract-1", "uint4", limit=0.5)} == {"ok"}
    assert log.exists()


@pytest.mark.skipif(platform.machine() not in ("x86_64", "aarch64"), reason="the mode is set by number")
def test_a_changed_floating_point_mode_is_found_after_right_values() -> None:
    (test,) = run("rounding_up_afterwards", "Sub-7", "int32")
    assert (test.outcome, test.explanation) == ("differs", "float_mode_changed")
    assert "rounded up" in test.message


@pytest.mark.parametrize("name", ["eltwise", "eltwise-numpy"])
def test_eltwise_is_a_runtime_like_every_other(name: str) -> None:
    tests = run(name, "Subtract-1", "float16", "pdpd")
    assert {test.source for test in tests} == set(runtimes.find(name).only or SOURCE_NAMES)
    assert [test for test in tests if test.outcome != "ok"] == []


@pytest.mark.parametrize(
    ("name", "ops", "source"),
    [
        ("onnxruntime", ("Add-7", "Sub-7", "Mul-13", "Add-14", "Sub-14", "Mul-14"), "static"),
        ("numpy", ("Add-14", "Sub-7", "Mul-14", "Maximum-1", "SquaredDifference-1"), "call"),
        ("openvino", ("Subtract-1", "SquaredDifference-1", "Multiply-1"), "static"),
    ],
)
def test_other_runtimes_agree_with_the_reference(name: str, ops: tuple[str, ...], source: str) -> None:
    """On operators and types where they are known to be right: witnesses that share no code with the reference."""
    runtime = next(runtime for runtime in runtimes.RUNTIMES if runtime.name == name)
    if not runtime.is_installed:
        pytest.skip(f"{name} is not installed; the extra 'runtimes' has it")
    types = ("float32", "float64", "int32", "int64") if name != "openvino" else ("float32", "int32")
    rules = ("none",) if name == "openvino" else ("numpy",)
    results = run_tests(Selection((runtime,), ops, types, rules, (source,)), RunSettings("quick"), quiet)
    assert len(results.tests) >= 6
    assert [(test.key, test.message) for test in results.tests if test.outcome != "ok"] == []


def test_a_run_goes_on_from_what_is_known(tmp_path: Path) -> None:
    runtime = runtimes.find(f"{PLANTED}:exact")
    settings = RunSettings("quick", 3, processes=1)
    file = tmp_path / "results.json"
    first = run_tests(Selection((runtime,), ("Sub-7",), ("int32",)), settings, quiet)
    file.write_text(first.to_json(), encoding="utf-8")
    seen: list[str] = []
    known = read_results(file)
    more = Selection((runtime,), ("Sub-7",), ("int32", "int64"))
    second = run_tests(more, settings, lambda _done, _count, text: seen.append(text), known)
    assert [text.split("/")[-3] for text in seen] == ["int64"]
    assert [test.dtype for test in second.tests] == ["int32", "int64"]
    for words, others in (("another seed", RunSettings("quick", 4)), ("another extent", RunSettings("thorough", 3))):
        with pytest.raises(FileFormatError, match=words):
            run_tests(more, others, quiet, known)
    for words, old in (
        ("another version of eltwise", replace(known, versions={**known.versions, "conformance suite": "0.1"})),
        ("another machine", replace(known, machine="Babbage")),
    ):
        with pytest.raises(FileFormatError, match=words):
            run_tests(more, settings, quiet, old)


@pytest.mark.parametrize("error", [TypeError("a planted error"), UnsupportedError("a planted error"), MemoryError()])
def test_an_internal_error_costs_the_test_of_its_case_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    runtime, settings = runtimes.find(f"{PLANTED}:exact"), RunSettings("quick", 3, processes=1)
    selection = Selection((runtime,), ("Sub-7",), ("int32", "int64"))
    reference_of = References.of

    def failing(references: References, case: Case) -> np.ndarray | None:
        if case.element_type.name == "int32" and case.shape() == (2, 3):
            raise error
        return reference_of(references, case)

    monkeypatch.setattr(References, "of", failing)
    results = run_tests(selection, settings, quiet)
    assert [(test.dtype, test.outcome) for test in results.tests] == [("int64", "ok")]
    ((key, text),) = results.internal_errors.items()
    assert "/Sub-7/int32/" in key
    assert f"internal error in {key}: {type(error).__name__}" in text
    assert "in the case Sub-7 int32[2, 3], int32[2, 1]" in text
    assert results.not_started == {}
    assert results.exit_code is ExitCode.NOT_ESTABLISHED
    assert text in str(results)
    file = tmp_path / "results.json"
    file.write_text(results.to_json(), encoding="utf-8")
    known = read_results(file)
    assert known.internal_errors == results.internal_errors
    assert known.exit_code is ExitCode.NOT_ESTABLISHED
    monkeypatch.undo()
    again = run_tests(selection, settings, quiet, known)
    assert [(test.dtype, test.outcome) for test in again.tests] == [("int32", "ok"), ("int64", "ok")]
    assert (again.internal_errors, again.exit_code) == ({}, ExitCode.GOOD)


def test_results_are_kept_while_they_come_and_say_what_did_not_start(tmp_path: Path) -> None:
    """What is kept is continued as the results of an interrupted run are."""
    exact = runtimes.find(f"{PLANTED}:exact")
    broken = tmp_path / "broken.py"
    broken.write_text("raise OSError('a planted error')")
    selection = Selection((exact, runtimes.find(f"{broken}:run")), ("Sub-7", "Add-7"), ("int32", "int64"))
    file, kept = tmp_path / "results.json", list[ConformanceReport]()
    results = run_tests(selection, RunSettings("quick", keep_every=0, processes=1), quiet, keep=kept.append)
    assert [each.interrupted for each in (*kept, results)] == [True] * len(kept) + [False]
    assert {len(each.tests) for each in kept} > {1, 2}
    file.write_text(results.to_json(), encoding="utf-8")
    known = read_results(file)
    assert list(known.not_started) == list(results.not_started) == [f"{broken}:run"]
    assert "a planted error" in str(known)
    assert "not started: " in known.summary
    file.write_text(kept[0].to_json(), encoding="utf-8")
    selection, known = Selection((exact,), selection.ops, selection.types), read_results(file)
    kept.clear()
    again = run_tests(selection, RunSettings("quick"), quiet, known, keep=kept.append)
    assert kept == [], "they came within the time after which they would have been kept"
    assert [test.key for test in again.tests] == [test.key for test in results.tests]
    assert (again.interrupted, again.not_started) == (False, {})


def test_every_variant_has_what_must_work_and_what_must_be_refused() -> None:
    for variant in variants():
        if variant.element_type.name not in ("float32", "int32") or variant.count != 2:
            continue
        if not is_arithmetic(variant.schema):
            continue
        cases = cases_of(variant, "static", "usual", 0, True)
        shapes = {tuple(array.shape for array in case.operands) for case in cases if case.is_valid}
        assert len(shapes) >= (2 if variant.rule == "none" else 9), variant
        assert any(not case.is_valid for case in cases)
        assert max(case.operands[0].ndim for case in cases) >= (64 if variant.rule == "numpy" else 12)
        assert any(len({array.dtype for array in case.operands}) > 1 for case in cases)
        foreign = [case for case in cases if set(dict(case.attributes)) - set(variant.schema.attribute_names)]
        others = {name for other in ELEMENTWISE if other.name == variant.schema.name for name in other.attribute_names}
        assert bool(foreign) == bool(others - set(variant.schema.attribute_names)), variant


def test_a_quick_run_has_with_some_type_what_every_type_must_refuse() -> None:
    for op, rule in (("Sub-14", "numpy"), ("Less-13", "numpy"), ("Subtract-1", "pdpd")):
        of_op = [variant for variant in variants() if (str(variant.schema), variant.rule) == (op, rule)]
        quick, usual = (
            [
                {
                    (str(case.attributes), *(operand.shape for operand in case.operands))
                    for case in refused(each, extent)
                }
                for each in of_op
            ]
            for extent in ("quick", "usual")
        )
        assert set.union(*quick[1:]) >= quick[0]
        assert all(len(few) < len(every) for few, every in zip(quick[1:], usual[1:], strict=True))


def refused(variant: Variant, extent: Extent) -> list[Case]:
    return [case for case in cases_of(variant, "static", extent, 0, True) if case.is_risky]


def test_old_versions_are_tested_thinly_where_a_newer_one_computes_the_same() -> None:
    """A quick run has fewer cases of them and one operand source; named, they are tested as the newest are."""
    selection = Selection((runtimes.find("eltwise"),))
    jobs = {job.key: job for job in selection.jobs("quick")}
    for job in jobs.values():
        assert not job.is_thin or newer_version(job.variant.schema) is not None
        assert not job.is_thin or job.source in ("static", "call")
    old = [job for job in jobs.values() if str(job.variant.schema) == "Sub-13"]
    assert all(job.is_thin for job in old)
    assert 0 < len({job.variant for job in old}) < len(old[0].variant.schema.types) / 2
    assert not jobs["eltwise/Sub-14/float32/numpy/static"].is_thin
    assert not jobs["eltwise/Sub-6/float32/legacy/static"].is_thin, "no later version broadcasts so"
    named = {job.key: job for job in replace(selection, ops=("Sub-13",)).jobs("quick")}
    assert {job.source for job in named.values()} == set(jobs["eltwise/Sub-14/float32/numpy/static"].variant.sources)
    assert not any(job.is_thin for job in named.values())
    assert selection.left_out("usual") == ""
    assert "old operator versions" in selection.left_out("quick")
    variant = old[0].variant
    thin, full = (cases_of(variant, "static", "quick", 0, True, is_thin) for is_thin in (True, False))
    assert 0 < len(thin) < len(full) * 0.6


@pytest.mark.parametrize("name", ["onnxruntime", "openvino"])
def test_a_quick_run_has_every_operand_source_with_some_type(name: str) -> None:
    selection = Selection((runtimes.find(name),))
    quick, usual = (
        [job for job in selection.jobs(extent) if newer_version(job.variant.schema) is None]
        for extent in ("quick", "usual")
    )
    assert len(quick) < len(usual) * 0.6
    assert set(map(source_of, quick)) == set(map(source_of, usual))
    for chosen in (replace(selection, types=("uint8",)), replace(selection, sources=("dynamic",), rules=("numpy",))):
        assert list(chosen.jobs("quick")) == list(chosen.jobs())


def source_of(job: Job) -> tuple[str, str]:
    return str(job.variant.schema), job.source


def test_a_quick_run_has_every_shape_with_some_type() -> None:
    """Each type has a share of the shapes; together they have what the usual run begins with."""
    for op, rule in (("Sub-14", "numpy"), ("Sub-6", "legacy"), ("Subtract-1", "pdpd")):
        own = [variant for variant in variants() if (str(variant.schema), variant.rule) == (op, rule)]
        found = [layouts_of(cases_of(variant, "static", "quick", 0, False)) for variant in own]
        assert set.union(*found[1:]) >= found[0]
        assert all(len(layouts) < len(found[0]) for layouts in found[1:])


def layouts_of(made: Sequence[Case]) -> set[tuple[object, ...]]:
    return {
        (*(operand.shape for operand in case.operands), str(case.attributes))
        for case in made
        if sum(operand.size for operand in case.operands) < 80  # Not those of all hard values.
    }


def test_the_reference_of_equal_cases_is_computed_once() -> None:
    """Operand sources and versions of an operator share most of their cases."""
    references, count = References(), 0
    for variant in variants():
        if variant.schema.name == "Sub" and variant.rule == "numpy" and variant.element_type.name == "float32":
            for source in variant.sources:
                cases = cases_of(variant, source, "quick", 0, False)
                count += len([references.of(case) for case in cases])
    assert len(references._known) < count / 5
