"""ONNX's ReferenceEvaluator is not taken at its word: what it computes otherwise than it should is refused."""

from __future__ import annotations

import json
import re

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

import eltwise
from eltwise.runtimes.onnx_reference import OnnxReference
from support.traced_models import parsed

pytestmark = pytest.mark.usefixtures("local_hosts")
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


def _recurrent(operator: str, attributes: str = "", lengths: str = "", layout: int = 0, directions: int = 1) -> str:
    """The text of a model of a recurrent operator of 5 steps, 3 sequences, 2 features and 4 units."""
    gates = {"GRU": 3, "LSTM": 4, "RNN": 1}[operator]
    direction = "bidirectional" if directions == 2 else "forward"
    sizes = "3, 5, 2" if layout else "5, 3, 2"
    return f"""g (float[{sizes}] x) => (float[a, b, c, d] z)
        <float[{directions}, {gates * 4}, 2] w = {{{_numbers(directions * gates * 8)}}},
        float[{directions}, {gates * 4}, 4] r = {{{_numbers(directions * gates * 16)}}},
        int32[3] lengths = {{{lengths or "5, 5, 5"}}}> {{
        z = {operator} <hidden_size = 4, direction = "{direction}", layout = {layout} {attributes}>
            (x, w, r, , {"lengths" if lengths else ""})
    }}"""


def _numbers(count: int) -> str:
    return ", ".join(f"{number:.3f}" for number in np.random.default_rng(count).standard_normal(count))


def _resize(sizes: str, attributes: str, *, roi: str = "", is_of_sizes: bool = False) -> str:
    """The text of a model of a Resize of 5 by 6 by scales or to sizes."""
    constant = f"{'int64' if is_of_sizes else 'float'}[4] sizes = {{{sizes}}}"
    constants = f"{constant}, float[{8 if roi else 0}] roi = {{{roi}}}"
    return f"""g (float[1, 2, 5, 6] x) => (float[a, b, c, d] z) <{constants}> {{
        z = Resize <{attributes}> (x, roi, {", sizes" if is_of_sizes else "sizes"})
    }}"""


def _pool(operator: str, attributes: str) -> str:
    """The text of a model of a pool of 9 by 10 by windows of 3 by 3."""
    node = f"{operator} <kernel_shape = [3, 3] {attributes}> (x)"
    return f"g (float[1, 2, 9, 10] x) => (float[a, b, c, d] z) {{ z = {node} }}"


CORNERS = 'coordinate_transformation_mode = "align_corners"'
CROPPED = 'coordinate_transformation_mode = "tf_crop_and_resize"'
TORCH = 'coordinate_transformation_mode = "pytorch_half_pixel"'
ACTIVATIONS = {"GRU": ["Sigmoid", "Tanh"], "LSTM": ["Sigmoid", "Tanh", "Tanh"], "RNN": ["Tanh"]}


LINE = "activation_alpha = [0.5, 0.5], activation_beta = [0.25, 0.25]"


def _activations(names: list[str]) -> str:
    return f", activations = [{', '.join(map(json.dumps, names))}]"


