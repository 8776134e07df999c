"""The adapters of the neighbours and what a file says beside its nodes: carried, dropped and said, or refused."""

from __future__ import annotations

import re
from itertools import product
from typing import Any

import numpy as np
import pytest
from onnx import NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

import eltwise
from eltwise.core.errors import EltwiseError, ManyProblemsError
from support.conversions import (
    IR10,
    IR11,
    ask,
    convert_graph,
    converted,
    onnx_of,
    written,
    wrong_outputs,
)
from support.onnx_models import model, node, value
from support.openvino_core import openvino_core
from support.openvino_models import Ir, binary

X = np.arange(6, dtype=np.float32).reshape(1, 2, 1, 3)
Attributes = dict[str, Any]


def ints(name: str, *numbers: int) -> TensorProto:
    return numpy_helper.from_array(np.array(numbers, np.int64), name)


def onnx_neighbour(
    nodes: list[NodeProto], opset: int, *constants: TensorProto, shape: list[int | str | None] | None = None
) -> eltwise.Model:
    inputs: list[ValueInfoProto] = [value("x", [1, 2, 1, 3] if shape is None else shape)]
    return eltwise.load(model(nodes, inputs, [ValueInfoProto(name="z")], opset, ir_version=10, initializers=constants))


def neighbour(op_type: str, inputs: list[str], **attributes: Any) -> list[NodeProto]:
    return [node(op_type, inputs, ["z"], "moved", **attributes)]


ONNX = [
    (neighbour("Identity", ["x"]), 13, [], "Convert-1"),
    (neighbour("Cast", ["x"], to=TensorProto.INT8), 13, [], "Convert-1"),
    (neighbour("Cast", ["x"], to=TensorProto.FLOAT8E5M2, saturate=0), 21, [], "Convert-1"),
    (neighbour("Cast", ["x"], to="DOUBLE"), 1, [], "Convert-1"),
    (neighbour("Reshape", ["x"], shape=[0, -1]), 1, [], "Reshape-1"),
    (neighbour("Reshape", ["x", "s"]), 13, [ints("s", 3, -1)], "Reshape-1"),
    (neighbour("Reshape", ["x", "s"], allowzero=1), 14, [ints("s", 6)], "Reshape-1"),
    (neighbour("Squeeze", ["x"]), 13, [], "Squeeze-1"),
    (neighbour("Squeeze", ["x"], axes=[0, 2]), 6, [], "Squeeze-1"),
    (neighbour("Squeeze", ["x", "s"]), 13, [ints("s", -2)], "Squeeze-1"),
    (neighbour("Squeeze", ["x", "s"]), 13, [ints("s")], "Convert-1"),
    (neighbour("Unsqueeze", ["x"], axes=[4]), 11, [], "Unsqueeze-1"),
    (neighbour("Unsqueeze", ["x", "s"]), 13, [ints("s", -1, 0)], "Unsqueeze-1"),
    (neighbour("Unsqueeze", ["x", "s"]), 13, [ints("s")], "Convert-1"),
]


@pytest.mark.parametrize(("nodes", "opset", "constants", "becomes"), ONNX)
def test_onnx_neighbours_as_ir_and_back(
    nodes: list[NodeProto], opset: int, constants: list[TensorProto], becomes: str
) -> None:
    before = onnx_neighbour(nodes, opset, *constants)
    right = before.run({"x": X})
    after, report = converted(before, IR11)
    assert report.changes[-1].after == (becomes,)
    assert wrong_outputs(after.run({"x": X}), right) == []
    for target in (opset, 21):
        back, _report = converted(after, onnx_of(target))
        assert wrong_outputs(back.run({"x": X}), right) == []
    if right["z"].dtype.kind in "iuf":  # What runtimes give back for float8 are bytes.
        assert wrong_outputs(ask("openvino", after.graph, {"x": X}), right) == []


