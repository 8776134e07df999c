"""The page in a real browser: what filters leave, what a click and a key open, at both widths, in both schemes."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import quote

import pytest

from eltwise.report import page as pages
from support import conformance_results
from support.browser import Page

DIFFERS = "saturating/Sub-14/uint8/numpy/static"
HOSTILE = "./mine.py:run/Sub-14/bfloat16/numpy/dynamic"


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(pages.page(conformance_results.results()), encoding="utf-8")
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


def places(page: Page) -> int:
    return int(page.ask("document.querySelectorAll('#matrix .place').length"))


def choose(page: Page, field: str, value: str) -> None:
    page.ask(
        f"(() => {{ const select = document.getElementById('filter-{field}'); select.value = {value!r};"
        "select.dispatchEvent(new Event('change')); })()"
    )


def is_open(page: Page) -> bool:
    return bool(page.ask("document.getElementById('opened').open"))


def text_of(page: Page, selector: str) -> str:
    return str(page.ask(f"document.querySelector({selector!r}).innerText"))


def focused(page: Page) -> str:
    return str(page.ask("document.activeElement.ariaLabel ?? document.activeElement.tagName"))


def address_of(page: Page) -> str:
    return str(page.ask("decodeURIComponent(location.hash)"))


def test_the_matrix_has_a_place_for_each_runtime_operator_and_type(page: Page) -> None:
    tests = conformance_results.results().tests
    assert places(page) == len({(test.runtime, test.op, test.dtype) for test in tests})
    assert text_of(page, "#shown") == f"{len(tests):,} tests"


@pytest.mark.parametrize(
    ("field", "value"), [("runtime", "./mine.py:run"), ("op", "Sub-6"), ("dtype", "bfloat16"), ("broadcast", "pdpd")]
)
def test_a_filter_leaves_what_has_the_value(page: Page, field: str, value: str) -> None:
    choose(page, field, value)
    chosen = [test for test in conformance_results.results().tests if getattr(test, field) == value]
    assert places(page) == len({(test.runtime, test.op, test.dtype) for test in chosen})
    page.click("#filters button")
    assert places(page) > len(chosen) // 18


def test_outcomes_filter_together(page: Page) -> None:
    page.click("#outcome-differs")
    assert places(page) == 6
    page.click("#outcome-refused")
    assert places(page) == 6 + 2
    page.click("#outcome-differs")
    assert places(page) == 2
    assert text_of(page, "#findings h3").endswith("./mine.py:run: refuses what is allowed")
    choose(page, "runtime", "exact")
    assert places(page) == 0
    assert text_of(page, "#matrix") == "No test matches the filters."


def test_a_click_opens_a_place_with_its_example_and_its_command(page: Page) -> None:
    page.click("#matrix .place.differs")
    assert is_open(page)
    said = text_of(page, "#opened")
    assert "Sub-14, int8" in said
    assert conformance_results.SATURATES in said
    assert "0x80" in said
    assert "eltwise reproduce results.json saturating/Sub-14/int8/numpy/static --output case/" in said
    assert page.ask("[...document.querySelectorAll('.got mark')].map((mark) => mark.innerText).join('')") == "10"
    assert address_of(page) == "#saturating/Sub-14/int8/numpy/static"
    page.click("#opened .place.ok")
    assert address_of(page) == "#saturating/Sub-14/int8/numpy/both-constant"
    assert "eltwise reproduce" not in text_of(page, "#opened")
    page.click("#opened .close")
    assert not is_open(page)
    assert address_of(page) == ""


def test_the_keys_move_open_and_close(page: Page) -> None:
    page.ask("document.querySelector('#matrix .place').focus()")
    assert focused(page) == "exact, Sub-1, float16: ok"
    page.press("ArrowRight", "ArrowDown", "ArrowDown")
    assert focused(page) == "./mine.py:run, Sub-1, float32: ok"
    page.press("ArrowDown", "ArrowDown", "End")
    assert focused(page) == "exact, Sub-6, uint64: ok"
    page.press("ArrowRight", "ArrowUp")
    assert focused(page) == "fragile, Sub-1, float64: crashed 5, hung 1, accepted 6"
    page.press("Enter")
    assert is_open(page)
    page.press("Escape")
    assert not is_open(page)
    assert focused(page) == "fragile, Sub-1, float64: crashed 5, hung 1, accepted 6"
    assert page.ask("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    assert page.ask("document.querySelectorAll('#matrix [tabindex=\"0\"]').length") == 1


def test_a_key_in_the_address_opens_its_cell(browser: Page, address: str) -> None:
    browser.go(f"{address}#{quote(DIFFERS, safe='')}")
    assert is_open(browser)
    assert "Sub-14, uint8" in text_of(browser, "#opened")
    browser.go(f"{address}#no/such/test")
    assert not is_open(browser)
    assert "no/such/test" in text_of(browser, "#shown")
    browser.go(f"{address}#%E0%A4%A")
    assert not is_open(browser)
    assert browser.complaints() == []


def test_hostile_words_are_shown_as_they_are(browser: Page, address: str) -> None:
    browser.go(f"{address}#{quote(HOSTILE, safe='')}")
    assert browser.ask("document.querySelector('.message').textContent") == conformance_results.HOSTILE
    assert browser.ask("document.querySelectorAll('img').length") == 0
    assert browser.ask("window.taken") is None
    assert browser.complaints() == []


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [360, 1600])
def test_it_fits_the_window_and_can_be_read(page: Page, width: int, dark: bool) -> None:
    page.click("#matrix .place.differs")
    page.check_looks(width, 1000, dark, besides=".none *, .absent, .absent *")
    assert not page.ask("document.getElementById('opened').scrollWidth > document.getElementById('opened').clientWidth")
