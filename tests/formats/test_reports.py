"""Every report is one kind of object, whatever it is about."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import eltwise
from eltwise.errors import EltwiseError, NameUnknownError, UnsupportedError
from eltwise.formats.reports import BaseReport
from support.onnx_models import model, node, value

MODELS = Path(__file__).parents[2] / "examples" / "models"
WRONG = model([node("Sub", ["x", "y"], ["z"], "minus")], [value("x", [2]), value("y", [3])], [value("z", [3])], 14)


def compared() -> Any:
    a = {"x": np.float32([1, np.nan, 3]), "y": np.float32([1]), "z": np.int8([1])}
    return eltwise.compare(a, {"x": np.float32([1, 2, np.inf]), "y": np.float32([1]), "w": np.int8([2])})


REPORTS: dict[str, Callable[[], Any]] = {
    "check": lambda: eltwise.check(WRONG),
    "check on a runtime": lambda: eltwise.check(MODELS / "sub13_bfloat16.onnx", "onnxruntime", run=False),
    "compare": compared,
    "conform": lambda: eltwise.conform("onnxruntime", ops="Sub-7", types=["float32", "int32"], sources="static"),
    "convert": lambda: eltwise.convert(MODELS / "sub6_axis0.onnx", opset=14)[1],
    "repair": lambda: eltwise.repair(MODELS / "sub13_bfloat16.onnx", "onnxruntime")[1],
    "trace": lambda: eltwise.trace(MODELS / "sub14_uint8.onnx", runtime="onnxruntime", against="exact"),
}


@pytest.fixture(scope="module", params=REPORTS)
def report(request: pytest.FixtureRequest) -> Any:
    return REPORTS[request.param]()


def test_a_report_is_a_sequence_of_records_with_names(report: Any) -> None:
    assert isinstance(report, BaseReport)
    records = list(report)
    assert len(report) == len(records) > 0
    assert [report[number] for number in range(len(report))] == records
    assert (report[-1], list(report[:1])) == (records[-1], records[:1])
    for record in records:
        assert record in report
        names = [name for field in report.record_names if (name := getattr(record, field))]
        assert names
        for name in names:
            assert name in report
            assert name in [getattr(report[name], field) for field in report.record_names]
    for key in ("no such name", len(report), -len(report) - 1, None, 1.5):
        assert key not in report
        with pytest.raises(NameUnknownError):
            report[key]
    with pytest.raises(LookupError, match="there is no record 'no such name'"):
        report["no such name"]


def test_a_report_is_one_line_or_its_text(report: Any) -> None:
    assert isinstance(report.is_good, bool)
    assert len(repr(report).splitlines()) == 1
    assert len(repr(report)) < 200
    assert repr(report) == f"<{type(report).__name__}: {report.summary}>"
    assert str(report)
    with pytest.raises(UnsupportedError, match="ask its is_good"):
        bool(report)


def test_a_report_becomes_values_files_and_tables(report: Any, tmp_path: Path) -> None:
    text = report.to_json(tmp_path / "report.json")
    assert (tmp_path / "report.json").read_text() == f"{text}\n"
    assert json.loads(text).keys() == {"format", "version", *report.to_dict()}
    assert report._repr_html_().startswith("<")
    frame = report.to_pandas()
    assert len(frame) == len(report)
    assert set(frame.columns) >= set(report[0].to_dict())
    page = report.to_html(str(tmp_path / "report.html"))
    assert page.startswith("<!doctype html>")
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == page
    for wrong in (3, b"report.json", [], tmp_path, tmp_path / "none" / "report.json"):
        with pytest.raises(EltwiseError):
            report.to_json(wrong)


def test_a_report_is_equal_to_its_copies(report: Any) -> None:
    assert copy.deepcopy(report) == report
    again = pickle.loads(pickle.dumps(report))  # noqa: S301
    assert again == report
    assert (type(again), str(again), again.to_json()) == (type(report), str(report), report.to_json())


def test_check_without_a_runtime_finds_what_is_wrong_with_a_model(capsys: pytest.CaptureFixture[str]) -> None:
    report = eltwise.check(WRONG)
    assert not report.is_good
    assert "minus" in report
    assert "do not broadcast" in str(report["minus"])
    good = eltwise.check(eltwise.load(MODELS / "sub14_uint8.onnx"))
    assert (good.is_good, len(good), str(good)) == (True, 0, "sub14_uint8.onnx: no problems, 1 node read")


def test_conform_takes_one_name_or_several_and_refuses_others() -> None:
    report = eltwise.conform(
        "onnxruntime", ops="Sub-14", types="uint8", broadcast="numpy", sources="static", extent="quick"
    )
    assert [test.key for test in report] == ["onnxruntime/Sub-14/uint8/numpy/static"]
    with pytest.raises(NameUnknownError, match="did you mean 'onnxruntime'"):
        eltwise.conform("onnxruntim")
    with pytest.raises(NameUnknownError, match="did you mean 'quick'"):
        eltwise.conform(extent="quik")  # type: ignore[arg-type]
