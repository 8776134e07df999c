"""ONNX models read and written: every opset, every neighbour, optional inputs, old files, and back again."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import ModelProto, TensorProto, helper, numpy_helper

import eltwise
from eltwise.core.dtypes import BFLOAT16, FLOAT32, INT64, UINT8
from eltwise.core.errors import FileFormatError, UnsupportedError
from eltwise.core.shapes import UNKNOWN_RANK, parse
from eltwise.formats.onnx import writer
from eltwise.formats.onnx.reader import read_model_proto, read_onnx
from eltwise.formats.onnx.writer import write_onnx, write_onnx_file
from eltwise.ir.graph import Graph, Node, Origin, Port, Tensor
from eltwise.ir.infer_graph import infer_graph
from eltwise.ir.types import TensorType
from eltwise.ops import registry
from support.onnx_models import (
    NEIGHBOURS,
    NEWEST,
    all_problems,
    model,
    neighbour_model,
    node,
    read,
    sub_model,
    there_and_back,
    value,
    written_anew,
)

EMPTY = helper.make_empty_tensor_value_info("z")


@pytest.mark.parametrize("opset", range(1, NEWEST + 1))
def test_every_operator_in_every_opset(opset: int) -> None:
    made = {name: neighbour_model(name, opset) for name in NEIGHBOURS}
    made["Sub"] = sub_model(opset, **({"broadcast": 1, "axis": 0} if opset < 7 else {}))  # type: ignore[arg-type]
    for op_type, proto in made.items():
        assert all_problems(read(proto)) == []
        graph = there_and_back(proto)
        assert graph.nodes[0].schema.version == onnx.defs.get_schema(op_type, opset, "").since_version
        assert graph.origin == Origin("ai.onnx", 8, opset)
        onnx.checker.check_model(write_onnx(written_anew(graph)))


def attribute(opset: int, **attributes: Any) -> tuple[tuple[str, object], ...]:
    return written_anew(there_and_back(sub_model(opset, **attributes))).nodes[0].operation.attributes


def test_attributes() -> None:
    assert attribute(1, broadcast=1, axis=-1, consumed_inputs=[0, 0]) == (
        ("axis", -1),
        ("broadcast", 1),
        ("consumed_inputs", (0, 0)),
    )
    for name, number in (
        ("value_int", -5),
        ("value_ints", (1, -(2**63))),
        ("value_float", 0.5),
        ("value_floats", (0.5, float("inf"))),
    ):
        proto = model([node("Constant", [], ["z"], **{name: number})], [], [EMPTY])  # type: ignore[arg-type]
        assert written_anew(there_and_back(proto)).nodes[0].operation.attributes == ((name, number),)
    not_a_number = node("Constant", [], ["z"], value_floats=[float("nan"), 1.0])
    written_anew(there_and_back(model([not_a_number], [], [EMPTY])))
    in_words, by_number = there_and_back(neighbour_model("Cast", 1)), there_and_back(neighbour_model("Cast", 6))
    assert in_words.nodes[0].operation.value("to") is by_number.nodes[0].operation.value("to")


def test_attributes_that_are_zero_or_have_no_type() -> None:
    proto = sub_model(6)
    proto.graph.node[0].attribute.add(name="axis", type=onnx.AttributeProto.INT)
    assert read(proto).graph.nodes[0].operation.attributes == (("axis", 0),)
    proto = sub_model(1, broadcast=1)
    proto.ir_version = 1
    del proto.opset_import[:]
    proto.graph.node[0].attribute[0].ClearField("type")
    assert read(proto).problems == ()
    assert there_and_back(proto).nodes[0].operation.attributes == (("broadcast", 1),)


@pytest.mark.parametrize("ir_version", [1, 2])
def test_old_files_have_opset_1_without_saying_so(ir_version: int) -> None:
    proto = model([node("Sub", ["x", "y"], ["z"])], [value("x"), value("y")], [value("z")], ir_version=ir_version)
    graph = there_and_back(proto)
    assert graph.origin == Origin("ai.onnx", ir_version, 1)
    assert graph.nodes[0].schema.versioned_name == "Sub-1"
    assert not ModelProto.FromString(write_onnx(written_anew(graph))).opset_import


@pytest.mark.parametrize(("ir_version", "shape"), [(3, "3,2"), (4, "?,?")])
def test_an_initializer_that_is_an_input_is_a_default(ir_version: int, shape: str) -> None:
    target = numpy_helper.from_array(np.array([3, 2], np.int64), "target")
    inputs = [value("target", (2,), TensorProto.INT64), value("x")]
    nodes = [node("Reshape", ["x", "target"], ["z"])]
    graph = there_and_back(model(nodes, inputs, [EMPTY], 5, ir_version, [target]))
    assert graph.inputs == (Port("x", TensorType(FLOAT32, parse("2,3")), "x"),)
    assert graph.optional_inputs == (Port("target", TensorType(INT64, parse("2")), "target"),)
    assert graph.input_order == ("target", "x")
    assert str(infer_graph(graph).outputs[0].type.shape) == shape


def test_an_initializer_of_an_old_file_need_not_be_an_input() -> None:
    y = numpy_helper.from_array(np.ones((2, 3), np.float32), "y")
    proto = model([node("Sub", ["x", "y"], ["z"])], [value("x")], [value("z")], 7, 3, [y])
    assert all_problems(read(proto)) == []
    assert there_and_back(proto).optional_inputs == ()


def test_types_of_values() -> None:
    inputs = [value("a", ("N", None, 4)), value("b", ()), value("c", None), value("d", ("?",)), value("e", ("s0 + 1",))]
    nodes = [node("Identity", [name], [name.upper()]) for name in "abcde"]
    outputs = [helper.make_empty_tensor_value_info(name) for name in "ABCDE"]
    graph = written_anew(there_and_back(model(nodes, inputs, outputs, declared=[value("unused", ("M", 2))])))
    assert [str(port.type.shape) for port in graph.inputs] == ["N,?,4", "", "...", "?", "s0 + 1"]
    assert {port.type for port in graph.outputs} == {TensorType(None, UNKNOWN_RANK)}
    assert graph.declared == (("unused", TensorType(FLOAT32, parse("M,2"))),)
    proto = sub_model()
    proto.graph.output[0].type.tensor_type.ClearField("elem_type")
    assert there_and_back(proto).outputs[0].type == TensorType(None, parse("2,3"))


def test_what_a_file_says_of_itself_is_kept() -> None:
    proto = sub_model()
    proto.producer_name, proto.producer_version, proto.domain = "maker", "1.2", ""
    proto.model_version, proto.doc_string, proto.graph.doc_string = -3, "text\n", "\N{GREEK SMALL LETTER PI}"
    proto.metadata_props.add(key="b", value="1")
    proto.metadata_props.add(key="a", value="")
    proto.graph.metadata_props.add(key="", value="2")
    proto.opset_import.add(domain="com.example", version=4)
    graph = there_and_back(proto)
    assert ("graph.doc_string", "\N{GREEK SMALL LETTER PI}") in graph.metadata
    assert ("metadata_props.a", "") in graph.metadata
    assert graph.origin.other_opsets == (("com.example", 4),)
    assert ModelProto.FromString(write_onnx(written_anew(graph))) == proto


def test_the_domain_may_be_written_out() -> None:
    proto = sub_model()
    proto.opset_import[0].domain = proto.graph.node[0].domain = "ai.onnx"
    assert there_and_back(proto) == there_and_back(sub_model())


def constants(**arrays: np.ndarray) -> list[TensorProto]:
    return [numpy_helper.from_array(array, name) for name, array in arrays.items()]


def test_external_data_beside_the_model(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    arrays = {"a": rng.random((16, 16), np.float32), "b": rng.random(3, np.float32), "c": rng.random(300, np.float64)}
    constant = node("Constant", [], ["z"], value=numpy_helper.from_array(np.arange(200, dtype=np.int64)))
    output = value("z", (200,), TensorProto.INT64)
    graph = read(model([constant], [], [output], initializers=constants(**arrays))).graph  # type: ignore[arg-type]
    path = tmp_path / "large.onnx"
    write_onnx_file(graph, path, external_data=True)
    written = onnx.load(path, load_external_data=False).graph
    tensors = [*written.initializer, written.node[0].attribute[0].t]
    outside = [tensor for tensor in tensors if tensor.data_location == TensorProto.EXTERNAL]
    assert [tensor.name for tensor in outside] == ["a", "c", ""]
    places = [{entry.key: entry.value for entry in tensor.external_data} for tensor in outside]
    assert [int(place["offset"]) for place in places] == [4096, 8192, 0]
    assert {place["location"] for place in places} == {"large.onnx.data"}
    assert (tmp_path / "large.onnx.data").stat().st_size == 8192 + 2400
    onnx.checker.check_model(str(path))
    again = read_onnx(path.read_bytes(), path, "large.onnx")
    assert (again.problems, again.graph.constants) == ((), graph.constants)
    for array, tensor in zip(arrays.values(), onnx.load(path).graph.initializer, strict=True):
        np.testing.assert_array_equal(numpy_helper.to_array(tensor), array)
    assert read_onnx(write_onnx(again.graph), None, "").graph == graph
    (tmp_path / "elsewhere").mkdir()
    for place, same in ((tmp_path / "copy.onnx", True), (tmp_path / "elsewhere" / "copy.onnx", False)):
        eltwise.save(eltwise.load(path), place)
        assert (place.read_bytes() == path.read_bytes()) == same
        assert eltwise.load(place).graph.constants == graph.constants


def test_small_constants_need_no_file_beside_the_model(tmp_path: Path) -> None:
    write_onnx_file(read(sub_model()).graph, tmp_path / "small.onnx", external_data=True)
    assert [path.name for path in tmp_path.iterdir()] == ["small.onnx"]


def test_many_constants_go_beside_the_model_unasked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "LARGEST_INSIDE", 4096)
    kept, output = node("Identity", ["w"], ["z"]), value("z", (2000,), TensorProto.INT64)
    graph = read(model([kept], [], [output], initializers=constants(w=np.arange(2000, dtype=np.int64)))).graph
    write_onnx_file(graph, tmp_path / "m.onnx")
    assert (tmp_path / "m.onnx.data").stat().st_size == 16000
    assert read_onnx((tmp_path / "m.onnx").read_bytes(), tmp_path / "m.onnx", "").graph == graph
    (problem,) = all_problems(read_onnx((tmp_path / "m.onnx").read_bytes(), None, "m.onnx"))
    assert "initializer 'w': the data lies outside the model" in str(problem)


PORT = Port("x", TensorType(FLOAT32, parse("2")), "x")
INTERVAL = Port("x", TensorType(FLOAT32, parse("2..5")), "x")
OLDER = Node("n", registry.find("Sub-7").bind({}), ("x", "x"), ("z",))
MEBIBYTE = Tensor(np.broadcast_to(np.zeros(1, np.uint8), (2**20,)), UINT8)
REFUSED: list[tuple[Graph, type[Exception], str]] = [
    (
        Graph("g", Origin("openvino", 11), (PORT,), (PORT,)),
        UnsupportedError,
        "OpenVINO model cannot be written as ONNX",
    ),
    (Graph("g", Origin("ai.onnx", 2, 13), (PORT,), (PORT,)), UnsupportedError, "ir_version 2 cannot import opsets"),
    (
        Graph("g", Origin("ai.onnx", 8, 13), (PORT,), (), (OLDER,)),
        UnsupportedError,
        "Sub-7 node 'n': a model of opset 13 .* allowed: Sub-13",
    ),
    (
        Graph("g", Origin("ai.onnx", 8, 13), (INTERVAL,), (INTERVAL,)),
        UnsupportedError,
        r"'x': ONNX cannot state an interval of sizes, got 2\.\.5",
    ),
    (
        Graph("g", Origin("ai.onnx", 8, 13), (), (), constants=tuple((f"c{index}", MEBIBYTE) for index in range(2048))),
        FileFormatError,
        "external data",  # Before any of it is copied.
    ),
]


@pytest.mark.parametrize(("graph", "kind", "sentence"), REFUSED)
def test_what_cannot_be_written(graph: Graph, kind: type[Exception], sentence: str) -> None:
    with pytest.raises(kind, match=sentence):
        write_onnx(graph)


def test_an_output_folder_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(FileFormatError, match="folder does not exist"):
        write_onnx_file(read(sub_model()).graph, tmp_path / "none" / "model.onnx")


def test_a_model_proto_is_not_changed() -> None:
    proto = neighbour_model("Reshape", 14)
    before = proto.SerializeToString(deterministic=True)
    write_onnx(replace(read_model_proto(proto).graph, name="other"))
    assert proto.SerializeToString(deterministic=True) == before


# Random models, valid or not.

NAMES = st.sampled_from(["x", "y", "w", "weights/0", "", "\N{SNOWMAN}"])
SIZES = st.lists(st.one_of(st.integers(0, 3), st.sampled_from(["N", "M+1", None])), max_size=3)
TYPES = st.sampled_from([1, 2, 3, 7, 9, 10, 16, 17, 21, 22])


@st.composite
def tensors(draw: st.DrawFn) -> TensorProto:
    shape = draw(st.lists(st.integers(0, 3), max_size=3))
    element_type = draw(st.sampled_from([np.float32, np.float16, np.int64, np.uint8, np.bool_, BFLOAT16.storage]))
    array = np.frombuffer(draw(st.binary(min_size=216, max_size=216)), np.uint8)[: int(np.prod(shape))] % 2
    return numpy_helper.from_array(array.astype(element_type).reshape(shape), draw(NAMES.filter(bool)))  # type: ignore[call-overload]


@st.composite
def nodes_of(draw: st.DrawFn, opset: int) -> onnx.NodeProto:
    op_type = draw(st.sampled_from(["Sub", *NEIGHBOURS]))
    schema = registry.resolve("ai.onnx", op_type, opset)
    assert schema is not None
    values = {
        "int": st.integers(0, 1),
        "ints": st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=3),
        "float": st.floats(width=32),
        "floats": st.lists(st.floats(width=32), min_size=1, max_size=3),
        "string": st.just("up"),
        "element type": st.just("FLOAT") if opset < 6 else TYPES,
        "tensor": tensors(),
    }
    attributes = {
        a.name: draw(values[a.kind])
        for a in schema.attributes
        if a.required or (draw(st.booleans()) and a.kind in values)
    }
    inputs = draw(st.lists(NAMES, max_size=3))
    return node(op_type, inputs, [draw(NAMES.filter(bool))], draw(NAMES), **attributes)


@st.composite
def models(draw: st.DrawFn) -> ModelProto:
    opset = draw(st.integers(1, NEWEST))
    ports = st.builds(value, NAMES.filter(bool), st.one_of(st.none(), SIZES), TYPES)
    unique: Callable[[int], st.SearchStrategy[list[onnx.ValueInfoProto]]] = lambda count: st.lists(  # noqa: E731
        ports, max_size=count, unique_by=lambda port: port.name
    )
    proto = model(
        draw(st.lists(nodes_of(opset), max_size=4)),
        draw(unique(3)),
        draw(unique(2)),
        opset,
        draw(st.integers(3, onnx.IR_VERSION)),
        draw(st.lists(tensors(), max_size=3)),
        draw(unique(2)),
    )
    proto.producer_name = draw(NAMES)
    return proto


@settings(max_examples=200)
@given(models())
def test_any_model_comes_back_as_it_was(proto: ModelProto) -> None:
    there_and_back(proto)
    all_problems(read(proto))
