"""``eltwise conform``: results on stdout and in files, messages on stderr, exit codes, interrupts that lose nothing."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from eltwise.conformance.report import read_results, results_of
from eltwise.ops import registry
from support.waiting import wait_for

PLANTED = Path(__file__).parents[1] / "support" / "planted.py"
Cli = Callable[..., tuple[int, str, str]]
CATALOGUED = registry.find("Sub-7").types


@pytest.fixture
def conform(cli: Cli) -> Cli:
    return partial(cli, "conform", "--quick")


def test_a_run_prints_a_table_and_writes_every_file(conform: Cli, tmp_path: Path) -> None:
    results, page, document = (tmp_path / name for name in ("results.json", "report.html", "conformance.md"))
    asked = ["--runtime", f"{PLANTED}:saturating", "--op", "Sub-14", "--type", "uint8", "--type", "i16"]
    code, out, err = conform(*asked, "--json", results, "--html", page, "--document", document)
    assert code == 1
    assert "saturation (uint8)" in out
    assert "2 tests, 1 ok, 1 differs; quick, seed 0" in out
    assert [line.split()[-1] for line in err.splitlines()] == [str(results), str(page), str(document)]
    tests = read_results(results).tests
    assert [(test.dtype, test.outcome) for test in tests] == [("int16", "ok"), ("uint8", "differs")]
    record = json.loads(results.read_text(encoding="utf-8"))["tests"][1]
    assert set(record["example"]) == {"a", "b", "expected", "got"}
    assert "saturation" in page.read_text(encoding="utf-8")
    assert "saturation" in document.read_text(encoding="utf-8")


def test_a_report_for_stdout_is_all_that_is_printed(
    conform: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    asked = ["--runtime", f"{PLANTED}:exact", "--op", "Sub-14", "--type", "uint8"]
    code, out, _err = conform(*asked, "--json", "-")
    assert (code, results_of(out.encode()).tests[0].outcome) == (0, "ok")
    code, out, _err = conform(*asked, "--html", "-")
    assert (code, out.startswith("<!doctype html>"), out.rstrip().endswith("</html>")) == (0, True, True)
    assert list(tmp_path.iterdir()) == []
    assert conform(*asked, "--json", "-", "--html", "-")[0] == 2


def test_strict_exits_1_where_a_difference_is_not_known_or_gone(conform: Cli, tmp_path: Path) -> None:
    known = tmp_path / "expected.toml"
    entry = (
        '[[expected]]\ntests = ["*/Sub-14/{}/*/*"]\noutcome = "differs"\nreason = "r"\nlink = "https://example.org"\n'
    )
    asked = ["--runtime", f"{PLANTED}:saturating", "--op", "Sub-14", "--type", "uint8", "--type", "int16"]
    for types, code, words in (
        (("uint8",), 0, ""),
        ((), 1, "no entry of the file names it"),
        (("uint8", "int16"), 1, "passes now"),
    ):
        known.write_text("".join(entry.format(name) for name in types), encoding="utf-8")
        got, _out, err = conform(*asked, "--strict", known)
        assert (got, words in err) == (code, True)
    known.write_text("[[expected]]\n", encoding="utf-8")
    assert conform(*asked, "--strict", known)[0] == 2


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--runtime", "onnxruntim"), "did you mean 'onnxruntime'?"),
        (("--op", "Sub-8"), "the newest is Sub-14"),
        (("--type", "uint9"), "did you mean"),
        (("--broadcast", "numpi"), "did you mean 'numpy'?"),
        (("--source", "sttic"), "did you mean 'static'?"),
        (("--runtime", "./nowhere.py:run"), "there is no such file"),
        (("--op", "Sub-7", "--type", "uint8"), "no test matches the selection"),
        (("--thorough",), "exclude each other"),
        (("--json", "no/such/folder/results.json"), "folder does not exist"),
        (("--resume", "no/such/results.json"), "there is no such file"),
    ],
)
def test_bad_input_is_one_sentence_before_anything_is_asked(conform: Cli, arguments: list[str], words: str) -> None:
    code, out, err = conform(*arguments)
    assert (code, out) == (2, "")
    assert words in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("runtime", "more", "code"),
    [
        ("exact", (), 0),
        ("saturating", (), 1),
        ("saturating", ("--write-expected", "expected.toml"), 0),
        ("raising", (), 3),
    ],
)
def test_the_exit_code_says_what_was_established(
    conform: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, runtime: str, more: list[str], code: int
) -> None:
    monkeypatch.chdir(tmp_path)
    asked = ["--runtime", f"{PLANTED}:{runtime}", "--op", "Sub-14", "--type", "uint8", "--json", "results.json"]
    assert conform(*asked, *more)[0] == code
    assert read_results(tmp_path / "results.json").is_good is (code == 0 and not more)


def test_why_nothing_is_right_is_printed(conform: Cli) -> None:
    for function, op, message in (
        ("raising", "Sub-14", "RuntimeError: there is no kernel for this (uint8)"),
        ("leaving", "Sub-14", "the process ended with exit code 3: out of order (uint8)"),
    ):
        _code, out, _err = conform("--runtime", f"{PLANTED}:{function}", "--op", op, "--type", "uint8")
        assert message in " ".join(out.split())


def test_a_runtime_that_cannot_start_is_said_and_exits_2(conform: Cli) -> None:
    code, _out, err = conform("--runtime", f"{PLANTED}:no_such", "--op", "Sub-7", "--type", "int32")
    assert code == 2
    assert "cannot be started" in err


def test_ctrl_c_keeps_what_is_there_and_the_run_can_go_on(tmp_path: Path) -> None:
    results = tmp_path / "results.json"
    asked = ["--quick", "--runtime", f"{PLANTED}:slowly", "--op", "Sub-7", "--json", str(results)]
    command = [sys.executable, "-m", "eltwise", "conform", *asked]
    log = tmp_path / "log"
    environment = {**os.environ, "PLANTED_LOG": str(log)}
    with subprocess.Popen(  # noqa: S603 - this interpreter, with this package
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=environment
    ) as running:
        wait_for(lambda: log.exists() and log.stat().st_size >= 4)
        running.send_signal(signal.SIGINT)
        _out, err = running.communicate(timeout=600)
    assert running.returncode == 130, err
    kept = read_results(results)
    assert kept.interrupted
    assert 0 < len(kept.tests) < len(CATALOGUED)
    assert {test.outcome for test in kept.tests} == {"ok"}
    again = subprocess.run(  # noqa: S603 - the same
        [*command, "--resume", str(results)], check=True, capture_output=True, timeout=600, env=environment
    )
    assert b"Traceback" not in again.stderr
    whole = read_results(results)
    assert not whole.interrupted
    assert len(whole.tests) == len(CATALOGUED)
    assert {test.key for test in kept.tests} < {test.key for test in whole.tests}
