"""The rest of a model: other operators, subgraphs, functions and everything that is said beside the nodes."""

from __future__ import annotations

from contextlib import nullcontext
from itertools import permutations
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import eltwise
from eltwise.core.errors import (
    EltwiseError,
    ManyProblemsError,
    UnsupportedError,
)
from eltwise.formats.onnx.schemas import ports_fit
from support.conversions import ask
from support.onnx_models import NEWEST, model, node, sub_model, value
from support.versions import convert_onnx_bytes, in_opset

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


def run(made: onnx.ModelProto, **given: np.ndarray) -> list[np.ndarray]:
    return list(ReferenceEvaluator(made).run(None, given))


def branch(name: str, axis: int) -> onnx.GraphProto:
    minus = node("Sub", ["x", "y"], [name], f"in_{name}", axis=axis, broadcast=1)
    return helper.make_graph([minus], name, [], [value(name, (2, 3, 4))])


def conditional(opset: int = 6) -> onnx.ModelProto:
    nodes = [
        node("If", ["c"], ["i"], "if", then_branch=branch("p", 0), else_branch=branch("q", 1)),
        node("Clip", ["i"], ["z"], "clip", min=-5.0, max=1e9),
    ]
    inputs = [value("x", (2, 3, 4)), value("c", (), TensorProto.BOOL)]
    outputs = [value("z", (2, 3, 4))]
    return model(nodes, inputs, outputs, opset, ir_version=4)


def test_an_opset_that_is_imported_twice_alike_is_converted_in_both_places() -> None:
    """Converters write the import of their own operators again; runtimes read such models."""
    made = model([node("Clip", ["x"], ["z"], "clip", min=-5.0, max=1e9)], [value("x")], [value("z")], 6)
    made.opset_import.add(domain="ai.onnx", version=6)
    converted, _report = eltwise.convert(made, opset=13)
    assert {entry.version for entry in converted.proto().opset_import} == {13}
    onnx.checker.check_model(converted.proto())


@pytest.mark.parametrize("opset", [7, 11, 13, NEWEST])
def test_subgraphs_are_converted_with_the_values_around_them(opset: int) -> None:
    made = conditional()
    made.graph.input.append(value("y", None))
    with pytest.raises(EltwiseError, match=r"(?s)in_q.*rank of operand B.*in_p"):
        in_opset(made, opset)
    made.graph.input.pop()
    for size, chosen in ((2, True), (3, False)):
        # Which branch is legal depends on y's size: the other one assumes what cannot be.
        given = {"x": X, "y": np.arange(size, dtype=np.float32), "c": np.array(chosen)}
        whole = onnx.ModelProto()
        whole.CopyFrom(made)
        whole.graph.input.append(value("y", ["N"]))
        converted, report = in_opset(whole, opset)
        assert len(report.assumptions) == 2
        right = np.maximum(X - given["y"].reshape((2, 1, 1) if chosen else (3, 1)), -5)
        assert np.array_equal(run(converted, **given)[0], right)
        assert {change.node for change in report.changes} >= {"in_p", "in_q"}


def test_an_initializer_that_only_a_subgraph_reads_is_aligned_where_it_is() -> None:
    made = conditional()
    del made.graph.node[0].attribute[1].g.node[0].attribute[:]
    made.graph.node[0].attribute[1].g.node[0].CopyFrom(node("Neg", ["x"], ["p"], "in_p"))
    made.graph.initializer.append(numpy_helper.from_array(np.array([1, 2, 3], np.float32), "y"))
    converted, report = in_opset(made, 13)
    assert list(converted.graph.initializer[0].dims) == [3, 1]
    assert np.array_equal(
        run(converted, x=X, c=np.array(False))[0], np.maximum(X - np.array([[1], [2], [3]], np.float32), -5)
    )
    assert report.changes[0].after == ("Sub-13",)


def test_a_loop_body_is_converted() -> None:
    body = helper.make_graph(
        [
            node("Identity", ["go"], ["go_on"]),
            node("Sub", ["state", "y"], ["less"], "inner", axis=0, broadcast=1),
        ],
        "body",
        [value("i", (), TensorProto.INT64), value("go", (), TensorProto.BOOL), value("state", (2, 3))],
        [value("go_on", (), TensorProto.BOOL), value("less", (2, 3))],
    )
    inputs = [value("n", (), TensorProto.INT64), value("c", (), TensorProto.BOOL), value("x"), value("y", (2,))]
    made = model([node("Loop", ["n", "c", "x"], ["z"], body=body)], inputs, [value("z")], 6, ir_version=4)
    converted, _report = in_opset(made, 17)
    y = np.array([1, 2], np.float32)
    result = run(converted, n=np.int64(3), c=np.array(True), x=np.ones((2, 3), np.float32), y=y)[0]  # type: ignore[arg-type]
    assert np.array_equal(result, np.ones((2, 3), np.float32) - 3 * y.reshape(2, 1))


