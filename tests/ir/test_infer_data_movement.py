"""Inference of the operators beside those of the catalog: what they make, and what they refuse."""

from __future__ import annotations

import numpy as np
import pytest

from eltwise.core.dtypes import BOOL, FLOAT32, FLOAT64, INT8, INT32, INT64, UINT8
from eltwise.core.errors import AttributeValueError, ElementTypeError, EltwiseError, GraphError, ShapeError
from eltwise.ir.graph import Tensor
from eltwise.ir.infer import constant_tensor
from eltwise.ops.schema import Operation
from support.infer_nodes import operation, result_of, typed

RESHAPE, RESHAPE_1 = operation("Reshape", 14), operation("Reshape", 1, shape=(3, -1))
SQUEEZE, SQUEEZE_1, SQUEEZE_11 = operation("Squeeze", 13), operation("Squeeze", 1, axes=(0,)), operation("Squeeze", 11)
UNSQUEEZE, UNSQUEEZE_11 = operation("Unsqueeze", 13), operation("Unsqueeze", 11, axes=(-1, 0))
IR_SQUEEZE, IR_SKIP = operation("squeeze", 1, "openvino"), operation("Squeeze", 15, "openvino", allow_axis_skip=True)
IR_RESHAPE = operation("Reshape", 1, "openvino")
IR_COPYING = operation("Reshape", 1, "openvino", special_zero=True)


@pytest.mark.parametrize(
    ("bound", "inputs", "indices", "expected"),
    [
        (operation("Identity", 14), ("int8 N,2",), None, "int8 N,2"),
        (operation("Cast", 13, to=INT64), ("float32 N,2",), None, "int64 N,2"),
        (operation("Convert", 1, "openvino", destination_type=BOOL), ("float32 ...",), None, "bool ..."),
        (RESHAPE, ("float32 2,3", "int64 1"), [6], "float32 6"),
        (RESHAPE, ("float32 2,3", "int64 2"), [0, -1], "float32 2,3"),
        (RESHAPE, ("float32 2,3", "int64 2"), None, "float32 ?,?"),
        (RESHAPE, ("float32 2,3", "int64 N"), None, "float32 ..."),
        (RESHAPE, ("float32 1", "int64 0"), [], "float32 "),
        (operation("Reshape", 14, allowzero=1), ("float32 0,3", "int64 2"), [3, 0], "float32 3,0"),
        (RESHAPE_1, ("float32 6",), None, "float32 3,2"),
        (IR_RESHAPE, ("float32 0,3", "int32 2"), [0, 7], "float32 0,7"),
        (IR_COPYING, ("float32 2,3", "uint8 2"), [0, -1], "float32 2,3"),
        (SQUEEZE, ("float32 1,2,1", ""), None, "float32 2"),
        (SQUEEZE, ("float32 1,2,1", "int64 1"), [0], "float32 2,1"),
        (SQUEEZE, ("float32 1,2,1", "int64 0"), [], "float32 1,2,1"),
        (SQUEEZE, ("float32 1,2,1", "int64 1"), None, "float32 ..."),
        (SQUEEZE_1, ("float32 1,2",), None, "float32 2"),
        (SQUEEZE_11, ("float32 1,2",), None, "float32 2"),
        (IR_SQUEEZE, ("float32 1,2,1", "int64 0"), [], "float32 2"),
        (IR_SQUEEZE, ("float32 1,2,1", "int64 "), 0, "float32 2,1"),
        (IR_SKIP, ("float32 1,2,1", "int64 2"), [0, 1], "float32 2,1"),
        (UNSQUEEZE, ("float32 2", "int64 1"), [0], "float32 1,2"),
        (UNSQUEEZE, ("float32 2,N", "int64 3"), None, "float32 ?,?,?,?,?"),
        (UNSQUEEZE, ("float32 ...", "int64 3"), None, "float32 ..."),
        (UNSQUEEZE_11, ("float32 2",), None, "float32 1,2,1"),
        (operation("Unsqueeze", 1, "openvino"), ("float32 2", "int64 "), None, "float32 ?,?"),
    ],
)
def test_neighbours(bound: Operation, inputs: tuple[str, ...], indices: object, expected: str) -> None:
    assert result_of(bound, *inputs, indices=indices).type == typed(expected)


