"""The comparison is proved able to fail: planted runtimes, each in its own process, get their outcome and its cause."""

from __future__ import annotations

import json
import os
import platform
from pathlib import Path

import pytest

from eltwise import runtimes
from eltwise.conformance.contexts import SOURCES
from eltwise.conformance.results import Results, TestResult, results_text
from eltwise.conformance.results_file import read_results
from eltwise.conformance.run import Selection, Settings, run_tests
from eltwise.conformance.suite import Variant, groups, variants
from eltwise.core.errors import FileFormatError
from eltwise.ops.registry import ELEMENTWISE

PLANTED = str(Path(__file__).parents[1] / "planted.py")


def quiet(_done: int, _count: int, _text: str) -> None:
    """Hear of the progress and say nothing."""


def run(
    function: str, op: str = "Sub-14", type_: str = "uint8", rule: str = "", limit: float = 20.0
) -> list[TestResult]:
    known = {runtime.name for runtime in runtimes.RUNTIMES}
    runtime = runtimes.find(function if function in known else f"{PLANTED}:{function}")
    selection = Selection((runtime,), (op,), (type_,), (rule,) if rule else ())
    outcome = run_tests(selection, Settings("quick", 0, limit, 1), quiet)
    assert outcome.not_started == {}
    assert not outcome.results.interrupted
    return list(outcome.results.tests)


def one(function: str, op: str = "Sub-14", type_: str = "uint8", rule: str = "", limit: float = 20.0) -> TestResult:
    (test,) = run(function, op, type_, rule, limit)
    assert test.source == "call"
    return test


@pytest.mark.parametrize(
    ("function", "op", "type_", "rule", "explanation"),
    [
        ("saturating", "Sub-14", "uint8", "", "saturation"),
        ("saturating", "Subtract-1", "int8", "none", "saturation"),
        ("computing_in_float32", "Sub-7", "float64", "", "float32 arithmetic"),
        ("ignoring_axis", "Sub-6", "int32", "", "axis ignored"),
        ("ignoring_axis", "Subtract-1", "float32", "pdpd", "axis ignored"),
        ("flushing_subnormals", "Sub-14", "bfloat16", "", "subnormal results flushed"),
        ("flushing_subnormals", "Mul-14", "float32", "", "subnormal results flushed"),
        ("adding_no_zeros", "Add-14", "float32", "", "zeros not added"),
        ("flushing_before_rounding", "Mul-14", "float32", "", "subnormal results flushed before rounding"),
        ("swapping_operands", "Sub-14", "int32", "", "operands swapped"),
        ("losing_the_sign_of_zero", "Sub-14", "float16", "", "sign of zero lost"),
        ("rounding_once", "SquaredDifference-1", "float16", "numpy", "float32 arithmetic"),
    ],
)
def test_a_known_fault_is_named(function: str, op: str, type_: str, rule: str, explanation: str) -> None:
    cell = one(function, op, type_, rule)
    assert cell.outcome == "differs"
    assert explanation in cell.explanation
    assert "unexplained" not in cell.explanation
    assert 0 < cell.wrong < cell.total
    assert cell.example is not None
    assert cell.example.expected != cell.example.got
    assert cell.version.startswith("1.2 (file ")


def test_one_wrong_pair_of_one_type_is_found_shown_alone_and_not_explained_away() -> None:
    cell = one("off_by_one_at_one_pair")
    assert (cell.outcome, cell.explanation) == ("differs", "unexplained")
    assert cell.example is not None
    assert tuple(shown.value for shown in cell.example.operands) == ("200", "13")
    assert (cell.example.expected, cell.example.got) != (None, None)
    assert cell.case is not None
    assert cell.case.operands[0].shape == cell.case.operands[1].shape == (1,)
    assert one("off_by_one_at_one_pair", type_="int8").outcome == "ok"


@pytest.mark.parametrize(
    ("function", "op", "type_", "explanation"),
    [
        ("widening", "Sub-7", "float16", "wrong type"),
        ("giving_lists", "Sub-7", "float32", "wrong type"),
        ("losing_a_dimension", "Sub-7", "float32", "wrong shape"),
    ],
)
def test_right_values_in_the_wrong_type_or_shape_differ(function: str, op: str, type_: str, explanation: str) -> None:
    cell = one(function, op, type_)
    assert (cell.outcome, cell.explanation) == ("differs", explanation)
    assert cell.wrong > 0


def test_a_refusal_is_told_in_the_runtimes_own_words() -> None:
    cell = one("raising")
    assert (cell.outcome, cell.explanation) == ("refused", "")
    assert "there is no kernel for this" in cell.message
    assert cell.wrong == cell.total > 10
    assert cell.case is not None


