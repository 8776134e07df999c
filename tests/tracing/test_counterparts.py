"""A node is a runtime's fault only where the other model has it: not one of a similar name, nor with a quantizer."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import numpy as np
import onnx
import pytest

import eltwise
from eltwise.core.errors import EltwiseError
from eltwise.ir.graph import Foreign, ForeignSchema, Node
from eltwise.ops import registry
from eltwise.tracing.counterparts import is_alike, is_of_one_operator
from support.openvino_core import openvino_core
from support.traced_models import named, parsed, products, quantized

SAME = {"own", "in_graph", "fused"}
"""The blames by which a runtime is at fault, as both models have the same nodes."""


def foreign(domain: str, name: str, of: str = "") -> Node:
    return Node("", Foreign(ForeignSchema(domain, name, of=of)), ("x",), ("y",))  # type: ignore[arg-type]


def test_operators_of_two_formats_are_one_where_they_compute_one_function() -> None:
    nodes = dict[tuple[str, str], Node]()
    for schema in registry.ELEMENTWISE:
        with suppress(EltwiseError):  # Of others an attribute is required.
            nodes[schema.domain, schema.name] = Node("", schema.bind({}), ("x",), ("y",))
    for (domain, name), node in nodes.items():
        for (other_domain, other_name), other in nodes.items():
            if (domain, other_domain) == ("ai.onnx", "openvino"):
                is_one = node.bound.function == other.bound.function or (name, other_name) == ("Div", "Divide")
                assert is_of_one_operator(node, other) is is_of_one_operator(other, node) is is_one, (name, other_name)


@pytest.mark.parametrize(
    ("onnx_name", "name", "is_one"),
    [
        ("Conv", "Convolution", True),
        ("Conv", "ConvolutionBackpropData", False),
        ("ConvTranspose", "ConvolutionBackpropData", True),
        ("Softmax", "SoftMax", True),
        ("Log", "LogSoftmax", False),
        ("Max", "MaxPool", False),
        ("GatherND", "Gather", False),
    ],
)
def test_the_beginning_of_a_name_makes_no_operator(onnx_name: str, name: str, is_one: bool) -> None:
    assert is_of_one_operator(foreign("ai.onnx", onnx_name), foreign("openvino", name)) is is_one


def test_operators_of_two_domains_of_onnx_are_not_one() -> None:
    assert is_alike(foreign("ai.onnx", "Gelu", "com.microsoft"), foreign("ai.onnx", "Gelu", "com.microsoft"))
    assert not is_alike(foreign("ai.onnx", "Gelu", "com.microsoft"), foreign("ai.onnx", "Gelu"))


@pytest.mark.usefixtures("local_hosts")
@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("names", [("Sin", "Sinh"), ("Tan", "Tanh")])
def test_no_runtime_is_blamed_for_an_operator_of_a_similar_name(
    names: tuple[str, str], swapped: bool, tmp_path: Path
) -> None:
    import openvino

    text = "g (float[4] x) => (float[4] z) {{ a = {}(x) z = Neg(a) }}"
    onnx.save(named(parsed(text.format(names[1]))), tmp_path / "model.onnx")
    openvino.save_model(openvino_core().read_model(tmp_path / "model.onnx"), tmp_path / "model.xml")
    sides = [(parsed(text.format(names[0])), "onnxruntime"), (tmp_path / "model.xml", "openvino")]
    (one, runtime), (other, against) = sides[:: -1 if swapped else 1]
    inputs = {"x": np.float32([0.5, 1, 2, 3])}
    report = eltwise.trace(one, other, runtime=runtime, against=against, inputs=inputs, switches=False)
    assert report.verdict == "disagree"
    assert report.first_node is not None, str(report)
    assert report.first_node.blame == "changed", str(report)


@pytest.mark.usefixtures("local_hosts")
@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("domain", ["", "com.microsoft"])
def test_no_runtime_is_blamed_for_what_the_other_model_quantizes(domain: str, swapped: bool) -> None:
    model = products(3)
    pair = (model, quantized(model, {"v1": 0.05, "v2": 0.05}, domain))
    inputs = {"v0": np.random.default_rng(0).standard_normal((24, 24)).astype(np.float32)}
    report = eltwise.trace(
        *pair[:: -1 if swapped else 1], runtime="onnxruntime", against="onnxruntime", inputs=inputs, switches=False
    )
    assert report.verdict == "disagree"
    assert SAME.isdisjoint(node.blame for node in report.nodes), str(report)
    assert not report.is_reproducible
    quantizers = [node for node in report.nodes if node.op_type == "QuantizeLinear"]
    assert not any("in its place" in node.message for node in quantizers), str(report)
