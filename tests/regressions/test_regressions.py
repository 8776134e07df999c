"""Public regressions, rebuilt as small models from their descriptions, and what ``trace`` must say of each.

Those that need another version of a runtime run where ``ELTWISE_REGRESSIONS`` is set, as by ``make test-regressions``,
which makes its environment; those of PyTorch where that is installed.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import parser

import eltwise
from eltwise.model import read
from eltwise.runtimes import Host, find
from eltwise.tracing.recording import Recording, digest_of

ORT = "https://github.com/microsoft/onnxruntime/issues"
TORCH = "https://github.com/pytorch/pytorch/issues"
UNOPTIMIZED = "onnxruntime:optimization=disabled"

RESIZE = """resize (float[1, 1, 1, 3] x) => (float[1, 1, 1, 6] y)
<float s = {1.0}, int8 z = {0}, int64[4] sizes = {1, 1, 1, 6}> {
    q = QuantizeLinear (x, s, z)
    d = DequantizeLinear (q, s, z)
    r = Resize <mode = "linear", coordinate_transformation_mode = "half_pixel"> (d, , , sizes)
    p = QuantizeLinear (r, s, z)
    y = DequantizeLinear (p, s, z)
}"""
RESHAPED_WEIGHT = """reshape (float[2, 2] x) => (float[2, 2] y)
<int8[4] w = {12, -45, 7, -3}, float s = {0.02}, int64[2] shape = {2, 2}> {
    f = DequantizeLinear (w, s)
    r = Reshape (f, shape)
    y = Add (x, r)
}"""
POOL = """pool (float[1, 2, 6, 6] x) => (float[1, 2, 3, 3] y)
<float s = {0.05}, uint8 z = {128}> {
    q = QuantizeLinear (x, s, z)
    d = DequantizeLinear (q, s, z)
    a = AveragePool <kernel_shape = [2, 2], strides = [2, 2]> (d)
    p = QuantizeLinear (a, s, z)
    y = DequantizeLinear (p, s, z)
}"""
LAYER_NORM = """norm (float16[1, 8] x) => (float16[1, 8] y)
<float16[1] eps = {5156}> {
    m = ReduceMean <axes = [-1]> (x)
    c = Sub (x, m)
    p = Mul (c, c)
    v = ReduceMean <axes = [-1]> (p)
    w = Add (v, eps)
    r = Sqrt (w)
    y = Div (c, r)
}"""
VARIANCE = """variance (float16[1, 8] x) => (float16[1, 1] v) {
    m = ReduceMean <axes = [-1]> (x)
    c = Sub (x, m)
    p = Mul (c, c)
    v = ReduceMean <axes = [-1]> (p)
}"""
"""The part of a layer norm that leaves the range of float16; onnxruntime computes the whole of it in float32."""

PRODUCT = "product (float[4, 64] x, float[64, 32] w) => (float[4, 32] y) { y = MatMul (x, w) }"
DROPOUT = """dropout (float[4, 64] x) => (float[4, 64] y)
<float ratio = {0.5}, bool training = {1}> {
    d = Dropout (x, ratio, training)
    y = Relu (d)
}"""


def parsed(text: str) -> onnx.ModelProto:
    return parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]>\n{text}')


@dataclass(frozen=True)
class Regression:
    """One public thread.

    Attributes:
        address: of the thread.
        text: the model.
        runs: the specifications of the run that is wrong and of the one that is right.
        first: the node that ``trace`` must name, its blame and, if there is one, the cause.
        inputs: those on which it shows; the others are drawn.
        needs: what the version of the first run must say where the fault depends on the processor.
        switch: the option that makes it right, as the report says it.
    """

    address: str
    text: str
    runs: tuple[str, str]
    first: tuple[str, str, str | None]
    inputs: dict[str, np.ndarray] = field(default_factory=dict)
    needs: str = ""
    switch: str = ""


REGRESSIONS = {
    "resize in Q/DQ": Regression(
        f"{ORT}/28448",
        RESIZE,
        ("onnxruntime==1.24.4", "onnxruntime==1.24.4:optimization=disabled"),
        ("y", "fused", None),
        {"x": np.array([[[[2, 6, 4]]]], np.float32)},
    ),
    "resize in Q/DQ, another version": Regression(
        f"{ORT}/21319",
        RESIZE,
        ("onnxruntime==1.20.1", UNOPTIMIZED),
        ("y", "fused", None),
        {"x": np.array([[[[2, 6, 4]]]], np.float32)},
    ),
    "weights of a moved Q/DQ pair": Regression(
        f"{ORT}/28491",
        RESHAPED_WEIGHT,
        ("onnxruntime==1.24.4", "onnxruntime==1.24.4:optimization=disabled"),
        ("r", "in_graph", None),
    ),
    "pooling of integers, an optimizer by name": Regression(
        f"{ORT}/32132",
        POOL,
        ("onnxruntime", UNOPTIMIZED),
        ("p", "fused", None),
        switch="right with QDQSelectorActionTransformer disabled",
    ),
    "float16 overflow": Regression(
        f"{ORT}/31626",
        VARIANCE,
        (UNOPTIMIZED, "float64"),
        ("p", "own", "overflow"),
        {"x": np.array([[795, -700, 3, 1, 0, 2, -5, 600]], np.float16)},
    ),
    "bfloat16 by default": Regression(
        "https://github.com/openvinotoolkit/openvino/issues/27795",
        PRODUCT,
        ("openvino", "openvino:precision=f32"),
        ("y", "own", "bfloat16_operands"),
        needs="bf16",
    ),
}
"""By what is wrong."""


@pytest.mark.parametrize("name", REGRESSIONS)
def test_the_node_of_a_public_regression_is_named(name: str) -> None:
    one = REGRESSIONS[name]
    if any("==" in run for run in one.runs) and "ELTWISE_REGRESSIONS" not in os.environ:
        pytest.skip("needs another version of a runtime: make test-regressions")
    if one.needs:
        with Host(find(one.runs[0], domain="ai.onnx")) as host:
            if one.needs not in host.version():
                pytest.skip(f"this processor has no {one.needs}")
    report = eltwise.trace(parsed(one.text), runtime=one.runs[0], against=one.runs[1], inputs=one.inputs)
    assert report.verdict == "disagree", str(report)
    assert report.first_node is not None
    assert (report.first_name, report.first_node.blame) == one.first[:2]
    assert one.first[2] in (None, report.first_node.cause)
    assert not one.switch or (report.switches is not None and one.switch in report.switches.sentences)


def test_a_regression_that_was_mended_agrees() -> None:
    """The resize of onnxruntime 1.31 is right, so that the tests above do not name whatever is in the place."""
    one = REGRESSIONS["resize in Q/DQ"]
    report = eltwise.trace(parsed(one.text), runtime="onnxruntime", against=UNOPTIMIZED, inputs=one.inputs)
    assert report.verdict == "agree"


def test_training_mode_is_said() -> None:
    """https://github.com/microsoft/onnxruntime/issues/4589."""
    report = eltwise.trace(parsed(DROPOUT), runtime="onnxruntime", against="onnx-reference")
    assert report.verdict == "not_established"
    assert "Dropout-13 node 'd': the node is in training mode" in report.notes[0]