def rich_model(opset: int = 6) -> onnx.ModelProto:
    made = sub_model(opset, axis=0, broadcast=1)
    made.graph.input[1].CopyFrom(value("y", (2,)))
    made.graph.node.add(op_type="Custom", domain="my.domain", name="custom", input=["z"], output=["w"], doc_string="d")
    made.graph.node.add(op_type="Neg", name="neg", input=["z"], output=["v"], doc_string="the neg")
    made.graph.output.add().CopyFrom(value("v"))
    made.opset_import.add(domain="my.domain", version=3)
    made.producer_name, made.doc_string, made.model_version = "old exporter", "a text", 7
    made.metadata_props.add(key="author", value="somebody")
    made.graph.doc_string = "the graph"
    made.graph.quantization_annotation.add(tensor_name="w")
    sparse = made.graph.sparse_initializer.add()
    sparse.values.name, sparse.values.data_type = "sparse", TensorProto.FLOAT
    sparse.indices.data_type = TensorProto.INT64
    sparse.dims.append(3)
    sparse.values.dims.append(0)
    sparse.indices.dims.append(0)
    return onnx.ModelProto.FromString(made.SerializeToString() + b"\xf2\xe2\x09\x03new")


def test_what_is_no_node_of_onnx_stays_as_it_was() -> None:
    made = rich_model()
    data, report = convert_onnx_bytes(made.SerializeToString(), 17)
    converted = onnx.ModelProto.FromString(data)
    assert data.endswith(b"\xf2\xe2\x09\x03new")
    assert [change.node for change in report.changes] == ["difference"]
    assert [found.op_type for found in converted.graph.node] == ["Constant", "Unsqueeze", "Sub", "Custom", "Neg"]
    assert list(converted.graph.node[3:]) == list(made.graph.node[1:])
    assert {entry.domain: entry.version for entry in converted.opset_import} == {"": 17, "my.domain": 3}
    del converted.graph.node[:], made.graph.node[:]
    converted.opset_import[0].version = 6
    assert converted == made


def test_a_model_that_is_not_changed_is_not_touched() -> None:
    made = rich_model()
    before = made.SerializeToString()
    data, report = convert_onnx_bytes(before, 6)
    assert data == before
    assert report.unchanged
    assert str(report) == "ONNX opset 6 -> ONNX opset 6: unchanged, byte for byte"
    assert eltwise.convert(made, opset=17)[0].graph.origin.opset == 17
    assert made.SerializeToString() == before


def with_function(opset: int, function_opset: int, op_type: str) -> onnx.ModelProto:
    function = helper.make_function(
        "my", "Twice", ["a"], ["b"], [node(op_type, ["a"], ["b"])], [helper.make_opsetid("", function_opset)]
    )
    call = node("Twice", ["x"], ["z"])
    call.domain = "my"
    made = model([call], [value("x")], [value("z")], opset)
    made.opset_import.add(domain="my", version=1)
    made.functions.append(function)
    return made


def test_functions_are_converted_where_a_version_changed() -> None:
    converted, report = in_opset(with_function(13, 13, "Identity"), 21)
    assert converted.functions[0].opset_import[0].version == 21
    assert report.changes == ()
    made = with_function(13, 13, "Neg")
    converted, _report = in_opset(made, 21)
    assert converted.functions == made.functions
    with pytest.raises(EltwiseError, match="the type is not known, and not every type is allowed"):
        in_opset(with_function(21, 21, "Identity"), 13)


@pytest.mark.parametrize("source", [13, 18, 21])
@pytest.mark.parametrize("opset", [11, 13, 17, 21])
@pytest.mark.parametrize("op_type", ["Acos", "Tan", "Softsign"])
def test_no_function_imports_a_newer_opset_than_the_model(op_type: str, opset: int, source: int) -> None:
    """A runtime that does not have it refuses the model, whatever the function computes."""
    converted, _report = in_opset(with_function(source, source, op_type), opset)
    assert converted.functions[0].opset_import[0].version <= converted.opset_import[0].version == opset
    onnx.checker.check_model(converted, full_check=True)


def reasons(made: onnx.ModelProto, opset: int) -> list[str]:
    with pytest.raises(ManyProblemsError) as caught:
        convert_onnx_bytes(made.SerializeToString(), opset)
    return [str(problem) for problem in caught.value.problems]