@pytest.mark.parametrize(
    ("bound", "inputs", "indices", "kind", "sentence"),
    [
        (operation("CastLike", 15), ("float32 2", "int4 2"), None, ElementTypeError, "operand target_type ('y'): this"),
        (operation("Cast", 6, to=INT8), ("bfloat16 2",), None, ElementTypeError, "operand input ('x'"),
        (RESHAPE, ("float32 2", "int32 1"), [2], ElementTypeError, "operand shape ('y'): this ele"),
        (RESHAPE, ("float32 2", "int64 1,1"), [[2]], ShapeError, "operand shape ('y'): the rank i"),
        (RESHAPE, ("float32 2", "int64 "), 2, ShapeError, "operand shape ('y'): the rank is not"),
        (RESHAPE, ("float32 2", ""), None, GraphError, "operand shape: this input is missing"),
        (RESHAPE, ("float32 2", "int64 65"), None, ShapeError, "operands data 'x' and shape 'y': "),
        (operation("Reshape", 1), ("float32 2",), None, AttributeValueError, "attribute shape: a re"),
        (
            operation("Reshape", 14, allowzero=1),
            ("float32 0", "int64 2"),
            [0, -1],
            ShapeError,
            "operand shape ('y'): with allowzero=1 the target shape cannot hold both 0 and -1",
        ),
        (operation("Squeeze", 1, axes=(-1,)), ("float32 1",), None, ShapeError, "operand data 'x'"),
        (UNSQUEEZE, ("float32 2", "int64 63,2"), None, ShapeError, "operand axes ('y'): the rank"),
        (IR_SQUEEZE, ("float32 1", "float32 1"), [0], ElementTypeError, "operand axes ('y'): this e"),
        (operation("Constant", 12), (), None, AttributeValueError, "exactly one attribute must"),
    ],
)
def test_neighbours_that_cannot_be(
    bound: Operation, inputs: tuple[str, ...], indices: object, kind: type[EltwiseError], sentence: str
) -> None:
    with pytest.raises(kind) as caught:
        result_of(bound, *inputs, indices=indices)
    assert str(caught.value).startswith(
        (f"{bound.schema} node 'node', {sentence}", f"{bound.schema} node 'node': {sentence}")
    )


def test_a_constant_has_its_value_in_one_of_many_attributes() -> None:
    tensor = Tensor(np.array([1, 2], np.uint8), UINT8)
    for attributes, value in (
        ({"value": tensor}, tensor),
        ({"value_int": 3}, Tensor(np.array(3, np.int64), INT64)),
        ({"value_ints": (3, 4)}, Tensor(np.array([3, 4], np.int64), INT64)),
        ({"value_float": 1.5}, Tensor(np.array(1.5, np.float32), FLOAT32)),
        ({"value_floats": (1.5, 2.0)}, Tensor(np.array([1.5, 2], np.float32), FLOAT32)),
        ({"value_floats": ()}, Tensor(np.array([], np.float32), FLOAT32)),
    ):
        bound = operation("Constant", 13, **attributes)
        assert constant_tensor(bound) == value
        assert result_of(bound).type == value.type
    with pytest.raises(AttributeValueError, match="got 2; allowed: one of value, "):
        constant_tensor(operation("Constant", 13, value_int=1, value_float=1.0))
    with pytest.raises(ElementTypeError, match="attribute value: this element type is not allowed, got int32"):
        result_of(operation("Constant", 1, value=Tensor(np.array(1, np.int32), INT32)))
    assert result_of(operation("Constant", 1, value=Tensor(np.array(1.0), FLOAT64))).type == typed("float64 ")