RIGHT = [
    _pool("AveragePool", ", ceil_mode = 1, strides = [2, 2]"),
    _pool("AveragePool", ", ceil_mode = 1, strides = [2, 1], pads = [1, 0, 1, 1]"),
    _pool("AveragePool", ", strides = [3, 3]"),
    *(_pool("LpPool", f", p = {p}, pads = [1, 0, 1, 1], strides = [2, 2]") for p in (1, 2, 3)),
    _pool("MaxPool", ", ceil_mode = 1, strides = [2, 2]"),
    _pool("MaxPool", ", pads = [1, 0, 1, 1], strides = [2, 2]"),
    *(_pool("MaxPool", f', auto_pad = "SAME_{one}"') for one in ("LOWER", "UPPER")),
    _pool("MaxPool", ', auto_pad = "SAME_UPPER", strides = [2, 2]'),
    *(_recurrent(operator, directions=directions) for operator in ACTIVATIONS for directions in (1, 2)),
    *(_recurrent(operator, lengths="5, 5, 5") for operator in ACTIVATIONS),
    *(_recurrent(operator, _activations(names * 2), directions=2) for operator, names in ACTIVATIONS.items()),
    _recurrent("LSTM", ", input_forget = 0"),
    _resize("1, 1, 2, 0.5", f'mode = "linear", {CORNERS}'),
    _resize("1, 2, 7, 9", f'mode = "linear", {CORNERS}', is_of_sizes=True),
    _resize("1, 2, 7, 9", f'mode = "cubic", {TORCH}', is_of_sizes=True),
    _resize("1, 1, 1.7, 0.7", 'mode = "linear", coordinate_transformation_mode = "half_pixel"'),
    _resize("1, 1, 2, 1.5", f'mode = "linear", {CROPPED}', roi="0, 0, 0.1, 0.2, 1, 1, 0.8, 0.9"),
    'g (float[2, 3] x) => (float[2, 3] z) { z = ai.onnx.ml.Normalizer <norm = "L1"> (x) }',
    "g (int64[4] n) => (float[4, 2] z) { z = ai.onnx.ml.OneHotEncoder <cats_int64s = [0, 2], zeros = 1> (n) }",
]
WRONG = [
    _pool("AveragePool", ", ceil_mode = 1, strides = [3, 3]"),
    _pool("AveragePool", ", ceil_mode = 1, strides = [1, 3], count_include_pad = 1"),
    *(_pool("LpPool", f", p = {p}, ceil_mode = 1, strides = [2, 2]") for p in (1, 2, 3)),
    _pool("MaxPool", ", ceil_mode = 1, pads = [1, 1, 1, 1]"),
    _pool("MaxPool", ', auto_pad = "SAME_LOWER", strides = [2, 2]'),
    *(
        _recurrent(operator, lengths="5, 2, 3", directions=directions)
        for operator in ACTIVATIONS
        for directions in (1, 2)
    ),
    *(
        _recurrent(operator, _activations(["Sigmoid"] * len(names)))
        for operator, names in ACTIVATIONS.items()
        if operator != "RNN"
    ),
    _recurrent("RNN", f"{_activations(['Tanh', 'Affine'])}, {LINE}", directions=2),
    *(_recurrent(operator, ", clip = 0.1") for operator in ACTIVATIONS),
    _recurrent("LSTM", ", input_forget = 1"),
    *(_resize("1, 1, 1.7, 0.6", f'mode = "{mode}", {CORNERS}') for mode in ("nearest", "linear", "cubic")),
    _resize("1, 1, 1.7, 0.6", f'mode = "linear", {CROPPED}', roi="0, 0, 0.1, 0.2, 1, 1, 0.8, 0.9"),
    _resize("1, 2, 1, 1", f'mode = "cubic", {TORCH}', is_of_sizes=True),
    'g (float[2, 3] x) => (float[2, 3] z) { z = ai.onnx.ml.Normalizer <norm = "MAX"> (x) }',
    "g (float[4] f) => (float[4, 2] z) { z = ai.onnx.ml.OneHotEncoder <cats_int64s = [0, 2], zeros = 1> (f) }",
    """g (float[2, 3] x) => (float[2, 3] z) { z = local.F:first (x) }
    <domain: "local", overload: "first", opset_import: ["" : 19]> F (a) => (b) { b = Neg (a) }
    <domain: "local", overload: "second", opset_import: ["" : 19]> F (a) => (b) { b = Abs (a) }""",
]