def test_what_works_in_part_says_how_much() -> None:
    cell = one("refusing_scalars", type_="float32")
    assert cell.outcome == "refused"
    assert 0 < cell.wrong < cell.total
    assert "no scalars here" in cell.message
    assert "ok" in cell.message


def test_what_must_be_refused_is_found_where_it_is_taken() -> None:
    cell = one("taking_any_shape", "Sub-7", "float32")
    assert (cell.outcome, cell.explanation) == ("accepted", "")
    assert cell.example is None or cell.example.expected is None
    assert 0 < cell.wrong == cell.total
    cell = one("broadcasting_without_leave", "Sub-6", "float32")
    assert cell.outcome in ("accepted", "differs")


@pytest.mark.parametrize(
    ("function", "words"), [("leaving", "exit code 3: out of order"), ("reading_nothing", "SIGSEGV")]
)
def test_a_crash_is_a_verdict_and_the_run_goes_on(function: str, words: str) -> None:
    cells = run(function, "Subtract-1", "uint4")
    assert [cell.broadcast for cell in cells] == ["none", "numpy", "pdpd"]
    for cell in cells:
        if function == "leaving" and cell.broadcast == "none" and cell.outcome != "crashed":
            continue
        assert cell.outcome == "crashed"
        assert words in cell.message
        assert cell.wrong <= cell.total
        assert "not run" in cell.message


def test_a_crash_on_every_call_has_a_case_that_is_small_enough_to_keep() -> None:
    (cell,) = run("reading_nothing", "Sub-14", "float32")
    assert cell.outcome == "crashed"
    assert cell.case is not None
    assert cell.case.operands[0].shape == (1,)
    assert "in one model" not in cell.message


def test_words_that_are_no_text_are_told_all_the_same() -> None:
    cell = one("raising_foreign_words")
    assert cell.outcome == "refused"
    assert "caf\\udce9" in cell.message
    results_text(Results((cell,))).encode()


