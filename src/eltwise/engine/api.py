"""Any operator version by name, as a function on arrays."""

from __future__ import annotations

from dataclasses import dataclass
from operator import index
from typing import Any, overload

import numpy as np

from eltwise.core.border import public, stripped
from eltwise.core.errors import ArgumentTypeError, EltwiseError, ShapeError, shown
from eltwise.core.shapes import Shape, of_sizes, parse
from eltwise.engine.array_libraries import function_of
from eltwise.engine.arrays import OtherT, Plain
from eltwise.ir.types import TensorType, elementwise
from eltwise.ops import registry
from eltwise.ops.schema import Operation


@dataclass(frozen=True)
class InferredShape:
    """The shape of a result; ``str()`` gives it in the text notation.

    Attributes:
        shape: the shape.
        assumptions: what must hold at run time for it to be right, a sentence each.
    """

    shape: Shape
    assumptions: tuple[str, ...] = ()

    def __str__(self) -> str:
        return str(self.shape)


class Operator:
    """One operator version with its attributes, ready to be called.

    >>> import numpy as np
    >>> minus = operator("Sub-6", broadcast=1, axis=0)
    >>> minus(np.float32([[1, 2], [3, 4]]), np.float32([1, 3]))
    array([[0., 1.],
           [0., 1.]], dtype=float32)
    """

    def __init__(self, operation: Operation) -> None:
        if not isinstance(operation, Operation):
            hint = "eltwise.operator(name) makes an operator"  # type: ignore[unreachable]
            raise ArgumentTypeError("not an operation", got=type(operation).__name__, hint=hint)
        self.operation = operation
        self._function = function_of(operation)

    @property
    def name(self) -> str:
        """The versioned name."""
        return self.operation.schema.versioned_name

    def __eq__(self, other: object) -> bool:
        return self.operation == other.operation if isinstance(other, Operator) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.operation)

    def __reduce__(self) -> tuple[type[Operator], tuple[Operation]]:
        return Operator, (self.operation,)  # The function cannot be pickled.

    def __repr__(self) -> str:
        attributes = "".join(f", {name}={value!r}" for name, value in self.operation.attributes)
        return f"eltwise.operator({self.name!r}{attributes})"

    @overload
    def __call__(  # type: ignore[overload-overlap]
        self, *operands: Plain, out: np.ndarray | None = None
    ) -> np.ndarray: ...
    @overload
    def __call__(self, *operands: OtherT | Plain) -> OtherT: ...  # type: ignore[overload-overlap]
    @overload
    def __call__(self, *operands: object, out: np.ndarray | None = None) -> np.ndarray: ...
    def __call__(self, *operands: object, out: np.ndarray | None = None) -> Any:
        """Compute the result of operands; see ``eltwise.engine.array_libraries.apply``."""
        try:
            return self._function(*operands) if out is None else self._function(*operands, out=out)
        except EltwiseError as error:
            raise stripped(error)  # noqa: B904 - it is the same error

    @public
    def infer_shape(self, *operands: str | Shape | tuple[int, ...] | None) -> InferredShape:
        """Infer the result's shape from the operands' shapes, known or not.

        >>> str(operator("Subtract-1").infer_shape("?,4,1", "1..6,1,5"))
        '?,4,5'

        Raises:
            ShapeError: where no sizes would broadcast, or a text is not in the notation.
            GraphError: for another number of shapes than the operator takes.
        """
        inputs = [None if operand is None else TensorType(None, _shape(operand)) for operand in operands]
        _type, result, broadcast = elementwise(*self.operation.computation_of(inputs, lambda each: each.element_type))
        return InferredShape(result.shape, broadcast.assumptions)


def _shape(shape: str | Shape | tuple[int, ...]) -> Shape:
    if isinstance(shape, Shape):
        return shape
    if isinstance(shape, str):
        return parse(shape)
    try:
        sizes = tuple(map(index, shape))
    except Exception:  # noqa: BLE001 - to iterate somebody else's object may fail in any way
        raise ShapeError("not a shape", got=shown(shape), allowed="a text like '2,3' or sizes like (2, 3)") from None
    return of_sizes(sizes)


def operators() -> tuple[str, ...]:
    """The versioned names of all operators, in the order of the registry.

    >>> len(operators()) > 50, "Sub-14" in operators()
    (True, True)
    """
    return tuple(map(str, registry.ELEMENTWISE))


@public
def operator(name: str, *, opset: int | None = None, **attributes: object) -> Operator:
    """Bind an operator version to attributes.

    >>> operator("Sub", opset=12)
    eltwise.operator('Sub-7')

    Args:
        name: the versioned name, for example ``"Sub-6"``; with ``opset`` the name alone.
        opset: of ONNX, or for a name such as ``"openvino.Subtract"`` of OpenVINO: the version that it has is taken.
        **attributes: its attributes by their specification's names.

    Raises:
        NameUnknownError: for a name or an attribute that does not exist, with the nearest that does.
        AttributeValueError: for a value that the operator version does not allow.
    """
    return Operator((registry.find(name) if opset is None else registry.find_in(name, opset)).bind(attributes))