IR = [
    ("Convert", [], {"destination_type": "f8e4m3"}, 21, {"saturate": 0}),
    ("Convert", [], {"destination_type": "u8"}, 7, {}),
    ("Reshape", [("i32", "2", [2, 3])], {"special_zero": "false"}, 7, {}),
    ("Reshape", [("i64", "2", [0, -1])], {"special_zero": "true"}, 13, {}),
    ("Squeeze", [], {}, 7, {}),
    ("Squeeze", [("i32", "0", [])], {}, 13, {}),
    ("Squeeze", [("i32", "", [-2])], {}, 7, {"axes": (2,)}),
    ("Squeeze", [("i64", "2", [0, 2])], {}, 13, {}),
    ("Squeeze", [("i64", "2", [0, 1])], {"allow_axis_skip": "true"}, 11, {"axes": (0,)}),
    ("Unsqueeze", [("u8", "1", [2])], {}, 13, {}),
    ("Unsqueeze", [("i64", "1", [-1])], {}, 7, {"axes": (4,)}),
    ("Identity", [], {}, 13, {}),
]
WIDTHS = {"i32": np.int32, "i64": np.int64, "u8": np.uint8}


def ir_neighbour(kind: str, constants: list[tuple[str, str, list[int]]], data: Attributes) -> eltwise.Model:
    ir = Ir().parameter("x", "1,2,1,3")
    for index, (element_type, shape, numbers) in enumerate(constants):
        ir.constant(f"c{index}", element_type, shape, np.array(numbers, WIDTHS[element_type]).tobytes())
    opset = {"Identity": "opset16"}.get(kind, "opset15" if "allow_axis_skip" in data else "opset1")
    ir.layer(kind, "moved", ["x", *(f"c{index}" for index in range(len(constants)))], opset=opset, names="z", **data)
    return eltwise.load(ir.result("moved").xml(), ir.weights)


@pytest.mark.parametrize(("kind", "constants", "data", "opset", "attributes"), IR)
def test_ir_neighbours_as_onnx(
    kind: str, constants: list[tuple[str, str, list[int]]], data: Attributes, opset: int, attributes: Attributes
) -> None:
    before = ir_neighbour(kind, constants, data)
    after, _report = converted(before, onnx_of(opset))
    given = dict(after.graph.nodes[-1].operation.attributes)
    given.pop("to", None)
    assert given == attributes
    right = before.run({"x": X})
    assert wrong_outputs(after.run({"x": X}), right) == []
    if right["z"].dtype.kind in "iuf":
        assert wrong_outputs(ask("onnxruntime", after.graph, {"x": X}), right) == []


@pytest.mark.parametrize("is_known", [False, True])
@pytest.mark.parametrize("element_type", WIDTHS)
@pytest.mark.parametrize(("kind", "shape"), [("Reshape", "2"), ("Squeeze", ""), ("Squeeze", "1"), ("Unsqueeze", "1")])
def test_what_becomes_a_vector_of_int64_is_said(kind: str, shape: str, element_type: str, is_known: bool) -> None:
    """That is all but such a vector, which stays the operand that it was."""
    numbers = {("Reshape", "2"): [2, 3], ("Squeeze", ""): 0}.get((kind, shape), [0])
    indices = np.array(numbers, WIDTHS[element_type])
    ir = Ir().parameter("x", "1,2,1,3")
    if is_known:
        ir.constant("s", element_type, shape, indices.tobytes())
    else:
        ir.parameter("s", shape, element_type)
    data = {"special_zero": "false"} if kind == "Reshape" else {}
    before = eltwise.load(
        ir.layer(kind, "moved", ["x", "s"], opset="opset1", names="z", **data).result("moved").xml(), ir.weights
    )
    after, report = converted(before, onnx_of(14))
    is_vector = element_type == "i64" and shape != ""
    assert any("became a vector of int64" in each.reason for each in report.changes) != is_vector
    feeds = {"x": X} | ({} if is_known else {"s": indices})
    assert wrong_outputs(after.run(feeds), before.run(feeds)) == []


