"""Nodes computed in a wider type give the same bits: every pair of 8-bit values, hard and random pairs of others."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import eltwise
from eltwise import oracle
from eltwise.core.dtypes import BFLOAT16, FLOAT16, FLOAT32, INT8, INT32, TYPES, UINT8, UINT16, ElementType
from eltwise.core.errors import ElementTypeError
from eltwise.formats.onnx.reader import read_model_proto
from eltwise.formats.onnx.writer import write_model_proto
from eltwise.formats.openvino.writer import write_openvino
from eltwise.ops import registry
from eltwise.ops.expression import Expression, Step, expression_of
from eltwise.ops.schema import ElementwiseSchema
from eltwise.oracle import hard_values
from eltwise.passes.upcast import exact_upcast, upcast
from support.cases import all_pairs
from support.conversions import ask, wrong_outputs
from support.onnx_models import model, node, value
from support.openvino_models import PRECISIONS, Ir


def upcast_of(function: str, element_type: ElementType) -> ElementType | None:
    return exact_upcast(expression_of(function), element_type)


SCHEMAS = {
    schema.function: schema
    for schema in registry.ELEMENTWISE
    if not schema.parameters and not schema.other_types and len(schema.operands) <= 2
}
FUNCTIONS = {
    function: tuple(each for schema in registry.ELEMENTWISE if schema.function == function for each in schema.types)
    for function in SCHEMAS
}
EXACT = [
    (function, each)
    for function, types in FUNCTIONS.items()
    for each in dict.fromkeys(types)
    if each.is_numeric and upcast_of(function, each)
]


def pairs(element_type: ElementType, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Every pair of values of 8 bits or fewer; of others every pair of hard values, and random ones."""
    if element_type.bits <= 8:
        low, high = element_type.limits
        every = np.arange(low, high + 1).astype(element_type.storage)
        return np.repeat(every, every.size), np.tile(every, every.size)
    hard = all_pairs(hard_values.hard_values(element_type))
    drawn = hard_values.random_bits(element_type, 20000, seed)
    return np.concatenate([hard[0], drawn[:10000]]), np.concatenate([hard[1], drawn[10000:]])


def computed_in(function: str, wide: ElementType, operands: list[np.ndarray]) -> np.ndarray:
    """A function in the wide type by NumPy, and one cast back unless the result is boolean."""
    expression, narrow = expression_of(function), operands[0].dtype
    with np.errstate(all="ignore"):
        values = [np.asarray(operand.astype(wide.storage)) for operand in operands]
        for step in expression.steps:
            values.append(step.definition.numpy_function(wide)(*(values[value] for value in step.operands)))
        return values[-1] if values[-1].dtype == np.bool_ else np.asarray(values[-1].astype(narrow))


def operands_of(function: str, element_type: ElementType, seed: int) -> list[np.ndarray]:
    a, b = pairs(element_type, seed)
    if element_type.is_integer and expression_of(function).divides:
        a, b = a[b != 0], b[b != 0]
    return [a, b][: expression_of(function).operands]


@pytest.mark.parametrize(("function", "element_type"), EXACT, ids=str)
def test_the_wider_type_gives_the_same_bits(function: str, element_type: ElementType, seed: int) -> None:
    wide = upcast_of(function, element_type)
    assert wide is not None
    operands = operands_of(function, element_type, seed)
    result = computed_in(function, wide, operands)
    chosen = np.random.default_rng(seed).permutation(operands[0].size)[:2000]
    right = oracle.evaluate(function, *(operand[chosen] for operand in operands), rule="none")
    assert oracle.same_bits(result[chosen], right)


def test_where_no_wider_type_is_exact_there_is_none() -> None:
    assert (upcast_of("subtract", BFLOAT16), upcast_of("subtract", UINT8)) == (FLOAT32, INT32)
    assert {upcast_of(function, FLOAT16) for function in ("multiply", "divide", "maximum", "less")} == {FLOAT32}
    assert exact_upcast(expression_of("maximum", 4), BFLOAT16) is FLOAT32
    for function, element_type in (
        ("squared_difference", BFLOAT16),
        ("squared_difference", FLOAT16),
        ("multiply", UINT16),
    ):
        assert upcast_of(function, element_type) is None
    # The difference wraps, and a quotient is not one of operands modulo 2^n.
    wrapped = Expression(2, (Step("subtract", (0, 1)), Step("divide", (2, 1))))
    assert exact_upcast(wrapped, INT8) is None
    assert not any(upcast_of(function, each) for function in FUNCTIONS for each in TYPES if each.bits > 16)
    # Of a real function, rounding twice is not rounding once.
    assert not any(upcast_of(function, FLOAT16) for function in FUNCTIONS if expression_of(function).is_real)
    hard = list(all_pairs(hard_values.hard_values(FLOAT16)))
    squared = computed_in("squared_difference", FLOAT32, hard)
    assert not oracle.same_bits(squared, oracle.evaluate("squared_difference", *hard, rule="none"))


