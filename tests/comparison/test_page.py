"""The page: what it holds, how large it gets, and how a real browser shows it, light and dark."""

from __future__ import annotations

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


def test_the_picture_shows_the_most_telling_axes() -> None:
    a = np.zeros((20, 30, 40), np.float32)
    b = a.copy()
    b[:, 4:6, 10] = np.random.default_rng(1).random((20, 2))
    found = compare_arrays(a, b).heat_map
    assert found is not None
    assert found.axes == (1, 2)
    assert (~np.isnan(found.grid)).sum() == 2
    assert not np.isnan(found.grid[4:6, 10]).any()


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
