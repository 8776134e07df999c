"""Inference of one node: types, shapes, and the sentences that name operator, node and tensors."""

from __future__ import annotations

import itertools

import pytest

from eltwise.core.dtypes import BOOL, TYPES, ElementType
from eltwise.core.errors import ElementTypeError, EltwiseError, GraphError, ShapeError, UnsupportedError
from eltwise.core.shapes import parse
from eltwise.ir.graph import Node
from eltwise.ir.infer import Result, node_result
from eltwise.ir.types import TensorType, elementwise
from eltwise.ops import registry
from eltwise.ops.schema import ElementwiseSchema, Operation
from support.infer_nodes import node, operation, result_of, typed
from support.operands import operand_types, required


@pytest.mark.parametrize("schema", [each for each in registry.ELEMENTWISE if each.broadcasting != "axis"], ids=str)
def test_exactly_the_types_of_the_row_are_allowed(schema: ElementwiseSchema) -> None:
    count = len(schema.operands) + schema.is_variadic
    bound = schema.bind(required(schema))
    stated = bound.value("to") or bound.value("destination_type")
    for element_type in TYPES:
        types = operand_types(schema, element_type, count)
        given = types[schema.like[0]] if schema.like else stated or element_type
        result = TensorType(BOOL if schema.expression().gives_booleans else given, parse("2"))
        for untyped in (
            index for index in range(-1, count if count > 1 else -1) if index < 0 or not schema.other_types
        ):
            operands = [TensorType(None if i == untyped else each, parse("2")) for i, each in enumerate(types)]
            if element_type in bound.types:
                assert elementwise(*bound.computation_of(operands, element_type_of)).result == result
            else:
                is_wrong = element_type.runs and element_type not in schema.unsupported
                kind = ElementTypeError if is_wrong else UnsupportedError
                text = f"got {element_type}" if is_wrong else f"element type {element_type} is unsupported"
                with pytest.raises(kind, match=f"{bound.name}, operand [^:]*: .*{text}; al"):
                    elementwise(*bound.computation_of(operands, element_type_of))


def element_type_of(operand: TensorType) -> ElementType | None:
    return operand.element_type


def test_mod_of_floats_needs_fmod_before_opset_28() -> None:
    assert result_of(operation("Mod", 28), "float32 2", "float32 2").type == typed("float32 2")
    for version in (10, 13):
        with pytest.raises(ElementTypeError, match=f"Mod-{version} with fmod=0 .*float32; allowed: int8, .*, uint64$"):
            result_of(operation("Mod", version), "float32 2", "float32 2")
        assert result_of(operation("Mod", version), "int8 2", "int8 2").type == typed("int8 2")
        assert result_of(operation("Mod", version, fmod=1), "float32 2", "float32 2").type == typed("float32 2")


def test_two_types_are_never_one() -> None:
    schema = registry.find("Subtract-1")
    for a_type, b_type in itertools.permutations(schema.types, 2):
        with pytest.raises(ElementTypeError, match=f"operand A is {a_type} and operand B is {b_type}; allowed: one"):
            elementwise(schema.bind({}).computation(2), [TensorType(a_type, parse("")), TensorType(b_type, parse(""))])


def test_any_number_of_operands_broadcast() -> None:
    maximum = operation("Max", 13)
    assert result_of(maximum, "float32 N,3").type == typed("float32 N,3")
    assert result_of(maximum, "float32 N,1", "float32 1,4", "any ?,4").type == typed("float32 ?,4")
    assert result_of(maximum, "float32 2..3", "float32 ...", "float32 3").type == typed("float32 ...")
    with pytest.raises(ShapeError, match=r"Max-13 node 'node', operands data_0\[0\] 'x' and .*do not broadcast"):
        result_of(maximum, "float32 2", "float32 1", "float32 3")
    with pytest.raises(ElementTypeError, match=r"operand data_0\[0\] is float32 and operand data_0\[2\] is int8"):
        result_of(maximum, "float32 2", "any 2", "int8 2")
    assert result_of(operation("Max", 6), "float32 N", "float32 4", "float32 ?").type == typed("float32 4")
    with pytest.raises(ShapeError, match="must be equal"):
        result_of(operation("Max", 6), "float32 4", "float32 1")


