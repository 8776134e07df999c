"""Nodes that nothing has in float64: the tested runtime confirms nothing of itself, and another one may."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

import eltwise
from eltwise.formats.onnx import float_types
from eltwise.runtimes import registry
from eltwise.tracing import references
from eltwise.tracing.report import TraceReport
from support.conversions import FOLDERS
from support.local_hosts import use_local_hosts
from support.traced_models import named, parsed

FAITHFUL = "openvino:config.DYNAMIC_QUANTIZATION_GROUP_SIZE=0,precision=f32"


@pytest.fixture(autouse=True)
def _local(monkeypatch: pytest.MonkeyPatch) -> None:
    use_local_hosts(monkeypatch)


@pytest.fixture
def undefined(monkeypatch: pytest.MonkeyPatch) -> None:
    """As of an operator that has no definition."""
    monkeypatch.setattr(float_types, "define", lambda _model: None)


def product(accuracy_level: int) -> ModelProto:
    """A product with weights of 4 bits, of which neither onnxruntime nor the reference evaluator has a float64 kernel.

    Args:
        accuracy_level: 4 lets onnxruntime quantize the other operand.
    """
    generator, columns, depth, block = np.random.default_rng(1), 32, 64, 32
    weights = generator.integers(0, 256, (columns, depth // block, block // 2), dtype=np.uint8)
    scales = generator.random(columns * depth // block, dtype=np.float32) / 10
    node = helper.make_node(
        "MatMulNBits",
        ["x", "w", "s"],
        ["y"],
        domain="com.microsoft",
        K=depth,
        N=columns,
        bits=4,
        block_size=block,
        accuracy_level=accuracy_level,
    )
    graph = helper.make_graph(
        [node, helper.make_node("Relu", ["y"], ["z"])],
        "product",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (3, depth))],
        [helper.make_tensor_value_info("z", TensorProto.FLOAT, (3, columns))],
        [numpy_helper.from_array(weights, "w"), numpy_helper.from_array(scales, "s")],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9)


def traced(runtime: str, accuracy_level: int = 0) -> TraceReport:
    return eltwise.trace(product(accuracy_level), runtime=runtime, against="float64", switches=False)


@pytest.mark.parametrize(
    ("runtime", "computed_by"),
    [
        ("onnxruntime", "onnxruntime and openvino"),
        ("onnxruntime:optimization=disabled", "onnxruntime and openvino"),
        (FAITHFUL, "onnxruntime and openvino"),
    ],
)
@pytest.mark.usefixtures("undefined")
def test_another_runtime_confirms_what_nothing_has_in_float64(runtime: str, computed_by: str) -> None:
    report = traced(runtime)
    note = f"1 node computed in its own type by {computed_by}, which nothing has in float64: MatMulNBits 'y'"
    assert report.verdict == "agree", str(report)
    assert note in report.notes


@pytest.mark.usefixtures("undefined")
@pytest.mark.parametrize("runtime", ["onnxruntime", "openvino", FAITHFUL])
def test_what_two_runtimes_compute_differently_is_not_established(runtime: str) -> None:
    """Neither is right because it says so: onnxruntime quantizes an operand here, as OpenVINO may."""
    report = traced(runtime, accuracy_level=4)
    assert report.verdict == "not_established", str(report)
    reason = "onnxruntime and openvino differ, and nothing has it in float64"
    assert report.outputs[0].message == f"float64: it does not compute MatMulNBits 'y': {reason}"


@pytest.mark.usefixtures("undefined")
@pytest.mark.parametrize("other", ["not installed", "not starting"])
def test_the_tested_runtime_does_not_confirm_itself(other: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if other == "not installed":
        monkeypatch.setattr(references, "adapter_of", lambda *_names: None)
    else:
        adapter, environment = "support.planted_runtimes:NotStarting", {"PYTHONPATH": FOLDERS}
        runtime = replace(registry.BY_NAME["openvino-onnx"], adapter=adapter, environment=environment)
        monkeypatch.setitem(registry.BY_NAME, "openvino-onnx", runtime)
    report = traced("onnxruntime")
    assert report.verdict == "not_established", str(report)
    reason = "nothing but onnxruntime computes it"
    assert report.outputs[0].message.startswith(f"float64: it does not compute MatMulNBits 'y': {reason}")
    assert ("cannot be started" in report.outputs[0].message) == (other == "not starting")


@pytest.mark.parametrize(
    ("runtime", "accuracy_level", "verdict"),
    [("onnxruntime", 0, "agree"), ("onnxruntime", 4, "disagree"), (FAITHFUL, 4, "agree")],
)
def test_a_definition_needs_no_other_runtime(
    runtime: str, accuracy_level: int, verdict: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(references, "adapter_of", lambda *_names: None)
    report = traced(runtime, accuracy_level)
    assert report.verdict == verdict, str(report)
    assert not report.notes


@pytest.mark.parametrize("runtime", ["onnxruntime", "openvino", "openvino:precision=f32"])
def test_operands_that_become_integers_are_a_cause(runtime: str) -> None:
    """Where a processor has no kernel for them, nothing differs."""
    report = traced(runtime, accuracy_level=4)
    causes = [(cause.cause, "to int8, 32 with one scale" in cause.explanation) for cause in report.causes]
    assert report.verdict == "agree" or causes == [("int8_operands", True)], str(report)


def test_operands_that_become_integers_are_a_cause_where_nodes_are_fused() -> None:
    generator = np.random.default_rng(3)
    text = """g (float[5, 256] x) => (float[5, 64] y) {
        numbers = DequantizeLinear <axis = 1> (weights, scales, zeros)
        y = MatMul (x, numbers)
    }"""
    model = named(parsed(text))
    constants = {
        "weights": generator.integers(-127, 128, (256, 64)).astype(np.int8),
        "scales": (0.001 + 0.01 * generator.random(64)).astype(np.float32),
        "zeros": np.zeros(64, np.int8),
    }
    model.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in constants.items())
    report = eltwise.trace(model, runtime="onnxruntime", against="float64", switches=False)
    assert report.verdict == "agree" or "quantizes operands to int8, 32 with one scale" in str(report), str(report)
