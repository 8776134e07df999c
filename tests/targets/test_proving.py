"""`--verify`: models are run on a target itself: what the table did not know is found, and what was not run is said."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import external_data_helper, helper, numpy_helper

import eltwise
from eltwise.conformance import runtimes, wire
from eltwise.conformance.models import BuiltModel
from eltwise.conformance.runtimes.asking import Loaded
from eltwise.passes.report import Comparison
from eltwise.passes.verify import VerificationError
from eltwise.targets import checking, proving
from eltwise.targets.examining import examined
from eltwise.targets.proving import proved
from eltwise.targets.table import RUNS, Measurement, Table
from eltwise.targets.table_file import shipped_table

pytestmark = pytest.mark.skipif(not find_spec("onnxruntime"), reason="the extra 'witnesses' has the runtimes")

MODELS = Path(__file__).parents[2] / "examples" / "models"


def model(
    *nodes: tuple[str, str, str], constants: dict[str, Any] | None = None, kind: int = 1, size: int = 3
) -> onnx.ModelProto:
    """A model of nodes, each a kind, operands and a result; of vectors of one size."""
    storage = helper.tensor_dtype_to_np_dtype(kind)
    held = [numpy_helper.from_array(np.asarray(value, storage), name) for name, value in (constants or {}).items()]
    made = [helper.make_node(op, operands.split(), [result], name=result) for op, operands, result in nodes]
    read = sorted({name for node in made for name in node.input} & set("xyz"))
    inputs = [helper.make_tensor_value_info(name, kind, [size]) for name in read]
    outputs = [helper.make_tensor_value_info(made[-1].output[0], kind, None)]
    graph = helper.make_graph(made, "proving", inputs, outputs, held)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8)


LEFT_OUT = (("Mul", "x y", "p"), ("Add", "p zero", "s"), ("Sub", "s z", "r"))


@pytest.fixture
def all_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """A table that calls everything right."""

    def flattering(known: Measurement) -> Measurement:
        answers = {subject: dict.fromkeys(found, RUNS) for subject, found in known.answers.items()}
        return replace(known, answers=answers)

    table = Table(tuple(map(flattering, shipped_table().measurements)))
    monkeypatch.setattr(checking, "shipped_table", lambda: table)


def test_what_the_table_calls_right_is_run(all_runs: None) -> None:
    right = eltwise.check(model(("Sub", "x y", "r")), "onnxruntime", verify=True)
    assert right.is_good
    assert right.comparison is not None
    assert right.comparison.is_proof
    assert "\nverified: " in f"\n{right}"
    wrong = eltwise.check(model(*LEFT_OUT, constants={"zero": [0]}), "onnxruntime", verify=True)
    (finding,) = wrong.findings
    assert (finding.node, finding.kind) == ("", "differs")
    assert "output 'r'" in finding.subject
    assert "gives different bits" in finding.words
    assert (wrong.comparison, wrong.fields()["is_verified"]) == (None, False)
    assert eltwise.check(model(*LEFT_OUT, constants={"zero": [0]}), "onnxruntime").is_good


def test_what_is_not_loaded_is_a_finding(all_runs: None) -> None:
    (finding,) = eltwise.check(model(("Sub", "x y", "r"), kind=16), "onnxruntime", verify=True).findings
    assert (finding.kind, finding.helps) == ("refused", "seen when it was run there")
    assert "Sub(14)" in finding.words


def test_nothing_is_written_that_was_found_wrong(
    all_runs: None, tmp_path: Path, cli: Callable[..., tuple[int, str, str]]
) -> None:
    source, out = tmp_path / "in.onnx", tmp_path / "out.onnx"
    onnx.save(model(*LEFT_OUT, constants={"zero": [0]}), source)
    code, printed, said = cli("repair", source, out, "--target", "onnxruntime", "--verify")
    assert (code, printed, out.exists()) == (1, "", False)
    assert "gives different bits" in said
    with pytest.raises(VerificationError, match="gives different bits"):
        eltwise.repair(source, "onnxruntime", verify=True)


@pytest.mark.parametrize(
    ("file", "target"), [("sub13_bfloat16.onnx", "onnxruntime"), ("subtract_uint8.xml", "openvino")]
)
def test_a_repaired_model_is_proved_there(
    file: str, target: str, tmp_path: Path, cli: Callable[..., tuple[int, str, str]]
) -> None:
    if not find_spec(target):
        pytest.skip("the extra 'witnesses' has the runtimes")
    out = tmp_path / file
    code, printed, _said = cli("repair", MODELS / file, out, "--target", target, "--verify")
    assert code == 0
    assert "\nverified: " in printed
    code, printed, _said = cli("check", out, "--target", target, "--verify")
    assert code == 0
    assert "verified: " in printed


def test_where_nothing_can_be_run_nothing_is_verified(monkeypatch: pytest.MonkeyPatch) -> None:
    unknown = eltwise.check(model(("Relu", "x", "p"), ("Sub", "p y", "r")), "onnxruntime", verify=True)
    assert unknown.is_good
    assert unknown.comparison is not None
    assert not unknown.comparison.is_proof
    assert "Relu" in str(unknown.comparison)
    assert "\nnot verified: " in f"\n{unknown}"
    plain = model(("Sub", "x y", "r"))
    with monkeypatch.context() as small:
        small.setattr(wire, "LARGEST", 64)
        assert "too large" in str(eltwise.check(plain, "onnxruntime", verify=True).comparison)
        ir, _report = eltwise.convert(model(("Sub", "x k", "r"), constants={"k": range(64)}, size=64), "openvino")
        assert "too large" in str(proved(lambda: ir, examined(ir), "openvino"))
    monkeypatch.setattr(proving, "find_spec", lambda _name: None)
    found = eltwise.check(plain, "onnxruntime", verify=True).comparison
    assert found == Comparison(0, 0, "onnxruntime is not installed here")


def test_data_outside_of_the_file_is_handed_over(tmp_path: Path) -> None:
    made = model(("Sub", "x k", "r"), constants={"k": [1, 2, 3]})
    external_data_helper.convert_model_to_external_data(made, location="k.bin", size_threshold=0)
    onnx.save(made, tmp_path / "model.onnx")
    assert (tmp_path / "k.bin").stat().st_size == 12
    found = eltwise.check(tmp_path / "model.onnx", "onnxruntime", verify=True)
    assert found.comparison is not None
    assert found.comparison.is_proof


class Dying:
    def load(self, _model: BuiltModel) -> Loaded:
        os.abort()


class Sleeping:
    def load(self, _model: BuiltModel) -> Loaded:
        time.sleep(60)
        raise AssertionError


@pytest.mark.parametrize(("adapter", "words"), [("Dying", "ended with exit code -6"), ("Sleeping", "no answer within")])
def test_a_runtime_that_dies_or_hangs_is_told(adapter: str, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    folders = (Path(eltwise.__file__).parent.parent, Path(__file__).parents[1])
    environment = {"PYTHONPATH": os.pathsep.join(map(str, folders))}
    planted = replace(runtimes.find("onnxruntime"), adapter=f"test_proving:{adapter}", environment=environment)
    monkeypatch.setattr(runtimes, "find", lambda _name: planted)
    monkeypatch.setattr(proving, "_LIMIT", 3.0)
    made = model(("Sub", "x y", "r"))
    with pytest.raises(VerificationError, match=words):
        proved(lambda: eltwise.load(made), examined(made), "onnxruntime")
