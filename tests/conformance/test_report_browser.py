"""The page in a real browser: what the filter leaves, what a link opens, at both widths, in both schemes."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import quote

import pytest

from eltwise.report.base import document
from support import conformance_results
from support.browser import Page

DIFFERS = "saturating/Sub-14/uint8/numpy/static"
HOSTILE = "./mine.py:run/Sub-14/bfloat16/numpy/dynamic"
OPENED = "[...document.querySelectorAll('details.record[open]')].map((record) => record.innerText)"


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(document(*conformance_results.results().page_content()), encoding="utf-8")
    return path.as_uri()


@pytest.fixture
def page(browser: Page, address: str) -> Iterator[Page]:
    """The page anew; whatever a test does with it, nothing may be logged, thrown or asked for."""
    browser.resize(1600, 1000)
    browser.go(address)
    yield browser
    assert browser.complaints() == []
    assert {url.partition("#")[0] for url in browser.requests()} == {address}
    assert browser.ask("window.taken") is None


def filter_by(page: Page, words: str, kind: str = "") -> tuple[int, int]:
    """How many rows of the matrix and how many tests the filter leaves."""
    page.ask(
        f"(() => {{ const [text, kind] = document.querySelector('.filters').children; text.value = {words!r};"
        f"kind.value = {kind!r}; text.dispatchEvent(new Event('input')); }})()"
    )
    shown = "[...document.querySelectorAll('{}')].filter((one) => !one.hidden).length"
    return page.ask(shown.format("tr.record")), page.ask(shown.format("details[id]"))


def test_the_filter_leaves_what_has_every_word_and_the_outcome(page: Page) -> None:
    tests = conformance_results.results().tests
    failing = [test for test in tests if test.outcome != "ok"]
    assert filter_by(page, "") == (len({(test.op, test.runtime) for test in tests}), len(failing))
    for test in failing[::20]:
        words = (test.source, test.op, test.runtime, test.dtype)
        same = [one for one in failing if all(word in one.key for word in words)]
        assert filter_by(page, "  ".join(words).upper())[1] == len(same)
        chosen = [one for one in same if one.outcome == test.outcome]
        assert filter_by(page, " ".join(words), test.outcome)[1] == len(chosen)
    assert filter_by(page, "no such words") == (0, 0)


def test_a_mark_and_an_address_open_the_test_with_its_example_and_its_command(page: Page, address: str) -> None:
    filter_by(page, "Sub-14 saturating int8")
    page.click("tr.record:not([hidden]) .mark.differs")
    (opened,) = page.ask(OPENED)
    for text in ("Sub-14, int8", conformance_results.SATURATES, "0x80", "10000000"):
        assert text in opened
    assert "eltwise reproduce results.json saturating/Sub-14/int8/numpy/static --output case/" in opened
    page.go(f"{address}#{quote(DIFFERS, safe='')}")
    assert "Sub-14, uint8" in page.ask(OPENED)[0]
    for unknown in ("#no/such/test", "#%E0%A4%A"):
        page.go(f"{address}{unknown}")
        assert page.ask(OPENED) == []


def test_hostile_words_are_shown_as_they_are(page: Page, address: str) -> None:
    page.go(f"{address}#{quote(HOSTILE, safe='')}")
    shown = page.ask("document.querySelector('details.record[open] pre').textContent")
    assert shown == conformance_results.HOSTILE.replace("\u2028", "\\u2028").replace("\x00", "\\x00")
    assert page.ask("document.querySelectorAll('img').length") == 0


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [360, 1600])
def test_it_fits_the_window_and_can_be_read(page: Page, width: int, dark: bool) -> None:
    page.click(".mark.differs")
    page.check_looks(width, 1000, dark)
