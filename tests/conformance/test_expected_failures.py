"""Expected failures: what the file does not name is reported, and so is what it names and no longer is so."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from eltwise.conformance.expected_failures import expected_text, read_expected, surprises
from eltwise.conformance.report import ConformanceReport
from eltwise.core.errors import EltwiseError, FileFormatError
from eltwise.formats.files import write_text
from support import conformance_results

SATURATING = f"""
[[expected]]
tests = ["saturating/*/*int8/*/[!b]*", "saturating/*/*int8/*/b-constant"]
outcome = "differs"
explanation = "{conformance_results.SATURATES}"
reason = "8-bit results are clamped."
link = "https://example.org/1"
"""
OTHERS = """
[[expected]]
tests = ["./mine.py:run/*/bfloat16/*/*"]
outcome = "refused"
reason = "There is no kernel."
link = "https://example.org/2"

[[expected]]
tests = ["fragile/Sub-[16]/*/legacy/dynamic"]
outcome = "hung"
reason = "It waits."
link = "https://example.org/3"

[[expected]]
tests = ["fragile/Sub-[16]/*/legacy/[!d]*"]
outcome = "crashed"
reason = "It falls."
link = "https://example.org/4"

[[expected]]
tests = ["fragile/Sub-[16]/*/none/*"]
outcome = "accepted"
reason = "It takes everything."
link = "https://example.org/5"
"""


@pytest.fixture
def results() -> ConformanceReport:
    return conformance_results.results()


def check(results: ConformanceReport, path: Path) -> list[str]:
    return list(surprises(results.tests, read_expected(path)))


def written(tmp_path: Path, text: str) -> Path:
    place = tmp_path / "expected.toml"
    place.write_text(text, encoding="utf-8")
    return place


def test_a_file_that_says_everything_leaves_nothing_to_report(results: ConformanceReport, tmp_path: Path) -> None:
    assert check(results, written(tmp_path, SATURATING + OTHERS)) == []


def test_every_cell_that_no_entry_names_is_new(results: ConformanceReport, tmp_path: Path) -> None:
    found = check(results, written(tmp_path, OTHERS))
    assert all(one.startswith("saturating/") and one.endswith("no entry of the file names it") for one in found)
    assert len(found) == sum(test.outcome != "ok" for test in results.tests if test.runtime == "saturating")
    everything = check(results, written(tmp_path, ""))
    assert len(everything) == sum(test.outcome != "ok" for test in results.tests)


def test_an_entry_that_no_longer_differs_is_stale(results: ConformanceReport, tmp_path: Path) -> None:
    mended = tuple(
        replace(test, outcome="ok", reasons=()) if test.key == "saturating/Sub-14/int8/numpy/static" else test
        for test in results.tests
    )
    (surprise,) = check(replace(results, tests=mended), written(tmp_path, SATURATING + OTHERS))
    assert surprise == (
        f"saturating/Sub-14/int8/numpy/static passes now; the file says differs: {conformance_results.SATURATES} "
        "(8-bit results are clamped. https://example.org/1)"
    )


@pytest.mark.parametrize("change", [{"outcome": "crashed"}, {"reasons": (("unexplained",),)}])
def test_a_cell_that_goes_wrong_in_another_way_is_reported(
    change: dict[str, Any], results: ConformanceReport, tmp_path: Path
) -> None:
    changed = tuple(
        replace(test, **change) if test.key == "saturating/Sub-14/int8/numpy/static" else test for test in results.tests
    )
    (surprise,) = check(replace(results, tests=changed), written(tmp_path, SATURATING + OTHERS))
    assert re.match("saturating/Sub-14/int8/numpy/static (crashed|differs: unexplained).*; the file says", surprise)


def test_entries_about_cells_that_were_not_asked_are_passed_over(results: ConformanceReport, tmp_path: Path) -> None:
    exact = tuple(test for test in results.tests if test.runtime == "exact")
    assert check(replace(results, tests=exact), written(tmp_path, SATURATING + OTHERS)) == []


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("expected = 3", "expected: this value cannot be read, got 3"),
        ("[[expect]]", "there is no field 'expect'"),
        ("[[expected]\n", "not TOML"),
        (SATURATING.replace("reason", "raison"), "there is no field 'raison'"),
        (SATURATING.replace("8-bit results are clamped.", " "), "expected[0].reason: this value cannot be read"),
        (
            SATURATING.replace('link = "https://example.org/1"', ""),
            "expected[0].link: this value cannot be read, got nothing",
        ),
        (SATURATING.replace('"differs"', '"ok"'), "allowed: one of refused, accepted, differs, hung, crashed"),
        (SATURATING.replace("saturating/*/*int8/*/b-constant", "saturating"), "RUNTIME/OPERATOR/TYPE/BROADCAST/SOURCE"),
        (SATURATING.replace('"differs"', "1979-05-27"), "expected[0].outcome: this value cannot be read, got date"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused(
    text: str, sentence: str, results: ConformanceReport, tmp_path: Path
) -> None:
    with pytest.raises(EltwiseError, match=r"expected\.toml") as caught:
        check(results, written(tmp_path, text))
    assert sentence in str(caught.value)


def test_a_missing_file_is_refused(results: ConformanceReport, tmp_path: Path) -> None:
    with pytest.raises(FileFormatError, match="there is no such file"):
        check(results, tmp_path / "none.toml")


def test_the_first_file_names_what_is_not_right_and_nothing_else(results: ConformanceReport, tmp_path: Path) -> None:
    path = tmp_path / "expected.toml"
    write_text(path, expected_text(results))
    assert check(results, path) == []
    wrong = [test for test in results.tests if test.outcome != "ok"]
    assert len(wrong) > 100
    assert sum("/" in line for line in path.read_text().splitlines()) < len(wrong)
    # Each test for itself: what becomes right is stale, what becomes wrong is new.
    for number in range(0, len(results.tests), 397):
        tests = list(results.tests)
        right = tests[number].outcome == "ok"
        reasons = (("otherwise",),) if right else ()
        changed = replace(tests[number], outcome="differs" if right else "ok", reasons=reasons)
        tests[number] = changed
        (surprise, *others) = check(ConformanceReport(tuple(tests)), path)
        expected = "differs: otherwise; no entry of the file names it" if right else "passes now; the file says "
        assert all(one.startswith(f"{changed.key} {expected}") for one in (surprise, *others))


@pytest.mark.parametrize("field", ["op", "dtype", "broadcast", "source"])
def test_the_first_file_of_a_part_says_nothing_of_the_rest(
    field: str, results: ConformanceReport, tmp_path: Path
) -> None:
    refused = [replace(test, outcome="refused", reasons=()) for test in results.tests if test.runtime == "exact"]
    part = [test for test in refused if getattr(test, field) == getattr(refused[0], field)]
    path = tmp_path / "expected.toml"
    write_text(path, expected_text(ConformanceReport(tuple(part))))
    new = [one.partition(" ")[0] for one in check(ConformanceReport(tuple(refused)), path)]
    assert new == [test.key for test in refused if test not in part]


def test_the_first_file_takes_any_name_and_any_words(results: ConformanceReport, tmp_path: Path) -> None:
    strange = './m[1]*?"\\.py:run'
    said = "\x00\x1f\x7f\u2028'''\"\"\"\\ \N{GRINNING FACE} \ud800"
    tests = tuple(
        replace(test, runtime=strange, message=said, outcome="refused", reasons=()) for test in results.tests[:3]
    )
    path = tmp_path / "expected.toml"
    write_text(path, expected_text(ConformanceReport(tests)))
    assert check(ConformanceReport(tests), path) == []
    assert len(check(ConformanceReport((replace(tests[0], runtime="./m1x.py:run"),)), path)) == 1
