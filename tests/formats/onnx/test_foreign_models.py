"""Any ONNX model is read as a graph and written as the same bytes, and what a pass changes is all that changes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import eltwise
from eltwise.core.errors import EltwiseError, UnsupportedError
from eltwise.formats.onnx.reader import read_onnx
from eltwise.formats.onnx.writer import kept_bytes, write_model_proto
from eltwise.ir.graph import Foreign, Graph, Node
from eltwise.passes.analysis import all_scopes
from support.onnx_models import model, node, published, sub_model, value

UNKNOWN_FIELD = b"\xf2\xe2\x09\x03new"


def graph_of(data: bytes) -> Graph:
    return read_onnx(data, None, "", reads_weights=False).graph


def touched(graph: Graph) -> Graph:
    """The same graph made anew: every node and every graph in one is written from its fields."""

    def new(found: Node) -> Node:
        if isinstance(found.operation, Foreign):
            graphs = tuple((name, touched(inner)) for name, inner in found.graphs)
            return replace(found, operation=replace(found.operation, graphs=graphs))
        return replace(found)

    functions = tuple(replace(function, body=touched(function.body)) for function in graph.functions)
    return replace(graph, nodes=tuple(map(new, graph.nodes)), functions=functions)


@pytest.mark.slow
def test_every_model_of_onnx_is_written_as_it_was() -> None:
    models = published()
    assert len(models) > 1000
    for name, data in models.items():
        graph = graph_of(data)
        assert kept_bytes(graph)[0] == data, name
        assert write_model_proto(touched(graph)).SerializeToString() == data, name


def test_what_a_file_says_in_another_order_or_in_fields_of_later_days_is_kept() -> None:
    data = sub_model().SerializeToString()
    made = onnx.ModelProto.FromString(data)
    made.ClearField("graph")
    reordered = onnx.ModelProto(graph=sub_model().graph).SerializeToString() + made.SerializeToString() + UNKNOWN_FIELD
    assert reordered != data
    assert kept_bytes(graph_of(reordered))[0] == reordered
    graph = graph_of(reordered)
    changed = replace(graph, nodes=tuple(replace(found, name="other") for found in graph.nodes))
    written = kept_bytes(changed)[0]
    assert written.endswith(UNKNOWN_FIELD)
    assert [found.name for found in onnx.ModelProto.FromString(written).graph.node] == ["other"]


def foreign_model() -> onnx.ModelProto:
    body = helper.make_graph([node("Relu", ["x"], ["p"], "inner")], "body", [], [value("p", (2, 3))])
    other = helper.make_graph([node("Neg", ["x"], ["q"])], "other", [], [value("q", (2, 3))])
    nodes = [
        node("If", ["c"], ["y"], "choice", then_branch=body, else_branch=other),
        node("Sub", ["y", "x"], ["z"], "minus"),
        node("Gelu", ["z"], ["w"], "theirs", alpha=0.5),
    ]
    nodes[-1].domain = "com.example"
    made = model(nodes, [value("x"), value("c", (), TensorProto.BOOL)], [value("w")], 17)
    made.opset_import.add(domain="com.example", version=1)
    made.graph.sparse_initializer.add().values.CopyFrom(numpy_helper.from_array(np.array([1], np.float32), "s"))
    return made


def test_foreign_operators_are_nodes_with_their_graphs() -> None:
    graph = graph_of(foreign_model().SerializeToString())
    assert [found.schema.versioned_name for found in graph.nodes] == ["If-16", "Sub-14", "com.example.Gelu"]
    assert [found.is_foreign for found in graph.nodes] == [True, False, True]
    assert [(name, inner.nodes[0].schema.name) for name, inner in graph.nodes[0].graphs] == [
        ("else_branch", "Neg"),
        ("then_branch", "Relu"),
    ]
    scopes = list(all_scopes(graph))
    assert [scope.graph.name for scope in scopes] == ["graph", "other", "body"]
    assert str(scopes[0].type_of("y")) == "float32(2,3)"
    assert str(scopes[1].type_of("x")) == "float32(2,3)"
    assert scopes[1].producer("x") is None
    assert scopes[0].producer("z") is graph.nodes[1]
    assert [found.label for found in scopes[0].consumers["x"]] == ["choice", "minus"]


def test_a_model_with_foreign_operators_is_converted_and_saved_but_not_run(tmp_path: Path) -> None:
    made = foreign_model()
    made.graph.ClearField("sparse_initializer")
    with pytest.raises(UnsupportedError, match=r"If-16 node 'choice', com\.example\.Gelu node 'theirs'"):
        eltwise.load(made)
    converted, report = eltwise.convert(made, opset=21)
    assert report.after == "ONNX opset 21"
    with pytest.raises(UnsupportedError, match=r"com\.example\.Gelu node 'theirs'"):
        converted.run({"x": np.ones((2, 3), np.float32), "c": np.array(True)})
    eltwise.save(converted, tmp_path / "new.onnx")
    saved = onnx.load(tmp_path / "new.onnx")
    assert saved == converted.proto()
    assert {entry.domain: entry.version for entry in saved.opset_import} == {"": 21, "com.example": 1}


def nested(depth: int) -> onnx.TypeProto:
    found = onnx.TypeProto()
    inner = found
    for _level in range(depth):
        inner = inner.sequence_type.elem_type
    inner.tensor_type.elem_type = TensorProto.FLOAT
    return found


@pytest.mark.parametrize("depth", [1, 2, 40])
def test_types_that_are_nested_are_read(depth: int) -> None:
    made = sub_model()
    made.graph.input.add(name="s").type.CopyFrom(nested(depth))
    converted, _report = eltwise.convert(made, opset=14)
    assert converted.proto().graph.input[2] == made.graph.input[2]
    with pytest.raises(EltwiseError, match="sequence"):
        eltwise.load(made)


@pytest.mark.parametrize("number", [99, -1, 2**31 - 1])
def test_element_types_that_onnx_does_not_know_are_refused_in_a_sentence(number: int) -> None:
    made = sub_model()
    made.graph.value_info.add(name="q").type.tensor_type.elem_type = number
    eltwise.convert(made, opset=14)  # Nothing has this value.
    made.graph.input[0].type.tensor_type.elem_type = number
    with pytest.raises(EltwiseError, match=f"no element type of this number, got {number}"):
        eltwise.convert(made, opset=14)
