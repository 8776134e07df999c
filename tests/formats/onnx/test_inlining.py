"""Branches in place of the Ifs that hold them, whatever a branch gives."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest

import eltwise
from eltwise.conversion import model_of
from eltwise.core.errors import EltwiseError
from eltwise.formats.onnx.inlining import with_inlined
from eltwise.formats.onnx.reader import read_model_proto
from eltwise.formats.onnx.schemas import changes_between

MODEL = """<ir_version: 8, opset_import: ["" : 17]> g (float[3] x, bool k) => (float[3] a, float[3] b) {{
    a, b = If (k) <
        then_branch = t () => (float[3] {0}, float[3] {1}) <float[3] w = {{1, 2, 3}}> {{ s = Neg (x)  u = Abs (x) }},
        else_branch = e () => (float[3] s, float[3] u) {{ s = Abs (x)  u = Neg (x) }}
    >
}}"""
X = np.float32([-1, 2, -3])
VALUES = {"s": -X, "u": abs(X), "w": np.float32([1, 2, 3])}


@pytest.mark.parametrize("second", VALUES)
@pytest.mark.parametrize("first", VALUES)
def test_a_branch_gives_any_values_also_one_of_them_twice(first: str, second: str) -> None:
    graph = read_model_proto(onnx.parser.parse_model(MODEL.format(first, second))).graph
    inlined, deciding = with_inlined(graph, {"a": True})
    results = model_of(inlined).run({"x": X, "k": np.array(True)})
    assert deciding == ()
    assert [results[name].tolist() for name in "ab"] == [VALUES[first].tolist(), VALUES[second].tolist()]


def test_a_branch_that_gives_more_than_its_if_is_not_inlined() -> None:
    model = onnx.parser.parse_model(MODEL.format("s", "u").replace("a, b = If", "a = If"))
    with pytest.raises(EltwiseError, match="If 'a' does not fit its body or its attributes, got 2; allowed: 1"):
        with_inlined(read_model_proto(model).graph, {"a": True})


SCAN = """<ir_version: 8, opset_import: ["" : 17]> g (float[2] s, float[3, 2] x) => (float[2] last, float[3, 2] all) {
    last, all = Scan <num_scan_inputs = 1, %s body = b (float[2] t, float[2] e) => (float[2] u, float[2] v) {
        u = Add (t, e)  v = Neg (u) }> (s, x)
}"""


@pytest.mark.parametrize("what", ["input_axes", "input_directions", "output_axes", "output_directions"])
def test_a_scan_with_more_axes_or_directions_than_values_is_not_inlined(what: str) -> None:
    for zeros in ("[0]", "[0, 0]"):
        graph = read_model_proto(onnx.parser.parse_model(SCAN % f"scan_{what} = {zeros},")).graph
        if zeros == "[0]":
            assert len(with_inlined(graph, {}, {"last": 3})[0].nodes) > 3
            continue
        with pytest.raises(
            EltwiseError, match="Scan 'last' does not fit its body or its attributes, got 1; allowed: 2"
        ):
            with_inlined(graph, {}, {"last": 3})


def test_a_scan_that_reads_more_than_its_body_is_not_inlined() -> None:
    text = (SCAN % "").replace("(s, x)", "(s, s, x)")
    with pytest.raises(EltwiseError, match="Scan 'last' does not fit its body or its attributes"):
        with_inlined(read_model_proto(onnx.parser.parse_model(text)).graph, {}, {"last": 3})


CALL = """<ir_version: 9, opset_import: ["" : {0}, "local" : 1]> g (float[3] x) => (float[3] y) {{ y = local.f (x) }}
<domain: "local", opset_import: ["" : {1}]> f (a) => (b) {{ b = {2} (a) }}"""


@pytest.mark.parametrize("op_type", ["Neg", "Abs", "Relu", "Exp", "Acos"])
@pytest.mark.parametrize("imported", [11, 13, 17, 18, 21])
@pytest.mark.parametrize("opset", [11, 13, 17, 18, 21])
def test_a_function_may_import_another_opset_where_its_operators_are_the_same(
    opset: int, imported: int, op_type: str
) -> None:
    graph = read_model_proto(onnx.parser.parse_model(CALL.format(opset, imported, op_type))).graph
    if opset != imported and changes_between(op_type, opset, imported):
        with pytest.raises(EltwiseError, match=f"the function 'f' imports another opset, in which {op_type} differs"):
            with_inlined(graph, {})
    else:
        inlined, _deciding = with_inlined(graph, {})
        assert [node.schema.name for node in inlined.nodes] == [op_type]
        assert inlined.origin.opset == opset


@pytest.mark.parametrize("name", ["Abs", "Softmax"])
def test_a_function_of_the_name_of_an_operator_is_not_opened(name: str) -> None:
    """The runtimes run the operator in its place, so that its nodes are none of the model's."""
    text = CALL.replace("local.f", name).replace(" f ", f" {name} ").replace('<domain: "local"', '<domain: ""')
    made = onnx.parser.parse_model(text.format(17, 17, "Neg"))
    with pytest.raises(EltwiseError, match=f"the function '{name}' has the name of an operator of ONNX"):
        with_inlined(read_model_proto(made).graph, {})
    report = eltwise.trace(made, runtime="onnxruntime", against="onnx-reference")
    assert report.is_good