def test_a_device_that_has_only_a_recorded_run(tmp_path: Path) -> None:
    """https://github.com/microsoft/onnxruntime/issues/29034: the variance leaves float16; here by its formula."""
    model = parsed(LAYER_NORM)
    x = REGRESSIONS["float16 overflow"].inputs["x"]
    with np.errstate(over="ignore"):
        values = {"m": x.mean(-1, keepdims=True, dtype=np.float32).astype(np.float16)}
        values["c"] = x - values["m"]
        values["p"] = values["c"] * values["c"]
        values["v"] = values["p"].mean(-1, keepdims=True)
        values["w"] = values["v"] + np.uint16(5156).view(np.float16)
        values["r"] = np.sqrt(values["w"])
        values["y"] = values["c"] / values["r"]
    assert not values["y"].any()
    digest = digest_of(read(model, reads_weights=False).graph)
    Recording({"x": x}, {"y": values["y"]}, {"model": digest, "run": "a GPU"}).save(tmp_path / "outputs.safetensors")
    report = eltwise.trace(model, runtime=str(tmp_path / "outputs.safetensors"), against="onnxruntime")
    assert (report.verdict, report.first_name) == ("disagree", None)  # Which node it is cannot be told by outputs.
    Recording({"x": x}, values, {"model": digest, "run": "a GPU"}).save(tmp_path / "all.safetensors")
    report = eltwise.trace(model, runtime=str(tmp_path / "all.safetensors"), against="onnxruntime")
    assert report.verdict == "disagree"