def test_what_cannot_be_converted_is_listed_with_the_converters_words() -> None:
    nodes = [
        node("HardSwish", ["x"], ["a"], "swish"),
        node("Upsample", ["x", "x"], ["b"], "up"),
        node("Nothing", ["x"], ["c"], "no"),
        node("Sub", ["a", "c"], ["z"], "minus"),
    ]
    made = model(nodes, [value("x")], [value("z")], 14)
    made.graph.value_info.extend([value("a", (2, 3)), value("c", None)])
    assert reasons(made, 6) == [
        "Upsample-10 node 'up': the operator is deprecated, and ONNX's opset 14 has it no longer",
        "Nothing node 'no': ONNX's opset 14 has no such operator",
    ]
    del made.graph.node[1]
    made.graph.node[1].op_type = "Affine"
    assert reasons(made, 6) == [
        "HardSwish-14 node 'swish': ONNX's opset 6 has no such operator; opset 14 is the first that has it",
        "Affine node 'no': ONNX's opset 14 has no such operator",
        "Sub-14 node 'minus', operand B: the rank of operand B is not known, and this version needs to know where B "
        "lies in A; declare its shape; symbols will do",
    ]


@pytest.mark.parametrize("operator", ["LessOrEqual", "GreaterOrEqual"])
def test_a_comparison_that_the_opset_lacks_is_refused_with_the_first_that_has_it(operator: str) -> None:
    result = value("z", (2, 3), TensorProto.BOOL)
    made = model([node(operator, ["x", "y"], ["z"], "n")], [value("x"), value("y")], [result], 12)
    for opset in (11, 6):
        with pytest.raises(UnsupportedError, match=f"^{operator}-12 node 'n': ONNX's opset {opset} .* opset 12 is the"):
            eltwise.convert(made, opset=opset)


@pytest.mark.parametrize("slope", [(1,), (1, 1, 1), (2, 3, 4), (1, 3, 1)], ids=str)
def test_a_slope_of_one_element_or_of_the_inputs_rank_stays(slope: tuple[int, ...]) -> None:
    inputs = [value("x", [2, 3, 4]), value("s", slope)]
    made = model([node("PRelu", ["x", "s"], ["z"])], inputs, [value("z", None)], 6)
    assert eltwise.convert(made, opset=7)[0].graph.nodes[0].inputs == ("x", "s")


def test_a_slope_lies_on_the_channels() -> None:
    made = model(
        [node("PRelu", ["x", "s"], ["z"])], [value("x", (2, 3, 4)), value("s", (3,))], [value("z", (2, 3, 4))], 6
    )
    converted, _report = in_opset(made, 16)
    slope = np.array([2, 3, 4], np.float32)
    assert np.array_equal(run(converted, x=X - 9, s=slope)[0], np.where(X < 9, (X - 9) * slope.reshape(3, 1), X - 9))
    made.graph.input[1].CopyFrom(value("s", (1,)))
    assert convert_onnx_bytes(made.SerializeToString(), 7)[1].changes == ()
    for shape in ((3, 1), None):
        made.graph.input[1].CopyFrom(value("s", shape))
        with pytest.raises(UnsupportedError, match="which dimension the slope belongs to"):
            convert_onnx_bytes(made.SerializeToString(), 7)
    made.opset_import[0].version = 7
    with pytest.raises(UnsupportedError, match="which dimension the slope belongs to"):
        convert_onnx_bytes(made.SerializeToString(), 6)


def alone(
    op_type: str, opset: int, shapes: dict[str, tuple[int, ...] | None], number: int, **attributes: Any
) -> onnx.ModelProto:
    types = {"pads": TensorProto.INT64, "k": TensorProto.INT64, "i": TensorProto.INT8}
    inputs = [value(name, shape, types.get(name, number)) for name, shape in shapes.items()]
    made = model([node(op_type, list(shapes), ["z"], "n", **attributes)], inputs, [value("z", None, number)], opset)
    return onnx.shape_inference.infer_shapes(made)


