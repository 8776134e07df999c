"""The page of the results: what stands in its file, and that no text of a runtime can become more than text."""

from __future__ import annotations

import base64
import hashlib
import re
import shlex
from dataclasses import replace
from html import escape
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import numpy as np
import pytest

from eltwise.conformance.cases import Case
from eltwise.conformance.findings import findings
from eltwise.conformance.report import ConformanceReport
from eltwise.conformance.results import Failing, Shown, TestResult
from eltwise.ops import registry
from eltwise.report import base
from support import conformance_results

ASSETS = Path(base.__file__).parent / "assets"


def page(test: TestResult) -> str:
    return base.document(*ConformanceReport((test,)).page_content())


class Reader(HTMLParser):
    """What a browser would make of a page: its elements, the addresses it names and where they may lead."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.addresses: set[str] = set()
        self.names: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.addresses |= {value or "" for name, value in attrs if name in ("src", "href", "srcset", "action")}
        self.names += [value or "" for name, value in attrs if name == "id"]


@pytest.fixture(scope="module")
def results() -> ConformanceReport:
    return conformance_results.results()


@pytest.fixture(scope="module")
def text(results: ConformanceReport) -> str:
    return base.document(*results.page_content("out/results.json"))


def test_every_test_that_fails_is_in_the_page_and_links_lead_only_to_those(
    text: str, results: ConformanceReport
) -> None:
    reader = Reader(text)
    assert reader.names == [test.key for test in results.tests if test.outcome != "ok"]
    assert {unquote(address) for address in reader.addresses} - {"data:,"} <= {f"#{name}" for name in reader.names}
    for test in results.tests:
        assert test.outcome == "ok" or escape(f"eltwise reproduce out/results.json {shlex.quote(test.key)}") in text


def test_hostile_words_of_a_runtime_end_no_script_and_start_no_element(results: ConformanceReport) -> None:
    (hostile, *_) = (test for test in results.tests if test.message == conformance_results.HOSTILE)
    shown = [
        Reader(page(replace(hostile, runtime=runtime, description=message, message=message))).tags
        for runtime, message in (
            (conformance_results.HOSTILE.replace("/", ":"), conformance_results.HOSTILE),
            ("r", "m"),
        )
    ]
    assert shown[0] == shown[1]
    assert shown[0].count("script") == 1


def test_what_is_no_bit_pattern_is_shown_without_digits() -> None:
    example = {"expected": Shown("?", "<b>"), "got": Shown("1", "0xf")}
    where = ("Sub-14", "uint8", "numpy", "static")
    text = page(TestResult("r", "1", *where, "differs", wrong=1, total=1, example=example))
    assert "<td>&lt;b&gt;</td><td></td>" in text
    assert "<td>0xf</td><td>1111</td>" in text


def test_the_policy_allows_only_the_page_s_own_script_and_style(text: str) -> None:
    policy = text.partition('Content-Security-Policy" content="')[2].partition('"')[0]
    for tag in ("script", "style"):
        part = text.partition(f"<{tag}>")[2].partition(f"</{tag}>")[0]
        assert f"'sha256-{base64.b64encode(hashlib.sha256(part.encode()).digest()).decode()}'" in policy
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy
    assert not re.search(r"@import|url\(|fetch\(|XMLHttpRequest|import\(", text)


def test_no_script_makes_html_of_texts() -> None:
    for path in ASSETS.glob("*.js"):
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function|setHTML",
            path.read_text(encoding="utf-8"),
        ), path.name


def test_findings_hold_every_cell_that_is_not_right_once(results: ConformanceReport) -> None:
    found = findings(results.tests)
    keys = [test.key for finding in found for test in finding.tests]
    assert sorted(keys) == sorted(test.key for test in results.tests if test.outcome != "ok")
    assert [finding.title for finding in found] == [
        f"saturating: {conformance_results.SATURATES}",
        "./mine.py:run: refuses what is allowed",
        "fragile: its process ends",
        "fragile: does not answer in time",
        "fragile: accepts what must be refused",
    ]


def test_a_finding_says_where_and_shows_an_example(results: ConformanceReport) -> None:
    finding = findings(results.tests)[0]
    assert finding.rows == [
        ("outcome", "differs: returns other bits"),
        ("effect", "results saturate at the limits of int8"),
        ("operators", "Sub-14, Subtract-1 and SquaredDifference-1"),
        ("types", "int8 and uint8"),
        (
            "tests",
            "70 of 84 tests; every broadcast rule; "
            "operand source static, dynamic, a-constant, b-constant and neighbours",
        ),
        (
            "smallest example",
            "For A = -128 (0x80) and B = 127 (0x7f) in Sub-14 it returns -128 (0x80) instead of 1 (0x01); "
            "32,640 of 65,536 elements of that test are wrong.",
        ),
        ("cause", "saturation"),
        ("runtime", "saturating 2.1"),
    ]


def test_refusals_in_the_same_words_are_one_finding_whatever_their_numbers() -> None:
    def refusing(op: str, text: str) -> TestResult:
        return TestResult(
            "picky", "1", op, "bfloat16", "numpy", "static", "refused", wrong=4, total=5, description=text
        )

    tests = (
        refusing("Sub-13", "no kernel for Sub(13) of node 'case0'"),
        refusing("Sub-14", "no kernel for Sub(14) of node 'case7'"),
        refusing("Subtract-1", "no memory"),
    )
    first, second = findings(tests)
    assert [len(first.tests), len(second.tests)] == [2, 1]
    assert first.smallest == "Message: no kernel for Sub(13) of node 'case0'"


def test_a_result_of_another_shape_is_shown_by_its_shapes() -> None:
    case = Case(registry.find("Sub-14"), (), (np.zeros((0,), np.uint8), np.zeros((1,), np.uint8)))
    text = "gave uint8[7] instead of uint8[3]"
    where = ("Sub-14", "uint8", "numpy", "static")
    test = TestResult("r", "1", *where, "differs", (("other_shape",),), 1, 2, description=text)
    told = {got.shape: findings((replace(test, failing=Failing(case, got)),))[0].smallest for got in SHAPED}
    assert told == {
        (1,): "For A of shape (0) and B of shape (1) it returns uint8[1] instead of uint8[0].",
        (0,): "It gave uint8[7] instead of uint8[3].",
    }


SHAPED = (np.zeros((1,), np.uint8), np.zeros((0,), np.uint8))
