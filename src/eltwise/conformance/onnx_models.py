"""Cases as an ONNX model: protobuf as ONNX's own library makes it, at the opset in which the operator version began."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from eltwise.conformance.cases import Around, Case
from eltwise.conformance.paths import (
    NEUTRAL,
    READ_WIDER,
    ModelPath,
    is_followed,
    needs_neutral,
    neutral,
    operands,
    output_names,
)
from eltwise.core.dtypes import FLOAT32, ElementType, of_numpy

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
        for name, array, is_constant, is_dynamic in operands(case, number, path):
            if is_constant:
                constants.append(_tensor(name, array))
            else:
                inputs.append(_input(name, array, dynamic=is_dynamic))
    if needs_neutral(cases, path):
        inputs.append(_input(NEUTRAL, neutral(cases[0]), dynamic=False))
    result_type = _result_type(cases[0], path).onnx_number
    outputs = [helper.make_tensor_value_info(name, result_type, None) for name in output_names(cases, path)]
    opsets = [helper.make_opsetid("", cases[0].schema.version)]
    version = max(helper.find_min_ir_version_for(opsets), _LEAST_IR_VERSION)
    graph = helper.make_graph(nodes, "case", inputs, outputs, constants)
    return helper.make_model(graph, opset_imports=opsets, ir_version=version)


def _nodes(case: Case, number: int, path: ModelPath) -> list[NodeProto]:
    from onnx import helper

    kind, result = case.schema.name, f"result{number}"
    a, b = f"a{number}", f"b{number}"
    given: dict[str, Any] = {
        name: list(value) if isinstance(value, tuple) else value for name, value in case.attributes
    }
    scalar: dict[str, Any] = {"broadcast": 1} if case.schema.broadcasting == "legacy" else {}
    before, between = [], result
    if path == "neighbours":
        before.append(helper.make_node(kind, [a, NEUTRAL], [f"before{number}"], f"before{number}_node", **scalar))
        a = f"before{number}"
    if case.around is not None and (maker := _maker(case, case.around, number)) is not None:
        before.append(maker)
        a, b = (maker.output[0], b) if case.around.slot == "a" else (a, maker.output[0])
    after = []
    if path == READ_WIDER:
        between = f"between{number}"
        after.append(helper.make_node("Cast", [between], [result], f"after{number}_node", to=_cast_to(case, FLOAT32)))
    if is_followed(case, path):
        between = f"between{number}"
        after.append(helper.make_node(kind, [between, NEUTRAL], [result], f"after{number}_node", **scalar))
    return [*before, helper.make_node(kind, [a, b], [between], f"case{number}", **given), *after]


def _maker(case: Case, around: Around, number: int) -> NodeProto | None:
    """The node before; whatever its operands are, they broadcast."""
    from onnx import helper

    made = f"made{number}"
    if around.is_cast:
        return helper.make_node(
            "Cast", [f"x{number}"], [made], f"{made}_node", to=_cast_to(case, of_numpy(case.a.dtype))
        )
    if around.maker is None:
        return None
    is_switched = around.maker.broadcasting == "legacy" and around.x.shape != around.y.shape
    attributes: dict[str, Any] = {"broadcast": 1} if is_switched else {}
    return helper.make_node(around.maker.name, [f"x{number}", f"y{number}"], [made], f"{made}_node", **attributes)


def _cast_to(case: Case, element_type: ElementType) -> int | str:
    """How Cast says a type in the opset of a case."""
    number = element_type.onnx_number
    if case.schema.version >= _CAST_TAKES_NUMBERS:
        return number
    from onnx import TensorProto

    return str(TensorProto.DataType.Name(number))


def _result_type(case: Case, path: ModelPath) -> ElementType:
    return FLOAT32 if path == READ_WIDER else of_numpy(case.a.dtype)


def _input(name: str, array: np.ndarray, *, dynamic: bool) -> ValueInfoProto:
    from onnx import helper

    shape = [f"{name}_{dimension}" for dimension in range(array.ndim)] if dynamic else array.shape
    return helper.make_tensor_value_info(name, of_numpy(array.dtype).onnx_number, shape)


def _tensor(name: str, array: np.ndarray) -> TensorProto:
    from onnx import helper

    return helper.make_tensor(name, of_numpy(array.dtype).onnx_number, array.shape, array.tobytes(), raw=True)
