"""ONNX's ReferenceEvaluator is not taken at its word: what it computes otherwise than it should is refused."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import eltwise
from eltwise.runtimes.onnx_reference import OnnxReference
from support.traced_models import parsed

OPSETS = range(7, 20)


@pytest.mark.parametrize("opset", OPSETS)
def test_batch_normalization_is_that_of_inference_or_refused(opset: int) -> None:
    generator = np.random.default_rng(opset)
    x = generator.standard_normal((2, 3, 4))
    scale, bias, mean = generator.standard_normal((3, 3, 1))
    variance = generator.random((3, 1)) + 0.5
    inputs = [x, *(array.reshape(3) for array in (scale, bias, mean, variance))]
    ports = [
        helper.make_tensor_value_info(name, TensorProto.DOUBLE, array.shape)
        for name, array in zip("xsbmv", inputs, strict=True)
    ]
    node = helper.make_node("BatchNormalization", list("xsbmv"), ["z"])
    graph = helper.make_graph([node], "g", ports, [helper.make_tensor_value_info("z", TensorProto.DOUBLE, None)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    try:
        loaded = OnnxReference().load(model.SerializeToString())
    except NotImplementedError:
        assert opset < 14
        return
    (result,) = loaded.arrays(loaded.bind(inputs)())
    np.testing.assert_allclose(result, scale * (x - mean) / np.sqrt(variance + 1e-5) + bias, rtol=1e-9)  # type: ignore[arg-type]


@pytest.mark.parametrize("opset", [11, 13, 15])
def test_a_float64_reference_of_normalized_quantized_values_blames_no_right_node(opset: int) -> None:
    """DequantizeLinear gives float32 whatever it reads, so that BatchNormalization was given two types."""
    model = parsed("""g (float[2, 3, 4] x) => (float[2, 3, 4] z) {
        scale = Constant <value = float {0.05}> () zero = Constant <value = int8 {3}> ()
        s = Constant <value_floats = [1.5, 0.5, 2.0]> () b = Constant <value_floats = [0.1, 0.2, 0.3]> ()
        m = Constant <value_floats = [0.5, -0.5, 1.0]> () v = Constant <value_floats = [1.5, 0.25, 4.0]> ()
        q = QuantizeLinear(x, scale, zero)
        d = DequantizeLinear(q, scale, zero)
        z = BatchNormalization(d, s, b, m, v)
    }""")
    for node in model.graph.node:
        if node.op_type == "Constant" and node.attribute[0].name == "value_floats":
            array = np.array(node.attribute[0].floats, np.float32)
            node.attribute[0].CopyFrom(helper.make_attribute("value", onnx_tensor(array)))
    model.opset_import[0].version = opset
    report = eltwise.trace(model, runtime="onnxruntime", against="float64", tolerance="rtol=1e-4, atol=1e-5")
    assert (report.verdict, report.first_name) == ("agree", None)


def onnx_tensor(array: np.ndarray) -> TensorProto:
    return helper.make_tensor("value", TensorProto.FLOAT, array.shape, array.tobytes(), raw=True)


@pytest.mark.parametrize("shape", [(2, 3, 4), (2, 3, 4, 5), (1, 2, 3, 4, 5)])
def test_global_max_pool_is_over_the_spatial_axes_or_refused(shape: tuple[int, ...]) -> None:
    """It takes axes 1 and 2 of three, and 3 and 4 of five."""
    sizes = ", ".join(map(str, shape))
    model = parsed(f"g (float[{sizes}] x) => (float[{', '.join('abcde'[: len(shape)])}] z) {{ z = GlobalMaxPool(x) }}")
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    try:
        loaded = OnnxReference().load(model.SerializeToString())
    except NotImplementedError:
        assert len(shape) != 4
    else:
        (result,) = loaded.arrays(loaded.bind([x])())
        np.testing.assert_array_equal(result, x.max(axis=tuple(range(2, len(shape))), keepdims=True))  # type: ignore[arg-type]
    report = eltwise.trace(model, runtime="onnxruntime", against="float64", inputs={"x": x})
    assert (report.verdict, report.first_name) == ("agree", None), str(report)


def _rows(x: np.ndarray, axis: int) -> np.ndarray:
    """The dimensions from the axis on as one, as before opset 13."""
    return x.reshape(int(np.prod(x.shape[:axis], dtype=int)), -1)


def _softmax(rows: np.ndarray) -> np.ndarray:
    powers = np.exp(rows - rows.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


OF_ROWS = {
    "Softmax": _softmax,
    "LogSoftmax": lambda rows: np.log(_softmax(rows)),
    "Hardmax": lambda rows: np.eye(rows.shape[1])[rows.argmax(axis=1)],
}


def _of_rows(operator: str, axis: int | None, opset: int, is_inside: bool) -> onnx.ModelProto:
    """A model of an operator of rows, of a value of known rank or, in a branch, of one whose rank is not declared."""
    attribute = "" if axis is None else f"<axis = {axis}>"
    ports, steps = "() => (float[2, 3, 4] z)", f"{{ y = Neg (x) z = {operator} {attribute} (y) }}"
    branches = f"{{ z = If (c) <then_branch = t {ports} {steps}, else_branch = e {ports} {{ z = Neg (x) }}> }}"
    model = parsed(f"g (float[2, 3, 4] x, bool c) => (float[2, 3, 4] z) {branches if is_inside else steps}")
    model.opset_import[0].version = opset
    return model


X = np.random.default_rng(0).standard_normal((2, 3, 4)).astype(np.float32)


@pytest.mark.parametrize(
    ("opset", "axis"),
    [*((9, axis) for axis in (None, 0, 1, 2)), *((12, axis) for axis in (None, -3, -2, -1, 0, 1, 2))],
)
@pytest.mark.parametrize("operator", OF_ROWS)
@pytest.mark.parametrize("is_inside", [False, True])
def test_operators_of_rows_are_those_of_their_opset_or_refused(
    operator: str, axis: int | None, opset: int, is_inside: bool
) -> None:
    model = _of_rows(operator, axis, opset, is_inside)
    expected = OF_ROWS[operator](_rows(-X, 1 if axis is None else axis)).reshape(X.shape)
    try:
        loaded = OnnxReference().load(model.SerializeToString())
    except NotImplementedError:
        assert axis not in (2, -1) or is_inside
    else:
        (result,) = loaded.arrays(loaded.bind([X, np.array(True)])())
        np.testing.assert_allclose(result, expected, rtol=1e-5)  # type: ignore[arg-type]


@pytest.mark.parametrize("axis", [None, 2])
@pytest.mark.parametrize("operator", OF_ROWS)
@pytest.mark.parametrize("is_inside", [False, True])
def test_a_float64_reference_of_operators_of_rows_blames_no_right_node(
    operator: str, axis: int | None, is_inside: bool
) -> None:
    model = _of_rows(operator, axis, 12, is_inside)
    report = eltwise.trace(model, runtime="onnxruntime", against="float64", inputs={"x": X, "c": np.array(True)})
    assert (report.verdict, report.first_name) == ("agree", None), str(report)


@pytest.mark.parametrize("shape", [(1, 5, 2, 2), (3, 3, 2, 2), (4, 2, 3, 3)])
def test_local_response_normalization_is_right_or_refused(shape: tuple[int, ...]) -> None:
    sizes = ", ".join(map(str, shape))
    model = parsed(f"g (float[{sizes}] x) => (float[{sizes}] z) {{ z = LRN <alpha = 1.0, size = 3> (x) }}")
    report = eltwise.trace(model, runtime="onnxruntime", against="float64")
    assert (report.verdict, report.first_name) == ("agree", None), str(report)
    assert eltwise.trace(model, runtime="onnxruntime", against="onnx-reference").verdict == "not_established"
