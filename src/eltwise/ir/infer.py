"""Inference of one node: the type of its result from its operator version and the types of its inputs.

``check``, ``infer``, ``run`` and the readers all call it: with declared types before a run, with the types of the
arrays during one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from eltwise.core.dtypes import FLOAT32, INT64
from eltwise.core.errors import (
    AttributeValueError,
    ElementTypeError,
    EltwiseError,
    GraphError,
    ShapeError,
    UnsupportedError,
)
from eltwise.core.reshaping import of_rank, reshaped, squeezed, unsqueezed
from eltwise.core.shapes import Shape
from eltwise.ir.graph import Node, Tensor
from eltwise.ir.types import TensorType, elementwise
from eltwise.ops.data_movement import DataMovementSchema
from eltwise.ops.schema import ElementwiseSchema, Operation, OpSchema

_MOST_NAMED = 4
"""So many operands an error names."""


class Result(NamedTuple):
    """The type of what a node makes, and what had to be assumed of its inputs."""

    type: TensorType
    assumptions: tuple[str, ...] = ()


def node_result(node: Node, inputs: Sequence[TensorType | None], indices: np.ndarray | None) -> Result:
    """Infer what a node makes.

    Args:
        node: the node.
        inputs: the types of its inputs; None for one that is left out.
        indices: the values of the input that holds a shape or axes, None where they are not known or not there.
    """
    schema = node.bound.schema
    try:
        _check_inputs(node, inputs)
        if isinstance(schema, ElementwiseSchema):
            _type, result, layout = elementwise(*node.bound.computation_of(inputs, lambda each: each.element_type))
            return Result(result, layout.assumptions)
        return Result(_moved(node.bound, inputs, indices))
    except EltwiseError as error:
        raise located(error, node) from None


def located(error: EltwiseError, node: Node) -> EltwiseError:
    """Add the node and the names of its tensors to an error."""
    schema = node.bound.schema
    count = len(node.inputs) if schema.is_variadic else min(len(node.inputs), len(schema.operands))
    named = [(schema.operand_name(index), node.inputs[index]) for index in range(count) if node.inputs[index]]
    for operand, name in named:
        if error.operand == f"operand {operand}":
            error.operand += f" ({name!r})"
    operands = " and ".join(f"{operand} {name!r}" for operand, name in named[:_MOST_NAMED])
    more = f" and {len(named) - _MOST_NAMED} more" if len(named) > _MOST_NAMED else ""
    subject = f"operand{'s' if len(named) > 1 else ''} {operands}{more}" if named else ""
    return error.located(operator=schema.versioned_name, node=node.label, operand=subject)


def _check_inputs(node: Node, inputs: Sequence[TensorType | None]) -> None:
    schema = node.bound.schema
    if len(inputs) > len(schema.operands) and not schema.is_variadic:
        raise GraphError(
            "there are too many inputs", got=str(len(inputs)), allowed=str(len(schema.operands)), operand="its inputs"
        )
    required = max(len(inputs), schema.required_operands) if schema.is_variadic else schema.required_operands
    for index in range(required):
        if index >= len(inputs) or inputs[index] is None:
            raise GraphError("this input is missing", operand=f"operand {schema.operand_name(index)}")
    named = sum(bool(name) for name in node.outputs)
    if named > 1:
        raise UnsupportedError("more than one output is unsupported", got=str(named), operand="its outputs")
    if len(node.outputs) != 1 or not named:
        raise GraphError("one output with a name is needed", got=str(named), operand="its outputs")


def constant_tensor(operation: Operation) -> Tensor:
    """The value of a Constant node, from whichever of its attributes is there."""
    if len(operation.attributes) != 1:
        names = ", ".join(operation.schema.attribute_names)
        raise AttributeValueError(
            "exactly one attribute must hold the value", got=str(len(operation.attributes)), allowed=f"one of {names}"
        )
    name, value = operation.attributes[0]
    if isinstance(value, Tensor):
        return value
    element_type = FLOAT32 if "float" in name else INT64
    with np.errstate(over="ignore"):
        return Tensor(np.array(value, element_type.storage), element_type)


def check_inference(operation: Operation, training_mode: object = None) -> None:
    """Refuse an operator that is computed otherwise in training.

    Raises:
        UnsupportedError: for an attribute or an operand that asks for training.
    """
    if operation.value("is_test") == 0:
        raise UnsupportedError("training is unsupported", operand="attribute is_test", got="0", allowed="1")
    if training_mode is not None and bool(np.any(np.asarray(training_mode))):
        raise UnsupportedError("training is unsupported", operand="operand training_mode", got="true", allowed="false")


def _moved(operation: Operation, inputs: Sequence[TensorType | None], indices: np.ndarray | None) -> TensorType:
    """The type of what an operator makes that moves values."""
    schema, data = operation.schema, inputs[0] if inputs else None
    if schema.behaviour == "constant":
        tensor = constant_tensor(operation)
        schema.check_type(tensor.element_type, "attribute value")
        return tensor.type
    assert data is not None
    if data.element_type is not None:
        schema.check_type(data.element_type, f"operand {schema.operands[0]}")
    if schema.behaviour == "identity":
        check_inference(operation)
        return data
    index_operand = inputs[1] if len(inputs) > 1 else None
    if index_operand is not None:
        _check_index_operand(schema, index_operand)
    return TensorType(data.element_type, _moved_shape(operation, data.shape, index_operand, indices))


def _check_index_operand(schema: OpSchema, index_operand: TensorType) -> None:
    assert isinstance(schema, DataMovementSchema)
    operand = f"operand {schema.operands[1]}"
    if index_operand.element_type not in (None, *schema.index_types):
        allowed = ", ".join(map(str, schema.index_types))
        raise ElementTypeError(
            "this element type is not allowed", operand=operand, got=str(index_operand.element_type), allowed=allowed
        )
    ranks = (0, 1) if schema.domain == "openvino" and schema.behaviour != "reshape" else (1,)
    if index_operand.shape.rank not in (None, *ranks):
        raise ShapeError(
            "the rank is not allowed",
            operand=operand,
            got=str(index_operand.shape.rank),
            allowed=" or ".join(map(str, ranks)),
        )


def _moved_shape(
    operation: Operation, data: Shape, index_operand: TensorType | None, indices: np.ndarray | None
) -> Shape:
    schema = operation.schema
    assert isinstance(schema, DataMovementSchema)
    requested = operation.value("shape" if schema.behaviour == "reshape" else "axes")
    values = requested if isinstance(requested, tuple) else None
    if index_operand is not None and indices is None:
        return _moved_rank(schema, data, index_operand)
    if indices is not None:
        values = tuple(int(value) for value in np.atleast_1d(indices).ravel())
    negative = not (schema.domain == "ai.onnx" and schema.version == 1)
    if schema.behaviour == "reshape":
        return _reshaped(operation, data, values)
    if schema.behaviour == "unsqueeze":
        assert values is not None
        return unsqueezed(data, values, negative)
    if schema.domain == "openvino" and values == ():
        values = None  # OpenVINO reads empty axes as absent ones.
    return squeezed(data, values, negative, skip=operation.value("allow_axis_skip") is True)


def _reshaped(operation: Operation, data: Shape, target: tuple[int, ...] | None) -> Shape:
    if target is None:
        raise AttributeValueError("a required attribute is missing", operand="attribute shape")
    if operation.schema.domain == "openvino":
        special_zero = operation.value("special_zero") is True
        return reshaped(data, target, zero_copies=special_zero, empty_copies_cancel=True)
    allowzero = operation.value("allowzero") == 1
    if allowzero and 0 in target and -1 in target:
        raise ShapeError("with allowzero=1 the target shape cannot hold both 0 and -1", operand="operand shape")
    return reshaped(data, target, zero_copies=not allowzero)


def _moved_rank(schema: DataMovementSchema, data: Shape, index_operand: TensorType) -> Shape:
    """What is known of the result when only the type of the shape or axes operand is."""
    length = _length(index_operand.shape)
    if schema.behaviour == "reshape":
        return of_rank(length)
    if length is None or data.rank is None:
        return of_rank(None)
    return of_rank(data.rank + length if schema.behaviour == "unsqueeze" else None)


def _length(shape: Shape) -> int | None:
    if not shape.is_known:
        return None
    return int(np.prod(shape.sizes(), dtype=object))
