"""Reductions of an operator's results, in one pass and without the results: exact sums, rounded once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeVar, get_args

import numpy as np

from eltwise.core.border import public
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
        if axis is not None:
            problem = "axis and dim are two names of the same argument"
            raise AttributeValueError(problem, operand="dim", got=shown(dim), hint="give one of them")
        axis = dim
    is_plain = dtype is None and (axis is None or type(axis) is int)
    if initial is not None or where is not True:
        result = masked(reducing_of(name, source, dtype), operands, axis, where, initial)
    elif is_plain and isinstance(name, str) and (source is None or isinstance(source, str)):
        result = _plain_function(name, source, axis)(*operands)
    else:
        result = function_of(reducing_of(name, source, dtype), axis)(*operands)
    return _with_axes(result, operands, axis) if keepdims else result


@public
def reduce(
    reduction: Reduction,
    operator_: str | Operator,
    /,
    *operands: object,
    axis: Axis = None,
    dtype: object = None,
    dim: Axis = None,
    keepdims: bool = False,
    initial: object = None,
    where: object = True,
    **attributes: object,
) -> Any:
    """Reduce the results of an operator in one pass, without holding them.

    The elements are the operator's results in its element type: integers wrap, floats are rounded, as in
    ``operator(...)(...)``. Their sum is exact and rounded once, so that the result has the same bits for any number of
    threads, any chunks and any order.

    A NaN among the elements makes the result NaN, and so do infinities of both signs in a sum or mean; infinities of
    one sign give that infinity. A sum that is 0 is +0. Minima and maxima are those of the operators Minimum and
    Maximum: NaN if an element is, and +0 is larger than -0. Booleans count as 0 and 1. The sum of no elements is 0; the
    mean, minimum and maximum of none are errors.

    Args:
        reduction: ``"sum"``, ``"mean"``, ``"min"`` or ``"max"``.
        operator_: the versioned name, for example ``"SquaredDifference-1"``; or an ``Operator``, which has attributes.
        *operands: as for the operator.
        axis: the axis of the operator's result that is reduced, or several; by default all. Of xarray's objects it may
            be the name of a dimension.
        dtype: the element type of the result. By default sums and means of floats and means of integers are float64,
            sums of integers int64 or uint64, and minima and maxima have the elements' type. Means are exact quotients,
            rounded once.
        dim: another name of ``axis``.
        keepdims: whether the axes stay, of size 1.
        initial: a number that a sum begins with, or that a minimum or maximum is compared with; exact as the elements.
        where: a mask of booleans, which broadcasts to the results: the elements that are reduced, all by default. With
            it a minimum or maximum needs ``initial``. With either the results are held as a whole.
        **attributes: refused; those of the operator are bound by ``operator``, since one is called ``axis``, too.

    Returns:
        A NumPy scalar where nothing is kept, else an array; of Dask, xarray, PyTorch or JAX where the operands are.

    Raises:
        EltwiseError: as the operator does; for an axis that is not there; where an integer sum overflows the type.

    >>> import numpy as np
    >>> reduce("mean", "SquaredDifference-1", np.float32([1, 2, 4]), np.float32([1, 1, 1]))
    np.float64(3.3333333333333335)
    >>> reduce("sum", "Subtract-1", np.int8([5, 7]), np.int8([1, 1]), where=np.array([True, False]), initial=1000)
    np.int64(1004)
    """
    if attributes:
        name = operator_.name if isinstance(operator_, Operator) else operator_
        raise AttributeValueError(
            "a reduction has no such argument",
            got=", ".join(attributes),
            allowed="axis, dtype, dim, keepdims, initial, where",
            hint=f"those of the operator are bound first, as its axis is another one: eltwise.operator({name!r}, ...)",
        )
    return reduced(reduction, operator_, operands, axis, dtype, dim, keepdims, initial, where)


@public
def mean_squared_difference(
    a: object,
    b: object,
    axis: Axis = None,
    dtype: object = None,
    *,
    dim: Axis = None,
    keepdims: bool = False,
    where: object = True,
) -> Any:
    """Compute the mean of (a - b) * (a - b): exactly, and rounded once.

    The elements of floats are those of ``squared_difference``, each step rounded to the operands' type. Of integers
    they are the real squares, which never wrap; those of ``reduce("mean", "SquaredDifference-1", a, b)`` do.
    See ``reduce`` for NaN, infinities and no elements.

    Args:
        a: an array by any array protocol, or of Dask, xarray, PyTorch or JAX.
        b: the other operand, of the same element type.
        axis: the axis that is reduced, or several; by default all.
        dtype: the float type of the result, by default float64.
        dim: another name of ``axis``.
        keepdims: whether the axes stay, of size 1.
        where: a mask of booleans, which broadcasts to the differences: those that are reduced. With it they are held
            as a whole.

    Returns:
        A NumPy scalar where nothing is kept, else an array; of Dask, xarray, PyTorch or JAX where the operands are.

    Raises:
        EltwiseError: for operands whose types or shapes do not go together.

    >>> import numpy as np
    >>> mean_squared_difference(np.float32([[1, 2], [3, 4]]), np.float32(1), axis=1)
    array([0.5, 6.5])
    """
    return reduced("mean-squared-difference", None, (a, b), axis, dtype, dim, keepdims, None, where)


@public
def mean_absolute_difference(
    a: object,
    b: object,
    axis: Axis = None,
    dtype: object = None,
    *,
    dim: Axis = None,
    keepdims: bool = False,
    where: object = True,
) -> Any:
    """Compute the mean of abs(a - b): exactly, and rounded once.

    The elements are abs(a - b) rounded to the operands' type. Of integers they are exact, in the unsigned type of the
    same width. See ``reduce`` for NaN, infinities and no elements.

    Arguments, result and errors are those of ``mean_squared_difference``.

    >>> import numpy as np
    >>> mean_absolute_difference(np.uint8([3, 250]), np.uint8([5, 0]))
    np.float64(126.0)
    """
    return reduced("mean-absolute-difference", None, (a, b), axis, dtype, dim, keepdims, None, where)


@public
def max_absolute_difference(
    a: object,
    b: object,
    axis: Axis = None,
    dtype: object = None,
    *,
    dim: Axis = None,
    keepdims: bool = False,
    initial: object = None,
    where: object = True,
) -> Any:
    """Compute the maximum of abs(a - b); NaN where an element is.

    The elements are abs(a - b) rounded to the operands' type. Of integers they are exact, in the unsigned type of the
    same width.

    Arguments and errors are those of ``mean_squared_difference``; no elements are an error, too. ``initial`` is a
    number that the maximum is compared with; ``where`` needs it. The result has by default the elements' type.

    >>> import numpy as np
    >>> max_absolute_difference(np.int8([100, 1]), np.int8([-100, 2]))
    np.uint8(200)
    """
    return reduced("max-absolute-difference", None, (a, b), axis, dtype, dim, keepdims, initial, where)
