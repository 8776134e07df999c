"""Cases as an ONNX model: protobuf as ONNX's own library makes it, at the opset in which the operator version began."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from eltwise.conformance.cases import Case
from eltwise.conformance.paths import (
    NEUTRAL,
    READ_WIDER,
    ModelPath,
    a_is_constant,
    b_is_constant,
    neutral,
    output_names,
)
from eltwise.dtypes import FLOAT32, ElementType, of_numpy

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto

_CAST_TAKES_NUMBERS = 6
"""Cast-1 takes the name of a type."""

_LEAST_IR_VERSION = 4
"""From this version on an initializer is a constant and no input with a default."""


def build(cases: Sequence[Case], path: ModelPath) -> bytes:
    """Build the model as bytes."""
    made: bytes = build_proto(cases, path).SerializeToString(deterministic=True)
    return made


def smallest(opset: int, ir_version: int) -> bytes:
    """The smallest model with these stamps: an Identity of two numbers."""
    from onnx import helper

    x, y = (helper.make_tensor_value_info(name, 1, (2,)) for name in "xy")
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "smallest", [x], [y])
    opsets = [helper.make_opsetid("", opset)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=ir_version)
    made: bytes = model.SerializeToString(deterministic=True)
    return made


def build_proto(cases: Sequence[Case], path: ModelPath) -> ModelProto:
    """Build the model as a message; ``models.build`` says what it holds."""
    from onnx import helper

    nodes: list[NodeProto] = []
    inputs: list[ValueInfoProto] = []
    constants: list[TensorProto] = []
    for number, case in enumerate(cases):
        nodes += _nodes(case, number, path)
        for letter, array, constant in (("a", case.a, a_is_constant(path)), ("b", case.b, b_is_constant(path))):
            name = f"{letter}{number}"
            if constant:
                constants.append(_tensor(name, array))
            else:
                inputs.append(_input(name, array, dynamic=path == "dynamic"))
    if path == "neighbours":
        inputs.append(_input(NEUTRAL, neutral(cases[0]), dynamic=False))
    outputs = [
        helper.make_tensor_value_info(name, _result_type(case, path).onnx_number, None)
        for name, case in zip(output_names(len(cases)), cases, strict=True)
    ]
    opsets = [helper.make_opsetid("", cases[0].row.version)]
    version = max(helper.find_min_ir_version_for(opsets), _LEAST_IR_VERSION)
    graph = helper.make_graph(nodes, "case", inputs, outputs, constants)
    return helper.make_model(graph, opset_imports=opsets, ir_version=version)


def _nodes(case: Case, number: int, path: ModelPath) -> list[NodeProto]:
    from onnx import helper

    kind, result = case.row.name, f"result{number}"
    given: dict[str, Any] = {
        name: list(value) if isinstance(value, tuple) else value for name, value in case.attributes
    }
    if path == READ_WIDER:
        to = FLOAT32.onnx_number if case.row.version >= _CAST_TAKES_NUMBERS else "FLOAT"
        return [
            helper.make_node(kind, [f"a{number}", f"b{number}"], [f"between{number}"], f"case{number}", **given),
            helper.make_node("Cast", [f"between{number}"], [result], f"after{number}_node", to=to),
        ]
    if path != "neighbours":
        return [helper.make_node(kind, [f"a{number}", f"b{number}"], [result], f"case{number}", **given)]
    before, between = f"before{number}", f"between{number}"
    scalar: dict[str, Any] = {"broadcast": 1} if case.row.broadcasting == "legacy" else {}
    return [
        helper.make_node(kind, [f"a{number}", NEUTRAL], [before], f"{before}_node", **scalar),
        helper.make_node(kind, [before, f"b{number}"], [between], f"case{number}", **given),
        helper.make_node(kind, [between, NEUTRAL], [result], f"after{number}_node", **scalar),
    ]


def _result_type(case: Case, path: ModelPath) -> ElementType:
    return FLOAT32 if path == READ_WIDER else of_numpy(case.a.dtype)


def _input(name: str, array: np.ndarray, *, dynamic: bool) -> ValueInfoProto:
    from onnx import helper

    shape = [f"{name}_{dimension}" for dimension in range(array.ndim)] if dynamic else array.shape
    return helper.make_tensor_value_info(name, of_numpy(array.dtype).onnx_number, shape)


def _tensor(name: str, array: np.ndarray) -> TensorProto:
    from onnx import helper

    return helper.make_tensor(name, of_numpy(array.dtype).onnx_number, array.shape, array.tobytes(), raw=True)
