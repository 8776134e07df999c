"""The operators as functions: any row of the catalog, bound to its attributes, called on arrays."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from operator import index

import numpy as np
from numpy import ndarray

from eltwise.core.errors import NameUnknownError, ShapeError
from eltwise.core.shapes import Shape, of_sizes, parse
from eltwise.engine import call
from eltwise.engine.quick import CALLS, LEAST_ALWAYS
from eltwise.ir.graph import TensorType
from eltwise.ir.infer import elementwise
from eltwise.kernels.float_mode import LEAST, ONE, is_busy, run_quietly
from eltwise.ops import registry
from eltwise.ops.schema import Operation

_NUMPY, _UNSET = "numpy", -1
"""The defaults, which are these very objects where nothing else is given."""

_checked, _loop = CALLS.types, np.subtract


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

    @property
    def name(self) -> str:
        """The versioned name."""
        return self.operation.schema.versioned_name

    def __repr__(self) -> str:
        attributes = "".join(f", {name}={value!r}" for name, value in self.operation.given)
        return f"eltwise.operator({self.name!r}{attributes})"

    def __call__(self, a: object, b: object, out: np.ndarray | None = None) -> np.ndarray:
        """Compute the result of two operands; see ``eltwise.engine.call.apply``."""
        return call.apply(self.operation, a, b, out)

    def infer_shape(self, a: str | Shape | tuple[int, ...], b: str | Shape | tuple[int, ...]) -> InferredShape:
        """Infer the result's shape from the operands' shapes, known or not.

        >>> str(operator("Subtract-1").infer_shape("?,4,1", "1..6,1,5"))
        '?,4,5'

        Raises:
            ShapeError: where no sizes would broadcast, or a text is not in the notation.
        """
        types = (TensorType(None, _shape(a)), TensorType(None, _shape(b)))
        result, found = elementwise(self.operation, *types)
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
            "this is no shape", got=repr(given)[:80], allowed="a text like '2,3' or sizes like (2, 3)"
        ) from None


def operator(name: str, **attributes: object) -> Operator:
    """Bind a row of the catalog to attributes.

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
def _kept(name: str, auto_broadcast: str, axis: int) -> Operation:
    return registry.find(name).bind({"auto_broadcast": auto_broadcast, "axis": axis})


def _auto_broadcast(name: str, auto_broadcast: str, axis: int) -> Operation:
    """Bind the two attributes, once for the values that are allowed."""
    try:
        return _kept(name, auto_broadcast, axis)
    except TypeError:  # A value that cannot be kept is none that is allowed; the row says so.
        return _kept.__wrapped__(name, auto_broadcast, axis)


def subtract(
    a: object, b: object, auto_broadcast: str = _NUMPY, axis: int = _UNSET, out: np.ndarray | None = None
) -> np.ndarray:
    """Compute a - b by OpenVINO's Subtract-1, which with ``numpy`` is also ONNX's Sub-14 for its types.

    Args:
        a: an array by any array protocol, or a Python number that the other operand's type holds exactly.
        b: the other operand, of the same element type.
        auto_broadcast: ``"numpy"``, ``"none"`` or ``"pdpd"``.
        axis: with ``pdpd``, the dimension of A where B's shape starts; -1 aligns the ends.
        out: where the result goes; it may overlap the operands.

    Raises:
        EltwiseError: for operands that do not go together.

    >>> import numpy as np
    >>> subtract(np.uint8([3, 5]), np.uint8([4, 5]))
    array([255,   0], dtype=uint8)
    """
    # The shortest way, for few elements: types of which a call was checked, on which NumPy gives what is asked for.
    if out is None and auto_broadcast is _NUMPY and axis is _UNSET and type(a) is ndarray and type(b) is ndarray:
        kind = a.dtype
        is_checked = kind is b.dtype and kind in _checked and a.size * b.size <= LEAST_ALWAYS
        if is_checked and LEAST * ONE != 0.0 and ONE + LEAST == ONE - LEAST:  # is_default(), without a call.
            try:
                result = run_quietly(_loop, a, b)
            except (ValueError, RuntimeError) as error:
                result = call.apply(_auto_broadcast("Subtract-1", auto_broadcast, axis), a, b, out)
                if not is_busy(error):  # The full call has no objection: it is a signal handler's error.
                    raise
                return result
            if type(result) is ndarray and (result.ndim == 1 or result.flags.c_contiguous):
                return result
    return call.apply(_auto_broadcast("Subtract-1", auto_broadcast, axis), a, b, out)


def squared_difference(
    a: object, b: object, auto_broadcast: str = "numpy", axis: int = -1, out: np.ndarray | None = None
) -> np.ndarray:
    """Compute (a - b) * (a - b) by OpenVINO's SquaredDifference-1, each step in the element type.

    The arguments and errors are those of ``subtract``.

    >>> import numpy as np
    >>> squared_difference(np.int8([12, 1]), np.int8([0, 4]))
    array([-112,    9], dtype=int8)
    """
    return call.apply(_auto_broadcast("SquaredDifference-1", auto_broadcast, axis), a, b, out)
