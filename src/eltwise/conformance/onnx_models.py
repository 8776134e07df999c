"""Cases as an ONNX model, made with ONNX's own library at the opset in which the operator version began."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from eltwise.conformance.cases import LETTERS, Case
from eltwise.conformance.models import NEUTRAL, Value, output_names, values_of
from eltwise.core.dtypes import FLOAT32, ElementType, of_numpy
from eltwise.ops import registry

if TYPE_CHECKING:
    from onnx import NodeProto, TensorProto, ValueInfoProto

_CAST_TAKES_NUMBERS = 6
"""Cast-1 takes the name of a type."""

_LEAST_IR_VERSION = 4
"""From this version on an initializer is a constant and not an input with a default."""


def build(cases: Sequence[Case]) -> bytes:
    """Build the model as bytes; ``models.build`` says what it holds."""
    from onnx import helper

    nodes: list[NodeProto] = []
    for number, case in enumerate(cases):
        nodes += _nodes(case, number)
    inputs: list[ValueInfoProto] = []
    constants: list[TensorProto] = []
    for value in values_of(cases):
        if value.is_constant:
            constants.append(_tensor(value))
        else:
            inputs.append(_input(value))
    outputs = [
        helper.make_tensor_value_info(name, _result_type(cases[0]).onnx_number, None) for name in output_names(cases)
    ]
    opsets = [helper.make_opsetid("", cases[0].schema.version)]
    version = max(helper.find_min_ir_version_for(opsets), _LEAST_IR_VERSION)
    graph = helper.make_graph(nodes, "case", inputs, outputs, constants)
    model = helper.make_model(graph, opset_imports=opsets, ir_version=version)
    made: bytes = model.SerializeToString(deterministic=True)
    return made


def _nodes(case: Case, number: int) -> list[NodeProto]:
    from onnx import helper

    context, result = case.context, f"result{number}"
    operands = [f"{letter}{number}" for letter in LETTERS[: len(case.operands)]]
    given: dict[str, Any] = {
        name: list(value) if isinstance(value, tuple) else value for name, value in case.attributes
    }
    before, after, between = [], [], result
    if context.producer:
        before.append(_producer(case, number, operands[context.produced]))
        operands[context.produced] = f"made{number}"
    if context.consumer == "Cast":
        between = f"between{number}"
        after.append(helper.make_node("Cast", [between], [result], f"after{number}_node", to=_cast_to(case, FLOAT32)))
    elif context.consumer == "neutral":
        between = f"between{number}"
        after.append(_subtraction(case, between, result))
    return [*before, helper.make_node(case.schema.name, operands, [between], f"case{number}", **given), *after]


def _producer(case: Case, number: int, operand: str) -> NodeProto:
    """The node that makes an operand; whatever its own operands are, they broadcast."""
    from onnx import helper

    made, context = f"made{number}", case.context
    if context.producer == NEUTRAL:
        return _subtraction(case, operand, made)
    if context.producer == "Cast":
        to = _cast_to(case, case.element_type)
        return helper.make_node("Cast", [f"x{number}"], [made], f"{made}_node", to=to)
    producer = registry.find(context.producer)
    shapes = {array.shape for array in case.around}
    attributes: dict[str, Any] = {"broadcast": 1} if producer.broadcasting == "legacy" and len(shapes) > 1 else {}
    inputs = [f"{letter}{number}" for letter in "xy"[: len(case.around)]]
    return helper.make_node(producer.name, inputs, [made], f"{made}_node", **attributes)


def _subtraction(case: Case, value: str, result: str) -> NodeProto:
    """A node that changes no bit: it subtracts the 0 that is an input."""
    from onnx import helper

    schema = registry.resolve("ai.onnx", "Sub", case.schema.version)
    is_legacy = getattr(schema, "broadcasting", "") == "legacy"
    attributes: dict[str, Any] = {"broadcast": 1} if is_legacy else {}
    return helper.make_node("Sub", [value, NEUTRAL], [result], f"{result}_node", **attributes)


def _cast_to(case: Case, element_type: ElementType) -> int | str:
    """How Cast names a type in the opset of a case."""
    if case.schema.version >= _CAST_TAKES_NUMBERS:
        return element_type.onnx_number
    from onnx import TensorProto

    return str(TensorProto.DataType.Name(element_type.onnx_number))


def _result_type(case: Case) -> ElementType:
    if case.context.consumer == "Cast":
        return FLOAT32
    return case.result_type


def _input(value: Value) -> ValueInfoProto:
    from onnx import helper

    sizes: Any = value.array.shape
    if value.is_dynamic:
        sizes = [f"{value.name}_{dimension}" for dimension in range(value.array.ndim)]
    return helper.make_tensor_value_info(value.name, of_numpy(value.array.dtype).onnx_number, sizes)


def _tensor(value: Value) -> TensorProto:
    from onnx import helper

    array = np.ascontiguousarray(value.array)
    return helper.make_tensor(
        value.name, of_numpy(array.dtype).onnx_number, value.array.shape, array.tobytes(), raw=True
    )
