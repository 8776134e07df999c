"""A PyTorch program against a model that was exported from it: what is no bug is said, and a wrong node is found."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import eltwise
from eltwise.core.errors import UnsupportedError
from support.traced_models import parsed

torch = pytest.importorskip("torch")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

MODEL = """net (float[2, 3] x) => (float[2, 4] out)
<float[4, 3] fc_weight, float[4] fc_bias> {
    linear = Gemm <transB = 1> (x, fc_weight, fc_bias)
    leaky_relu = LeakyRelu <alpha = 0.01> (linear)
    out = Exp (leaky_relu)
}"""
"""What an exporter makes of the program, by the names that it keeps."""

Change = Callable[[onnx.ModelProto], object]


class Net(torch.nn.Module):  # type: ignore[misc, name-defined]
    """A layer and two functions."""

    def __init__(self, drops: bool = False) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.fc = torch.nn.Linear(3, 4)
        self.drops = drops

    def forward(self, x: Any) -> Any:
        y = torch.nn.functional.leaky_relu(self.fc(x), 0.01)
        y = torch.nn.functional.dropout(y, 0.0, training=self.drops) if self.drops else y
        return torch.exp(y)


def exported(net: Any, folder: Path, change: Change = lambda _model: None) -> tuple[Path, Path]:
    """The files of a program and of its model."""
    torch.export.save(torch.export.export(net, (torch.zeros(2, 3),)), folder / "net.pt2")
    model = parsed(MODEL)
    del model.graph.initializer[:]
    for name, tensor in (("fc.weight", net.fc.weight), ("fc.bias", net.fc.bias)):
        model.graph.initializer.append(onnx.numpy_helper.from_array(tensor.detach().numpy(), name))
    for node in model.graph.node:
        node.input[:] = [name.replace("fc_", "fc.") for name in node.input]
        trace = (
            f'File "net.py", line 7, in forward\n    y = {node.op_type}\n  File "/x/torch/nn.py", line 1, in f\n    g()'
        )
        node.metadata_props.add(key="pkg.torch.onnx.stack_trace", value=trace)
    change(model)
    onnx.save(model, folder / "net.onnx")
    return folder / "net.pt2", folder / "net.onnx"


def test_a_program_agrees_with_its_model_in_both_orders(tmp_path: Path) -> None:
    program, model = exported(Net(), tmp_path)
    for runtime in ("onnxruntime", "onnx-reference", "openvino:precision=f32"):
        for pair, names in (((program, model), ("torch", runtime)), ((model, program), (runtime, "torch"))):
            report = eltwise.trace(*pair, runtime=names[0], against=names[1])
            assert report.verdict == "agree", str(report)
            assert "not_compared" not in {node.status for node in report.nodes} or runtime.startswith("openvino")
            assert not [note for note in report.notes if "program" in note]


def test_a_program_is_compared_with_float64(tmp_path: Path) -> None:
    """Its own digits are within the tolerance of float32; a node that it computes otherwise is not."""
    for change, first in ((lambda _model: None, None), (another_slope, "leaky_relu")):
        program, model = exported(Net(), tmp_path, change)
        inputs = {"x": -np.ones((2, 3), np.float32)}
        report = eltwise.trace(program, model, runtime="torch", against="float64", inputs=inputs)
        assert (report.verdict, report.first_name) == ("agree" if first is None else "disagree", first), str(report)
        assert report.against.startswith("float64 (by onnx-reference")
        assert not [note for note in report.notes if "type" in note or "weights" in note]
        exact = eltwise.trace(program, model, runtime="torch", against="exact", inputs=inputs)
        assert exact.verdict == ("not_established" if first is None else "disagree")


def another_slope(model: onnx.ModelProto) -> None:
    model.graph.node[1].attribute[0].f = 0.2


def test_a_node_that_was_exported_wrong_is_found_with_its_line(tmp_path: Path) -> None:
    program, model = exported(Net(), tmp_path, another_slope)
    report = eltwise.trace(program, model, runtime="torch", against="onnxruntime", inputs={"x": -np.ones((2, 3), "f4")})
    assert report.verdict == "disagree"
    assert report.first_node is not None
    assert report.first_node.op_type == "LeakyRelu"
    assert any("was made by net.py:7: y = LeakyRelu" in note for note in report.notes)


def other_weights(model: onnx.ModelProto) -> None:
    weight = onnx.numpy_helper.to_array(model.graph.initializer[0])
    model.graph.initializer[0].CopyFrom(onnx.numpy_helper.from_array(weight * 2, "fc.weight"))


def half_weights(model: onnx.ModelProto) -> None:
    model.graph.initializer[1].CopyFrom(onnx.numpy_helper.from_array(np.zeros(4, np.float16), "fc.bias"))
    cast = onnx.helper.make_node("Cast", ["fc.bias"], ["bias"], to=1)
    model.graph.node.insert(0, cast)
    model.graph.node[1].input[2] = "bias"


@pytest.mark.parametrize(
    ("drops", "change", "note"),
    [
        (True, lambda _model: None, "the program is in training mode: dropout"),
        (False, other_weights, "weights that are not those of the program: fc.weight"),
        (False, half_weights, "weights of another type: fc.bias (float32, in the model float16)"),
    ],
)
def test_what_is_no_bug_is_said_first(drops: bool, change: Change, note: str, tmp_path: Path) -> None:
    program, model = exported(Net(drops), tmp_path, change)
    report = eltwise.trace(program, model, runtime="torch", against="onnxruntime")
    assert report.notes[0] == note
    assert report.is_good == drops


def test_an_input_that_was_baked_in_establishes_nothing(tmp_path: Path) -> None:
    class Two(torch.nn.Module):  # type: ignore[misc, name-defined]
        def forward(self, x: Any, scale: Any) -> Any:
            return x * scale

    _program, model = exported(Net(), tmp_path)
    torch.export.save(torch.export.export(Two(), (torch.zeros(2, 3), torch.ones(1))), tmp_path / "two.pt2")
    with pytest.raises(eltwise.EltwiseError, match="scale was baked into the graph when it was exported") as caught:
        eltwise.trace(tmp_path / "two.pt2", model, runtime="torch", against="onnxruntime")
    assert caught.value.exit_code == 3


def test_a_program_alone_is_compared_with_what_pytorch_exports(
    tmp_path: Path, cli: Callable[..., tuple[int, str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    program, _model = exported(Net(), tmp_path)
    (tmp_path / "net.onnx").unlink()
    if importlib.util.find_spec("onnxscript") is None:
        with pytest.raises(UnsupportedError, match="install onnxscript beside torch"):
            eltwise.trace(program, runtime="torch", against="onnxruntime")
        return
    for names in (("torch", "onnxruntime"), ("onnxruntime", "torch"), ("torch", "float64")):
        report = eltwise.trace(program, runtime=names[0], against=names[1])
        assert report.verdict == "agree", str(report)
        assert {"Gemm", "LeakyRelu", "Exp"} <= {node.op_type for node in report.nodes}
    np.save(tmp_path / "x.npy", np.ones((2, 3), np.float32))
    monkeypatch.chdir(tmp_path)
    code, out, err = cli("trace", "net.pt2", "--runtime", "torch", "--against", "onnxruntime", "-i", "x=x.npy")
    assert (code, "the model computes the same" in out) == (0, True), err


def test_what_is_no_pair_is_refused(tmp_path: Path) -> None:
    program, model = exported(Net(), tmp_path)
    with pytest.raises(UnsupportedError, match="does not run an exported program; allowed: torch"):
        eltwise.trace(program, runtime="openvino", against="onnxruntime")
    with pytest.raises(UnsupportedError, match="does not run an exported program; allowed: torch"):
        eltwise.trace(program, model, runtime="onnxruntime", against="onnxruntime")
    (tmp_path / "broken.pt2").write_bytes(b"PK")
    with pytest.raises(UnsupportedError, match="PyTorch does not run the program"):
        eltwise.trace(tmp_path / "broken.pt2", model, runtime="torch", against="onnxruntime")


class Table(torch.nn.Module):  # type: ignore[misc, name-defined]
    """Two rows that are chosen from, as for the types of tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("table", torch.tensor([[1.0, 2.0], [3.0, 4.0]]))

    def forward(self, i: Any) -> Any:
        return torch.exp(torch.nn.functional.embedding(i, self.table))


def test_a_program_is_run_on_inputs_that_its_model_takes(tmp_path: Path) -> None:
    torch.export.save(torch.export.export(Table(), (torch.zeros(3, dtype=torch.int64),)), tmp_path / "net.pt2")
    text = "g (int64[3] i) => (float[3, 2] out) <float[2, 2] t = {1, 2, 3, 4}> { e = Gather(t, i) out = Exp(e) }"
    onnx.save(parsed(text), tmp_path / "net.onnx")
    report = eltwise.trace(tmp_path / "net.pt2", tmp_path / "net.onnx", runtime="torch", against="onnxruntime")
    assert (report.verdict, "values chosen: i=[" in report.inputs) == ("agree", True), str(report)
