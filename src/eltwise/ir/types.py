"""What is known of a value before it is there, and the type of an element-wise result: calls need no graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from eltwise.core.broadcasting import Broadcast, broadcast
from eltwise.core.dtypes import ElementType
from eltwise.core.errors import EltwiseError, ShapeError
from eltwise.core.shapes import UNKNOWN_RANK, Shape
from eltwise.ops.computation import Computation


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

    @property
    def may_run(self) -> bool:
        """Whether a value of it may be a tensor of a type that is run, as far as it is known."""
        return not self.other and (self.element_type is None or self.element_type.runs)


UNKNOWN_TYPE = TensorType(None, UNKNOWN_RANK)
"""The type of a value of which nothing is known."""


class Elementwise(NamedTuple):
    """What is inferred of a computation: its type T, None where no operand's is known; its result; the broadcast."""

    element_type: ElementType | None
    result: TensorType
    broadcast: Broadcast


def elementwise(computation: Computation, operands: Sequence[TensorType]) -> Elementwise:
    """Infer the result of a computation, and how its operands lie in it.

    Raises:
        EltwiseError: where the types or shapes of the operands do not go together.
    """
    types = tuple(operand.element_type for operand in operands)
    element_type, result_type = computation.check_types(types), computation.result_type_of(types)
    try:
        layout = broadcast(computation.rule, *(operand.shape for operand in operands))
    except EltwiseError as error:
        raise error.located(operator=computation.name) from None
    if computation.keeps_shape:
        _check_shape(computation, operands[0].shape, layout.shape)
    return Elementwise(element_type, TensorType(result_type, layout.shape), layout)


def _check_shape(computation: Computation, first: Shape, result: Shape) -> None:
    """Refuse operands that would make the result larger than the first one."""
    if first.is_known and result.is_known and first != result:
        raise ShapeError(
            "the other operands do not broadcast onto the first one",
            operator=computation.name,
            got=f"({result})",
            allowed=f"({first})",
        )
