"""How arguments name a reduction: its name, the operator, axes and types; and the reduction that they name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeVar, get_args

import numpy as np

from eltwise.core.dtypes import BOOL, ElementType, by_name, of_numpy
from eltwise.core.errors import AttributeValueError, ElementTypeError, UnsupportedError, shown, unknown_name
from eltwise.engine.api import Operator, operator
from eltwise.engine.arrays import Axis
from eltwise.engine.intake import LIBRARIES, array_of, is_scalar, kind_of
from eltwise.engine.masked_reductions import masked
from eltwise.engine.reducing import ABSOLUTE_DIFFERENCE, SQUARED_DIFFERENCE, Reducing, normalized_axes
from eltwise.engine.reduction_calls import function_of
from eltwise.kernels.reduction import Reduction
from eltwise.ops.schema import Computable


def _dtype(dtype: object) -> ElementType | None:
    """The element type that a caller means.

    Raises:
        ElementTypeError, NameUnknownError: where it is none that runs.
    """
    if dtype is None:
        return None
    if isinstance(dtype, str) or (kind_of(dtype) == "torch" and type(dtype).__name__ == "dtype"):
        element_type = by_name(str(dtype).removeprefix("torch."))
    else:
        try:
            numpy_type = np.dtype(dtype)  # type: ignore[call-overload]
        except Exception:  # noqa: BLE001 - NumPy asks objects for their dtype, which may fail as they like
            raise ElementTypeError("not an element type", operand="dtype", got=shown(dtype)) from None
        element_type = of_numpy(numpy_type, operand="dtype")
    if not element_type.is_numeric and element_type is not BOOL:
        raise ElementTypeError("unsupported element type", operand="dtype", got=element_type.name)
    return element_type


NamedT = TypeVar("NamedT")


def _named(name: object, reductions: Mapping[str, NamedT]) -> NamedT:
    """What a name of a reduction stands for."""
    if not isinstance(name, str) or name not in reductions:
        raise unknown_name("reduction", name if isinstance(name, str) else shown(name), reductions)
    return reductions[name]


def _axis_of(axis: Axis, dim: Axis) -> Axis:
    """The axes that are reduced, where they are given as dim, which PyTorch and xarray call them."""
    if axis is not None:
        problem = "axis and dim are two names of the same argument"
        raise AttributeValueError(problem, operand="dim", got=shown(dim), hint="give one of them")
    return dim


def _with_axes(result: Any, operands: Sequence[object], axis: Axis) -> Any:
    """A result with the axes that were reduced, of size 1."""
    kinds = (kind_of(operand) for operand in operands)
    if any(LIBRARIES[kind].has_labels for kind in kinds if kind):
        hint = "leave it out, or give the arrays"
        raise UnsupportedError("keepdims is for arrays without labels", operand="keepdims", hint=hint)
    rank = max(map(_rank, operands))
    axes = normalized_axes(axis, rank)
    return result[tuple(None if number in axes else slice(None) for number in range(rank))]


def _rank(operand: object) -> int:
    """The rank of what was reduced; what has another protocol than that of NumPy need not say it."""
    if is_scalar(operand):
        return 0
    rank: int = operand.ndim if kind_of(operand) else array_of(operand).ndim  # type: ignore[attr-defined]
    return rank


SHORTHANDS: dict[str, tuple[Reduction, Computable]] = {
    "mean-squared-difference": ("mean", SQUARED_DIFFERENCE),
    "mean-absolute-difference": ("mean", ABSOLUTE_DIFFERENCE),
    "max-absolute-difference": ("max", ABSOLUTE_DIFFERENCE),
}
"""The reductions of differences that have a name; in Python it is that of a function."""

_OF_OPERATORS: dict[str, Reduction] = {each: each for each in get_args(Reduction)}
REDUCTIONS: tuple[str, ...] = (*_OF_OPERATORS, *SHORTHANDS)


def reducing_of(name: object, source: object = None, dtype: object = None) -> Reducing:
    """The reduction of the results of an operator, or, without one, a reduction of differences by its name.

    Raises:
        EltwiseError: for a name, operator or type that is not known.
    """
    if source is not None:
        bound = source if isinstance(source, Operator) else operator(source)  # type: ignore[arg-type]
        return Reducing(_named(name, _OF_OPERATORS), bound.operation, _dtype(dtype))
    reduction, differences = _named(name, SHORTHANDS)
    return Reducing(reduction, differences, _dtype(dtype))


@lru_cache(maxsize=1024)
def _plain_function(name: str, source: str | None, axis: int | None) -> Callable[..., Any]:
    """A reduction of names: to look these up takes less than to compare what they name."""
    return function_of(reducing_of(name, source), axis)


def reduced(
    name: object,
    source: object,
    operands: Sequence[object],
    axis: Axis,
    dtype: object,
    dim: Axis,
    keepdims: bool,
    initial: object,
    where: object,
) -> Any:
    """Reduce the results of an operator, or differences; see ``reduce``."""
    if dim is not None:
        axis = _axis_of(axis, dim)
    is_plain = dtype is None and (axis is None or type(axis) is int)
    if initial is not None or where is not True:
        result = masked(reducing_of(name, source, dtype), operands, axis, where, initial)
    elif is_plain and isinstance(name, str) and (source is None or isinstance(source, str)):
        result = _plain_function(name, source, axis)(*operands)
    else:
        result = function_of(reducing_of(name, source, dtype), axis)(*operands)
    return _with_axes(result, operands, axis) if keepdims else result
