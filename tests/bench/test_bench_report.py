"""A measurement that is given: what its rows say, and how it is told as a table, JSON, a page and an exit code."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from eltwise.bench import session
from eltwise.bench.page import page
from eltwise.bench.results import LIMIT, OWN, FirstCall, Report, Row
from eltwise.bench.workloads import ANY_PEER, OWN_OUT, Target, Workload
from eltwise.cli import benching, main
from eltwise.core.dtypes import FLOAT32, INT32

SMALL = Workload("a-b", FLOAT32, ((40, 30), (30,)), targets=(Target(ANY_PEER, 1.15),), least_share=0.8)


def given_row(**changes: object) -> Row:
    seconds = {OWN: 0.010, "numpy": 0.020, "torch": 0.011}
    workload = Workload("a-b", FLOAT32, ((1 << 24,), (1 << 24,)), targets=SMALL.targets, least_share=0.8)
    row = Row(workload, seconds, {}, 0.007, remarks={"openvino": "differs: <b>&\"'"})
    row = replace(row, **changes)  # type: ignore[arg-type]
    times = row.seconds | ({LIMIT: row.limit_seconds} if row.limit_seconds else {})
    return replace(
        row, ratios={name: time / row.seconds[OWN] for name, time in times.items() if name != OWN and row.seconds}
    )


def given_report(*rows: Row, **changes: object) -> Report:
    report = Report(
        rows=rows,
        versions={OWN: "0", "numpy": "2"},
        missing=("jax",),
        machine="A <Machine> & more",
        threads=2,
        load=0.1,
        cache_bytes=32 << 20,
        date="2026-11-21",
        quick=True,
        first_call=FirstCall(0.05, 0.0121, 0.04),
    )
    return replace(report, **changes)  # type: ignore[arg-type]


def test_a_row_says_ratio_share_and_what_it_misses() -> None:
    row = given_row()
    assert row.best_peer == "torch"
    assert row.ratio_to(ANY_PEER) == pytest.approx(1.1)
    assert row.ratio_to("numpy") == pytest.approx(2)
    assert row.ratio_to("jax") is None
    assert row.share == pytest.approx(0.7)
    assert row.misses == ("1.10 x best peer, wanted 1.15", "0.70 of the limit, wanted 0.80")
    assert given_row(seconds={OWN: 0.008, "numpy": 0.02}).misses == ()
    assert given_row(in_cache=True).share is None
    assert row.gigabytes_per_second(OWN) == pytest.approx(3 * (1 << 26) / 0.010 / 1e9)


def test_the_own_call_with_out_is_no_peer() -> None:
    row = given_row(seconds={OWN: 0.010, OWN_OUT: 0.001, "numpy": 0.020})
    assert row.best_peer == "numpy"


def test_the_report_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    benching.show(given_report(given_row(), given_row(seconds={}, refusal="wrong")), json=True)
    read = json.loads(capsys.readouterr().out)
    first, second = read["rows"]
    assert first["milliseconds"][OWN] == pytest.approx(10)
    assert first["best_peer"] == "torch"
    assert first["share_of_limit"] == pytest.approx(0.7)
    assert second["refusal"] == "wrong"
    assert second["milliseconds"] == {}
    assert read["first_call_milliseconds"] == {"cold": 50.0, "warm": 12.1, "first_in_process": 40.0}


def test_the_report_as_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    rows = (given_row(), given_row(seconds={}, refusal="1 of 3 elements differ"))
    benching.show(given_report(*rows, interrupted=True, load=2.0), json=False)
    out = capsys.readouterr().out
    assert re.search(r"a-b +float32 +10 +torch +11 +1\.10 +0\.70 +1\.10 x best peer", out)
    assert "refused: 1 of 3 elements differ" in out
    assert "interrupted" in out
    assert "Others were at work" in out
    assert "not installed: jax" in out
    assert "with a warm disk cache 12.1 ms" in out


class Checker(HTMLParser):
    """Collects the tags, and what would be fetched."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.fetched: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.fetched += [name for name, _value in attrs if name in ("src", "href", "action")]
        if tag not in ("meta", "rect", "line", "circle"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.fetched += [name for name, _value in attrs if name in ("src", "href", "action")]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def checked(text: str) -> Checker:
    checker = Checker()
    checker.feed(text)
    checker.close()
    assert checker.open == []
    return checker


def test_the_page_escapes_and_fetches_nothing() -> None:
    hostile = "<script>alert(1)</script>\"'&"
    element_type = replace(FLOAT32, name="<i>")
    workload = replace(given_row().workload, name=hostile, element_type=element_type)
    seconds = {OWN: 0.01, hostile: 0.02}
    rows = (
        given_row(workload=workload, seconds=seconds, remarks={hostile: hostile}),
        given_row(workload=workload, seconds={}, refusal=hostile),
    )
    text = page(given_report(*rows, machine=hostile, date=hostile, versions={hostile: hostile}, missing=(hostile,)))
    checker = checked(text)
    assert checker.fetched == []
    assert not {"script", "i", "link", "img", "iframe"} & set(checker.tags)
    assert "url(" not in text
    assert "&lt;script&gt;" in text
    assert hostile not in text


def test_the_page_draws_a_mark_for_each_workload_and_the_limit() -> None:
    small = given_row(workload=Workload("small", FLOAT32, ((16,), (16,))), limit_seconds=None, in_cache=True)
    text = page(given_report(given_row(), small, given_row(seconds={}, refusal="wrong")))
    checked(text)
    # Three widths; the large workload is in both pictures, the small one in the first, the refused one in none.
    assert text.count('<circle class="own"') == 3 * 3 + 1
    assert text.count('class="limit"') == 3 * 2
    assert "prefers-color-scheme: dark" in text
    assert 'name="viewport"' in text


@pytest.mark.parametrize("rows", [(), (given_row(seconds={}, refusal="wrong"),), (given_row(seconds={OWN: 1.0}),)])
def test_the_page_of_little(rows: tuple[Row, ...]) -> None:
    checked(page(given_report(*rows, first_call=None)))


Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    def call(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["eltwise", "bench", *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            main()
        written = capsys.readouterr()
        return int(stop.value.code or 0), written.out, written.err

    return call


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "workloads", lambda quick: (SMALL, replace(SMALL, element_type=INT32)))
    monkeypatch.setattr(session, "measure_first_call", lambda: None)


@pytest.mark.usefixtures("few")
def test_the_command_prints_and_writes(command: Command, tmp_path: Path) -> None:
    code, out, err = command("--quick", "--html", tmp_path / "report.html")
    assert code == 0
    assert out.count("a-b") == 2
    assert err == f"written to {tmp_path / 'report.html'}\n"
    checked((tmp_path / "report.html").read_text())


@pytest.mark.usefixtures("few")
def test_the_command_prints_json(command: Command) -> None:
    code, out, err = command("--quick", "--json")
    assert (code, err) == (0, "")
    assert [row["type"] for row in json.loads(out)["rows"]] == ["float32", "int32"]


def test_the_command_measures_nothing_for_a_folder_that_is_not_there(command: Command, tmp_path: Path) -> None:
    code, out, err = command("--html", tmp_path / "no" / "report.html")
    assert (code, out) == (2, "")
    assert "there is no such folder" in err


@pytest.mark.usefixtures("few")
def test_an_interrupt_leaves_with_what_is_there(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(workload: Workload, *_rest: object) -> Row:
        if workload.element_type is not FLOAT32:
            raise KeyboardInterrupt
        return given_row()

    monkeypatch.setattr(session, "measure_row", interrupted)
    code, out, _err = command("--json")
    read = json.loads(out)
    assert code == 130
    assert read["interrupted"] is True
    assert len(read["rows"]) == 1


@pytest.mark.usefixtures("few")
def test_a_refused_row_is_exit_code_1(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "measure_row", lambda *_arguments: given_row(seconds={}, refusal="wrong"))
    code, out, _err = command()
    assert code == 1
    assert "2 of 2 rows are refused" in out
