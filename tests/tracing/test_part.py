"""A model with an input that cannot be given to a runtime is traced beside what depends on it."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import eltwise
from support.local_hosts import use_local_hosts
from support.traced_models import parsed

NUMBERS = helper.make_tensor_type_proto(TensorProto.FLOAT, [4])
KINDS = {
    "string": (helper.make_tensor_type_proto(TensorProto.STRING, [4]), "Identity"),
    "seq(tensor(float))": (helper.make_sequence_type_proto(NUMBERS), "SequenceLength"),
    "optional(tensor(float))": (helper.make_optional_type_proto(NUMBERS), "OptionalHasElement"),
    "float8_e4m3fnuz": (helper.make_tensor_type_proto(TensorProto.FLOAT8E4M3FNUZ, [4]), "Identity"),
}


@pytest.fixture(autouse=True)
def local(monkeypatch: pytest.MonkeyPatch) -> None:
    use_local_hosts(monkeypatch)


def with_input(kind: str, *, reads_all: bool = False) -> onnx.ModelProto:
    """Tanh of numbers beside a node that reads an input of a kind, or in a branch of one that does."""
    model = parsed("g (float[4] x, bool b) => (float[4] y, float[4] w) { y = Tanh(x) v = Neg(y) w = Relu(v) }")
    declared, operator = KINDS[kind]
    unknown = helper.make_empty_tensor_value_info("r")
    branch = helper.make_graph([helper.make_node(operator, ["s"], ["r"])], "body", [], [unknown])
    model.opset_import[0].version = 20
    model.graph.input.append(helper.make_value_info("s", declared))
    model.graph.output.append(helper.make_empty_tensor_value_info("t"))
    if operator == "Identity":
        model.graph.output[-1].type.CopyFrom(declared)
    model.graph.node.append(helper.make_node("If", ["b"], ["t"], then_branch=branch, else_branch=branch))
    if reads_all:
        del model.graph.output[:2]
    return model


@pytest.mark.parametrize("kind", KINDS)
def test_what_does_not_depend_on_such_an_input_is_compared(kind: str) -> None:
    report = eltwise.trace(
        with_input(kind), runtime="onnxruntime", against="float64", inputs={"x": np.ones(4, np.float32)}
    )
    outputs = {output.name: (output.status, output.message) for output in report.outputs}
    reason = f"it depends on the input 's', which is {kind} and cannot be given to a runtime here"
    assert outputs.pop("t") == ("not_compared", reason)
    assert {*outputs} == {"y", "w"}
    assert all(status in ("equal", "within_tolerance") for status, _message in outputs.values()), str(report)
    assert (report.verdict, [node.op_type for node in report.nodes]) == ("not_established", ["Tanh", "Neg", "Relu"])


def test_a_difference_in_the_rest_is_one(planted: None) -> None:
    report = eltwise.trace(with_input("string"), runtime="Wrong", against="float64")
    assert (report.verdict, report.first_name) == ("disagree", "w")


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_established_where_everything_depends_on_it(kind: str) -> None:
    report = eltwise.trace(with_input(kind, reads_all=True), runtime="onnxruntime", against="float64")
    assert (report.verdict, [output.name for output in report.outputs]) == ("not_established", ["t"])
    assert f"it depends on the input 's', which is {kind}" in str(report)
