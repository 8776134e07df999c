"""The page of a trace: what it holds, however large the model, and how a real browser shows it, light and dark."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from eltwise.tracing.difference import Difference
from eltwise.tracing.records import TracedNode, TracedOutput
from eltwise.tracing.report import TraceReport
from support.browser import Page

HOSTILE = "<script>window.taken = 1</script>"
OUTPUTS = (
    TracedOutput("scores", "differs", 255.0, 0.5, "", 9, 7, 40),
    TracedOutput(f"{HOSTILE} 2", "not_compared", message="it hangs"),
)


def report(nodes: int = 40) -> TraceReport:
    beyond = Difference("differs", 255.0)
    saturated = replace(beyond, cause="saturation", explanation="it saturates")
    name = "node_{}_of_a_network_with_long_names"
    found = [TracedNode(number, name.format(number), "Conv", Difference("equal")) for number in range(nodes)]
    found[5] = TracedNode(5, HOSTILE, "Sub", beyond, alone=saturated, blame="own")
    found[6] = TracedNode(6, "shape", "Reshape", beyond, error_in=255.0, blame="inherited")
    message = "openvino: crashed: the process ended with SIGSEGV"
    found[7] = TracedNode(7, "dead", "Relu", has_failed=True, message=message)
    return TraceReport(
        tuple(found),
        OUTPUTS,
        "openvino 1",
        "onnxruntime 2",
        "given",
        "ulp<=1",
        ("a note",),
        model="net.onnx",
    )


def test_the_page_holds_every_node_and_stays_small() -> None:
    text = report().to_html()
    assert HOSTILE not in text
    assert "node_39_of" in text
    assert "a note" in text
    places = [text.index(one) for one in ("net.onnx", "7 of 40 elements", "<b>Causes</b>", "node_39_of")]
    assert places == sorted(places)
    assert len(report(20_000).to_html()) < 2_000_000
    assert "... and 14,997 more" in report(20_000).to_html()
    assert '<div class="eltwise">' in report()._repr_html_()


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [360, 1200])
def test_a_browser_shows_it(browser: Page, tmp_path: Path, width: int, dark: bool) -> None:
    path = tmp_path / "report.html"
    report().to_html(path)
    browser.go(path.as_uri())
    browser.check_looks(width, 800, dark)
    colours = "[...document.querySelectorAll('svg.bars rect')].map((bar) => getComputedStyle(bar).fill)"
    assert len(set(browser.ask(colours))) == 2
    assert HOSTILE in str(browser.ask("document.body.textContent"))
    assert browser.ask("window.taken") is None
    assert browser.complaints() == []
    assert browser.requests() == [path.as_uri()]


@pytest.mark.parametrize("width", [420, 1400])
def test_every_cause_is_in_the_window_and_a_filter_leaves_what_matches(
    browser: Page, tmp_path: Path, width: int
) -> None:
    path = tmp_path / "report.html"
    report().to_html(path)
    browser.resize(width, 900)
    browser.go(path.as_uri())
    cells = "[...document.querySelectorAll('details[open] .wide td')]"
    assert browser.ask(f"{cells}.every((cell) => cell.getBoundingClientRect().right <= innerWidth)")
    edges = "[...document.querySelectorAll('tr[data-kind] > td:first-child')]"
    assert len(set(browser.ask(f"{edges}.map((cell) => getComputedStyle(cell).borderLeftColor)"))) == 3
    left = "[...document.querySelectorAll('.record')].filter((record) => record.checkVisibility()).length"
    choices = (("select", "inherited", "change", 1), ("select", "", "change", 3), ("input", "node_3", "input", 11))
    for field, value, event, count in choices:
        browser.ask(
            f"(() => {{ const field = document.querySelector('.filters {field}'); field.value = '{value}';"
            f"field.dispatchEvent(new Event('{event}')); }})()"
        )
        assert browser.ask(left) == count
    assert browser.ask("document.querySelector('.filters output').textContent") == "11 of 40"
