"""The page: what it holds, how large it gets, and how a real browser shows it, light and dark."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import eltwise
from eltwise.comparison.arrays import compare_arrays
from eltwise.comparison.heat_map import MOST_COLUMNS, MOST_ROWS
from eltwise.comparison.page import histogram
from eltwise.comparison.report import ComparisonReport
from support.browser import Page

HOSTILE = '</style><script>window.taken = 1</script><img src=x onerror="window.taken = 1">'


def report() -> ComparisonReport:
    rng = np.random.default_rng(3)
    w, v = rng.standard_normal((2, 40, 30)).astype(np.float32)
    column = v.copy()
    column[:, 7] += np.float32(0.25)
    a = {"small": w, "column": v, "same": w, "gone": v[:3], HOSTILE: v[0], "nan": v[1], "shape": w}
    b = {"small": np.nextafter(w, np.float32(9)), "column": column, "same": w, "new": v[:, :2], HOSTILE: -v[0]}
    b |= {"nan": np.where(np.arange(30) == 3, np.nan, v[1]).astype(np.float32), "shape": w[:5]}
    return eltwise.compare(a, b, tolerance="small: ulp<=1")


def test_the_worst_tensor_is_first() -> None:
    text = report().to_html()
    places = [text.index(f"<b>{name}") for name in ("nan", "column", "small")]
    assert places == sorted(places)


def test_everything_is_escaped() -> None:
    text = report().to_html()
    assert text.count("<script") == 1
    assert "<img src=x" not in text
    assert "&lt;script&gt;" in text


def test_a_notebook_gets_the_same_content() -> None:
    text = report()._repr_html_()
    assert text.startswith('<div class="eltwise">')
    assert "<b>column</b>" in text


@pytest.mark.parametrize("shape", [(300_000,), (512, 700), (3, 5, 64, 80), (100_000, 4)])
def test_the_picture_is_small_however_large_the_tensor(shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(1)
    a, b = rng.standard_normal((2, *shape)).astype(np.float32)
    found = compare_arrays(a, b, causes=False)
    assert found.heat_map is not None
    assert len(found.heat_map.url()) < 100_000
    assert found.heat_map.grid.shape <= (MOST_ROWS, MOST_COLUMNS)


@pytest.mark.parametrize("count", [1, 2, 300])
def test_patterns_are_shown_where_one_has_several_tensors(count: int) -> None:
    letters = ["".join(chr(ord("a") + int(digit)) for digit in str(number)) for number in range(count)]
    for names in (letters, [f"layer.{number}.weight" for number in range(count)]):
        a = {name: np.arange(4, dtype=np.float32) for name in names}
        text = eltwise.compare(a, {name: -array for name, array in a.items()}, causes=False).to_html()
        assert ("By the pattern of names" in text) == (names != letters and count > 1)


def test_the_picture_shows_the_most_telling_axes() -> None:
    a = np.zeros((20, 30, 40), np.float32)
    b = a.copy()
    b[:, 4:6, 10] = np.random.default_rng(1).random((20, 2))
    found = compare_arrays(a, b).heat_map
    assert found is not None
    assert found.axes == (1, 2)
    assert (~np.isnan(found.grid)).sum() == 2
    assert not np.isnan(found.grid[4:6, 10]).any()


@pytest.mark.parametrize("shape", [(), (1,), (50,), (1, 50), (50, 1, 1), (5, 8), (4, 1, 5), (2, 3, 4)])
def test_a_picture_is_a_line_where_no_second_axis_is_longer_than_one(shape: tuple[int, ...]) -> None:
    a = np.random.default_rng(2).standard_normal(shape).astype(np.float32)
    text = eltwise.compare(a, a + np.float32(1)).to_html()
    axes = [str(axis) for axis, size in enumerate(shape) if size > 1]
    is_line = len(axes) < 2
    assert ('<img class="map line"' in text, '<img class="map"' in text) == (is_line, not is_line)
    caption = text.partition('<p class="caption">')[2].partition("<")[0]
    assert ("downwards" in caption) is (not is_line)
    assert {*re.findall(r"axis (\d)", caption)} <= {*axes}
    assert caption.startswith("all elements") is (not axes)


@pytest.mark.parametrize("count", [1, 2, 30])
def test_the_first_element_is_shown_where_it_is_not_the_worst(count: int) -> None:
    """In the page and in the sentences, for whichever elements differ."""
    rng = np.random.default_rng(count)
    for _repeat in range(10):
        a = rng.standard_normal((5, 6)).astype(np.float32)
        b, places = a.copy(), np.sort(rng.choice(30, count, replace=False))
        b.flat[places] += rng.standard_normal(count).astype(np.float32)
        first, worst = (np.unravel_index(place, a.shape) for place in (places[0], np.abs(b - a).argmax()))
        found = compare_arrays(a, b)
        shown = [line.partition(":")[0] for line in found.sentences() if line.startswith(("worst [", "first ["))]
        expected = {"worst": [*map(int, worst)], "first": [*map(int, first)]}
        assert shown == [f"{name} {index}" for name, index in expected.items() if name == "worst" or first != worst]
        text = eltwise.compare(a, b).to_html()
        assert ("First place" in text, "Worst place" in text) == (first != worst, True)


def test_the_histogram_has_a_bar_for_each_distance() -> None:
    drawn = histogram((5, 0, 100, 1))
    assert drawn.count("<rect") == 3
    assert "2+ ULP: 100" in drawn


@pytest.fixture
def page(browser: Page, tmp_path: Path) -> Iterator[Page]:
    """The page in the browser; nothing may be logged, thrown or asked for."""
    path = tmp_path / "report.html"
    report().to_html(path)
    browser.resize(1200, 900)
    browser.go(path.as_uri())
    yield browser
    assert browser.complaints() == []
    assert browser.requests() == [path.as_uri()]
    assert browser.ask("window.taken") is None


def test_the_browser_shows_every_card_and_picture(page: Page) -> None:
    assert page.ask("document.querySelectorAll('summary .status').length") == 5
    assert page.ask("[...document.querySelectorAll('details[open] img')].every(one => one.naturalWidth > 0)")
    assert page.ask("document.querySelectorAll('svg.bars rect').length") > 3
    said = str(page.ask("document.body.textContent"))
    assert "another rounding of the last bit" in said
    assert "index 7 of axis 1, which has 30" in said
    assert HOSTILE in said


def test_a_card_opens_with_the_keyboard(page: Page) -> None:
    closed = "[...document.querySelectorAll('details:not([open])')]"
    before = page.ask(f"{closed}.length")
    page.ask(f"{closed}[0].querySelector('summary').focus()")
    page.press("Enter")
    assert page.ask(f"{closed}.length") == before - 1


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [360, 1200])
def test_it_fits_the_window_and_can_be_read(page: Page, width: int, dark: bool) -> None:
    page.check_looks(width, 800, dark)