SHAPES = [each for rank in (1, 2, 3) for each in product((0, -1, 2), repeat=rank) if each.count(-1) < 2]


@pytest.mark.parametrize("sizes", SHAPES, ids=str)
def test_a_size_is_assumed_where_one_that_may_be_0_is_copied_beside_an_open_one(sizes: tuple[int, ...]) -> None:
    """Of a tensor of shape (?, 2, ?), in both directions."""
    of_onnx = onnx_neighbour(neighbour("Reshape", ["x", "s"]), 13, ints("s", *sizes), shape=["n", 2, "k"])
    ir = Ir().parameter("x", "?,2,?").constant("s", "i64", str(len(sizes)), np.array(sizes, np.int64).tobytes())
    ir.layer("Reshape", "moved", ["x", "s"], opset="opset1", special_zero="true").result("moved")
    is_assumed = -1 in sizes and any(size == 0 and axis != 1 for axis, size in enumerate(sizes))
    for before, target in ((of_onnx, IR11), (eltwise.load(ir.xml(), ir.weights), onnx_of(13))):
        _after, report = converted(before, target)
        assert bool(report.assumptions) is is_assumed, report.assumptions


def test_outputs_of_one_value_are_found_by_their_names() -> None:
    nodes = [node("Sub", ["x", "x"], ["p"]), node("Identity", ["p"], ["q"]), node("Identity", ["x"], ["y"])]
    before = eltwise.load(model(nodes, [value("x")], [value(name, None) for name in ("p", "q", "y", "x")], 13))
    after, _report = converted(before, IR11)
    given = {"x": np.ones((2, 3), np.float32)}
    assert wrong_outputs(after.run(given), before.run(given)) == []
    assert wrong_outputs(ask("openvino", after.graph, given), before.run(given)) == []
    theirs = openvino_core().read_model(*written(after.graph))
    assert all(port.name in output.get_names() for port, output in zip(before.outputs, theirs.outputs, strict=True))
    assert theirs.input("x").get_index() == 0


REFUSED_TO_IR = [
    (neighbour("Cast", ["x"], to=TensorProto.FLOAT8E4M3FN), 19, "does not saturate"),
    (neighbour("Squeeze", ["x", "x_axes"]), 13, "empty axes squeeze nothing in ONNX"),
]


@pytest.mark.parametrize(("nodes", "opset", "words"), REFUSED_TO_IR)
def test_what_ir_cannot_say(nodes: list[NodeProto], opset: int, words: str) -> None:
    inputs = [value("x", [1, 2, 1, 3]), value("x_axes", [None], TensorProto.INT64)]
    before = eltwise.load(model(nodes, inputs, [ValueInfoProto(name="z")], opset, ir_version=10))
    with pytest.raises(EltwiseError, match=f"node 'moved'.*{words}"):
        convert_graph(before.graph, IR11)


REFUSED_TO_ONNX = [
    ("Reshape", [("i64", "2", [0, 3])], {"special_zero": "false"}, 13, "reads a 0 in the shape as a copied size"),
    ("Convert", [], {"destination_type": "bf16"}, 11, "Cast-9 of ONNX opset 11 .* got bfloat16.*opset 13 and newer do"),
    ("Convert", [], {"destination_type": "i4"}, 13, "got int4.*opset 21 and newer do"),
]


@pytest.mark.parametrize(("kind", "constants", "data", "opset", "words"), REFUSED_TO_ONNX)
def test_what_onnx_cannot_say(
    kind: str, constants: list[tuple[str, str, list[int]]], data: Attributes, opset: int, words: str
) -> None:
    ir = Ir().parameter("x", "0,2,0,3")
    for index, (element_type, shape, numbers) in enumerate(constants):
        ir.constant(f"c{index}", element_type, shape, np.array(numbers, WIDTHS[element_type]).tobytes())
    ir.layer(kind, "moved", ["x", *(f"c{index}" for index in range(len(constants)))], **data).result("moved")
    before = eltwise.load(ir.xml(), ir.weights)
    with pytest.raises(EltwiseError, match=f"node 'moved'.*{words}"):
        convert_graph(before.graph, onnx_of(opset))


