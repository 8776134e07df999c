"""Operands of the types that an operator version or a primitive takes, and what the reference gives for them."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from eltwise import oracle
from eltwise.core.dtypes import BOOL, FLOAT16, INT8, ElementType, of_numpy
from eltwise.ops.computation import Computation
from eltwise.ops.expression import Expression, expression_of
from eltwise.ops.primitive import Primitive
from eltwise.ops.schema import ElementwiseSchema, Operation
from eltwise.oracle import array_of, hard_values

_TYPES_HAVE_NUMBERS = 6
"""The first opset in which files of ONNX state the type of a cast by its number."""

NUMBERS: Mapping[str, Hashable] = {
    "alpha": 0.75,
    "beta": 0.25,
    "gamma": 2.0,
    "low": -1.5,
    "high": float(np.float32(0.1)),
    "detect_negative": False,
    "detect_positive": True,
    "to": INT8,
    "saturate": True,
    "precision": None,
    "bias": 0.25,
    "lambd": 1.5,
    "levels": 5,
}
"""A value for every parameter of a primitive."""

REQUIRED: Mapping[str, object] = {
    "direction": "LEFT",
    "min": -1.5,
    "max": 2.25,
    "alpha": 0.75,
    "beta": 0.25,
    "lambda": 2.0,
    "levels": 16,
    "to": FLOAT16,
    "destination_type": FLOAT16,
}
"""A value for every attribute that must be stated."""

_TYPES = ("to", "destination_type")
"""The attributes that state the type of a cast."""


def expression(primitive: Primitive) -> Expression:
    """A primitive as an expression, with parameters."""
    return expression_of(primitive.name, None, tuple((name, NUMBERS[name]) for name in primitive.parameters))


def pool(element_type: ElementType) -> np.ndarray:
    """The hard values of a type."""
    return hard_values.hard_values(element_type) if element_type.is_numeric else array_of(element_type, (0, 1))


def required(schema: ElementwiseSchema) -> dict[str, Any]:
    """The attributes that must be stated."""
    return {attribute.name: REQUIRED[attribute.name] for attribute in schema.attributes if attribute.required}


def choices(schema: ElementwiseSchema) -> list[dict[str, Any]]:
    """The attributes that decide what an operator computes."""
    one = required(schema)
    types = [(each.name, value) for each in schema.attributes if each.name in _TYPES for value in each.choices]
    values = [*types, *((name, value) for name, value, _function in schema.variants)]
    return [one, *({**one, name: value} for name, value in values)]


def with_parameters(schema: ElementwiseSchema) -> dict[str, Any]:
    """Attributes with a value other than the default for each parameter."""
    attributes = required(schema)
    for attribute, name in schema.parameters:
        kind = next(each.kind for each in schema.attributes if each.name == attribute)
        value = NUMBERS[name]
        attributes[attribute] = int(bool(value)) if isinstance(value, bool) and kind == "int" else value
    return attributes


def operand_types(schema: ElementwiseSchema, element_type: ElementType, count: int) -> list[ElementType]:
    """The types of operands, where T is ``element_type``."""
    others = schema.other_types or (None,) * count
    return [other[0] if other else element_type for other in others[:count]]


def drawn(
    types: Sequence[ElementType], size: int, seed: int, *, divides: bool = False, raises: bool = False
) -> list[np.ndarray]:
    """Hard and random values; no integer divisor is 0, and no integer that is raised to a power."""
    generator = np.random.default_rng(seed)
    operands = []
    for element_type in types:
        values = pool(element_type)
        if element_type is not BOOL:
            values = np.concatenate([values, hard_values.random_bits(element_type, 200, seed)])
        operands.append(values[generator.integers(0, values.size, size)])
    if divides and types[-1].is_integer:
        operands[-1] = np.where(operands[-1] == 0, types[-1].storage.type(1), operands[-1])
    if raises and types[0].is_integer:
        operands[0] = np.where(operands[0] == 0, types[0].storage.type(1), operands[0])
    return operands


def expected(operation: Operation, operands: Sequence[np.ndarray | None]) -> np.ndarray:
    """What the reference gives for an operator version with attributes; None stands for an operand that is left out.

    Raises:
        oracle.OracleRefusal: where these types, shapes or values must be refused.
    """
    schema = operation.schema
    assert isinstance(schema, ElementwiseSchema)
    computation, read = read_of(operation, operands)
    types = [of_numpy(operand.dtype) for operand in read]
    element_type = next(
        each
        for each, other in zip(types, computation.other_types or (None,) * len(types), strict=True)
        if other is None
    )
    steps = computation.typed(element_type, types).steps
    has_parameters = len(steps) == 1 and steps[0].primitive == operation.function
    parameters = dict(steps[0].parameters) if has_parameters else {}
    every = [operand for index, operand in enumerate(operands) if index != operation.type_only]
    rule: Any = operation.rule.name
    axis, enabled = operation.value("axis"), operation.value("broadcast") == 1
    start = axis if isinstance(axis, int) else -1
    if rule == "axis":
        every, rule, start = _on_axis(operation, every), "numpy", -1
    result = oracle.evaluate(operation.function, *every, rule=rule, axis=start, enabled=enabled, parameters=parameters)
    if schema.keeps_shape and result.shape != read[0].shape:
        raise oracle.OracleRefusal("the other operands do not broadcast onto the first one")
    return result


def _on_axis(operation: Operation, operands: Sequence[np.ndarray | None]) -> list[np.ndarray | None]:
    """Operands of which each but the first has one element, one for each index of a dimension, or one for a block."""
    first, *others = operands
    assert first is not None
    axis, block = operation.value("axis"), operation.value("block_size")
    axis = axis if isinstance(axis, int) else operation.rule.axis
    aligned: list[np.ndarray | None] = []
    for other in others:
        if other is None:
            aligned.append(None)
        elif block and other.ndim == first.ndim > 0:
            aligned.append(np.repeat(other, block, axis).take(range(first.shape[axis]), axis))  # type: ignore[call-overload]
        elif other.size == 1 and other.ndim < 2:
            aligned.append(other.reshape(()))
        else:
            aligned.append(other.reshape([-1 if index == axis % first.ndim else 1 for index in range(first.ndim)]))
    return [first, *aligned]


def read_of(operation: Operation, operands: Sequence[np.ndarray | None]) -> tuple[Computation, tuple[np.ndarray, ...]]:
    """What an operation computes of arrays, and those that are read, which is all but one for its type only."""
    return operation.computation_of(operands, lambda operand: of_numpy(operand.dtype))


def in_file(schema: ElementwiseSchema, attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Attributes as files state them: an element type by its name or number in the format."""

    def stated(value: Any) -> Any:
        if not isinstance(value, ElementType):
            return value
        number = value.onnx if schema.version < _TYPES_HAVE_NUMBERS else value.onnx_number
        return number if schema.domain == "ai.onnx" else value.ir

    return {name: stated(value) for name, value in attributes.items()}