def _results(text: str) -> tuple[onnx.ModelProto, object, object]:
    """A model, its result of onnxruntime, and that of the evaluator, None where it ends in an error."""
    model = parsed(text)
    del model.opset_import[:]
    model.opset_import.extend([helper.make_opsetid(*one) for one in (("", 19), ("ai.onnx.ml", 3), ("local", 1))])
    model.ir_version = 10
    port = model.graph.input[0]
    shape = [one.dim_value for one in port.type.tensor_type.shape.dim]
    x = np.random.default_rng(1).standard_normal(shape).astype(np.float32)
    values = {"n": np.array([0, 1, 2, 3]), "f": np.array([0, 0.5, 2.25, 2], np.float32)}
    feeds = {port.name: values.get(port.name, x)}
    data = model.SerializeToString()
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    return model, session.run(None, feeds)[0], ReferenceEvaluator(model).run(None, feeds)[0]


@pytest.mark.parametrize("text", RIGHT)
def test_what_the_evaluator_computes_as_onnx_says_is_not_refused(text: str) -> None:
    model, expected, result = _results(text)
    np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5)  # type: ignore[arg-type]
    OnnxReference().load(model.SerializeToString())


@pytest.mark.parametrize("text", WRONG)
def test_what_the_evaluator_computes_otherwise_is_refused_and_blames_no_right_node(text: str) -> None:
    model, expected, result = _results(text)
    assert np.shape(result) != np.shape(expected) or not np.allclose(result, expected, rtol=1e-2)  # type: ignore[call-overload, arg-type]
    with pytest.raises(NotImplementedError, match="it computes"):
        OnnxReference().load(model.SerializeToString())
    report = eltwise.trace(model, runtime="onnxruntime", against="float64")
    assert report.first_name is None, str(report)
    if report.verdict != "agree":  # OpenVINO does not confirm all of them.
        assert report.verdict == "not_established", str(report)
        assert re.search("nothing (but onnxruntime computes it|has it in float64)", str(report))


@pytest.mark.parametrize(
    "text",
    [
        _recurrent("LSTM", lengths="5, 5, 5").replace("float[5, 3, 2] x", "float[n, 3, 2] x"),
        _recurrent("LSTM", lengths="5, 5, 5").replace("g (", "g (int32[3] lengths, "),
        _resize("1, 1, 2, 2", f'mode = "linear", {CORNERS}').replace("5, 6", "n, m"),
        _resize("1, 1, 2, 2", f'mode = "linear", {CORNERS}').replace("g (", "g (float[4] sizes, "),
        """g (float[2, 3] x) => (float[2, 3] z) { z = local.F <norm = "L1"> (x) }
        <domain: "local", opset_import: ["ai.onnx.ml" : 3]>
        F <norm> (a) => (b) { b = ai.onnx.ml.Normalizer <norm: string = @norm> (a) }""",
        *(
            _pool(operator, f', auto_pad = "SAME_{side}", dilations = [2, 2]')
            for operator in ("AveragePool", "LpPool", "MaxPool")
            for side in ("LOWER", "UPPER")
        ),
        _pool("MaxPool", ', auto_pad = "SAME_UPPER", strides = [4, 4]'),
    ],
)
def test_what_may_be_computed_otherwise_is_refused(text: str) -> None:
    with pytest.raises(NotImplementedError, match="it computes"):
        OnnxReference().load(parsed(text).SerializeToString())


@pytest.mark.parametrize("declared", ["", "float[1, 2, 1, 7] m", "float[1, 2, 2, 7] m"])
@pytest.mark.parametrize("size", ["a", 1, 2])
def test_no_reference_counts_whose_shape_contradicts_what_follows_from_the_inputs(
    size: str | int, declared: str
) -> None:
    """Also where the file declares what the runtime gives, which may have written it."""
    node = "MaxPool <kernel_shape = [1, 1], strides = [3, 1], ceil_mode = 1> (x)"
    text = f"g (float[1, 2, 3, 7] x) => (float[1, 2, {size}, 7] z) <{declared}> {{ m = {node} z = Relu(m) }}"
    report = eltwise.trace(parsed(text), runtime="onnxruntime", against="float64", switches=False)
    assert report.verdict == "not_established", str(report)
    assert "gave the shape 1,2,1,7 where 1,2,2,7 follows" in str(report)
