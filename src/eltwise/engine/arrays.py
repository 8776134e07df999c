"""How a caller's objects become arrays: by the array protocols, never with a silent change of type."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias, TypeVar

import numpy as np

from eltwise.core.dtypes import BOOL, ElementType, of_numpy
from eltwise.core.errors import ElementTypeError, ShapeError, ValueRangeError
from eltwise.core.escaping import shortened
from eltwise.engine.intake import array_of, is_masked


class Lazy(Protocol):
    """A Dask array, or an object of xarray."""

    def compute(self, **options: Any) -> Any:
        """Compute it."""


class TorchTensor(Protocol):
    """A tensor of PyTorch."""

    def detach(self) -> Any:
        """Leave out how it was computed."""


class JaxArray(Protocol):
    """An array of JAX."""

    def block_until_ready(self) -> Any:
        """Wait for its computation."""


OtherT = TypeVar("OtherT", bound=Lazy | TorchTensor | JaxArray)
"""An array that results are given back as."""

Plain: TypeAlias = np.ndarray | np.generic | float
"""What goes together with arrays of every library."""

Axis: TypeAlias = int | str | Sequence[int | str] | None
"""Some axes of a result, by number or name; None for all."""

Compute: TypeAlias = Callable[[Sequence[object], Axis], Any]
"""Computes a result of operands, and of the axes that it reduces."""

_LONGEST_NUMBER = 30


def as_array(value: object, operand: str, types: Sequence[ElementType] = ()) -> tuple[np.ndarray, ElementType]:
    """Take an object in by the first of ``__array__``, DLPack and the buffer protocol that it has.

    The array keeps its strides and its byte order; nothing is copied where the protocol allows it.

    Raises:
        ElementTypeError: where it has none of them, or its element type is unsupported; ``types`` are those to name.
    """
    array = array_of(value, operand)
    return array, of_numpy(array.dtype, types, operand=operand)


def exact_scalar(value: object, element_type: ElementType, operand: str) -> np.ndarray:
    """Take a Python number as an element type that holds it exactly.

    Raises:
        ValueRangeError: where the type does not hold it.
        ElementTypeError: for a bool where the type is of numbers.
    """
    is_foreign_boolean = isinstance(value, bool) and element_type is not BOOL
    if is_foreign_boolean or not isinstance(value, int | float):
        kind, allowed = type(value).__name__, f"a number that {element_type} holds"
        raise ElementTypeError(f"a {kind} is no number", operand=operand, got=repr(value), allowed=allowed)
    array = _exact_array(value, element_type)
    if array is not None:
        return array
    try:
        text = repr(value)
    except ValueError:  # Python writes out no integer of more than some thousand digits.
        text = f"an integer of {int(value).bit_length()} bits"
    low, high = element_type.finite_limits
    is_inside, limits = low <= value <= high, f"{low} to {high}"
    allowed, hint = ("", _rounded(element_type, text)) if is_inside else (limits, "")
    if element_type.kind != "float":
        hint = "give an integer, or arrays of a float type" if isinstance(value, float) else ""
        allowed = f"integers from {limits}"
    raise ValueRangeError(
        f"{element_type.name} does not hold this number{' exactly' if is_inside else ''}",
        operand=operand,
        got=shortened(text, 60),
        allowed=allowed,
        hint=hint,
    )


def _rounded(element_type: ElementType, text: str) -> str:
    """What to do about a number that a float type does not hold exactly."""
    text = text if len(text) < _LONGEST_NUMBER else "x"
    is_builtin = element_type.storage.isbuiltin == 1  # Others take no large integers.
    rounded = f"numpy.{element_type}({text})" if is_builtin else f"ml_dtypes.{element_type}(float({text}))"
    return f"round it first, so that what is computed with is seen: {rounded}"


def _exact_array(value: float, element_type: ElementType) -> np.ndarray | None:
    if element_type.kind != "float":
        low, high = element_type.finite_limits
        is_whole = not isinstance(value, float) or (value.is_integer() and str(value) != "-0.0")
        return np.array(int(value)).astype(element_type.storage) if is_whole and low <= value <= high else None
    try:
        wide = float(value)
    except OverflowError:
        return None
    with np.errstate(all="ignore"):
        array = np.array(wide).astype(element_type.storage)
    return array if math.isnan(wide) or float(array.astype(np.float64)) == value else None


def check_out(out: object, element_type: ElementType, shape: tuple[int, ...]) -> np.ndarray:
    """Make sure that results can be written into ``out``.

    Raises:
        ElementTypeError, ShapeError, ValueRangeError: where it is no writable array of that type and shape.
    """
    if not isinstance(out, np.ndarray) or is_masked(out) or type(out).__array_ufunc__ != np.ndarray.__array_ufunc__:
        raise ElementTypeError("out must be a NumPy array", operand="out", got=type(out).__name__)
    if of_numpy(out.dtype, operand="out") is not element_type:
        raise ElementTypeError("out has another type", operand="out", got=str(out.dtype), allowed=element_type.name)
    if out.shape != shape:
        raise ShapeError("out has another shape", operand="out", got=str(out.shape), allowed=str(shape))
    if not out.flags.writeable:
        raise ValueRangeError("out is read-only", operand="out")
    if _overlaps_itself(out):
        raise ValueRangeError("elements of out share memory, so that it cannot hold the result", operand="out")
    return out


def _overlaps_itself(array: np.ndarray) -> bool:
    """Whether elements may share memory: in what slices and transposes give, a stride spans all smaller ones."""
    span = array.itemsize
    steps = [(abs(stride), size) for stride, size in zip(array.strides, array.shape, strict=True) if size > 1]
    for stride, size in sorted(steps):
        if stride < span:
            return array.size > 0
        span += stride * (size - 1)
    return False