def test_every_reason_of_every_node_is_listed() -> None:
    ir = Ir().parameter("a", "?,3", "i8").parameter("b", "?,3", "i8").parameter("c", "...", "i8")
    ir.layer("Subtract", "first", ["a", "b"], precision="I8", auto_broadcast="none")
    ir.layer("Multiply", "second", ["c", "b"], precision="I8", auto_broadcast="pdpd")
    ir.layer("Convert", "third", ["a"], destination_type="f8e5m2")
    ir.result("first").result("second").result("third")
    with pytest.raises(ManyProblemsError) as caught:
        convert_graph(eltwise.load(ir.xml()).graph, onnx_of(13))
    reasons = [str(problem) for problem in caught.value.problems]
    assert len(reasons) == 3
    for reason, words in zip(
        reasons,
        (
            r"Subtract-1 node 'first'.*demands equal shapes",
            r"Multiply-1 node 'second'.*rank of operand A is not known",
            r"Convert-1 node 'third'.*Cast-13.*got float8_e5m2",
        ),
        strict=True,
    ):
        assert re.search(words, reason)


def test_one_constant_that_many_nodes_read_is_aligned_once_for_each_shape_and_stays_for_the_rest() -> None:
    weights = numpy_helper.from_array(np.array([1, 2, 4], np.float32), "w")
    nodes = [
        node("Sub", ["x", "w"], ["p"], broadcast=1, axis=0),
        node("Mul", ["p", "w"], ["q"], broadcast=1, axis=1),
        node("Add", ["q", "w"], ["r"], broadcast=1, axis=0),
        node("Sub", ["r", "w"], ["z"], broadcast=1),
    ]
    before = eltwise.load(model(nodes, [value("x", [3, 3, 3])], [value("z", None)], 6, initializers=[weights]))
    after, _report = converted(before, IR11)
    shapes = [tensor.array.shape for _name, tensor in after.graph.constants]
    assert sorted(shapes) == [(1,), (2,), (3,)]
    names = ["Unsqueeze", "Subtract", "Unsqueeze", "Multiply", "Add", "Subtract"]
    assert [made.schema.name for made in after.graph.nodes] == names
    given = {"x": np.arange(27, dtype=np.float32).reshape(3, 3, 3)}
    assert wrong_outputs(after.run(given), before.run(given)) == []


def test_one_value_that_many_nodes_read_is_aligned_once() -> None:
    nodes = [node(kind, ["x", "y"], [kind], broadcast=1, axis=0) for kind in ("Sub", "Mul", "Add")]
    outputs = [value(kind, None) for kind in ("Sub", "Mul", "Add")]
    before = eltwise.load(model(nodes, [value("x", ["N", 3]), value("y", ["N"])], outputs, 6))
    after, report = converted(before, IR11)
    names = [made.schema.name for made in after.graph.nodes]
    assert names == ["Unsqueeze", "Subtract", "Multiply", "Add"]
    assert report.dropped == (
        "the name N of dimension 0 of the input 'x'",
        "the name N of dimension 0 of the input 'y'",
    )
    given = {"x": np.array([[1, 2, 3], [4, 5, 6]], np.float32), "y": np.array([7, 9], np.float32)}
    assert wrong_outputs(after.run(given), before.run(given)) == []