def test_another_file_is_another_version(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    text = "from __future__ import annotations\nfrom dataclasses import KW_ONLY, dataclass\n"
    text += "@dataclass\nclass Options:\n    _: KW_ONLY\n    scale: int = 1\n"
    text += "def run(op, a, b, **attributes):\n    return a - b * Options().scale\n"
    file.write_text(text)
    selection = Selection((runtimes.find(f"{file}:run"),), ("Sub-7",), ("int32",), (), ("call",))
    known = run_tests(selection, Settings("quick", processes=1), quiet).results
    assert known.tests[0].outcome == "accepted"  # It broadcasts and subtracts whatever it gets.
    assert run_tests(selection, Settings("quick", processes=1), quiet, known).results.tests == known.tests
    file.write_text(text.replace("= 1", "= 2"))
    with pytest.raises(FileFormatError, match="another version of"):
        run_tests(selection, Settings("quick", processes=1), quiet, known)


def test_a_crash_that_comes_later_is_blamed_on_what_caused_it() -> None:
    cells = run("breaking_its_memory", "Subtract-1", "uint4")
    assert [(cell.broadcast, cell.outcome) for cell in cells] == [("none", "ok"), ("numpy", "crashed"), ("pdpd", "ok")]
    (cell,) = (cell for cell in cells if cell.outcome == "crashed")
    assert (cell.wrong, cell.case is not None) == (1, True)
    assert cell.case is not None
    assert (cell.case.operands[0].shape, cell.case.operands[1].shape) == ((2, 0, 3), (1, 1, 3))
    assert "it answered, and then the process ended with SIGABRT" in cell.message
    assert "not run" not in cell.message


def test_a_hang_is_a_verdict_and_the_run_goes_on() -> None:
    cells = run("hanging", "Subtract-1", "uint4", limit=0.5)
    by_rule = {cell.broadcast: cell for cell in cells}
    assert by_rule["numpy"].outcome == "hung"
    assert "within 0.5 seconds" in by_rule["numpy"].message
    assert by_rule["numpy"].case is not None
    assert by_rule["numpy"].case.operands[0].shape == (3, 3)
    assert by_rule["none"].outcome == "ok"


@pytest.mark.skipif(platform.machine() not in ("x86_64", "aarch64"), reason="the mode is set by number")
def test_a_changed_floating_point_mode_is_found_after_right_values() -> None:
    cell = one("rounding_up_afterwards", "Sub-7", "int32")
    assert (cell.outcome, cell.explanation) == ("differs", "changed floating-point mode")
    assert "rounded up" in cell.message
    assert "of" in cell.message


@pytest.mark.parametrize("function", ["exact", "printing", "writing_into_operands"])
def test_a_right_runtime_is_right(function: str) -> None:
    cell = one(function, "Sub-6", "int32")
    assert cell.outcome == "ok", cell
    assert cell.wrong == 0
    assert cell.total > 20
    assert cell.example is None


@pytest.mark.parametrize("name", ["eltwise", "eltwise-numpy"])
def test_eltwise_is_a_runtime_like_every_other(name: str) -> None:
    cells = run(name, "Subtract-1", "float16", "pdpd")
    only = runtimes.find(name).only or (*SOURCES, "call")
    assert {cell.source for cell in cells} == set(only)
    assert [cell for cell in cells if cell.outcome != "ok"] == []


def test_a_runtime_that_cannot_be_started_is_said() -> None:
    for function in ("no_such_function", "no_function"):
        runtime = runtimes.find(f"{PLANTED}:{function}")
        outcome = run_tests(Selection((runtime,), ("Sub-7",), ("int32",)), Settings("quick"), quiet)
        assert outcome.results.tests == ()
        assert f"there is no function '{function}'" in outcome.not_started[runtime.name]


def test_a_run_goes_on_from_what_is_known(tmp_path: Path) -> None:
    runtime = runtimes.find(f"{PLANTED}:exact")
    settings = Settings("quick", 3, processes=1)
    first = run_tests(Selection((runtime,), ("Sub-7",), ("int32",)), settings, quiet).results
    file = tmp_path / "results.json"
    file.write_text(results_text(first), encoding="utf-8")
    asked: list[str] = []
    known = read_results(file)
    more = Selection((runtime,), ("Sub-7",), ("int32", "int64"))
    second = run_tests(more, settings, lambda _done, _count, text: asked.append(text), known).results
    assert [text.split("/")[-3] for text in asked] == ["int64"]
    assert [cell.dtype for cell in second.tests] == ["int32", "int64"]
    with pytest.raises(FileFormatError, match="another seed"):
        run_tests(more, Settings("quick", 4), quiet, known)
    with pytest.raises(FileFormatError, match="another extent"):
        run_tests(more, Settings("thorough", 3), quiet, known)
    older = json.loads(file.read_text(encoding="utf-8"))
    older["cells"][0]["version"] = "0.9"
    file.write_text(json.dumps(older), encoding="utf-8")
    with pytest.raises(FileFormatError, match="another version"):
        run_tests(more, settings, quiet, read_results(file))


def test_an_interrupt_keeps_what_is_there() -> None:
    runtime = runtimes.find(f"{PLANTED}:exact")
    selection = Selection((runtime,), ("Sub-7", "Sub-14"))

    def interrupt(done: int, _count: int, _text: str) -> None:
        if done == 3:
            os.kill(os.getpid(), 2)

    results = run_tests(selection, Settings("quick", processes=1), interrupt).results
    assert results.interrupted
    assert 3 <= len(results.tests) < len(list(selection.jobs()))
    assert {cell.outcome for cell in results.tests} == {"ok"}


def variant_of(key: str) -> Variant:
    return next(variant for variant in variants() if str(variant) == key)


def test_the_same_seed_gives_the_same_cases() -> None:
    variant = variant_of("Sub-6/float32/legacy")
    one, other = (bits_of_groups(variant, seed) for seed in (1, 2))
    groups.cache_clear()
    assert bits_of_groups(variant, 1) == one
    assert one != other


def bits_of_groups(variant: Variant, seed: int) -> list[bytes]:
    made = groups(variant, "static", "quick", seed, True)
    return [array.tobytes() for group in made for case in group for array in case.operands]


def test_every_variant_has_what_must_work_and_what_must_be_refused() -> None:
    for variant in variants():
        if variant.element_type.name != "float32" or variant.count != 2:
            continue
        cases = [case for group in groups(variant, "static", "quick", 0, True) for case in group]
        shapes = {tuple(array.shape for array in case.operands) for case in cases if case.is_valid}
        assert len(shapes) >= (3 if variant.rule == "none" else 9), variant
        assert max(case.operands[0].ndim for case in cases) >= 12
        assert any(len({array.dtype for array in case.operands}) > 1 for case in cases)
        foreign = [case for case in cases if set(dict(case.attributes)) - set(variant.schema.attribute_names)]
        others = {name for other in ELEMENTWISE if other.name == variant.schema.name for name in other.attribute_names}
        assert bool(foreign) == bool(others - set(variant.schema.attribute_names)), variant
