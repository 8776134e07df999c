"""The public functions: any operator version by name, and one function for each operator that is often called."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from operator import index

import numpy as np

from eltwise.core.errors import NameUnknownError, ShapeError
from eltwise.core.shapes import Shape, of_sizes, parse
from eltwise.engine.call import FEW, Calls, calls_of, check_count
from eltwise.ir.graph import TensorType
from eltwise.ir.infer import elementwise
from eltwise.kernels.float_mode import LEAST, ONE
from eltwise.ops import registry
from eltwise.ops.schema import ElementwiseSchema, Operation

FUNCTIONS: dict[str, str] = {
    "add": "openvino.Add-1",
    "subtract": "Subtract-1",
    "multiply": "Multiply-1",
    "divide": "Divide-1",
    "maximum": "Maximum-1",
    "minimum": "Minimum-1",
    "negative": "Negative-1",
    "absolute": "openvino.Abs-1",
    "squared_difference": "SquaredDifference-1",
    "equal": "openvino.Equal-1",
    "not_equal": "NotEqual-1",
    "less": "openvino.Less-1",
    "less_equal": "LessEqual-1",
    "greater": "openvino.Greater-1",
    "greater_equal": "GreaterEqual-1",
}
"""The functions of the package by name, and the operator version that each one is."""


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
        self.operation = operation
        self._calls = calls_of(operation)

    @property
    def name(self) -> str:
        """The versioned name."""
        return self.operation.schema.versioned_name

    def __reduce__(self) -> tuple[type[Operator], tuple[Operation]]:
        return Operator, (self.operation,)  # Calls that are kept hold functions, which cannot be pickled.

    def __repr__(self) -> str:
        attributes = "".join(f", {name}={value!r}" for name, value in self.operation.given)
        return f"eltwise.operator({self.name!r}{attributes})"

    def __call__(self, *operands: object, out: np.ndarray | None = None) -> np.ndarray:
        """Compute the result of operands; see ``eltwise.engine.call.Calls.apply``."""
        return self._calls.apply(operands, out)

    def infer_shape(self, *operands: str | Shape | tuple[int, ...]) -> InferredShape:
        """Infer the result's shape from the operands' shapes, known or not.

        >>> str(operator("Subtract-1").infer_shape("?,4,1", "1..6,1,5"))
        '?,4,5'

        Raises:
            ShapeError: where no sizes would broadcast, or a text is not in the notation.
            GraphError: for another number of shapes than the operator takes.
        """
        check_count(self.operation, len(operands))
        result, found = elementwise(self.operation, [TensorType(None, _shape(operand)) for operand in operands])
        return InferredShape(result.shape, found.assumptions)


def _shape(given: str | Shape | tuple[int, ...]) -> Shape:
    if isinstance(given, Shape):
        return given
    if isinstance(given, str):
        return parse(given)
    try:
        return of_sizes(tuple(map(index, given)))
    except TypeError:
        raise ShapeError(
            "not a shape", got=repr(given)[:80], allowed="a text like '2,3' or sizes like (2, 3)"
        ) from None


def operator(name: str, **attributes: object) -> Operator:
    """Bind an operator version to attributes.

    Args:
        name: the versioned name, for example ``"Sub-6"``.
        **attributes: its attributes by their specification's names.

    Raises:
        NameUnknownError: for a name or an attribute that does not exist, with the nearest that does.
        AttributeValueError: for a value that the operator version does not allow.
    """
    if not isinstance(name, str):
        raise NameUnknownError("an operator is named by a text", got=type(name).__name__, allowed="for example 'Sub-6'")
    return Operator(registry.find(name).bind(attributes))


@lru_cache(maxsize=256, typed=True)
def _kept(schema: ElementwiseSchema, names: tuple[str, ...], values: tuple[object, ...]) -> Calls:
    return calls_of(schema.bind(dict(zip(names, values, strict=True))))


def _bound(schema: ElementwiseSchema, names: tuple[str, ...], values: tuple[object, ...]) -> Calls:
    """The calls of an operator version with attributes, found once for the values that are allowed."""
    try:
        return _kept(schema, names, values)
    except TypeError:  # A value that is not hashable is not allowed; the schema says so.
        return calls_of(schema.bind(dict(zip(names, values, strict=True))))


def _unary(schema: ElementwiseSchema) -> Callable[..., np.ndarray]:
    calls = calls_of(schema.bind({}))

    def function(x: object, out: np.ndarray | None = None) -> np.ndarray:
        return calls.apply((x,), out)

    return function


_ndarray = np.ndarray
_NUMPY, _UNSET = "numpy", -1
"""The defaults, which are these very objects where nothing else is given."""


def _binary(schema: ElementwiseSchema) -> Callable[..., np.ndarray]:
    calls = calls_of(schema.bind({}))
    known, names = calls.known, ("auto_broadcast", "axis")

    def function(
        a: object, b: object, auto_broadcast: str = _NUMPY, axis: int = _UNSET, out: np.ndarray | None = None
    ) -> np.ndarray:
        if auto_broadcast is not _NUMPY or axis is not _UNSET:
            return _bound(schema, names, (auto_broadcast, axis)).apply((a, b), out)
        # The look-up of ``apply``, written out: calls on few elements take little longer than this.
        if out is None and type(a) is _ndarray and type(b) is _ndarray:
            kind = a.dtype
            is_few = kind is b.dtype and a.size * b.size <= FEW
            run = known.get(kind if is_few else (kind, a.shape, b.dtype, b.shape))
            if run is not None and LEAST * ONE != 0.0 and ONE + LEAST == ONE - LEAST:  # is_default()
                try:
                    return run(a, b)
                except ValueError:
                    calls.check_again((a, b))
                    raise
        return calls.apply((a, b), out)

    return function


def _quotient(schema: ElementwiseSchema) -> Callable[..., np.ndarray]:
    calls = calls_of(schema.bind({}))
    names = ("auto_broadcast", "axis", "m_pythondiv")

    def function(
        a: object,
        b: object,
        auto_broadcast: str = _NUMPY,
        axis: int = _UNSET,
        out: np.ndarray | None = None,
        *,
        floor: bool = True,
    ) -> np.ndarray:
        if auto_broadcast is _NUMPY and axis is _UNSET and floor is True:
            return calls.apply((a, b), out)
        return _bound(schema, names, (auto_broadcast, axis, floor)).apply((a, b), out)

    return function


_OPERANDS = {
    1: "x: an array by any array protocol.",
    2: """a: an array by any array protocol, or a Python number that the other operand's type holds exactly.
    b: the other operand, of the same element type.
    auto_broadcast: ``"numpy"``, ``"none"`` or ``"pdpd"``.
    axis: with ``pdpd``, the dimension of A where B's shape starts; -1 aligns the ends.""",
}
_FLOOR = "\n    floor: whether quotients of integers are rounded down; if not, towards zero."


def _documentation(name: str, schema: ElementwiseSchema) -> str:
    count = len(schema.operands)
    expression = str(schema.expression()).replace("a", "x") if name == "negative" else str(schema.expression())
    result = "booleans" if schema.expression().gives_booleans else "the operands' type"
    arguments = _OPERANDS[count].replace("\n", "\n    ") + (_FLOOR.replace("\n", "\n    ") if schema.variants else "")
    return f"""Compute {expression} by OpenVINO's {schema.name}-{schema.version}; the result has {result}.

    Args:
        {arguments}
        out: where the result goes; it may overlap the operands.

    Returns:
        ``out``, or a new array of the shape that the operands broadcast to.

    Raises:
        EltwiseError: for operands whose types or shapes do not go together{_ZERO if schema.variants else ""}.
    """


_ZERO = ", and for an integer divisor of 0"


def public_function(name: str) -> Callable[..., np.ndarray]:
    """Make one of the functions of the package."""
    schema = registry.find(FUNCTIONS[name])
    make = _quotient if schema.variants else _unary if len(schema.operands) == 1 else _binary
    function = make(schema)
    function.__name__ = function.__qualname__ = name
    function.__module__ = "eltwise"
    function.__doc__ = _documentation(name, schema)
    return function
