"""Reductions of some elements, and from an initial value on: exact, of results that are held as a whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from eltwise.core.broadcasting import Rule
from eltwise.core.dtypes import BOOL, FLOAT64, INT64, TYPES, UINT64, ElementType, of_numpy
from eltwise.core.errors import ArgumentTypeError, ElementTypeError, EltwiseError, ShapeError, UnsupportedError, shown
from eltwise.engine.array_libraries import with_libraries
from eltwise.engine.arrays import Axis, exact_scalar
from eltwise.engine.call import calls_of
from eltwise.engine.intake import LIBRARIES, array_of, is_scalar, kind_of
from eltwise.engine.reducing import ABSOLUTE_DIFFERENCE, SQUARED_DIFFERENCE, Reducing, normalized_axes
from eltwise.kernels.exact_sum import ExactSums
from eltwise.kernels.reduction import Partial
from eltwise.ops.computation import Computation
from eltwise.ops.expression import expression_of

_ITSELF = Computation(
    expression_of("maximum", 1), Rule("numpy"), tuple(each for each in TYPES if each.is_numeric), "reduction", ("X",)
)
"""Gives its operand."""


def masked(reducing: Reducing, operands: Sequence[object], axis: Axis, where: object, initial: object) -> Any:
    """Reduce the elements that a mask says, and an initial value; see ``reduce``.

    Raises:
        EltwiseError: for a mask that is none of booleans or does not broadcast to the elements, an initial value that
            the type does not hold, and for labelled and lazy arrays.
    """
    computation = reducing.source.computation(len(operands))

    def on_arrays(arrays: Sequence[object], axes: Axis) -> Any:
        return _masked(reducing, computation, arrays, axes, mask, initial)

    try:
        mask = where if isinstance(where, bool | np.bool_) else array_of(where, "where")
        libraries = [LIBRARIES[kind_of(operand)] for operand in (*operands, where)]
        for library in libraries:
            if library.is_lazy or library.has_labels:
                hint = "give the arrays, computed"
                raise UnsupportedError(f"where and initial are not for {library.kind} objects", hint=hint)
        if any(map(kind_of, operands)):
            return with_libraries(computation, operands, on_arrays, on_arrays, axis)
        return on_arrays(operands, axis)
    except EltwiseError as error:
        raise error.located(operator=computation.name) from None


def _masked(
    reducing: Reducing,
    computation: Computation,
    operands: Sequence[object],
    axis: Axis,
    where: np.ndarray | bool | np.bool_,
    initial: object,
) -> Any:
    """The same, of arrays."""
    element_type = calls_of(computation).prepared(operands)[1].typed.element_type
    is_squared, elements_type = reducing.is_squared(element_type), reducing.elements_type(element_type)
    result_type, is_extreme = reducing.result_type(element_type), reducing.reduction in ("min", "max")
    values = np.asarray(calls_of(ABSOLUTE_DIFFERENCE if is_squared else computation).apply(operands))
    values = values.view(np.uint8 if elements_type is BOOL else elements_type.storage)
    axes, chosen = normalized_axes(axis, values.ndim), _mask(where, values.shape)
    first = None if initial is None else _initial(initial, elements_type, is_extreme=is_extreme)
    if initial is not None and reducing.reduction == "mean":
        raise ArgumentTypeError("a mean has no initial value", operand="initial", got=shown(initial))
    if chosen is not None:
        if is_extreme and first is None:
            problem = f"the {reducing.reduction} of elements that are chosen by where needs an initial value"
            raise ArgumentTypeError(problem, operand="initial", hint="it is the result where none is chosen")
        values = np.where(chosen, values, first if is_extreme and first is not None else np.zeros((), values.dtype))
    rest: list[object] = [np.zeros((), values.dtype)] if is_squared else []
    dtype = None if result_type is BOOL else result_type  # Booleans are reduced as 0 and 1.
    of_values = replace(reducing, source=SQUARED_DIFFERENCE if is_squared else _ITSELF, dtype=dtype)
    partial, _type = of_values.partial([values, *rest], axes)
    outputs = tuple(size for number, size in enumerate(values.shape) if number not in axes)
    if first is not None:
        more: Any = of_values.partial([np.broadcast_to(first, (*outputs, 1))], len(outputs))[0]
        partial = partial + more
    if chosen is None or reducing.reduction != "mean":
        return of_values.finished(partial, of_numpy(values.dtype)).astype(result_type.storage, copy=False)[()]
    counts = np.count_nonzero(np.broadcast_to(chosen, values.shape), axis=axes)
    return _means(of_values, partial, np.asarray(counts), of_numpy(values.dtype))[()]


def _mask(where: np.ndarray | bool | np.bool_, shape: tuple[int, ...]) -> np.ndarray | None:
    """The mask, which broadcasts to the elements; None for all of them."""
    if where is True:
        return None
    mask = np.asarray(where)
    if mask.dtype != np.bool_:
        raise ElementTypeError("a mask has booleans", operand="where", got=str(mask.dtype), allowed="bool")
    try:
        return np.broadcast_to(mask, shape)
    except ValueError:
        problem = "the mask does not broadcast to the elements"
        raise ShapeError(problem, operand="where", got=str(mask.shape), allowed=str(shape)) from None


def _initial(initial: object, elements_type: ElementType, *, is_extreme: bool) -> np.ndarray:
    """The initial value: of an extreme in the elements' type, of a sum in the widest one of its kind."""
    number = initial.item() if isinstance(initial, np.generic) else initial
    if not is_scalar(number):
        raise ArgumentTypeError("not a number", operand="initial", got=shown(initial), allowed="a number")
    if is_extreme:
        exact = exact_scalar(number, elements_type, "initial")
        return exact.view(np.uint8) if elements_type is BOOL else exact
    if elements_type.kind == "float":
        return exact_scalar(number, FLOAT64, "initial")
    return exact_scalar(number, UINT64 if isinstance(number, int) and number > INT64.limits[1] else INT64, "initial")


def _means(reducing: Reducing, partial: Partial, counts: np.ndarray, element_type: ElementType) -> np.ndarray:
    """The means of outputs that have several numbers of elements."""
    assert isinstance(partial, ExactSums)
    dtype = reducing.result_type(element_type)
    means = np.empty(counts.shape, dtype.storage)
    for count in np.unique(counts).tolist():
        is_alike = counts == count
        digits, special = partial.digits[:, is_alike], partial.special[is_alike]
        means[is_alike] = reducing.finished(replace(partial, count=count, digits=digits, special=special), element_type)
    return means