def test_what_a_file_says_of_itself_is_carried_or_dropped_aloud() -> None:
    proto = model([node("Sub", ["x", "w"], ["z"], "minus")], [value("x"), value("w")], [value("z")], 13)
    proto.graph.initializer.append(numpy_helper.from_array(np.ones((2, 3), np.float32), "w"))
    proto.graph.value_info.append(value("z"))
    proto.producer_name = "maker"
    helper.set_model_props(proto, {"author": "somebody", "not a path!": "x"})
    proto.opset_import.append(helper.make_opsetid("com.example", 2))
    after, report = converted(eltwise.load(proto), IR11)
    assert after.graph.metadata == (("author", "somebody"),)
    assert [port.name for port in after.inputs] == ["x"]
    assert report.dropped == (
        "the import of opset 2 of the domain 'com.example', which no node uses",
        "the input 'w', whose default value became a constant",
        "the declared types of 1 value, which are inferred anew",
        "the metadata 'producer_name'",
        "the metadata 'metadata_props.not a path!'",
    )
    back, report = converted(after, onnx_of(13))
    assert (report.dropped, back.graph.metadata) == ((), (("metadata_props.author", "somebody"),))
    assert [(made.name, made.outputs) for made in back.graph.nodes] == [("minus", ("z",))]


def test_limits_of_sizes_and_further_names_are_dropped_aloud() -> None:
    ir = Ir().parameter("a", "2..5,3", names="first,other").parameter("b", "?,3", names="b")
    ir.layer("Subtract", "s", ["a", "b"], names="z,zz").result("s", "r")
    after, report = converted(eltwise.load(ir.xml()), onnx_of(17))
    assert [(port.name, str(port.type)) for port in after.inputs] == [("a", "float32(?,3)"), ("b", "float32(?,3)")]
    assert report.dropped == (
        "the limits 2..5 of dimension 0 of the input 'a'",
        "the further names of the input 'a': 'first', 'other'",
        "the further names of the output 'z': 'zz', 'r'",
    )


def test_a_value_with_several_names_and_an_input_that_is_an_output() -> None:
    ir = Ir().parameter("a", "2", names="a").layer("Subtract", "s", ["a", "a"], names="s")
    ir.result("s", "one", "first").result("s", "two", "second").result("a", "three", "third").result("a", "four")
    before = eltwise.load(ir.xml())
    after, report = converted(before, onnx_of(17))
    assert [port.name for port in after.outputs] == ["first", "second", "third", "a"]
    assert [made.schema.name for made in after.graph.nodes] == ["Sub", "Identity", "Identity"]
    given = {"a": np.array([1, -0.0], np.float32)}
    assert wrong_outputs(after.run(given), before.run(given)) == []
    back, report = converted(after, IR11)
    assert [change.reason for change in report.changes[1:]] == ["it changes nothing but the name of an output"] * 2
    assert wrong_outputs(back.run(given), before.run(given)) == []


def test_an_input_and_another_value_of_one_name_are_refused_in_onnx() -> None:
    ir = Ir().parameter("a", "2").layer("Subtract", "s", ["a", "a"], names="a").result("s", "r")
    with pytest.raises(EltwiseError, match="an input and an output are both called 'a'"):
        convert_graph(eltwise.load(ir.xml()).graph, onnx_of(17))


def test_types_that_ir_10_changes_at_its_ports_are_refused() -> None:
    half = binary("Subtract", "2", "2", "f16")
    with pytest.raises(ManyProblemsError, match="takes float32 at this input, got float16") as caught:
        convert_graph(eltwise.load(half.xml()).graph, IR10)
    assert len(caught.value.problems) == 3
    less = model([node("Less", ["x", "y"], ["z"])], [value("x"), value("y")], [value("z", None, TensorProto.BOOL)])
    for source, got in ((binary("Subtract", "2", "2", "i64").xml(), "int64"), (less, "bool")):
        with pytest.raises(EltwiseError, match=f"gives every output as int32 or float32, got {got}; version 11 keeps"):
            convert_graph(eltwise.load(source).graph, IR10)
