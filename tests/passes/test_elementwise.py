"""Every operator version and type in the other format: the same bits by the oracle, or justly refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

import eltwise
from eltwise import oracle
from eltwise.core.casting import cast
from eltwise.core.dtypes import BFLOAT16, BOOL, FLOAT16, FLOAT32, FLOAT64, ElementType
from eltwise.core.errors import ElementTypeError, EltwiseError, UnsupportedError
from eltwise.core.shapes import UNKNOWN_RANK, of_sizes
from eltwise.ir.graph import Graph, Node, Origin, Port
from eltwise.ir.types import TensorType
from eltwise.ops import registry
from eltwise.ops.expression import Expression
from eltwise.ops.schema import ElementwiseSchema, Operation
from eltwise.oracle.hard_values import random_bits
from eltwise.passes.analysis import Analysis
from eltwise.passes.elementwise import NEAR_MISSES, equal_operator
from support.conversions import IR11, convert_graph, converted, onnx_of, written
from support.operands import choices, drawn, expected, operand_types

TARGETS = {"ai.onnx": [IR11], "openvino": [onnx_of(opset) for opset in (registry.NEWEST_OPSET["ai.onnx"], 12, 6)]}
"""The targets of a graph, by the domain that it is in."""

LEAST_IR_VERSION = 10
ELEMENTS = 60


def graph_of(schema: ElementwiseSchema, element_type: ElementType, count: int, **attributes: Any) -> Graph:
    """One node of an operator version with equal shapes."""
    names = tuple(f"x{index}" for index in range(count))
    is_onnx = schema.domain == "ai.onnx"
    origin = Origin("ai.onnx", LEAST_IR_VERSION, schema.version) if is_onnx else IR11
    node = Node("n", schema.bind(attributes), names, ("n",))
    shape, types = of_sizes((ELEMENTS,)), operand_types(schema, element_type, count)
    inputs = tuple(Port(name, TensorType(each, shape), name) for name, each in zip(names, types, strict=True))
    outputs = (Port("n", TensorType(None, UNKNOWN_RANK), "n", layer="" if is_onnx else "r"),)
    return Graph("g", origin, inputs, outputs, (node,), input_order=names)


def loaded(graph: Graph) -> eltwise.Model:
    model = eltwise.Model(Analysis(graph))
    assert model.problems == ()
    return model


def counts(schema: ElementwiseSchema) -> tuple[int, ...]:
    return (1, 2, 4) if schema.is_variadic else tuple(range(schema.required_operands, len(schema.operands) + 1))


SCHEMAS = [pytest.param(schema, id=str(schema)) for schema in registry.ELEMENTWISE if schema.broadcasting != "axis"]


@pytest.mark.parametrize("schema", SCHEMAS)
def test_every_type_in_the_other_format(schema: ElementwiseSchema, seed: int) -> None:
    for element_type in schema.types:
        for count in counts(schema):
            for attributes in choices(schema):
                graph = graph_of(schema, element_type, count, **attributes)
                operation = graph.nodes[0].bound
                if element_type not in operation.types:
                    continue
                types = operand_types(schema, element_type, count)
                divides = schema.expression().divides
                given = drawn(types, ELEMENTS, seed, divides=divides, raises=schema.function == "power")
                right = expected(operation, given)
                for target in TARGETS[schema.domain]:
                    assert_same_or_refused(graph, target, given, right)


def assert_same_or_refused(graph: Graph, target: Origin, given: list[np.ndarray], right: np.ndarray) -> None:
    (node,), types = graph.nodes, {port.value: port.type.element_type for port in graph.inputs}
    computation, read = node.computation(types.get)
    element_type = computation.check_types(tuple(map(types.get, read)))
    assert element_type is not None
    try:
        after, report = converted(loaded(graph), target)
    except EltwiseError as error:
        assert_is_justified(error, target, computation.expression, element_type)
        return
    assert len(report.changes) == 1
    if target.domain == "ai.onnx":
        onnx.checker.check_model(*written(after.graph), full_check=True)  # type: ignore[arg-type, misc]
    (got,) = after.run(dict(zip((port.name for port in after.inputs), given, strict=True))).values()
    assert oracle.same_bits(got, right), (node, element_type, target)


def assert_is_justified(error: EltwiseError, target: Origin, expression: Expression, element_type: ElementType) -> None:
    """What is refused: a function, an operator or a type that the target lacks by the registry."""
    if any(text in str(error) for text in (" as a ", "is not known to lie on dimension 1", "operands of one type")):
        return
    steps = expression.steps
    operators = [equal_operator(target.domain, step.primitive, element_type, step.parameters) for step in steps]
    pairs = [(registry.resolve(target.domain, one[0], target.opset or 1), one[1]) for one in operators if one]
    if isinstance(error, ElementTypeError):
        bound: list[Any] = [Operation(schema, (*named.items(),)) for schema, named in pairs if schema]  # type: ignore[arg-type]
        types = {element_type, expression.result_type(element_type)}
        assert any(not types <= {*one.types, BOOL} for one in bound)
        return
    assert isinstance(error, UnsupportedError)
    if None in operators:
        misses = [NEAR_MISSES.get((target.domain, step.primitive), "") for step in expression.steps]
        assert f"eltwise has no operators of {target} for {expression}" in str(error)
        assert all(reason in str(error) for reason in misses)
    else:
        assert "has no operator" in str(error)
        assert any(schema is None for schema, _attributes in pairs)


@pytest.mark.parametrize(("domain", "function"), NEAR_MISSES)
def test_the_list_of_reasons_is_not_stale(domain: str, function: str) -> None:
    assert function in {schema.function for schema in registry.ELEMENTWISE if schema.domain != domain}
    assert equal_operator(domain, function, None) is None  # type: ignore[arg-type]


def test_division_is_the_same_where_rounding_makes_no_difference() -> None:
    divide = registry.find("Divide-1")
    for element_type in divide.types:
        graph = graph_of(divide, element_type, 2)
        if element_type.kind == "signed":
            with pytest.raises(UnsupportedError, match=r"node 'n'.*eltwise has no operators of .* for .*Div truncates"):
                convert_graph(graph, onnx_of(17))
        elif element_type in registry.find("Div-14").types:
            assert [node.schema.name for node in convert_graph(graph, onnx_of(17))[0].nodes] == ["Div"]
        truncating = graph_of(divide, element_type, 2, m_pythondiv=False)
        if element_type in registry.find("Div-14").types:
            back = convert_graph(convert_graph(truncating, onnx_of(17))[0], IR11)[0]
            assert back.nodes[0].operation.value("m_pythondiv") is (element_type.kind != "signed")


def test_limits_of_float64_are_refused_only_where_attributes_of_float32_hold_them() -> None:
    graph = graph_of(registry.find("Clamp-1"), FLOAT64, 1, min=0.1, max=0.7)
    assert [node.schema.name for node in convert_graph(graph, onnx_of(11))[0].nodes] == ["Clip"]
    with pytest.raises(UnsupportedError, match=r"Clip-6 holds min as a float32, which 0\.1 is not"):
        convert_graph(graph, onnx_of(10))


@pytest.mark.parametrize("opset", [10, 13, 21])
@pytest.mark.parametrize("limits", [(-0.3, 0.7), (0.1, 1e39), (-1e-46, 1e-46), (0.7, 0.3), (-1e300, 70000.0)])
@pytest.mark.parametrize("element_type", [FLOAT16, BFLOAT16, FLOAT32], ids=str)
def test_limits_that_the_type_does_not_hold_are_its_nearest_numbers(
    element_type: ElementType, limits: tuple[float, float], opset: int, seed: int
) -> None:
    """The real limits and the nearest numbers of the type give the same results, also next to the limits."""
    if opset < 13 and element_type is BFLOAT16:  # ONNX has it since then.
        return
    graph = graph_of(registry.find("Clamp-1"), element_type, 1, min=limits[0], max=limits[1])
    nearest = cast(np.array(limits), FLOAT64, element_type)
    unsigned = nearest.view(f"u{nearest.itemsize}")
    near = (unsigned[:, None] + np.arange(-2, 3).astype(unsigned.dtype)).ravel().view(nearest.dtype)
    operand = np.concatenate([near, random_bits(element_type, ELEMENTS - near.size, seed)])
    assert_same_or_refused(graph, onnx_of(opset), [operand], expected(graph.nodes[0].bound, [operand]))
    assert converted(loaded(graph), onnx_of(opset))[0].graph.nodes[0].schema.name == "Clip"


def test_many_operands_become_a_chain() -> None:
    graph = graph_of(registry.find("Max-13"), registry.find("Max-13").types[2], 4)
    made, report = convert_graph(graph, IR11)
    assert [node.schema.name for node in made.nodes] == ["Maximum"] * 3
    assert report.changes[0].reason == "max(a, b, c, d), a node for each step"
