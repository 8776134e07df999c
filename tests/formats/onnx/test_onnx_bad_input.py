"""ONNX models that are wrong: one sentence for each, with the operator's version, the node and what was found."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, TensorShapeProto, helper, numpy_helper

from eltwise.core.errors import EltwiseError, FileFormatError, UnsupportedError
from eltwise.formats.onnx import nodes
from eltwise.formats.onnx.reader import is_model_proto, read_model_proto, read_onnx
from eltwise.formats.reading import operator_names
from eltwise.ops import registry
from support.onnx_models import all_problems, model, neighbour_model, node, sub_model, value

Change = Callable[[ModelProto], object]
EMPTY = helper.make_empty_tensor_value_info("z")
SHORT = TensorProto(dims=[2], data_type=TensorProto.FLOAT, raw_data=b"1234")


def sentences(proto: ModelProto) -> list[str]:
    return [str(problem) for problem in all_problems(read_onnx(proto.SerializeToString(), None, "m.onnx"))]


def changed(proto: ModelProto, change: Change) -> ModelProto:
    change(proto)
    return proto


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"", "the file is empty"),
        (b"hello", "not an ONNX model"),
        (b"<?xml version='1.0'?><net/>", "not an ONNX model"),
        (b"\x08\x07", "no graph"),
        (b"\x3a\x00", "no ir_version"),
        (sub_model().SerializeToString()[:-3], "part of it is missing"),
        (
            sub_model().SerializeToString().replace(b"difference", b"differenc\xff"),
            "the name of a NodeProto is not UTF-8 text",
        ),
    ],
)
def test_what_is_no_model(data: bytes, sentence: str) -> None:
    with pytest.raises(FileFormatError, match=f"m.onnx: .*{sentence}"):
        read_onnx(data, None, "m.onnx")


def test_every_truncation_is_refused() -> None:
    data = sub_model().SerializeToString()
    for length in range(len(data)):
        with pytest.raises(EltwiseError, match=r"m\.onnx: "):
            read_onnx(data[:length], None, "m.onnx")


def test_a_description_that_is_not_utf8_and_not_read() -> None:
    proto = sub_model()
    proto.graph.node[0].doc_string = "description"
    data = proto.SerializeToString().replace(b"description", b"descriptio\xff")
    assert read_onnx(data, None, "m.onnx").problems == ()


WHOLE: list[tuple[Change, type[EltwiseError], str]] = [
    (lambda m: m.ClearField("ir_version"), FileFormatError, "no ir_version"),
    (lambda m: setattr(m, "ir_version", 0), FileFormatError, "ir_version is not allowed, got 0"),
    (lambda m: setattr(m, "ir_version", 99), UnsupportedError, "newer than the installed onnx package knows, got 99"),
    (lambda m: m.ClearField("opset_import"), FileFormatError, "no opset of the domain ai.onnx is imported"),
    (lambda m: setattr(m.opset_import[0], "domain", "x"), FileFormatError, "no opset .* got 'x'"),
    (lambda m: setattr(m.opset_import[0], "version", 0), FileFormatError, "opset is not allowed, got 0; allowed: 1 to"),
    (lambda m: setattr(m.opset_import[0], "version", -1), FileFormatError, "opset is not allowed, got -1"),
    (lambda m: setattr(m.opset_import[0], "version", 1000), UnsupportedError, "opset is newer .* got 1000"),
    (
        lambda m: m.opset_import.add(domain="ai.onnx", version=12),
        FileFormatError,
        "two opsets of the domain 'ai.onnx' are imported",
    ),
    (lambda m: setattr(m, "ir_version", 2), FileFormatError, "ir_version 2 cannot import opsets"),
]


@pytest.mark.parametrize(("change", "kind", "sentence"), WHOLE)
def test_a_model_that_is_refused_as_a_whole(change: Change, kind: type[EltwiseError], sentence: str) -> None:
    proto = changed(sub_model(), change)
    with pytest.raises(kind, match=f"m.onnx: .*{sentence}"):
        read_onnx(proto.SerializeToString(), None, "m.onnx")
    with pytest.raises(kind, match=sentence):
        read_model_proto(proto)


def sub(change: Change | None = None, **attributes: Any) -> ModelProto:
    return changed(sub_model(6, **attributes), change or (lambda _: None))


def first(m: ModelProto) -> onnx.AttributeProto:
    return m.graph.node[0].attribute[0]


def constant(**attributes: Any) -> ModelProto:
    return model([node("Constant", [], ["z"], "c", **attributes)], [], [EMPTY])


def cast(opset: int, to: object, **more: Any) -> ModelProto:
    return model([node("Cast", ["x"], ["z"], "c", to=to, **more)], [value("x")], [value("z")], opset)


NODES: list[tuple[ModelProto, str]] = [
    *(
        (proto, f"Sub-6 node 'difference'{words}")
        for proto, words in (
            (sub(brodcast=1), ": there is no attribute 'brodcast'; .*did you mean 'broadcast'"),
            (sub(axis=1.0), ", attribute axis: the attribute has the wrong type, got FLOAT; allowed: INT"),
            (sub(axis=[1]), ", attribute axis: the attribute has the wrong type, got INTS; allowed: INT"),
            (sub(broadcast=2), ", attribute broadcast: this value is not allowed, got 2; allowed: 0, 1"),
            (sub(lambda m: first(m).ClearField("type"), axis=1), ", attribute axis: the attribute has no type; .* INT"),
            (
                sub(lambda m: setattr(first(m), "f", 1.0), axis=1),
                ", attribute axis: the attribute's value is in the wrong field, got f and i; allowed: i",
            ),
            (
                sub(lambda m: setattr(first(m), "ref_attr_name", "other"), axis=1),
                ", attribute axis: a reference to an attribute of a function has no meaning in a graph, got 'other'",
            ),
            (
                sub(lambda m: m.graph.node[0].attribute.append(first(m)), axis=1),
                ", attribute axis: the attribute is given twice",
            ),
        )
    ),
    (cast(1, "float"), "Cast-1 node 'c', attribute to: there is no such element type, got 'float'; allowed: FLOAT16"),
    (cast(1, 1), "Cast-1 node 'c', attribute to: the attribute has the wrong type, got INT; allowed: STRING"),
    (cast(6, "FLOAT"), "Cast-6 node 'c', attribute to: the attribute has the wrong type, got STRING; allowed: INT"),
    (cast(13, 99), "Cast-13 node 'c', attribute to: there is no such element type, got 99; allowed: 10 .FLOAT16"),
    (cast(13, 8), "Cast-13 node 'c', attribute to: element type string is unsupported; allowed: float16"),
    (cast(13, 17), "Cast-13 node 'c', attribute to: this element type is not allowed, got float8_e4m3fn; allowed: f"),
    (cast(24, 1, round_mode=b"\xff"), "Cast-24 .*attribute round_mode: the attribute's value is not UTF-8 text"),
    (
        changed(cast(13, 1), lambda m: m.graph.node[0].ClearField("attribute")),
        "Cast-13 node 'c', attribute to: a required attribute is missing",
    ),
    (constant(value=SHORT), "Constant-13 node 'c', attribute value: raw_data is 4 bytes, expected 8"),
    (constant(value_string="x"), "Constant-13 node 'c', attribute value_string: this attribute is unsupported"),
    (constant(), "Constant-13 node 'c': exactly one attribute must hold the value, got 0"),
    (constant(value_int=1, value_float=1.0), "Constant-13 node 'c': exactly one attribute must hold the value, got 2"),
    (
        changed(constant(value=SHORT), lambda m: first(m).ClearField("t")),
        "Constant-13 node 'c', attribute value: the attribute's value is missing",
    ),
    (
        changed(neighbour_model("Identity", 13), lambda m: m.graph.node[0].output.__setitem__(0, "")),
        "Identity-13 node 'neighbour', its outputs: an output has no name",
    ),
]


@pytest.mark.parametrize(("proto", "sentence"), NODES)
def test_a_node_that_is_wrong(proto: ModelProto, sentence: str) -> None:
    assert re.search(f"^(m.onnx: )?{sentence}", sentences(proto)[0])


def of_type(kind: str) -> Change:
    return lambda m: getattr(m.graph.input[0].type, kind).SetInParent()


def tensor_type(m: ModelProto) -> onnx.TypeProto.Tensor:
    return m.graph.input[0].type.tensor_type


def looped(m: ModelProto) -> None:
    m.graph.node[0].input[1] = "b"
    m.graph.node.insert(0, node("Identity", ["z"], ["b"], "first"))


GRAPHS: list[tuple[Change, str]] = [
    (
        lambda m: setattr(m.graph.sparse_initializer.add().values, "name", "s"),
        "sparse initializer 's': sparse initializers are unsupported",
    ),
    (of_type("sequence_type"), "input 'x': a value of the type sequence is unsupported; allowed: tensors"),
    (of_type("optional_type"), "input 'x': a value of the type optional is unsupported"),
    (of_type("sparse_tensor_type"), "input 'x': a value of the type sparse tensor is unsupported"),
    (of_type("map_type"), "input 'x': a value of the type map is unsupported"),
    (lambda m: m.graph.input[0].ClearField("type"), "input 'x': the element type is missing"),
    (lambda m: setattr(tensor_type(m), "elem_type", 99), "input 'x': there is no element type of this number, got 99"),
    (
        lambda m: setattr(tensor_type(m).shape.dim[1], "dim_value", -1),
        "input 'x': dimension 1 is negative, got -1; allowed: 0 or more",
    ),
    (
        lambda m: tensor_type(m).shape.dim.extend([TensorShapeProto.Dimension()] * 63),
        "input 'x': the rank is too large, got 65; allowed: up to 64",
    ),
    (lambda m: m.graph.input.append(value("x")), "the value 'x' is made twice, by an input and by an input"),
    (lambda m: m.graph.output.append(value("z")), "output 'z': the graph has this output 2 times"),
    (lambda m: m.graph.input.append(value("")), "an input of the graph has no name"),
    (lambda m: m.graph.output.append(value("")), "an output of the graph has no name"),
    (lambda m: m.graph.initializer.append(SHORT), "an initializer has no name"),
    (
        lambda m: m.graph.value_info.extend([value("z", (2, 3)), value("z", (3, 2))]),
        "value_info 'z': the value is declared twice, got .*2,3. and .*3,2.",
    ),
    (
        lambda m: m.graph.initializer.extend([numpy_helper.from_array(np.ones(1), "w")] * 2),
        "the value 'w' is made twice, by a constant and by a constant",
    ),
    (
        lambda m: m.graph.output[0].type.sequence_type.SetInParent(),
        "output 'z': a value of the type sequence is unsupported",
    ),
    (
        lambda m: setattr(tensor_type(m), "elem_type", TensorProto.STRING),
        "Sub-13 node 'difference', operand A .'x'.: element type string is unsupported; allowed: ",
    ),
    (
        lambda m: m.graph.input.append(value("unused", (1,), TensorProto.STRING)),
        "input 'unused': element type string is unsupported",
    ),
    (
        lambda m: m.graph.initializer.append(TensorProto(name="y", data_type=7, dims=[2, 3], int64_data=[1])),
        "initializer 'y': int64_data has 1 entries, expected 6",
    ),
    (looped, "Identity-13 node 'first', input 'z': the nodes first -> difference -> first form a cycle"),
]


@pytest.mark.parametrize(("change", "sentence"), GRAPHS)
def test_a_graph_that_is_wrong(change: Change, sentence: str) -> None:
    (problem,) = sentences(changed(sub_model(), change))
    assert re.search(f"^(m.onnx: )?{sentence}", problem)


def test_all_operators_that_are_not_run_stand_in_one_error() -> None:
    nodes = [
        node("Gemm", ["x", "y"], ["a"], "by"),
        node("Fused", ["a"], ["b"], domain="com.example"),
        node("Subb", ["a", "b"], ["c"], "typo"),
        node("Helper", ["c"], ["d"], "call", domain="local"),
        node("Sub", ["d", "x"], ["z"]),
    ]
    proto = model(nodes, [value("x"), value("y")], [value("z")])
    proto.functions.add(name="Helper", domain="local")
    assert sentences(proto) == [
        f"m.onnx: 4 unsupported operators: Gemm-{onnx.defs.get_schema('Gemm', 13, '').since_version} node 'by', "
        "com.example.Fused node 'b', Subb (unknown to opset 13) node 'typo', "
        "local.Helper (a function of the model) node 'call'; "
        f"allowed: {', '.join(operator_names('ai.onnx', 13))}; did you mean 'Sub'?"
    ]


def test_an_operator_of_a_newer_opset_is_not_among_those_allowed() -> None:
    proto = model([node("LessOrEqual", ["x", "y"], ["z"])], [value("x"), value("y")], [EMPTY], 11)
    (problem,) = sentences(proto)
    assert "LessOrEqual (unknown to opset 11) node 'z'; allowed: Abs, " in problem
    assert "LessOrEqual" not in problem.partition("allowed")[2]
    proto.opset_import[0].version = 12
    assert sentences(proto) == []


def test_a_function_of_the_model_hides_the_operator_of_its_name() -> None:
    proto = sub_model()
    proto.functions.add(name="Sub", domain="ai.onnx")
    assert "Sub (a function of the model) node 'difference'" in sentences(proto)[0]
    proto = sub_model()
    proto.graph.node[0].overload = "other"
    assert "Sub (overload 'other') node 'difference'" in sentences(proto)[0]


def test_every_problem_of_every_node_is_found() -> None:
    nodes = [
        node("Sub", ["x", "y"], ["a"], "first", axis=1.0, brodcast=1),
        node("Identity", ["a"], ["b"], "behind"),
        node("Cast", ["x"], ["c"], to=99),
        node("Sub", ["x", "wide"], ["z"], "last"),
    ]
    wrong = TensorProto(name="w", dims=[-1], data_type=1)
    inputs = [value("x"), value("y"), value("wide", (4,))]
    found = sentences(model(nodes, inputs, [value("z"), value("b")], 6, initializers=[wrong]))
    words = [
        "initializer 'w'",
        "'first', attribute axis",
        "'first': there is no attribute",
        "Cast-6 node 'c'",
        "'last'",
    ]
    assert len(found) == len(words)
    assert all(part in problem for problem, part in zip(found, words, strict=True))


def test_operators_of_an_opset_that_these_tables_do_not_reach(monkeypatch: pytest.MonkeyPatch) -> None:
    newest = registry.NEWEST_OPSET["ai.onnx"]
    monkeypatch.setattr(onnx.defs, "onnx_opset_version", lambda: newest + 1)
    proto = sub_model(newest + 1)
    assert read_onnx(proto.SerializeToString(), None, "m.onnx").problems == ()

    class Newer:
        since_version = newest + 1
        deprecated = False

    monkeypatch.setattr(nodes, "published_schema", lambda *_: Newer)
    assert f"unsupported operator: Sub-{newest + 1} node 'difference'" in sentences(proto)[0]


def test_what_is_a_model_proto() -> None:
    assert is_model_proto(sub_model())
    assert not is_model_proto(b"")


@pytest.mark.parametrize("name", sorted({schema.name for schema in registry.ELEMENTWISE if schema.domain == "ai.onnx"}))
def test_an_attribute_of_another_version_is_told_with_that_version(name: str) -> None:
    """Tools write attributes of newer opsets into older ones, as a quantizer an axis; which opset it needs is said."""
    known = [one for one in onnx.defs.get_all_schemas_with_history() if one.name == name and not one.domain]
    for schema, attribute in product(known, sorted({attribute for one in known for attribute in one.attributes})):
        if attribute in schema.attributes:
            continue
        node_of = node(name, ["x"] * schema.min_input, ["z"], "n")
        node_of.attribute.add(name=attribute, i=1, type=onnx.AttributeProto.INT)
        made = model([node_of], [value("x")], [value("z")], schema.since_version)
        (problem,) = (one for one in sentences(made) if f"attribute {attribute!r}" in one)
        other = re.search(rf"{name}-(\d+) has it$", problem)
        assert other, problem
        assert attribute in onnx.defs.get_schema(name, int(other[1])).attributes
