"""``eltwise report``: what it prints of an installation and of a case."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from eltwise.version import VERSION

Cli = Callable[..., tuple[int, str, str]]
WRONG = "def run(op, a, b, **more):\n    return a + b\n"


def test_versions_and_runtimes_are_printed(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ELTWISE_NUM_THREADS", "1")
    code, out, _err = cli("report")
    assert code == 0
    facts = dict(re.findall(r"^- ([a-z ]+): (.+)$", out, re.MULTILINE))
    assert facts["eltwise"] == VERSION
    assert f"numpy {np.__version__}" in facts["packages"]
    assert "onnxruntime" in facts["runtimes"] + facts["not installed"]
    assert facts["variables"] == "ELTWISE_NUM_THREADS=1"
    assert "eltwise report FOLDER" in facts["case"]


def test_a_case_is_described(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "wrong.py").write_text(WRONG)
    runtime, results = f"{tmp_path}/wrong.py:run", tmp_path / "results.json"
    tested = ("--op", "Sub-14", "--type", "uint8", "--broadcast", "numpy", "--source", "call", "--quick")
    assert cli("conform", *tested, "--runtime", runtime, "--json", results)[0] == 1
    assert cli("reproduce", results, f"{runtime}/Sub-14/uint8/numpy/call", "-o", tmp_path / "case")[0] == 0
    code, out, _err = cli("report", tmp_path / "case")
    assert code == 0
    assert re.search(r"^expected: uint8\(", out, re.MULTILINE)
    assert re.search(r"^got: uint8\(", out, re.MULTILINE)


def test_a_folder_without_a_case_is_refused(cli: Cli, tmp_path: Path) -> None:
    assert cli("report", tmp_path)[0] == 2
    (tmp_path / "case.json").write_text('{"about": 1}')
    code, out, err = cli("report", tmp_path)
    assert (code, out) == (2, "")
    assert "about" in err