SIZED = {"x": (1, 1, 4), "roi": (0,), "scales": (3,)}
FLOAT, FLOAT16, DOUBLE = TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.DOUBLE
MEND = [
    ("Resize", 10, 11, {"x": (1, 1, 3, 4)}, FLOAT, {"mode": "linear"}),
    ("Resize", 10, 13, {"x": (1, 1, 3, 4)}, FLOAT, {"mode": "nearest"}),
    ("Upsample", 9, 11, {"x": (1, 1, 3, 4)}, FLOAT, {"mode": "linear"}),
    ("Upsample", 9, 17, {"x": (1, 1, 3, 4)}, FLOAT, {"mode": "nearest"}),
    ("Softmax", 11, 13, {"x": (2, 3, 4)}, FLOAT, {}),
    ("Softmax", 11, 17, {"x": (3, 4)}, FLOAT, {"axis": 1}),
    ("Softmax", 13, 11, {"x": (2, 3, 4)}, FLOAT, {}),
    ("LogSoftmax", 17, 12, {"x": (2, 3, 4)}, FLOAT, {"axis": 2}),
    ("ReduceSum", 11, 10, {"x": (2, 3, 4)}, FLOAT, {"axes": [-1, 0]}),
    ("ReduceMax", 12, 9, {"x": (2, 3, 4)}, FLOAT, {"axes": [-2]}),
    ("Unsqueeze", 11, 9, {"x": (2, 3)}, FLOAT, {"axes": [-1, 0]}),
    ("Squeeze", 12, 7, {"x": (1, 3, 1)}, FLOAT, {"axes": [-1]}),
    ("Flatten", 13, 9, {"x": (2, 3, 4)}, FLOAT, {"axis": -1}),
    ("Concat", 11, 8, {"x": (2, 3)}, FLOAT, {"axis": -1}),
]


@pytest.mark.parametrize(("op_type", "before", "after", "shapes", "number", "attributes"), MEND)
def test_what_the_converter_gets_wrong_is_mended(
    op_type: str,
    before: int,
    after: int,
    shapes: dict[str, tuple[int, ...]],
    number: int,
    attributes: dict[str, Any],
) -> None:
    if op_type in ("Resize", "Upsample"):
        shapes = {**shapes, "scales": (4,)}
    made = alone(op_type, before, shapes, number, **attributes)  # type: ignore[arg-type]
    if "scales" in shapes:
        made.graph.input.pop()
        made.graph.initializer.append(numpy_helper.from_array(np.array([1, 1, 1.5, 2], np.float32), "scales"))
        made.graph.output[0].CopyFrom(value("z", (1, 1, 4, 8)))
    converted, _report = in_opset(made, after)
    x = np.random.default_rng(9).normal(size=shapes["x"]).astype(helper.tensor_dtype_to_np_dtype(number))
    old, new = (ask("onnxruntime", found, {"x": x})["z"] for found in (made, converted))
    assert np.array_equal(old, new) if op_type != "LogSoftmax" else np.allclose(old, new)
    assert old.dtype == new.dtype


@pytest.mark.parametrize(
    ("made", "opset", "reason"),
    [
        (alone("Clip", 7, {"x": (2, 3)}, DOUBLE, min=0.25), 13, "makes limits of float32"),
        (alone("Hardmax", 11, {"x": (2, 3, 4)}, FLOAT), 13, "opset 13 gave axis another meaning"),
        (alone("Softmax", 13, {"x": (2, 3, 4)}, FLOAT, axis=1), 11, "opset 13 gave axis another meaning"),
        (alone("Resize", 10, {"x": (1, 1, 4, 4), "s": (4,)}, FLOAT), 11, "which pixel is the nearest"),
        (alone("ReduceSum", 11, {"x": None}, FLOAT, axes=[-1]), 10, "opset 11 only, and counting them needs the rank"),
        (alone("Gather", 11, {"x": (2, 3), "k": (1,)}, FLOAT), 10, "allowed since opset 11 only"),
        (
            alone("GroupNormalization", 18, {"x": (1, 4, 2), "s": (2,), "b": (2,)}, FLOAT, num_groups=2),
            21,
            "a scale for",
        ),
        (alone("Pad", 19, {"x": (2,), "pads": (2,)}, FLOAT, mode="wrap"), 18, "has not this value of mode"),
        (alone("AveragePool", 19, {"x": (1, 1, 9)}, FLOAT, kernel_shape=[2], dilations=[2]), 11, "dilations"),
        (alone("AveragePool", 19, {"x": (1, 1, 9)}, FLOAT, kernel_shape=[2], ceil_mode=1), 18, "which windows count"),
        (alone("ScatterND", 18, {"x": (3,), "k": (1, 1), "u": (1,)}, FLOAT, reduction="max"), 16, "value of reduction"),
        (alone("DequantizeLinear", 13, {"i": (2, 3), "s": (3,)}, FLOAT), 10, "there is one scale"),
        (alone("Selu", 1, {"x": (3,)}, FLOAT), 6, "other defaults of alpha"),
        (alone("Dropout", 6, {"x": (3,)}, FLOAT), 7, "without is_test is for training"),
        (alone("Mod", 28, {"x": (3,), "y": (3,)}, FLOAT), 17, "fmod must be 1"),
        (
            alone("MaxPool", 22, {"x": (1, 1, 2)}, FLOAT, kernel_shape=[1], strides=[2], ceil_mode=1),
            21,
            "leaves out",
        ),
        (alone("ConvTranspose", 11, {"x": (1, 1, 3), "w": (1, 1, 2)}, FLOAT, auto_pad="SAME_LOWER"), 10, "odd padding"),
        (
            alone("Resize", 11, SIZED, FLOAT, coordinate_transformation_mode="tf_half_pixel_for_nn"),  # type: ignore[arg-type]
            13,
            "opset 13 has not this value of coordinate",
        ),
    ],
)
def test_what_the_converter_gets_wrong_is_refused(made: onnx.ModelProto, opset: int, reason: str) -> None:
    with pytest.raises(EltwiseError, match=reason):
        convert_onnx_bytes(made.SerializeToString(), opset)