@pytest.mark.parametrize(("function", "sign"), [("multiply", 1), ("divide", -1)])
def test_results_that_are_subnormal_are_rounded_once(function: str, sign: int, seed: int) -> None:
    """Where two roundings could differ: every pair of significands around the least numbers of bfloat16."""
    significands = (128 + np.arange(128)) / 128
    x, y = np.repeat(significands, 128), np.tile(significands, 128)
    for exponent in range(-138, -124):
        chosen = np.random.default_rng(seed + exponent).permutation(x.size)[:700]
        a = (x[chosen] * 2.0**-70).astype(ml_dtypes.bfloat16)
        b = (y[chosen] * 2.0 ** (sign * (exponent + 70))).astype(ml_dtypes.bfloat16)
        result = computed_in(function, FLOAT32, [a, b])
        assert oracle.same_bits(result, oracle.evaluate(function, a, b, rule="none"))


WRONG_IN_OPENVINO = [
    registry.find(name) for name in ("Subtract-1", "SquaredDifference-1", "openvino.Add-1", "Multiply-1")
]


@pytest.mark.slow
@pytest.mark.parametrize("schema", WRONG_IN_OPENVINO, ids=str)
@pytest.mark.parametrize("element_type", [UINT8, INT8], ids=str)
def test_8_bit_layers_are_right_in_openvino(schema: ElementwiseSchema, element_type: ElementType, seed: int) -> None:
    a, b = pairs(element_type, seed)
    ir = Ir()
    for name in ("a", "b"):
        ir.parameter(name, "?", element_type.ir, names=name)
    precision = PRECISIONS.get(element_type.ir, element_type.ir.upper())
    ir.layer(schema.name, "n", ["a", "b"], names="z", precision=precision)
    ir.layer(schema.name, "m", ["n", "b"], names="again", precision=precision)
    ir.result("n", "r").result("m", "s")
    before = eltwise.load(ir.xml())
    graph, report = upcast(before.graph, lambda _node: True)
    name = schema.versioned_name
    assert [change.after for change in report.changes] == [("Convert-1", "Convert-1", name, "Convert-1")] * 2
    after, given = eltwise.load(*write_openvino(graph)), {"a": a, "b": b}
    right = before.run(given)
    assert all(oracle.same_bits(after.run(given)[key], right[key]) for key in right)
    assert [port.name for port in after.outputs] == [port.name for port in before.outputs]
    theirs = ask("openvino", graph, given)
    assert all(oracle.same_bits(np.asarray(theirs[key]), right[key]) for key in right)
    wrong = ask("openvino", before.graph, given)
    assert not all(oracle.same_bits(np.asarray(wrong[key]), right[key]) for key in right)


def mixed_model() -> onnx.ModelProto:
    """bfloat16 in a graph and in a branch, among nodes that are not touched."""
    kind = TensorProto.BFLOAT16
    branch = helper.make_graph([node("Sub", ["d", "y"], ["p"], "inner")], "branch", [], [value("p", ["N"], kind)])
    other = helper.make_graph([node("Identity", ["d"], ["q"])], "other", [], [value("q", ["N"], kind)])
    nodes = [
        node("Sub", ["x", "y"], ["d"], "outer"),
        node("Sub", ["d", "d"], ["zero"], "itself"),
        node("If", ["c"], ["z"], "if", then_branch=branch, else_branch=other),
        node("Cast", ["x"], ["f"], to=TensorProto.FLOAT),
        node("Sub", ["f", "f"], ["g"], "float"),
    ]
    inputs = [value("x", ["N"], kind), value("y", ["N"], kind), value("c", (), TensorProto.BOOL)]
    outputs = [value("z", ["N"], kind), value("zero", ["N"], kind), value("g", ["N"])]
    return model(nodes, inputs, outputs, 17)


def test_bfloat16_sub_runs_right_in_onnxruntime(seed: int) -> None:
    before = read_model_proto(mixed_model()).graph
    graph, report = upcast(before, lambda node: node.name in ("outer", "itself", "inner"))
    made = write_model_proto(graph)
    assert [change.node for change in report.changes] == ["outer", "itself", "inner"]
    assert report.changes[1].after == ("Cast-13", "Sub-14", "Cast-13")
    onnx.checker.check_model(made, full_check=True)
    x, y = pairs(BFLOAT16, seed)
    first = oracle.evaluate("subtract", x, y, rule="none")
    operands = {"z": (first, y), "zero": (first, first)}
    right = {name: oracle.evaluate("subtract", *pair, rule="none") for name, pair in operands.items()}
    theirs = ask("onnxruntime", graph, {"x": x, "y": y, "c": np.array(True)})
    assert wrong_outputs({name: theirs[name] for name in right}, right) == []


def test_what_is_not_chosen_stays_and_what_is_not_exact_is_refused() -> None:
    before = read_model_proto(mixed_model()).graph
    unchanged, report = upcast(before, lambda _node: False)
    assert unchanged is before
    assert report.unchanged
    only_inner, report = upcast(before, lambda node: node.name == "inner")
    assert [change.node for change in report.changes] == ["inner"]
    assert [node for node in only_inner.nodes if not node.graphs] == [node for node in before.nodes if not node.graphs]
    with pytest.raises(ElementTypeError, match="Sub-14 node 'float': no wider type gives the same bits, got float32"):
        upcast(before, lambda node: node.schema.name == "Sub")
    loaded = eltwise.load(model([node("Sub", ["x", "y"], ["z"])], [value("x"), value("y")], [value("z")], 14))
    with pytest.raises(ElementTypeError, match="no wider type gives the same bits"):
        upcast(loaded.graph, lambda _node: True)
