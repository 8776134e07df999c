"""Reductions of an operator's results, in one pass and without the results: exact sums, rounded once."""

from __future__ import annotations

from typing import Any

from eltwise.core.border import public
from eltwise.core.errors import AttributeValueError
from eltwise.engine.api import Operator
from eltwise.engine.arrays import Axis
from eltwise.engine.reduction_arguments import reduced
from eltwise.kernels.reduction import Reduction


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
        written = ", ".join([repr(name), *(f"{attribute}=..." for attribute in attributes)])
        raise AttributeValueError(
            "a reduction takes no attributes of the operator, whose axis is another one than its own",
            got=", ".join(attributes),
            hint=f"bind them first: eltwise.operator({written})",
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

    Args:
        a: an array by any array protocol, or of Dask, xarray, PyTorch or JAX.
        b: the other operand, of the same element type.
        axis: the axis that is reduced, or several; by default all.
        dtype: the type of the result, by default that of the elements.
        dim: another name of ``axis``.
        keepdims: whether the axes stay, of size 1.
        initial: a number that the maximum is compared with; needed with ``where``.
        where: a mask of booleans, which broadcasts to the differences: those that are reduced. With it they are held
            as a whole.

    Returns:
        A NumPy scalar where nothing is kept, else an array; of Dask, xarray, PyTorch or JAX where the operands are.

    Raises:
        EltwiseError: for operands whose types or shapes do not go together, and for no elements.

    >>> import numpy as np
    >>> max_absolute_difference(np.int8([100, 1]), np.int8([-100, 2]))
    np.uint8(200)
    """
    return reduced("max-absolute-difference", None, (a, b), axis, dtype, dim, keepdims, initial, where)