@settings(max_examples=60)
@given(
    windows=st.lists(st.tuples(*[st.integers(1, 4)] * 3, *[st.integers(0, 2)] * 2), min_size=1, max_size=2),
    op_type=st.sampled_from(["MaxPool", "AveragePool"]),
    are_ones_left_out=st.booleans(),
)
def test_a_pool_goes_below_opset_22_where_no_window_starts_behind_any_input(
    windows: list[tuple[int, ...]], op_type: str, are_ones_left_out: bool
) -> None:
    kernel, strides, dilations, before, after = (list(each) for each in zip(*windows, strict=True))
    attributes = {"strides": strides, "dilations": dilations, "pads": before + after}
    if are_ones_left_out:
        attributes = {name: each for name, each in attributes.items() if set(each) - {int(name != "pads")}}
    shapes = {"x": (1, 1, *[40] * len(windows))}
    made = alone(op_type, 22, shapes, FLOAT, kernel_shape=kernel, ceil_mode=1, **attributes)

    def starts_inside(size: int, window: tuple[int, ...]) -> bool:
        length, stride, step, first, last = window
        last_start = -(-(size + first + last - (length - 1) * step - 1) // stride) * stride
        return last_start < 0 or last_start < size + first

    are_inside = all(starts_inside(size, window) for size in range(1, 40) for window in windows)
    with nullcontext() if are_inside else pytest.raises(EltwiseError, match="leaves out"):
        convert_onnx_bytes(made.SerializeToString(), 21)


@pytest.mark.parametrize(
    ("made", "opset"),
    [
        (alone("Selu", 5, {"x": (3,)}, FLOAT, alpha=1.5, gamma=1.25), 6),
        (alone("Dropout", 6, {"x": (3,)}, FLOAT, is_test=1), 7),
        (alone("Mod", 28, {"x": (3,), "y": (3,)}, FLOAT, fmod=1), 17),
        (alone("MaxPool", 22, {"x": (1, 1, 5)}, FLOAT, kernel_shape=[3], strides=[2], ceil_mode=1), 17),
        (alone("ConvTranspose", 11, {"x": (1, 1, 3), "w": (1, 1, 2)}, FLOAT), 10),
        (alone("Upsample", 8, {"x": (1, 1, 3, 4)}, FLOAT, mode="nearest", scales=[1.0, 1.0, 2.0, 2.0]), 17),
    ],
)
def test_what_means_the_same_is_converted_where_others_are_refused(made: onnx.ModelProto, opset: int) -> None:
    data, _report = convert_onnx_bytes(made.SerializeToString(), opset)
    assert onnx.load_from_string(data).opset_import[0].version == opset


@pytest.mark.parametrize("is_read", [True, False])
def test_a_mask_of_dropout_that_nothing_reads_is_no_obstacle(is_read: bool) -> None:
    """Runtimes give a mask of False in opset 10 and of True in opset 12, where nothing is dropped."""
    outputs = "float[3] y, bool[3] mask" if is_read else "float[3] y"
    text = f'<ir_version: 4, opset_import: ["" : 10]> g (float[3] x) => ({outputs}) {{ y, mask = Dropout (x) }}'
    model = onnx.parser.parse_model(text).SerializeToString()
    if is_read:
        with pytest.raises(EltwiseError, match="what the mask holds"):
            convert_onnx_bytes(model, 13)
    else:
        assert onnx.load_from_string(convert_onnx_bytes(model, 13)[0]).opset_import[0].version == 13


@pytest.mark.parametrize(("indices", "is_converted"), [([0, 1], True), ([0, -1], False)])
def test_indices_that_are_not_below_zero_go_down(indices: list[int], is_converted: bool) -> None:
    made = alone("Gather", 11, {"x": (2, 3), "k": (2,)}, FLOAT)
    made.graph.input.pop()
    made.graph.initializer.append(numpy_helper.from_array(np.array(indices), "k"))
    if is_converted:
        assert in_opset(made, 10)[0].graph.node[0] == made.graph.node[0]
    else:
        with pytest.raises(EltwiseError, match=r"below zero.*#Gather-11"):
            in_opset(made, 10)


def test_a_value_of_unknown_type_is_no_obstacle_where_its_type_does_not_matter() -> None:
    first = node("Custom", ["x"], ["f"])
    first.domain = "my.domain"
    for last, fits in ((node("Squeeze", ["f"], ["z"], axes=[0]), True), (node("Clip", ["f"], ["z"], min=0.0), False)):
        made = model([first, last], [value("x")], [value("z", ())], 6)
        made.graph.output[0].ClearField("type")
        made.opset_import.add(domain="my.domain", version=1)
        if fits:
            assert "Squeeze-13" in str(convert_onnx_bytes(made.SerializeToString(), 17)[1])
            continue
        with pytest.raises(UnsupportedError, match="makes limits of float32"):
            convert_onnx_bytes(made.SerializeToString(), 17)


@pytest.mark.parametrize(
    ("made", "opset"),
    [
        (alone("QuantizeLinear", 13, {"x": (2, 3), "s": ()}, FLOAT), 10),
        (alone("Split", 18, {"x": (2, 3), "k": (1,)}, FLOAT), 13),
        (alone("AveragePool", 19, {"x": (1, 1, 9)}, FLOAT, kernel_shape=[2]), 11),
        (alone("Gemm", 13, {"x": (2, 3), "w": (3, 4), "c": (4,)}, FLOAT), 7),
        (alone("Gemm", 9, {"x": (2, 3), "w": (3, 4), "c": (4,)}, FLOAT), 13),
        (alone("Pad", 18, {"x": (3,), "pads": (2,)}, FLOAT), 11),
        (alone("Resize", 13, SIZED, FLOAT), 11),  # type: ignore[arg-type]
        (alone("MaxPool", 8, {"x": (1, 1, 5)}, FLOAT, kernel_shape=[2]), 7),
    ],
)
def test_what_a_new_version_says_the_same_of_stays(made: onnx.ModelProto, opset: int) -> None:
    made.graph.output[0].ClearField("type")
    data, report = convert_onnx_bytes(made.SerializeToString(), opset)
    assert (onnx.load_from_string(data).graph.node, report.changes) == (made.graph.node, ())


@pytest.mark.parametrize(
    ("made", "opset"),
    [
        (alone("Gemm", 13, {"x": (2, 3), "w": (3, 4)}, FLOAT), 9),
        (alone("Pad", 18, {"x": (3,), "pads": (2,), "": None, "k": (1,)}, FLOAT), 13),
    ],
)
def test_an_operand_that_only_one_version_has_or_leaves_out_is_no_small_matter(
    made: onnx.ModelProto, opset: int
) -> None:
    with pytest.raises(EltwiseError, match="No Adapter"):
        convert_onnx_bytes(made.SerializeToString(), opset)


def _versions() -> dict[str, list[onnx.defs.OpSchema]]:
    """All versions of each of ONNX's own operators, the oldest first."""
    versions: dict[str, list[onnx.defs.OpSchema]] = {}
    for schema in sorted(onnx.defs.get_all_schemas_with_history(), key=lambda schema: schema.since_version):
        if not schema.domain:
            versions.setdefault(schema.name, []).append(schema)
    return versions


def test_a_node_has_as_many_operands_and_results_as_the_version_it_becomes_takes() -> None:
    """Of every operator, up and down: a Loop before opset 11 has a state, and no list is shorter than it must be."""
    count = 0
    for one, other in (pair for versions in _versions().values() for pair in permutations(versions, 2)):
        for size in range(one.min_input, min(one.max_input, 6) + 1):
            if ports_fit(["x"] * size, one.inputs, other.inputs):
                assert other.min_input <= size <= other.max_input, (one.name, one.since_version, other.since_version)
                count += 1
        for size in range(one.min_output, min(one.max_output, 6) + 1):
            if ports_fit(["y"] * size, one.outputs, other.outputs):
                assert other.min_output <= size <= other.max_output, (one.name, one.since_version, other.since_version)
    assert count > 1000


@pytest.mark.parametrize(("sizes", "is_converted"), [([2, -1], True), ([0, 3], False), (None, False)])
def test_allowzero_goes_where_no_size_is_zero(sizes: list[int] | None, is_converted: bool) -> None:
    """As PyTorch's exporter writes it at every Reshape."""
    made = alone("Reshape", 14, {"x": (3, 2), "k": (2,)}, FLOAT, allowzero=1)
    if sizes is not None:
        made.graph.input.pop()
        made.graph.initializer.append(numpy_helper.from_array(np.array(sizes), "k"))
    made.graph.output[0].CopyFrom(value("z", ("M", "N")))
    if is_converted:
        converted = in_opset(made, 11)[0]
        assert [one.op_type for one in converted.graph.node] == ["Reshape"]
        x = np.arange(6, dtype=np.float32).reshape(3, 2)
        assert np.array_equal(run(converted, x=x)[0], x.reshape(2, 3))
    else:
        with pytest.raises(EltwiseError, match="No Adapter"):
            in_opset(made, 11)


@pytest.mark.parametrize("operator", ["Max", "Min", "Sum", "Mean"])
@pytest.mark.parametrize("shapes", [[(2, 3)], [(2, 3)] * 3, [("N", 3)] * 2, [(2, 3), (3,)]])
def test_operands_of_one_shape_need_no_broadcasting(operator: str, shapes: list[tuple[int | str, ...]]) -> None:
    names = [f"x{number}" for number in range(len(shapes))]
    made = model([node(operator, names, ["z"], "n")], [*map(value, names, shapes)], [value("z", shapes[0])], 8)
    if len(set(shapes)) > 1:
        with pytest.raises(UnsupportedError, match=r"equal shapes, and they may differ: the shapes are \(2,3\) and"):
            eltwise.convert(made, opset=6)
        return
    (converted,) = in_opset(made, 6)[0].graph.node
    assert (converted.op_type, list(converted.input)) == (operator, names)


@pytest.mark.parametrize("opset", [11, 10])
@pytest.mark.parametrize("declares", ["sizes", "symbols", "nothing"])
@pytest.mark.parametrize("shape", [(2, 3), ("N", 3), (3,)])
def test_branches_of_an_if_give_one_shape_before_opset_11(
    shape: tuple[int | str, ...], declares: str, opset: int
) -> None:
    def result(name: str, sizes: tuple[int | str, ...]) -> onnx.ValueInfoProto:
        declared = {"sizes": sizes, "symbols": tuple("ab"[: len(sizes)]), "nothing": None}
        return value(name, declared[declares])

    given = {name: value(name, shape if name == "y" else (2, 3)) for name in "xy"}
    branches = {
        f"{kind}_branch": helper.make_graph([node("Neg", [name], [kind], kind)], kind, [], [result(kind, size)])
        for kind, name, size in (("then", "x", (2, 3)), ("else", "y", shape))
    }
    inputs = [*given.values(), value("c", (), TensorProto.BOOL)]
    nodes = [node("If", ["c"], ["z"], "n", **branches), node("Size", ["z"], ["size"])]
    made = model(nodes, inputs, [value("size", (), TensorProto.INT64)], 17)
    if opset == 11 or shape == (2, 3):
        assert [one.op_type for one in in_opset(made, opset)[0].graph.node] == ["If", "Size"]
    else:
        with pytest.raises(UnsupportedError, match="before opset 11 both branches give one shape"):
            in_opset(made, opset)


def test_the_constant_of_a_node_that_is_refused_is_no_reason_of_its_own() -> None:
    axes = node("Constant", [], ["k"], value=numpy_helper.from_array(np.array([-1], np.int64)))
    for shape in (None, (3,)):
        made = model([axes, node("Unsqueeze", ["x", "k"], ["z"], "u")], [value("x", shape)], [value("z", (3, 1))], 13)
        if shape is not None:
            converted, _report = in_opset(made, 8)
            assert [(found.op_type, list(found.attribute[0].ints)) for found in converted.graph.node] == [
                ("Unsqueeze", [1])
            ]
            continue
        with pytest.raises(UnsupportedError, match=r"^Unsqueeze-13 node 'u', operand 'x': axes below zero .* the rank"):
            convert_onnx_bytes(made.SerializeToString(), 8)


def test_an_integer_constant_of_an_opset_without_them_goes_up_as_it_is() -> None:
    sizes = node("Constant", [], ["s"], value=numpy_helper.from_array(np.array([3, 2], np.int64)))
    made = model([sizes, node("Reshape", ["x", "s"], ["z"], "r")], [value("x")], [value("z", (3, 2))], 6)
    for opset in (7, 8, 9, 13, 21):
        converted, report = in_opset(made, opset)
        assert report.changes == ()
        assert [found.op_type for found in converted.graph.node] == ["Constant", "Reshape"]
        assert converted.graph.node[0] == sizes


CONSTANTS: dict[str, dict[str, Any]] = {
    "int64": {"value": numpy_helper.from_array(np.array([3, 2], np.int64))},
    "value_ints": {"value_ints": [3, 2]},
    "value_int": {"value_int": 3},
    "value_floats": {"value_floats": [1.5, 2.5]},
    "float32": {"value": numpy_helper.from_array(np.float32([1.5, 2.5]))},
    "bool": {"value": numpy_helper.from_array(np.array([True, False]))},
}


@pytest.mark.parametrize("kind", CONSTANTS)
@pytest.mark.parametrize("opset", [7, 8, 9, 11, 12])
def test_a_constant_goes_down_to_every_opset(kind: str, opset: int) -> None:
    """A node, or where the opset has none of its type a constant of the graph; onnx's evaluator gives both."""
    nodes = [node("Constant", [], ["k"], **CONSTANTS[kind]), node("Identity", ["k"], ["z"])]
    for names in (["z"], ["k", "z"]):
        made = model(nodes, [value("x")], [onnx.ValueInfoProto(name=name) for name in names], 13)
        typed = onnx.shape_inference.infer_shapes(made)
        expected = ReferenceEvaluator(typed).run(None, {"x": np.zeros((2, 3, 4, 5), np.float32)})
        converted, _report = in_opset(typed, opset)
        results = ReferenceEvaluator(converted).run(None, {"x": np.zeros((2, 3, 4, 5), np.float32)})
        for result, array in zip(results, expected, strict=True):
            assert result.dtype == array.dtype
            np.testing.assert_array_equal(result, array)


@pytest.mark.parametrize("opset", [7, 9, 10, 14])
@pytest.mark.parametrize("start", [None, -9, -3, -1, 0, 1, 3, 9])
def test_a_part_of_a_shape_goes_down_as_a_slice(start: int | None, opset: int) -> None:
    for end in (None, -9, -2, 0, 1, 3, 9):
        limits = {name: limit for name, limit in (("start", start), ("end", end)) if limit is not None}
        made = model(
            [node("Shape", ["x"], ["z"], "s", **limits)],
            [value("x", (2, "N", 4))],
            [value("z", ("K",), TensorProto.INT64)],
            15,
        )
        feeds = {"x": np.zeros((2, 3, 4), np.float32)}
        (expected,) = ReferenceEvaluator(made).run(None, feeds)
        (result,) = ReferenceEvaluator(in_opset(made, opset)[0]).run(None, feeds)
        assert result.dtype == np.int64
        np.testing.assert_array_equal(result, expected, str(limits))


def test_a_sparse_operand_has_the_rank_that_it_says() -> None:
    made = model([node("Sub", ["x", "b"], ["z"], "n", broadcast=1, axis=0)], [value("x")], [value("z")], 6)
    held = onnx.SparseTensorProto(dims=[2], values=numpy_helper.from_array(np.array([5], np.float32), "b"))
    held.indices.CopyFrom(numpy_helper.from_array(np.array([1], np.int64)))
    made.graph.sparse_initializer.append(held)
    converted, _report = in_opset(made, 14)
    assert [found.op_type for found in converted.graph.node] == ["Constant", "Unsqueeze", "Sub"]
    assert in_opset(converted, 6)[0].graph.node[0].attribute == made.graph.node[0].attribute


@pytest.mark.parametrize("opset", [1, 6, 7, 9, 11, 12, 13, 18])
@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_the_order_of_nodes_changes_nothing_but_theirs(order: tuple[int, ...], opset: int) -> None:
    nodes = [node("Neg", ["x"], ["y"]), node("Abs", ["y"], ["w"]), node("Add", ["w", "y"], ["z"])]
    ordered, shuffled = (
        eltwise.convert(
            model([nodes[number] for number in numbers], [value("x", [2])], [value("z", [2])], 14), opset=opset
        )
        for numbers in (range(3), order)
    )
    expected = {str(one.output): one.SerializeToString() for one in ordered[0].proto().graph.node}
    assert {str(one.output): one.SerializeToString() for one in shuffled[0].proto().graph.node} == expected
    assert sorted(map(str, shuffled[1].changes)) == sorted(map(str, ordered[1].changes))
