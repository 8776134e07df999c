"""The document of the results: what stands in it, and that a runtime's words stay words."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eltwise.conformance.document import document
from eltwise.conformance.findings import findings
from eltwise.conformance.legend import first_line
from eltwise.conformance.operators import TESTED
from eltwise.conformance.report import ConformanceReport
from eltwise.conformance.results import OUTCOMES
from eltwise.core.escaping import shortened
from support import conformance_results


@pytest.fixture(scope="module")
def results() -> ConformanceReport:
    return conformance_results.results()


@pytest.fixture(scope="module")
def text(results: ConformanceReport) -> str:
    return document(results, "out/results.json")


def lines_of(text: str, heading: str) -> list[str]:
    return text.partition(f"## {heading}\n\n")[2].partition("\n\n")[0].splitlines()


def test_commands_name_the_file_of_the_results_without_the_folder_of_one_machine(text: str) -> None:
    assert "eltwise reproduce results.json " in text
    assert "out/" not in text


def test_the_matrix_has_a_line_for_each_runtime_and_a_column_for_each_type(text: str) -> None:
    assert lines_of(text, "Sub-14") == [
        "| runtime | float16 | bfloat16 | float32 | float64 | int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 "
        "| uint64 |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|---|",
        "| exact | ✓ | ✓ | ✓ | ✓ | ✓ | ✓ | ✓ | ✓ | ✓ | ✓ | ✓ | ✓ |",
        r"| saturating | ✓ | ✓ | ✓ | ✓ | ≠\* | ✓ | ✓ | ✓ | ≠\* | ✓ | ✓ | ✓ |",
        "| ./mine.py:run | ✓ | R | ✓ | ✓ | ✓ | ✓ | ✓ | ✓ | ✓ | ✓ | ✓ | ✓ |",
        "| fragile | ✓ | ✓ | ✓ | ✓ | ✓ | ✓ | ✓ | ✓ | ✓ | ✓ | ✓ | ✓ |",
    ]
    assert len(lines_of(text, "SquaredDifference-1")) == 2 + 3


def test_every_operator_that_is_tested_or_was_has_a_place_in_both_reports(results: ConformanceReport) -> None:
    names = [*(schema.versioned_name for schema in TESTED), "Gone-1"]
    every = replace(results, tests=tuple(replace(results.tests[0], op=name) for name in names))
    assert re.findall(r"^#+ (\S+-\d+)$", document(every, "results.json"), re.MULTILINE) == names
    assert all(name in every.page_content()[1] for name in names)


def test_each_runtime_has_its_counts_and_the_numbers_of_its_findings(text: str, results: ConformanceReport) -> None:
    found = [finding.example.runtime for finding in findings(results.tests)]
    names = dict.fromkeys(test.runtime for test in results.tests)
    for line, name in zip(lines_of(text, "Runtimes")[2:], names, strict=True):
        runtime, *counts, numbers = (field.strip() for field in line.strip("|").split("|"))
        outcomes = [test.outcome for test in results.tests if test.runtime == name]
        assert (runtime, list(map(int, counts))) == (name, [outcomes.count(outcome) for outcome in OUTCOMES])
        own = [number for number, other in enumerate(found, 1) if other == name]
        assert numbers == (f"{own[0]} to {own[-1]}" if len(own) > 1 else "".join(map(str, own)))


def test_each_deviation_has_two_sentences_and_its_command(text: str, results: ConformanceReport) -> None:
    for number, finding in enumerate(findings(results.tests), 1):
        assert f"### {number}. {finding.example.runtime}" in text
        assert f"{finding.example.key} --output case/\n```" in text
    assert "32,640 of 65,536 elements of that test are wrong." in text


def test_a_runtime_s_words_are_no_markup(text: str) -> None:
    assert "<script>" not in text.replace("\\<", "").replace("\\>", "")
    assert r"\</script\>\<script\>window.taken = 1" in text


def test_the_document_says_when_where_and_with_what(text: str) -> None:
    for line in ("- measured: 2026-11-21", "- on: an invented processor", "- versions: saturating 2.1, fragile 0.3"):
        assert line in text.splitlines()


def test_where_all_is_right_there_are_no_deviations(results: ConformanceReport) -> None:
    right = ConformanceReport(tuple(test for test in results.tests if test.runtime == "exact"))
    assert document(right).endswith("## Findings\n\nNone.\n")


def test_no_line_is_long_and_every_finding_is_in_the_index_in_the_order_of_severity(results: ConformanceReport) -> None:
    """Also where messages and versions are long and full of markup."""
    message = "[a|long_message*" * 90
    tests = tuple(
        replace(test, description=message, version=message[:100]) if test.outcome == "refused" else test
        for test in results.tests
    )
    for some in (results, ConformanceReport(tests), ConformanceReport(tests[::-1]), ConformanceReport(tests[::7])):
        text, found = document(some), findings(some)
        assert max(map(len, text.splitlines())) <= 200
        index = text.partition("## Index")[2].partition("## Runtimes")[0]
        rows = re.findall(r"^\| \[(\d+)\]\(#finding-(\d+)\) \| (\w+) ", index, re.MULTILINE)
        assert [(int(number), outcome) for number, _anchor, outcome in rows] == [
            (number, finding.outcome) for number, finding in enumerate(found, 1)
        ]
        assert all(number == anchor and f'<a id="finding-{anchor}"></a>' in text for number, anchor, _outcome in rows)
        for runtime in dict.fromkeys(finding.example.runtime for finding in found):
            ranks = [OUTCOMES.index(finding.outcome) for finding in found if finding.example.runtime == runtime]
            assert ranks == sorted(ranks, reverse=True)


@pytest.mark.parametrize("values", [*product([False, True], repeat=3)])
def test_a_document_says_what_is_missing_and_only_that(results: ConformanceReport, values: tuple[bool, ...]) -> None:
    interrupted, is_failed, is_absent = values
    failed, absent = {"a": "KeyError"} if is_failed else {}, {"r": "no file"} if is_absent else {}
    text = document(replace(results, interrupted=interrupted, internal_errors=failed, not_started=absent))
    sentences = (", interrupted\n", ", 1 internal error", ", not started: r")
    assert tuple(sentence in text for sentence in sentences) == values


@given(st.text(), st.integers(4, 30))
def test_the_first_line_of_a_message_is_never_longer_than_asked(message: str, longest: int) -> None:
    line, *_ = [*filter(None, map(str.strip, message.splitlines())), ""]
    shown = first_line(message, longest)
    assert len(shown) <= longest
    assert shown == shortened(line, longest)
