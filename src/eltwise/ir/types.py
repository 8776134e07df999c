"""What is known of a value before it is there, and the type of an element-wise result: calls need no graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from eltwise.core.broadcasting import Broadcast, broadcast
from eltwise.core.dtypes import BOOL, ElementType
from eltwise.core.errors import ElementTypeError, EltwiseError
from eltwise.core.shapes import UNKNOWN_RANK, Shape
from eltwise.ops.schema import Operation


class TensorType(NamedTuple):
    """What is known of a value before it is there: its element type (None: not declared) and its shape.

    ``other`` is the type of a value that is no tensor of a known element type, as ONNX writes it:
    ``seq(tensor(float))``. Its element type and shape are not known.
    """

    element_type: ElementType | None
    shape: Shape
    other: str = ""

    def __str__(self) -> str:
        return self.other or f"{self.element_type or 'any type'}({self.shape})"


UNKNOWN_TYPE = TensorType(None, UNKNOWN_RANK)
"""The type of a value of which nothing is known."""


def elementwise(operation: Operation, operands: Sequence[TensorType]) -> tuple[TensorType, Broadcast]:
    """Infer the result of an element-wise operation, and how its operands lie in it."""
    schema = operation.schema
    element_type: ElementType | None = None
    first = ""
    for index, operand in enumerate(operands):
        name = schema.operand_name(index)
        if operand.element_type is None:
            continue
        schema.check_type(operand.element_type, f"operand {name}")
        if element_type is None:
            element_type, first = operand.element_type, name
        if operand.element_type is not element_type:
            raise ElementTypeError(
                f"operand {first} is {element_type} and operand {name} is {operand.element_type}",
                operator=schema.versioned_name,
                allowed="one type for all" if schema.is_variadic else "one type for both",
                hint="convert one of them first; types are never changed silently",
            )
    try:
        found = broadcast(operation.rule, *(operand.shape for operand in operands))
    except EltwiseError as error:
        raise error.located(operator=schema.versioned_name) from None
    return TensorType(_result_type(operation, element_type), found.shape), found


def _result_type(operation: Operation, element_type: ElementType | None) -> ElementType | None:
    """The type of the result; that of a comparison is known also where the operands' type is not."""
    if element_type is None:
        return BOOL if operation.expression().gives_booleans else None
    return operation.result_type(element_type)
