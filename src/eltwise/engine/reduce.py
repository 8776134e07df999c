"""Reductions of an operator's results, in one pass and without the results: exact sums, rounded once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from operator import index
from typing import Any, get_args

import numpy as np

from eltwise.core.casting import cast
from eltwise.core.dtypes import BOOL, FLOAT64, INT64, UINT64, ElementType, by_name, of_numpy
from eltwise.core.errors import (
    AttributeValueError,
    ElementTypeError,
    EltwiseError,
    ValueRangeError,
    unknown_name,
)
from eltwise.engine.api import Operator, operator
from eltwise.engine.array_libraries import Axis, computed
from eltwise.engine.arrays import kind_of
from eltwise.engine.call import calls_of, check_divisor
from eltwise.engine.rounding import rounded
from eltwise.kernels import float_mode
from eltwise.kernels.extremes import Extremes
from eltwise.kernels.reduction import Elements, Partial, Reduction, reduced
from eltwise.ops import registry
from eltwise.ops.schema import ElementwiseSchema, Operation


@dataclass(frozen=True)
class Reducing:
    """What is reduced, and how.

    Attributes:
        reduction: the reduction.
        operation: its results are the elements.
        dtype: of the result; None for the default of the elements' type.
    """

    reduction: Reduction
    operation: Operation
    dtype: ElementType | None

    def elements_type(self, element_type: ElementType) -> ElementType:
        """The type of the elements, for operands of a type: absolute differences of integers are unsigned."""
        if self.operation.function == _ABSOLUTE_DIFFERENCE and element_type.kind == "signed":
            return by_name(f"u{element_type.name}")
        return self.operation.result_type(element_type)

    def result_type(self, element_type: ElementType) -> ElementType:
        """The type of the result, for operands of a type.

        Raises:
            ElementTypeError: where the dtype that was asked for does not hold such results.
        """
        elements = self.elements_type(element_type)
        if self.reduction in ("min", "max"):
            default = elements
        elif self.reduction == "mean" or elements.kind == "float":
            default = FLOAT64
        else:
            default = UINT64 if elements.kind == "unsigned" else INT64
        wanted = self.dtype or default
        is_whole = elements.kind != "float" and self.reduction != "mean"
        is_extreme = self.reduction in ("min", "max")
        if wanted.kind == "float" or (wanted.is_integer and is_whole) or (wanted is elements and is_extreme):
            return wanted
        raise ElementTypeError(
            f"the {self.reduction} of {elements.name} elements is no {wanted.name}",
            operand="dtype",
            allowed="an integer or a float type" if is_whole else "a float type",
        )

    def check_count(self, count: int, outputs: int) -> None:
        """Refuse a mean, minimum or maximum of no elements.

        Raises:
            ValueRangeError: where there is a result of no elements.
        """
        if count == 0 and outputs and self.reduction != "sum":
            raise ValueRangeError(f"the {self.reduction} of no elements is undefined", hint="only their sum is: 0")

    def partial(
        self, operands: Sequence[object], axis: Axis, most_threads: int | None = None
    ) -> tuple[Partial, ElementType]:
        """Reduce arrays on so many threads at most; the partial, and the element type of the operands."""
        with float_mode.default_mode():
            float_mode.require_default()
            arrays, element_type, plan = calls_of(self.operation).check(operands)
            expression = self.operation.expression(len(arrays))
            if element_type.is_integer and expression.divides and 0 not in plan.shape:
                schema = self.operation.schema
                check_divisor(arrays[1], plan, 1, f"operand {schema.operand_name(1)}", schema.versioned_name)
            axes = normalized_axes(axis, len(plan.shape))
            elements = Elements(expression, element_type, self.elements_type(element_type), plan)
            return reduced(self.reduction, elements, arrays, axes, most_threads), element_type

    def finished(self, found: Partial, element_type: ElementType) -> np.ndarray:
        """The result of a partial of everything.

        Args:
            found: the partial.
            element_type: of the operands.

        Raises:
            ValueRangeError: where the result's type does not hold it, or there is nothing to reduce.
        """
        wanted = self.result_type(element_type)
        if isinstance(found, Extremes):
            self.check_count(found.count, found.values.size)
            return _converted(found.values, found.element_type, wanted)
        self.check_count(found.count, found.special.size)
        return rounded(found, found.count if self.reduction == "mean" and found.count else 1, wanted)


def _converted(values: np.ndarray, source: ElementType, target: ElementType) -> np.ndarray:
    if target.is_integer and source is not target and values.size:
        low, high = target.limits
        least, most = (int(each) for each in (values.min(), values.max()))
        if least < low or most > high:
            raise ValueRangeError(
                f"{target.name} does not hold the result",
                got=str(most if most > high else least),
                allowed=f"{low} to {high}",
            )
    return cast(values, source, target, saturate=False)


def normalized_axes(axis: Axis, rank: int) -> tuple[int, ...]:
    """The axes of a result of a rank, in order and not negative.

    Raises:
        AttributeValueError: where an axis is no integer, out of range or there twice.
    """
    if axis is None:
        return tuple(range(rank))
    given = tuple(axis) if isinstance(axis, list | tuple) else (axis,)
    place = {"operand": "axis", "got": repr(axis)[:80]}
    try:
        numbers = [index(each) for each in given]
    except TypeError:
        raise AttributeValueError("not an axis", allowed="an integer, several, or None for all", **place) from None
    if any(isinstance(each, bool) for each in given) or not all(-rank <= number < rank for number in numbers):
        allowed = f"{-rank} to {rank - 1}" if rank else "none"
        raise AttributeValueError(f"no axis of a result of rank {rank}", allowed=allowed, **place)
    found = sorted(number % rank for number in numbers)
    if len(set(found)) != len(found):
        raise AttributeValueError("an axis is given twice", **place)
    return tuple(found)


def _dtype(dtype: object) -> ElementType | None:
    """The element type that a caller means.

    Raises:
        ElementTypeError, NameUnknownError: where it is none that runs.
    """
    if dtype is None:
        return None
    if isinstance(dtype, str):
        found = by_name(dtype)
    else:
        try:
            found = of_numpy(np.dtype(dtype), operand="dtype")  # type: ignore[call-overload]
        except TypeError:
            raise ElementTypeError("not an element type", operand="dtype", got=repr(dtype)[:80]) from None
    if not found.is_numeric and found is not BOOL:
        raise ElementTypeError("unsupported element type", operand="dtype", got=found.name)
    return found


def _reduction(name: object) -> Reduction:
    known: tuple[Reduction, ...] = get_args(Reduction)
    for each in known:
        if isinstance(name, str) and each == name:
            return each
    raise unknown_name("reduction", name if isinstance(name, str) else repr(name)[:80], known)


def run(reducing: Reducing, operands: Sequence[object], axis: Axis) -> Any:
    """Reduce operands of any kind; see ``reduce``."""
    try:
        if any(kind_of(operand) for operand in operands):
            return computed(reducing.operation, operands, partial(run, reducing), partial(_on_dask, reducing), axis)
        return reducing.finished(*reducing.partial(operands, axis))[()]
    except EltwiseError as error:
        raise error.located(operator=reducing.operation.schema.versioned_name) from None


def _on_dask(reducing: Reducing, operands: Sequence[object], axis: Axis) -> Any:
    from eltwise.engine import dask_arrays  # Few reductions are lazy.

    return dask_arrays.reduce(reducing, operands, axis)


def reduce(
    reduction: Reduction,
    operator_: str | Operator,
    /,
    *operands: object,
    axis: Axis = None,
    dtype: object = None,
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
        operator_: the versioned name, for example ``"SquaredDifference-1"``; or an ``Operator``, which can have an
            attribute that is called ``axis``.
        *operands: as for the operator.
        axis: the axis of the operator's result that is reduced, or several; by default all. Of xarray's objects it may
            be the name of a dimension.
        dtype: the element type of the result. By default sums and means of floats and means of integers are float64,
            sums of integers int64 or uint64, and minima and maxima have the elements' type. Means are exact quotients,
            rounded once.
        **attributes: of the operator, by their specification's names.

    Returns:
        A NumPy scalar where nothing is kept, else an array; of Dask, xarray, PyTorch or JAX where the operands are.

    Raises:
        EltwiseError: as the operator does; for an axis that is not there; where an integer sum overflows the type.

    >>> reduce("mean", "SquaredDifference-1", np.float32([1, 2, 4]), np.float32([1, 1, 1]))
    np.float64(3.3333333333333335)
    """
    if isinstance(operator_, Operator):
        if attributes:
            raise AttributeValueError("an Operator has its attributes", got=", ".join(attributes))
        chosen = operator_
    else:
        chosen = operator(operator_, **attributes)
    if not isinstance(chosen.operation.schema, ElementwiseSchema):
        raise ElementTypeError("only element-wise operators are reduced", operator=chosen.name)
    return run(Reducing(_reduction(reduction), chosen.operation, _dtype(dtype)), operands, axis)


