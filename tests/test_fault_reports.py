"""Reports of faults in docs/reports: their lines run with the installed versions, and one that is fixed is named."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import onnx
import onnxruntime
import pytest

import eltwise
from support.scripts import script

ROOT = Path(__file__).parent.parent


SCRIPT = script("docs/fault_reports.py")
REPORTS = SCRIPT.reports()


ENDS_OR_ALLOWED = ("onnxruntime-minimum-divided-by-minus-one", "onnxruntime-where-of-minus-zero")
"""The second one has zeros of the other sign, which are within any tolerance; `check` tries them as special values."""


def on_one_line(text: str) -> str:
    return re.sub(r"\s+", " ", text)


@pytest.mark.slow
@pytest.mark.parametrize("report", REPORTS, ids=lambda report: report.name)
def test_the_fault_is_there(report: Any) -> None:
    if not report.is_installed:
        pytest.skip(f"needs {', '.join(report.packages)}")
    result = SCRIPT.actual(report)
    if report.by_processor and result == report.expected:
        pytest.skip("this processor may not show it")
    message = f"{report.name} is fixed in the installed version: remove it from docs/reports/faults.toml"
    assert result != report.expected, message


@pytest.mark.slow
@pytest.mark.parametrize(
    "report", [one for one in REPORTS if one.packages[0] == "onnxruntime"], ids=lambda one: one.name
)
def test_no_model_that_shows_a_fault_computes_the_same(report: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Though the reference in float64 is a kernel of the same runtime, which may have the same fault."""
    if report.name in ENDS_OR_ALLOWED or SCRIPT.actual(report) == report.expected:
        pytest.skip("the process ends, the tolerance allows it, or this processor does not show it")
    session, asked = onnxruntime.InferenceSession, list[tuple[bytes, dict[str, Any]]]()

    def remembering(model: bytes, *others: Any, **options: Any) -> Any:
        def run(names: Any, feeds: dict[str, Any]) -> Any:
            asked.append((model, feeds))
            return session(model, *others, **options).run(names, feeds)

        return SimpleNamespace(run=run)

    with monkeypatch.context() as patch, contextlib.redirect_stdout(io.StringIO()):
        patch.setattr(onnxruntime, "InferenceSession", remembering)
        exec(report.code, {})  # noqa: S102 - it is ours
    model, feeds = asked[-1]
    traced = eltwise.trace(
        onnx.load_from_string(model), runtime="onnxruntime", against="float64", inputs=feeds, switches=False
    )
    assert traced.verdict != "agree", str(traced)


@pytest.mark.slow
def test_a_fault_that_is_fixed_is_named() -> None:
    fixed = REPORTS[0]._replace(name="fixed", packages=["numpy"], code="print('right')", expected="right")
    with pytest.raises(AssertionError, match="fixed is fixed in the installed version"):
        test_the_fault_is_there(fixed)
    ended = SCRIPT.actual(fixed._replace(code="import os; os.abort()"))
    assert ended == "the process ended with SIGABRT"


def test_the_pages_are_those_of_the_reports() -> None:
    pages = {path.stem: path.read_text(encoding="utf-8") for path in SCRIPT.FOLDER.glob("*.md")}
    assert set(pages) == {"index", *(report.name for report in REPORTS)}
    for report in REPORTS:
        assert report.code.strip() in pages[report.name]
        assert len(report.code.strip().splitlines()) <= 10
        assert f"| expected | `{report.expected}` |" in pages[report.name]
        assert f"]({report.name}.md)" in pages["index"]


@pytest.mark.parametrize("report", [one for one in REPORTS if one.schema[0]], ids=lambda report: report.name)
def test_the_quoted_text_is_in_the_specification(report: Any) -> None:
    schema = onnx.defs.get_schema(*report.schema)
    parameters: list[Any] = [*schema.inputs, *schema.outputs, *schema.attributes.values()]
    texts = [schema.doc or "", *(each.description for each in parameters), *(each.name for each in parameters)]
    assert schema.since_version == report.schema[1]
    assert any(on_one_line(report.text) in on_one_line(text) for text in texts)