def test_a_comparison_gives_booleans_whatever_is_compared() -> None:
    assert result_of(operation("Less", 13), "float32 N,1", "float32 4").type == typed("bool N,4")
    assert result_of(operation("Less", 13), "any 2", "any 2").type == typed("bool 2")
    assert result_of(operation("Neg", 13), "int8 2..5,?").type == typed("int8 2..5,?")


def test_a_type_that_is_not_declared_is_that_of_the_other_operand() -> None:
    minus = operation("Sub", 14)
    assert result_of(minus, "any 2", "float32 2").type == typed("float32 2")
    assert result_of(minus, "float32 2", "any 2").type == typed("float32 2")
    assert result_of(minus, "any N", "any N").type == typed("any N")


def test_assumptions_come_with_the_result() -> None:
    found = result_of(operation("Sub", 7), "float32 N,3", "float32 4,1")
    assert found == Result(typed("float32 4,3"), ("in dimension 0, A's N is 1 or 4",))
    assert result_of(operation("Sub", 7), "float32 4,3", "float32 4,1").assumptions == ()


@pytest.mark.parametrize(
    ("bound", "a", "b", "sentence"),
    [
        (
            operation("Sub", 14),
            "bool 2",
            "bool 2",
            "Sub-14 node 'node', operand A ('x'): this element type is not allowed, got bool; allowed: float16, ",
        ),
        (
            operation("Sub", 6),
            "float32 2",
            "int8 2",
            "Sub-6 node 'node', operand B ('y'): this element type is not allowed, got int8; allowed: float16, ",
        ),
        (
            operation("Sub", 6),
            "int64 2",
            "int32 2",
            "Sub-6 node 'node', operands A 'x' and B 'y': operand A is int64 and operand B is int32; allowed: one",
        ),
        (
            operation("Sub", 7),
            "float32 2,3",
            "float32 4",
            "Sub-7 node 'node', operands A 'x' and B 'y': shapes (2,3) and (4) do not broadcast: dimension 1 is 3 in",
        ),
        (
            operation("Sub", 6, broadcast=1, axis=5),
            "float32 2,3",
            "float32 3",
            "Sub-6 node 'node', attribute axis: axis is out of range for B of rank 1 in A of rank 2, got 5; allowed:",
        ),
        (operation("Sub", 6), "float32 2,3", "", "Sub-6 node 'node', operand B: this input is missing"),
    ],
)
def test_the_sentences_name_operator_node_and_tensors(bound: Operation, a: str, b: str, sentence: str) -> None:
    with pytest.raises(EltwiseError) as caught:
        result_of(bound, a, b)
    assert str(caught.value).startswith(sentence)


def test_numbers_of_inputs_and_outputs() -> None:
    minus = operation("Sub", 14)
    one = typed("float32 2")
    with pytest.raises(
        GraphError, match="Sub-14 node 'node', its inputs: there are too many inputs, got 3; allowed: 2"
    ):
        node_result(node(minus, ("x", "y", "w")), [one, one, one], None)
    with pytest.raises(GraphError, match="operand A: this input is missing"):
        node_result(node(minus, ()), [], None)
    with pytest.raises(UnsupportedError, match="its outputs: more than one output is unsupported, got 2"):
        node_result(Node("node", minus, ("x", "y"), ("z", "w")), [one, one], None)
    for outputs in ((), ("",)):
        with pytest.raises(GraphError, match="its outputs: one output with a name is needed"):
            node_result(Node("node", minus, ("x", "y"), outputs), [one, one], None)
