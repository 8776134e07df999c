"""One function for each operator that is often called: a version of an OpenVINO operator.

Their types are in the stub of the package, which is made of the same table.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from eltwise.engine.array_libraries import apply
from eltwise.engine.call import Calls, calls_of
from eltwise.ops.openvino_operators import BY_VERSIONED_NAME
from eltwise.ops.schema import ElementwiseSchema

FUNCTIONS: dict[str, str] = {}
"""The functions by name, and the operator version that each one is."""


def _with_attributes(version: str, *attributes: object) -> Calls:
    """The calls of an operator version with attributes: a name, its value, and so on."""
    try:
        return calls_of(version, *attributes)
    except TypeError:  # A value without a hash is not allowed; the schema says so.
        return calls_of.__wrapped__(version, *attributes)


def _is_default(auto_broadcast: object, axis: object) -> bool:
    """Whether they are the defaults; -1.0 is not, which the schema refuses."""
    return type(auto_broadcast) is str and auto_broadcast == "numpy" and type(axis) is int and axis == -1


def _schema_and_calls(version: str) -> tuple[ElementwiseSchema, Calls]:
    schema = BY_VERSIONED_NAME[version]
    return schema, calls_of(schema.bind({}))


def _unary(name: str, version: str, example: str) -> Callable[..., Any]:
    schema, calls = _schema_and_calls(version)

    def function(x: object, out: np.ndarray | None = None) -> Any:
        return apply(calls, (x,), out)

    return _documented(function, name, schema, calls, example, "(x, out=None)")


def _binary(name: str, version: str, example: str) -> Callable[..., Any]:
    schema, calls = _schema_and_calls(version)

    def function(
        a: object, b: object, out: np.ndarray | None = None, *, auto_broadcast: str = "numpy", axis: int = -1
    ) -> Any:
        if _is_default(auto_broadcast, axis):
            return apply(calls, (a, b), out)
        return apply(_with_attributes(version, "auto_broadcast", auto_broadcast, "axis", axis), (a, b), out)

    return _documented(function, name, schema, calls, example, f"({_BINARY})")


def _quotient(name: str, version: str, example: str) -> Callable[..., Any]:
    schema, calls = _schema_and_calls(version)

    def function(
        a: object,
        b: object,
        out: np.ndarray | None = None,
        *,
        auto_broadcast: str = "numpy",
        axis: int = -1,
        floor: bool = True,
    ) -> Any:
        if floor is True and _is_default(auto_broadcast, axis):
            return apply(calls, (a, b), out)
        attributes = ("auto_broadcast", auto_broadcast, "axis", axis, "m_pythondiv", floor)
        return apply(_with_attributes(version, *attributes), (a, b), out)

    return _documented(function, name, schema, calls, example, f"({_BINARY}, floor=True)")


_BINARY = "a, b, out=None, *, auto_broadcast='numpy', axis=-1"
_OPERANDS = {
    1: "x: an array, also of Dask, xarray, PyTorch or JAX.",
    2: """a: an array, also of Dask, xarray, PyTorch or JAX, or a number that the other operand's type holds exactly.
    b: the other operand, of the same element type.
    auto_broadcast: ``"numpy"``, ``"none"`` or ``"pdpd"``.
    axis: with ``pdpd``, the dimension of A where B's shape starts; -1 aligns the ends.""",
}
_FLOOR = "\n    floor: whether quotients of integers are rounded down; if not, towards zero."
_ZERO = ", and for an integer divisor of 0"


def _documented(
    function: Callable[..., Any], name: str, schema: ElementwiseSchema, calls: Calls, example: str, signature: str
) -> Callable[..., Any]:
    """Give a function its name and docstring, enter it into the table, and make it a builtin one."""
    count = len(schema.operands)
    formula = schema.expression().written(("x",) if count == 1 else ("a", "b"))
    result = "booleans" if schema.expression().gives_booleans else "the operands' type"
    arguments = (_OPERANDS[count] + (_FLOOR if schema.variants else "")).replace("\n", "\n    ")
    function.__name__ = function.__qualname__ = name
    function.__module__ = "eltwise"
    function.__doc__ = f"""Compute {formula} by OpenVINO's {schema.name}-{schema.version}; the result has {result}.

    Args:
        {arguments}
        out: where the result goes; it may overlap the operands.

    Returns:
        ``out``, or a new array of the shape that the operands broadcast to: of the operands' library, and lazy where
        they are.

    Raises:
        EltwiseError: for operands whose types or shapes do not go together{_ZERO if schema.variants else ""}.

    >>> import eltwise, numpy
    >>> eltwise.{name}({", ".join(("numpy.float32([7, -7])", "numpy.float32([2, 2])")[:count])})
    array({example}{"" if schema.expression().gives_booleans else ", dtype=float32"})
    """
    FUNCTIONS[name] = schema.versioned_name
    return calls.records.builtin(function, name, f"{name}{signature}\n--\n\n{function.__doc__}")


add = _binary("add", "openvino.Add-1", "[ 9., -5.]")
subtract = _binary("subtract", "Subtract-1", "[ 5., -9.]")
multiply = _binary("multiply", "Multiply-1", "[ 14., -14.]")
divide = _quotient("divide", "Divide-1", "[ 3.5, -3.5]")
maximum = _binary("maximum", "Maximum-1", "[7., 2.]")
minimum = _binary("minimum", "Minimum-1", "[ 2., -7.]")
negative = _unary("negative", "Negative-1", "[-7.,  7.]")
absolute = _unary("absolute", "openvino.Abs-1", "[7., 7.]")
squared_difference = _binary("squared_difference", "SquaredDifference-1", "[25., 81.]")
equal = _binary("equal", "openvino.Equal-1", "[False, False]")
not_equal = _binary("not_equal", "NotEqual-1", "[ True,  True]")
less = _binary("less", "openvino.Less-1", "[False,  True]")
less_equal = _binary("less_equal", "LessEqual-1", "[False,  True]")
greater = _binary("greater", "openvino.Greater-1", "[ True, False]")
greater_equal = _binary("greater_equal", "GreaterEqual-1", "[ True, False]")