_ABSOLUTE_DIFFERENCE = "absolute_difference"


@cache
def _operation(function: str) -> Operation:
    """The differences of two operands, as operations that broadcast as NumPy does."""
    schema = registry.find("SquaredDifference-1" if function == "squared_difference" else "Subtract-1")
    return replace(schema, function=function).bind({})


SHORTHANDS: dict[str, tuple[Reduction, str]] = {
    "mean-squared-difference": ("mean", "squared_difference"),
    "mean-absolute-difference": ("mean", _ABSOLUTE_DIFFERENCE),
    "max-absolute-difference": ("max", _ABSOLUTE_DIFFERENCE),
}
"""The reductions of differences that have a name; in Python it is that of a function."""

REDUCTIONS: tuple[str, ...] = (*get_args(Reduction), *SHORTHANDS)


def reducing_of(name: str, operator_: Operator | None = None, dtype: object = None) -> Reducing:
    """The reduction of an operator's results, or, without an operator, one of differences by its name.

    Raises:
        EltwiseError: for a name, operator or type that is not known.
    """
    if operator_ is not None:
        return Reducing(_reduction(name), operator_.operation, _dtype(dtype))
    if name not in SHORTHANDS:
        raise unknown_name("reduction", name, SHORTHANDS)
    reduction, function = SHORTHANDS[name]
    return Reducing(reduction, _operation(function), _dtype(dtype))


