"""ConformanceReport as a file: what is written is read again, and nothing that is broken is taken for results."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eltwise.conformance.cases import Case
from eltwise.conformance.compare import References, compare
from eltwise.conformance.models import build
from eltwise.conformance.operators import TESTED
from eltwise.conformance.report import ConformanceReport, read_results, results_of
from eltwise.conformance.reproduce import reproduce
from eltwise.conformance.results import OUTCOMES, Failing, Shown, TestResult, shown
from eltwise.conformance.suite import cases_of, layout_cases
from eltwise.conformance.summary import smaller_cases
from eltwise.conformance.variants import variants
from eltwise.core.dtypes import TYPES
from eltwise.core.errors import EltwiseError, NameUnknownError
from eltwise.ops import registry
from eltwise.ops.schema import ElementwiseSchema
from eltwise.oracle import hard_values
from eltwise.runtimes import Answer
from support import conformance_results

KEY = "saturating/Sub-14/uint8/numpy/static"


@pytest.fixture(scope="module")
def results() -> ConformanceReport:
    return conformance_results.results()


def test_what_is_written_is_read_again(results: ConformanceReport, tmp_path: Path) -> None:
    place = tmp_path / "results.json"
    place.write_text(results.to_json(), encoding="utf-8")
    assert read_results(place).to_json() == results.to_json()


def test_the_file_has_the_fields_that_are_documented(results: ConformanceReport) -> None:
    test = next(item for item in json.loads(results.to_json())["tests"] if item["op"] == "Sub-14" and "example" in item)
    case = test.pop("failing")["case"]
    assert test == {
        "runtime": "saturating",
        "version": "2.1",
        "op": "Sub-14",
        "dtype": "int8",
        "broadcast": "numpy",
        "source": "static",
        "outcome": "differs",
        "reasons": [[conformance_results.SATURATES]],
        "wrong": 32640,
        "total": 65536,
        "example": {
            "a": {"value": "-128", "bits": "0x80"},
            "b": {"value": "127", "bits": "0x7f"},
            "expected": {"value": "1", "bits": "0x01"},
            "got": {"value": "-128", "bits": "0x80"},
        },
        "message": "",
        "description": "",
    }
    assert case["operands"][0] == {"dtype": "int8", "shape": [1], "bits": ["0x80"]}


def test_every_case_of_the_matrix_is_stored_exactly(seed: int) -> None:
    """The cases of a variant are in one file, each as what another runtime fails at; variants have different ones."""
    for number, variant in enumerate(variants()):
        every = layout_cases(variant, "call", "usual", seed)
        cases = every[number % min(28, len(every)) :: 28]
        where = (str(variant.schema), "int8", "none", "call", "refused")
        tests = tuple(TestResult(f"r{count}", "1", *where, failing=Failing(case)) for count, case in enumerate(cases))
        read = results_of(ConformanceReport(tests).to_json().encode()).tests
        for case, test in zip(cases, read, strict=True):
            assert test.failing is not None
            again = test.failing.case
            assert (str(again), again.attributes) == (str(case), case.attributes)
            assert [array.tobytes() for array in again.operands] == [array.tobytes() for array in case.operands]


def test_every_element_is_shown_with_all_its_bits() -> None:
    for element_type in TYPES:
        if element_type.is_numeric:
            for place, pattern in enumerate(hard_values.hard_values(element_type)):
                text = shown(hard_values.hard_values(element_type), place)
                assert len(text.bits) == 2 + (element_type.bits + 3) // 4
                assert text.value == str(pattern)


@given(text=st.text(max_size=40), wrong=st.integers(0, 2**40))
def test_any_words_of_a_runtime_survive(text: str, wrong: int) -> None:
    failing = Failing(Case(registry.find("Sub-14"), (), (np.array([1], np.uint8), np.array([2], np.uint8))))
    example = {"a": Shown(text, "0x1"), "b": Shown("1", "0x1"), "expected": None, "got": Shown("2", text)}
    where = ("Sub-14", "uint8", "numpy", "call")
    test = TestResult(text, text, *where, "accepted", ((text,),), wrong, wrong, example, text, failing, text)
    written = ConformanceReport((test,), text, text).to_json()
    assert results_of(written.encode()).to_json() == written


def _broken() -> dict[str, Callable[[dict[str, Any]], object]]:
    """What is done to a good file, by what the error must say."""
    return {
        "tests: this value cannot be read, got nothing": lambda file: file.pop("tests"),
        "tests: this value cannot be read, got 'none'": lambda file: file.update(tests="none"),
        "tests[0]: this value cannot be read, got 3; allowed: an object": lambda file: file["tests"].__setitem__(0, 3),
        "there is no operator version 'Sub-15'": lambda file: file["tests"][0].update(op="Sub-15"),
        "tests[1].outcome: this value cannot be read, got 'good'": lambda file: file["tests"][1].update(outcome="good"),
        "dtype: this value cannot be read, got 'FLOAT'": lambda file: file["tests"][0].update(dtype="FLOAT"),
        "source: this value cannot be read, got 'way'": lambda file: file["tests"][0].update(source="way"),
        "broadcast: this value cannot be read": lambda file: file["tests"][0].update(broadcast=None),
        "wrong: this value cannot be read, got -1": lambda file: file["tests"][0].update(wrong=-1),
        "total: this value cannot be read, got True": lambda file: file["tests"][0].update(total=True),
        "runtime: this value cannot be read, got 5": lambda file: file["tests"][0].update(runtime=5),
        "seed: this value cannot be read": lambda file: file.update(seed=0.5),
        "extent: this value cannot be read": lambda file: file.update(extent="some"),
        "interrupted: this value cannot be read": lambda file: file.update(interrupted="no"),
        "versions: this value cannot be read, got a list; allowed: an object": lambda file: file.update(versions=["1"]),
        "a test occurs twice": lambda file: file["tests"].append(file["tests"][0]),
        "example: this value cannot be read, got a list": lambda file: file["tests"][0].update(example=[1]),
        "example.a.value: this value cannot be read": lambda file: file["tests"][0]["example"]["a"].update(value=1),
        "shape[0]: this value cannot be read": lambda file: file["tests"][0]["failing"]["case"]["operands"][0].update(
            shape=[-1]
        ),
        "1000000000000 patterns for the shape": lambda file: file["tests"][0]["failing"]["case"]["operands"][0].update(
            shape=[10**12]
        ),
        "operands[1]: these are no bit patterns; allowed: patterns of at most 8 bits": lambda file: file["tests"][0][
            "failing"
        ]["case"]["operands"][1].update(bits=["0x100"]),
        "operands[1]: these are no bit patterns": lambda file: file["tests"][0]["failing"]["case"]["operands"][
            1
        ].update(bits=["-1"]),
        "attributes.axis: this value cannot be read": lambda file: file["tests"][0]["failing"]["case"][
            "attributes"
        ].update(axis={"a": 1}),
    }


@pytest.mark.parametrize("sentence", _broken())
def test_a_broken_file_is_refused_with_the_place(sentence: str, results: ConformanceReport, tmp_path: Path) -> None:
    file = json.loads(ConformanceReport(tuple(test for test in results.tests if test.example)[:2]).to_json())
    _broken()[sentence](file)
    place = tmp_path / "results.json"
    place.write_text(json.dumps(file), encoding="utf-8")
    with pytest.raises(EltwiseError) as caught:
        read_results(place)
    assert sentence in str(caught.value)
    assert str(place) in str(caught.value)


def test_a_cell_is_found_by_its_key_and_a_wrong_key_gets_the_nearest(
    results: ConformanceReport, tmp_path: Path
) -> None:
    assert results[KEY].outcome == "differs"
    with pytest.raises(NameUnknownError, match=f"did you mean '{KEY}'") as caught:
        reproduce(results, KEY.replace("static", "statik"), tmp_path)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize("schema", TESTED, ids=str)
def test_the_smaller_cases_of_a_wrong_result_can_be_built(schema: ElementwiseSchema) -> None:
    """Of every operator version; on an axis some of them have sizes that must be refused, and show nothing."""
    variant = next(each for each in variants() if each.schema is schema)
    references, results = References(), []
    for case in cases_of(variant, "static", "quick", 0, False, is_thin=True)[:4]:
        expected = references.of(case)
        if expected is not None and expected.size:
            got = expected.copy()
            got.reshape(-1)[:1].view(np.uint8)[:1] ^= 1
            results.append(compare(case, expected, Answer("result", (got,))))
    for case in smaller_cases(results):
        assert build([case]).data
        assert len(case.operands) == len(results[0].case.operands)


@pytest.mark.parametrize("lacking", [{}, {"internal_errors": {"a": "it failed"}}, {"not_started": {"a": "it is gone"}}])
def test_a_report_is_good_only_of_what_was_right_and_of_nothing_wrong(lacking: dict[str, Any]) -> None:
    """Whatever outcomes its tests have, whose exit code may be 0, 1 or 3."""
    test = conformance_results.results().tests[0]
    for count in range(len(OUTCOMES) + 1):
        for outcomes in combinations(OUTCOMES, count):
            report = ConformanceReport(tuple(replace(test, outcome=each) for each in outcomes), **lacking)
            is_wrong = bool({*outcomes} - {"ok", "refused"})
            expected = 1 if is_wrong else 0 if "ok" in outcomes and not lacking else 3
            assert report.exit_code == expected, (outcomes, lacking)
