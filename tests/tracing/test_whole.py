"""What is said of outputs: of those that no node makes, that are NaN, and that have another type than the model's."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

import eltwise
from eltwise.tracing.records import TracedOutput
from support.traced_models import parsed

pytestmark = pytest.mark.usefixtures("local_hosts")
PASSED = """g (float[2] x) => (float[2] y, float[2] k, float[2] x, float[2] w)
<float[2] w = {3, 4}> { y = Exp(x) k = Constant<value_floats = [1.0, 2.0]>() }"""
NAN = """g (float[4] x) => (float[4] y) { e = Exp(x) z = Sub(e, e) y = Div(z, z) }"""
OTHER_TYPE = """
import onnxruntime

def wide(data):
    session = onnxruntime.InferenceSession(data)
    names = [output.name for output in session.get_outputs()]
    return lambda feeds: {n: v.astype("f8") for n, v in zip(names, session.run(None, feeds))}
"""


@pytest.mark.parametrize("against", ["float64", "openvino", "onnx-reference"])
@pytest.mark.parametrize("runtime", ["onnxruntime", "openvino"])
def test_inputs_and_constants_that_are_outputs_are_compared(runtime: str, against: str) -> None:
    report = eltwise.trace(parsed(PASSED), runtime=runtime, against=against)
    assert [(output.name, output.status) for output in report.outputs if output.name != "y"] == [
        (name, "equal") for name in ("k", "x", "w")
    ]
    assert report.is_good, str(report)


@pytest.mark.parametrize("shape", [(), (3,), (2, 3)])
def test_an_input_of_any_rank_is_what_the_runtime_is_given(shape: tuple[int, ...]) -> None:
    """OpenVINO takes no file that leaves a rank open, and runs it with that of the array."""
    model, array = parsed("g (float[] x) => (float[] z) { z = Neg(x) }"), np.ones(shape, np.float32)
    assert not model.graph.input[0].type.tensor_type.HasField("shape")
    report = eltwise.trace(model, runtime="openvino", against="exact", inputs={"x": array})
    assert (report.verdict, report.outputs[0].status) == ("not_established", "failed"), str(report)
    assert f"; with fixed sizes it runs: x=({','.join(map(str, shape))})" in report.outputs[0].message
    assert eltwise.trace(model, runtime="onnxruntime", against="exact", inputs={"x": array}).verdict == "agree"


@pytest.mark.parametrize("size", ["N", "3"])
def test_what_is_refused_is_not_said_to_run_otherwise(size: str) -> None:
    """OpenVINO refuses functions in functions, whatever its options are; the nodes in them it computes."""
    text = f"""<ir_version: 9, opset_import: ["" : 18, "local" : 1]>
    g (float[{size}] x) => (float[{size}] z) {{ z = local.outer (x) }}
    <domain: "local", opset_import: ["" : 18]> inner (a) => (b) {{ b = Neg (a) }}
    <domain: "local", opset_import: ["" : 18, "local" : 1]> outer (a) => (b) {{ b = local.inner (a) }}"""
    report = eltwise.trace(onnx.parser.parse_model(text), runtime="openvino", against="onnxruntime")
    assert report.verdict == "not_established", str(report)
    assert "with fixed sizes it runs" not in str(report)
    assert report.to_dict()["switches"]["remedies"] == []
    turned = eltwise.trace(onnx.parser.parse_model(text), runtime="onnxruntime", against="openvino")
    assert turned.is_good, str(turned)
    assert [note[:72] for note in turned.notes] == [
        "openvino: it was run with its functions, branches and loops opened, as t"
    ]


@pytest.mark.parametrize("against", ["float64", "onnx-reference"])
def test_outputs_of_nothing_but_nan_establish_nothing(against: str) -> None:
    report = eltwise.trace(parsed(NAN), runtime="onnxruntime", against=against)
    assert report.verdict == "not_established"
    assert "every element is NaN in both" in str(report)


@pytest.mark.parametrize("against", ["float64", "exact", "onnx-reference"])
def test_outputs_without_elements_establish_nothing_by_themselves(against: str) -> None:
    model = parsed("g (float[0, 3] x, float[2] y) => (float[0, 3] z) { z = Neg(x) w = Neg(y) }")
    report = eltwise.trace(model, runtime="onnxruntime", against=against)
    assert report.verdict == "not_established", str(report)
    assert "no output has an element" in str(report)
    model = parsed("g (float[0, 3] x, float[2] y) => (float[0, 3] z, float[2] w) { z = Neg(x) w = Neg(y) }")
    assert eltwise.trace(model, runtime="onnxruntime", against=against).verdict == "agree"


def test_a_sentence_has_the_number_of_its_subject() -> None:
    one, two = (TracedOutput("y", "within_tolerance", 1e-7, 1e-7, "", count, 0, 2) for count in (1, 2))
    assert "1 of 2 elements differs," in str(one)
    assert "2 of 2 elements differ," in str(two)


@pytest.mark.parametrize("against", ["float64", "onnxruntime"])
def test_an_output_of_another_type_than_the_models_differs(against: str, tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(OTHER_TYPE, encoding="utf-8")
    report = eltwise.trace(parsed(PASSED), runtime=f"{tmp_path / 'own.py'}:wide", against=against)
    assert report.verdict == "disagree"
    assert "it is float64, and the model declares float32" in str(report)


def test_a_number_that_a_runtime_loses_is_a_wrong_value(tmp_path: Path) -> None:
    chain = "<float[1] c = {1e30}, float[1] d = {1e30}> { h = Mul(x, c) y = Mul(h, d) }"
    model = parsed(f"g (float[4] x) => (float[4] y) {chain}")
    onnx.save(model, tmp_path / "model.onnx")
    report = eltwise.check(tmp_path / "model.onnx", "openvino")
    x = np.float32([0, 1e-30, 1e-25, 1])
    traced = eltwise.trace(model, runtime="openvino", against="exact", inputs={"x": x})
    assert report.is_good is traced.is_good