def mean_squared_difference(a: object, b: object, axis: Axis = None, dtype: object = None) -> Any:
    """Compute the mean of (a - b) * (a - b): exactly, and rounded once.

    The elements are those of ``squared_difference``, each step rounded to the operands' type; of integers they wrap
    around, so convert these to a wider type first. See ``reduce`` for NaN, infinities and no elements.

    Args:
        a: an array by any array protocol, or of Dask, xarray, PyTorch or JAX.
        b: the other operand, of the same element type.
        axis: the axis that is reduced, or several; by default all.
        dtype: the float type of the result, by default float64.

    Returns:
        A NumPy scalar where nothing is kept, else an array; of Dask, xarray, PyTorch or JAX where the operands are.

    Raises:
        EltwiseError: for operands whose types or shapes do not go together.

    >>> mean_squared_difference(np.float32([[1, 2], [3, 4]]), np.float32(1), axis=1)
    array([0.5, 6.5])
    """
    return run(reducing_of("mean-squared-difference", dtype=dtype), (a, b), axis)


def mean_absolute_difference(a: object, b: object, axis: Axis = None, dtype: object = None) -> Any:
    """Compute the mean of abs(a - b): exactly, and rounded once.

    The elements are abs(a - b) rounded to the operands' type. Of integers they are exact, in the unsigned type of the
    same width. See ``reduce`` for NaN, infinities and no elements.

    Args:
        a: an array by any array protocol, or of Dask, xarray, PyTorch or JAX.
        b: the other operand, of the same element type.
        axis: the axis that is reduced, or several; by default all.
        dtype: the float type of the result, by default float64.

    Returns:
        A NumPy scalar where nothing is kept, else an array; of Dask, xarray, PyTorch or JAX where the operands are.

    Raises:
        EltwiseError: for operands whose types or shapes do not go together.

    >>> mean_absolute_difference(np.uint8([3, 250]), np.uint8([5, 0]))
    np.float64(126.0)
    """
    return run(reducing_of("mean-absolute-difference", dtype=dtype), (a, b), axis)


def max_absolute_difference(a: object, b: object, axis: Axis = None, dtype: object = None) -> Any:
    """Compute the maximum of abs(a - b); NaN where an element is.

    The elements are abs(a - b) rounded to the operands' type. Of integers they are exact, in the unsigned type of the
    same width.

    Args:
        a: an array by any array protocol, or of Dask, xarray, PyTorch or JAX.
        b: the other operand, of the same element type.
        axis: the axis that is reduced, or several; by default all.
        dtype: the type of the result, by default that of the elements.

    Returns:
        A NumPy scalar where nothing is kept, else an array; of Dask, xarray, PyTorch or JAX where the operands are.

    Raises:
        EltwiseError: for operands whose types or shapes do not go together, and for no elements.

    >>> max_absolute_difference(np.int8([100, 1]), np.int8([-100, 2]))
    np.uint8(200)
    """
    return run(reducing_of("max-absolute-difference", dtype=dtype), (a, b), axis)