class _Programs:
    """Programs of PyTorch, and what was exported of them, wrong as in the threads."""

    @staticmethod
    def resize(torch: Any) -> Any:
        class Net(torch.nn.Module):  # type: ignore[misc]
            def forward(self, x: Any) -> Any:
                return torch.nn.functional.interpolate(x, size=(1, 1), mode="bilinear", align_corners=False)

        return Net(), (torch.zeros(1, 1, 4, 4),), None

    @staticmethod
    def positions(torch: Any) -> Any:
        class Net(torch.nn.Module):  # type: ignore[misc]
            def forward(self, x: Any) -> Any:
                return x + torch.arange(x.shape[1])

        return Net(), (torch.zeros(2, 4),), ({1: torch.export.Dim.DYNAMIC},)

    @staticmethod
    def linear(torch: Any) -> Any:
        return torch.nn.Sequential(torch.nn.Linear(3, 2, bias=False)), (torch.zeros(2, 3),), None


EXPORTED = {
    "resize": """export (float[1, 1, 4, 4] x) => (float[1, 1, 1, 1] y)
<int64[4] sizes = {1, 1, 1, 1}> {
    y = Resize <mode = "linear", coordinate_transformation_mode = "pytorch_half_pixel"> (x, , , sizes)
}""",
    "positions": """export (float[2, n] x) => (float[2, m] y)
<float[4] width = {0.0, 1.0, 2.0, 3.0}> { y = Add (x, width) }""",
    "linear": """export (float[2, 3] x) => (float[2, 2] y)
<float[2, 3] weight = {1.0, 2.0, 3.0, 4.0, 5.0, 6.0}> { y = Gemm <transB = 1> (x, weight) }""",
}
ADDRESSES = {
    "resize": (f"{TORCH}/183523", "own"),
    "positions": (f"{TORCH}/26127", "own"),
    "linear": ("https://github.com/open-mmlab/mmsegmentation/issues/3518", "own"),
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", EXPORTED)
def test_a_wrong_export_is_found(name: str, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    net, example, shapes = getattr(_Programs, name)(torch)
    torch.export.save(torch.export.export(net, example, dynamic_shapes=shapes), tmp_path / "net.pt2")
    model = parsed(EXPORTED[name])
    for initializer in model.graph.initializer:
        if initializer.name == "weight":
            initializer.name = model.graph.node[0].input[1] = "0.weight"
    size = {"resize": (1, 1, 4, 4), "positions": (2, 1), "linear": (2, 3)}[name]
    x = np.random.default_rng(1).standard_normal(size).astype(np.float32)
    onnx.save(model, tmp_path / "net.onnx")
    paths = tmp_path / "net.pt2", tmp_path / "net.onnx"
    report = eltwise.trace(*paths, runtime="torch", against="onnxruntime", inputs={"x": x})
    assert report.verdict == "disagree", str(report)
    assert report.first_node is not None
    assert (report.first_name, report.first_node.blame) == ("y", ADDRESSES[name][1])
    if name == "linear":
        assert report.notes[0] == "weights that are not those of the program: 0.weight"
