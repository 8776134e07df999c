"""The oracle gives what ONNX publishes as the results of its own node tests."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx.numpy_helper
import pytest

from eltwise.core.dtypes import BY_ONNX_NUMBER, TYPES, of_numpy
from eltwise.oracle import evaluate
from eltwise.oracle.elements import bits_of, differences, element_type_of
from eltwise.oracle.numbers import FLOAT_LAYOUTS
from support.onnx_models import NodeTest, node_tests

pytest.importorskip("flint")

Array = npt.NDArray[Any]

RENAMED = {
    "Neg": "negative",
    "Abs": "absolute",
    "Sub": "subtract",
    "Mul": "multiply",
    "Div": "divide",
    "Pow": "power",
    "Max": "maximum",
    "Min": "minimum",
    "PRelu": "prelu",
    "CastLike": "cast",
    "And": "logical_and",
    "Or": "logical_or",
    "Xor": "logical_xor",
    "Not": "logical_not",
    "IsNaN": "is_nan",
    "IsInf": "is_inf",
    "QuantizeLinear": "quantize",
    "DequantizeLinear": "dequantize",
    "GreaterOrEqual": "greater_equal",
    "LessOrEqual": "less_equal",
}
"""The oracle's names of operators where they are not ONNX's."""

OPERATORS = sorted(
    {
        *(
            "Acos",
            "Acosh",
            "Add",
            "Asin",
            "Asinh",
            "Atan",
            "Atanh",
            "BitShift",
            "BitwiseAnd",
            "BitwiseNot",
            "BitwiseOr",
        ),
        *("BitwiseXor", "Cast", "Ceil", "Celu", "Clip", "Cos", "Cosh", "Elu", "Equal", "Erf", "Exp", "Floor"),
        *("Gelu", "Greater", "HardSigmoid", "HardSwish", "Identity", "LeakyRelu", "Less", "Log", "Mean", "Mish", "Mod"),
        *("Reciprocal", "Relu", "Round", "Selu", "Shrink", "Sigmoid", "Sign", "Sin", "Sinh", "Softplus", "Softsign"),
        *("Sqrt", "Sum", "Swish", "Tan", "Tanh", "ThresholdedRelu", "Where"),
        *RENAMED,
    }
)

COMPUTED_IN_STEPS = {"Asin": 2, "Gelu": 4, "HardSwish": 3, "Mish": 3, "Selu": 2}
"""How many floats published results are off, where they were computed in several steps of float32; else one at most."""


@cache
def of_operators() -> dict[str, list[NodeTest]]:
    """The node tests of the installed onnx package that have one node, by its operator."""
    by_operator: dict[str, list[NodeTest]] = {}
    for each in node_tests():
        nodes = each.model.graph.node
        if len(nodes) == 1:
            by_operator.setdefault(nodes[0].op_type, []).append(each)
    return by_operator


def function_of(node: onnx.NodeProto, attributes: dict[str, Any]) -> str:
    if node.op_type == "BitShift":
        return f"shift_{attributes.pop('direction').decode().lower()}"
    if node.op_type == "Mod":
        return "fmod" if attributes.pop("fmod", 0) else "modulo"
    if node.op_type == "Gelu":
        return "gelu_tanh" if attributes.pop("approximate", b"none") == b"tanh" else "gelu"
    words = "".join(f"_{each}" if each.isupper() else each for each in node.op_type).lower().lstrip("_")
    return RENAMED.get(node.op_type, words)


def over_blocks(x: Array, scale: Array, axis: int, block_size: int) -> Array:
    """A scale or zero point for each element of x."""
    if scale.ndim == 0 or scale.size == 1:
        return scale.reshape(())
    if scale.ndim == 1:
        return scale.reshape([-1 if index == axis % x.ndim else 1 for index in range(x.ndim)])
    repeated = np.repeat(scale, block_size, axis)
    return np.take(repeated, range(x.shape[axis]), axis)


def published(node: onnx.NodeProto, inputs: list[Array | None]) -> tuple[str, list[Array | None], dict[str, Any]]:
    """The oracle's function, operands and parameters of a node."""
    parameters = {each.name: onnx.helper.get_attribute_value(each) for each in node.attribute}
    function = function_of(node, parameters)
    parameters.pop("round_mode", None)
    axis, block_size = parameters.pop("axis", 1), parameters.pop("block_size", 0)
    for name, parameter in (("to", "to"), ("output_dtype", "to"), ("precision", "precision")):
        if name in parameters:
            parameters[parameter] = BY_ONNX_NUMBER[parameters.pop(name)]
    if node.op_type == "CastLike":
        like = inputs.pop()
        assert like is not None
        parameters["to"] = of_numpy(like.dtype)
    if "quantize" in function:
        x, *scales = inputs
        assert x is not None
        inputs = [x, *(each if each is None else over_blocks(x, each, axis, block_size) for each in scales)]
    return function, inputs, parameters


def array_of_test(data: Any) -> Array | None:
    """An operand or result of a test; None for one of another kind, or a type that does not run."""
    array = onnx.numpy_helper.to_array(data) if isinstance(data, onnx.TensorProto) else data
    runs = {each.numpy for each in TYPES if each.runs}
    return np.asarray(array) if isinstance(array, np.ndarray | np.generic) and array.dtype in runs else None


def is_specified(function: str, x: Array | None, expected: Array) -> npt.NDArray[np.bool_]:
    """Which results a text states: not those of casts beyond the limits of an integer type."""
    element_type = element_type_of(expected)
    if function != "cast" or x is None or element_type_of(x).is_integer or not element_type.is_integer:
        return np.full(expected.shape, True)
    wide = x.astype(np.float64)
    return np.asarray((element_type.limits[0] <= wide) & (wide <= element_type.limits[1]))


def distance(actual: Array, expected: Array) -> float:
    """How many floats lie between the elements of two arrays, at most; infinitely many where others differ."""
    layout = FLOAT_LAYOUTS.get(element_type_of(expected))
    farthest = 0.0
    for index in differences(actual, expected):
        one, other = (bits_of(each.reshape(-1)[index : index + 1])[0] for each in (actual, expected))
        if layout is None or max(one & ~layout.sign, other & ~layout.sign) > layout.largest_finite:
            return math.inf
        numbers = (layout.sign - each if each >= layout.sign else each for each in (one, other))
        farthest = max(farthest, abs(next(numbers) - next(numbers)))
    return farthest


@pytest.mark.parametrize("operator", OPERATORS)
def test_results_are_those_that_onnx_publishes(operator: str) -> None:
    count = 0
    for case in of_operators()[operator]:
        node = case.model.graph.node[0]
        for inputs, outputs in case.sets:
            arrays = [array_of_test(each) for each in (*inputs, *outputs[:1])]
            if any(each is None for each in arrays):
                continue
            *present, expected = arrays
            remaining = iter(present)
            function, operands, parameters = published(node, [next(remaining) if name else None for name in node.input])
            actual = evaluate(function, *operands, rule="numpy", parameters=parameters)
            assert (actual.dtype, actual.shape) == (expected.dtype, expected.shape), case.name
            is_defined = is_specified(function, operands[0], expected)
            assert distance(actual[is_defined], expected[is_defined]) <= COMPUTED_IN_STEPS.get(operator, 1), case.name
            count += 1
    assert count > 0
