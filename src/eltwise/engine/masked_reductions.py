"""Reductions of some elements, and from an initial value on: exact, of results that are held as a whole."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from eltwise.core.dtypes import BOOL, FLOAT64, INT64, UINT8, UINT64, ElementType, of_numpy
from eltwise.core.errors import ArgumentTypeError, ElementTypeError, EltwiseError, ShapeError, UnsupportedError, shown
from eltwise.engine.array_libraries import with_libraries
from eltwise.engine.arrays import Axis, exact_scalar
from eltwise.engine.call import calls_of
from eltwise.engine.intake import LIBRARIES, array_of, is_scalar, kind_of
from eltwise.engine.reducing import ABSOLUTE_DIFFERENCE, Reducing, normalized_axes
from eltwise.kernels import float_mode
from eltwise.kernels.partials import reduced
from eltwise.kernels.plan import aligned_plan
from eltwise.kernels.reduction import IDENTITY, Elements, Partial
from eltwise.ops.computation import Computation


def masked(reducing: Reducing, operands: Sequence[object], axis: Axis, where: object, initial: object) -> Any:
    """Reduce the elements that a mask says, and an initial value; see ``reduce``.

    Raises:
        EltwiseError: for a mask that is none of booleans or does not broadcast to the elements, an initial value that
            the type does not hold, and for labelled and lazy arrays.
    """
    computation = reducing.source.computation(len(operands))

    def on_arrays(arrays: Sequence[object], axes: Axis) -> Any:
        with float_mode.only_default_mode():
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
    calls, reduction = calls_of(computation), reducing.reduction
    element_type = calls.prepared(operands)[1].typed.element_type
    reducing.result_type(element_type)  # What the result cannot be is refused before anything is computed.
    is_squared, elements_type = reducing.is_squared(element_type), reducing.elements_type(element_type)
    values = np.asarray((calls_of(ABSOLUTE_DIFFERENCE) if is_squared else calls).apply(operands))
    values = values.view(elements_type.storage)
    axes, chosen, is_extreme = normalized_axes(axis, values.ndim), _mask(where, values.shape), reducing.is_extreme
    first = None if initial is None else _initial(initial, elements_type, is_extreme=is_extreme)
    if first is not None and reduction == "mean":
        raise ArgumentTypeError("a mean has no initial value", operand="initial", got=shown(initial))
    if chosen is not None:
        if is_extreme and first is None:
            problem = f"the {reduction} of elements that are chosen by where needs an initial value"
            raise ArgumentTypeError(problem, operand="initial", hint="it is the result where none is chosen")
        values = np.where(chosen, values, first if is_extreme and first is not None else np.zeros((), values.dtype))
    partial = _partial(reducing, values, elements_type, axes, is_squared)
    if first is not None:
        sizes = [1 if axis in axes else size for axis, size in enumerate(values.shape)]
        partial += _partial(reducing, np.broadcast_to(first, sizes), of_numpy(first.dtype), axes, is_squared=False)  # type: ignore[operator]
    if chosen is None or reduction != "mean":
        return reducing.finished(partial, element_type)[()]
    return reducing.finished(partial, element_type, np.asarray(np.count_nonzero(chosen, axes)))[()]


def _partial(
    reducing: Reducing, values: np.ndarray, element_type: ElementType, axes: tuple[int, ...], is_squared: bool
) -> Partial:
    """The partial of the values, or squares, of an array."""
    stored = UINT8 if element_type is BOOL else element_type
    plan = aligned_plan(values.shape, (values.shape,))
    elements = Elements(reducing.reduction, IDENTITY, stored, element_type, plan, axes, is_squared)
    return reduced(elements, [values.view(stored.storage)])


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
        return exact_scalar(number, elements_type, "initial")
    if elements_type.kind == "float":
        return exact_scalar(number, FLOAT64, "initial")
    return exact_scalar(number, UINT64 if isinstance(number, int) and number > INT64.limits[1] else INT64, "initial")
