"""ONNX models read and written: every opset, every neighbour, optional inputs, old files, and back again."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from eltwise.core.dtypes import FLOAT32, INT64, UINT8
from eltwise.core.errors import FileFormatError, GraphError, UnsupportedError
from eltwise.core.shapes import UNKNOWN_RANK, parse
from eltwise.formats.onnx import writer as onnx_writer
from eltwise.formats.onnx.reader import read_model_proto, read_onnx
from eltwise.formats.onnx.writer import write_onnx, write_onnx_file
from eltwise.ir.graph import Graph, Node, Origin, Port, Tensor, TensorType
from eltwise.ir.infer_graph import infer_graph
from eltwise.ops import registry
from onnx_models import (
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
)

OPSETS = range(1, NEWEST + 1)


@pytest.mark.parametrize("opset", OPSETS)
def test_every_opset_selects_its_row_of_sub(opset: int) -> None:
    attributes = {"broadcast": 1, "axis": 0} if opset < 7 else {}
    proto = sub_model(opset, **attributes)
    assert all_problems(read(proto)) == []
    graph = there_and_back(proto)
    version = max(schema.version for schema in registry.ELEMENTWISE if schema.name == "Sub" and schema.version <= opset)
    assert [found.schema.versioned_name for found in graph.nodes] == [f"Sub-{version}"]
    assert graph.origin == Origin("ai.onnx", 8, opset)
    onnx.checker.check_model(write_onnx(graph))


@pytest.mark.parametrize("opset", OPSETS)
@pytest.mark.parametrize("op_type", NEIGHBOURS)
def test_every_neighbour_in_every_opset(op_type: str, opset: int) -> None:
    proto = neighbour_model(op_type, opset)
    assert all_problems(read(proto)) == []
    graph = there_and_back(proto)
    assert graph.nodes[0].schema.version == onnx.defs.get_schema(op_type, opset, "").since_version
    onnx.checker.check_model(write_onnx(graph))


def test_cast_1_names_the_element_type_in_words_and_cast_6_by_number() -> None:
    in_words = there_and_back(neighbour_model("Cast", 1))
    by_number = there_and_back(neighbour_model("Cast", 6))
    assert in_words.nodes[0].operation.value("to") is by_number.nodes[0].operation.value("to")
    assert onnx.ModelProto.FromString(write_onnx(in_words)).graph.node[0].attribute[0].s == b"DOUBLE"
    assert onnx.ModelProto.FromString(write_onnx(by_number)).graph.node[0].attribute[0].i == TensorProto.DOUBLE


def test_all_attributes_of_sub_1() -> None:
    graph = there_and_back(sub_model(1, broadcast=1, axis=-1, consumed_inputs=[0, 0]))
    operation = graph.nodes[0].operation
    assert operation.given == (("axis", -1), ("broadcast", 1), ("consumed_inputs", (0, 0)))


def test_a_number_that_is_zero_may_be_left_out_as_protobuf_3_does() -> None:
    proto = sub_model(6)
    proto.graph.node[0].attribute.add(name="axis", type=onnx.AttributeProto.INT)
    assert read(proto).graph.nodes[0].operation.given == (("axis", 0),)


def test_attributes_of_ir_version_1_have_no_type() -> None:
    proto = sub_model(1, broadcast=1)
    proto.ir_version = 1
    del proto.opset_import[:]
    proto.graph.node[0].attribute[0].ClearField("type")
    assert read(proto).problems == ()
    assert there_and_back(proto).nodes[0].operation.given == (("broadcast", 1),)


@pytest.mark.parametrize("ir_version", [1, 2])
def test_old_files_have_opset_1_without_saying_so(ir_version: int) -> None:
    proto = model([node("Sub", ["x", "y"], ["z"])], [value("x"), value("y")], [value("z")], ir_version=ir_version)
    graph = there_and_back(proto)
    assert graph.origin == Origin("ai.onnx", ir_version, 1)
    assert graph.nodes[0].schema.versioned_name == "Sub-1"
    assert not onnx.ModelProto.FromString(write_onnx(graph)).opset_import


@pytest.mark.parametrize(("ir_version", "shape"), [(3, "3,2"), (4, "?,?")])
def test_an_initializer_that_is_an_input_is_a_default(ir_version: int, shape: str) -> None:
    target = numpy_helper.from_array(np.array([3, 2], np.int64), "target")
    inputs = [value("target", (2,), TensorProto.INT64), value("x")]
    nodes = [node("Reshape", ["x", "target"], ["z"])]
    proto = model(nodes, inputs, [helper.make_empty_tensor_value_info("z")], 5, ir_version, [target])
    graph = there_and_back(proto)
    assert graph.inputs == (Port("x", TensorType(FLOAT32, parse("2,3")), "x"),)
    assert graph.optional_inputs == (Port("target", TensorType(INT64, parse("2")), "target"),)
    assert graph.input_order == ("target", "x")
    assert str(infer_graph(graph).outputs[0].type.shape) == shape


def test_an_initializer_of_an_old_file_need_not_be_an_input() -> None:
    y = numpy_helper.from_array(np.ones((2, 3), np.float32), "y")
    proto = model([node("Sub", ["x", "y"], ["z"])], [value("x")], [value("z")], 7, 3, [y])
    assert all_problems(read(proto)) == []
    assert there_and_back(proto).optional_inputs == ()


def test_dimensions_known_symbolic_and_unknown() -> None:
    inputs = [value("a", ("N", None, 4)), value("b", ()), value("c", None), value("d", ("?",)), value("e", ("s0 + 1",))]
    nodes = [node("Identity", [name], [name.upper()]) for name in "abcde"]
    outputs = [helper.make_empty_tensor_value_info(name) for name in "ABCDE"]
    graph = there_and_back(model(nodes, inputs, outputs, declared=[value("unused", ("M", 2))]))
    assert [str(port.type.shape) for port in graph.inputs] == ["N,?,4", "", "...", "?", "s0 + 1"]
    assert {port.type for port in graph.outputs} == {TensorType(None, UNKNOWN_RANK)}
    assert graph.declared == (("unused", TensorType(FLOAT32, parse("M,2"))),)


def test_an_output_with_a_shape_but_no_element_type() -> None:
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
    assert dict(graph.metadata) == {
        "producer_name": "maker",
        "producer_version": "1.2",
        "domain": "",
        "model_version": "-3",
        "doc_string": "text\n",
        "metadata_props.b": "1",
        "metadata_props.a": "",
        "graph.doc_string": "\N{GREEK SMALL LETTER PI}",
        "graph.metadata_props.": "2",
    }
    assert graph.origin.other_opsets == (("com.example", 4),)
    assert onnx.ModelProto.FromString(write_onnx(graph)) == proto


def test_the_domain_may_be_written_out() -> None:
    proto = sub_model()
    proto.opset_import[0].domain = proto.graph.node[0].domain = "ai.onnx"
    assert there_and_back(proto) == there_and_back(sub_model())


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        ({"value_int": -5}, ("value_int", -5)),
        ({"value_ints": [1, -(2**63)]}, ("value_ints", (1, -(2**63)))),
        ({"value_float": 0.5}, ("value_float", 0.5)),
        ({"value_floats": [0.5, float("inf")]}, ("value_floats", (0.5, float("inf")))),
    ],
)
def test_constants_in_attributes(attributes: dict[str, object], expected: object) -> None:
    proto = model([node("Constant", [], ["z"], **attributes)], [], [helper.make_empty_tensor_value_info("z")])
    assert there_and_back(proto).nodes[0].operation.given == (expected,)


def test_not_a_number_in_an_attribute_is_equal_to_itself() -> None:
    constant = node("Constant", [], ["z"], value_floats=[float("nan"), 1.0])
    there_and_back(model([constant], [], [helper.make_empty_tensor_value_info("z")]))


def test_external_data_beside_the_model(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    arrays = [rng.random((16, 16), np.float32), rng.random(3, np.float32), rng.random(300, np.float64)]
    tensors = [numpy_helper.from_array(array, f"t{index}") for index, array in enumerate(arrays)]
    constant = node("Constant", [], ["z"], value=numpy_helper.from_array(np.arange(200, dtype=np.int64)))
    output = value("z", (200,), TensorProto.INT64)
    graph = read(model([constant], [], [output], initializers=tensors)).graph
    path = tmp_path / "large.onnx"
    write_onnx_file(graph, path, external_data=True)
    beside = tmp_path / "large.onnx.data"
    written = onnx.load(path, load_external_data=False)
    kept = [tensor.name for tensor in written.graph.initializer if tensor.data_location == TensorProto.EXTERNAL]
    assert kept == ["t0", "t2"]
    offsets = [
        int(entry.value) for t in written.graph.initializer for entry in t.external_data if entry.key == "offset"
    ]
    assert all(offset % 4096 == 0 for offset in offsets)
    assert beside.stat().st_size >= 1024 + 2400 + 1600
    again = read_onnx(path.read_bytes(), tmp_path, "large.onnx")
    assert again.problems == ()
    assert again.graph == graph
    loaded = onnx.load(path)
    for array, tensor in zip(arrays, loaded.graph.initializer, strict=True):
        np.testing.assert_array_equal(numpy_helper.to_array(tensor), array)
    onnx.checker.check_model(str(path))
    write_onnx_file(graph, path)
    assert read_onnx(path.read_bytes(), None, "").graph == graph


def test_small_constants_need_no_file_beside_the_model(tmp_path: Path) -> None:
    write_onnx_file(read(sub_model()).graph, tmp_path / "small.onnx", external_data=True)
    assert [path.name for path in tmp_path.iterdir()] == ["small.onnx"]


def test_many_constants_go_beside_the_model_unasked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onnx_writer, "LARGEST_INSIDE", 4096)
    w = numpy_helper.from_array(np.arange(2000, dtype=np.int64), "w")
    kept = node("Identity", ["w"], ["z"])
    graph = read(model([kept], [], [value("z", (2000,), TensorProto.INT64)], initializers=[w])).graph
    write_onnx_file(graph, tmp_path / "m.onnx")
    assert (tmp_path / "m.onnx.data").stat().st_size == 16000
    assert read_onnx((tmp_path / "m.onnx").read_bytes(), tmp_path, "").graph == graph
    reading = read_onnx((tmp_path / "m.onnx").read_bytes(), None, "m.onnx")
    assert "initializer 'w': the data lies outside the model" in str(reading.problems[0])
    assert [str(found.type) for found in infer_graph(reading.graph).outputs] == ["int64(2000)"]


def test_an_openvino_graph_cannot_be_written_as_onnx() -> None:
    port = Port("x", TensorType(FLOAT32, parse("2")), "x")
    graph = Graph("g", Origin("openvino", 11), (port,), (port,))
    with pytest.raises(UnsupportedError, match="OpenVINO model cannot be written as ONNX"):
        write_onnx(graph)


def test_a_node_of_another_opset_cannot_be_written() -> None:
    graph = read(sub_model(13)).graph
    older = registry.find("Sub-7").bind({})
    wrong = Graph("g", graph.origin, graph.inputs, graph.outputs, (Node("n", older, ("x", "y"), ("z",)),))
    with pytest.raises(UnsupportedError, match=r"Sub-7 node 'n': a model of opset 13 .* allowed: Sub-13"):
        write_onnx(wrong)


def test_an_interval_cannot_be_written() -> None:
    port = Port("x", TensorType(FLOAT32, parse("2..5")), "x")
    with pytest.raises(UnsupportedError, match=r"'x': ONNX cannot state an interval of sizes, got 2\.\.5"):
        write_onnx(Graph("g", Origin("ai.onnx", 8, 13), (port,), (port,)))


def test_more_than_a_message_holds_is_refused_before_it_is_copied() -> None:
    zeros = np.broadcast_to(np.zeros(1, np.uint8), (2**20,))
    tensor = Tensor(zeros, UINT8)
    constants = tuple((f"c{index}", tensor) for index in range(2048))
    graph = Graph("g", Origin("ai.onnx", 8, 13), (), (), constants=constants)
    with pytest.raises(FileFormatError, match="external data"):
        write_onnx(graph)


def test_an_output_folder_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(FileFormatError, match="folder does not exist"):
        write_onnx_file(read(sub_model()).graph, tmp_path / "none" / "model.onnx")


def test_a_model_proto_is_not_changed() -> None:
    proto = neighbour_model("Reshape", 14)
    before = proto.SerializeToString(deterministic=True)
    read_model_proto(proto, None, "")
    assert proto.SerializeToString(deterministic=True) == before


def test_a_cycle_is_found_by_the_structure() -> None:
    nodes = [node("Sub", ["x", "b"], ["a"], "first"), node("Identity", ["a"], ["b"], "second")]
    problems = all_problems(read(model(nodes, [value("x")], [value("a")])))
    assert [type(problem) for problem in problems] == [GraphError]
    assert "first -> second -> first" in str(problems[0]) or "second -> first -> second" in str(problems[0])
