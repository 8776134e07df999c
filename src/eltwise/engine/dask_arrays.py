"""Dask arrays: operators and reductions as graphs that Dask runs, checked before anything runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from eltwise.core.dtypes import ElementType, of_numpy
from eltwise.core.errors import ElementTypeError
from eltwise.engine.arrays import Axis, as_array
from eltwise.engine.call import calls_of, without_index
from eltwise.engine.intake import check_operand
from eltwise.engine.reducing import Reducing, normalized_axes
from eltwise.kernels.plan import Plan
from eltwise.ops.computation import Computation

if TYPE_CHECKING:
    import dask.array as da


def apply(computation: Computation, operands: Sequence[object]) -> da.Array:
    """Compute something lazily: one task a chunk, on chunks that Dask aligns.

    Raises:
        EltwiseError: where operands, types or shapes do not go together, now and not when it is computed.
    """
    import dask.array as da

    arrays, (expression, element_type, plan) = calls_of(computation).check(operands, as_operand)
    result_type = expression.result_type(element_type)
    if 0 in plan.shape:
        return da.zeros(plan.shape, dtype=result_type.storage)
    pairs, trailing = _pairs(arrays, plan)
    function = partial(_elements, computation.aligned(), trailing)
    return _on_chunks(function, pairs, computation, _empty(len(plan.shape), result_type.storage), (trailing,))


def reduce(reducing: Reducing, operands: Sequence[object], axis: Axis) -> da.Array:
    """Reduce lazily: a partial for each chunk; they are merged as a tree, and finished.

    Raises:
        EltwiseError: as ``apply`` does; only an integer sum that overflows is found when it is computed.
    """
    import dask.array as da
    from dask.array.core import unify_chunks

    computation = reducing.source.computation(len(operands))
    arrays, (_expression, element_type, plan) = calls_of(computation).check(operands, as_operand)
    dtype, rank = reducing.result_type(element_type), len(plan.shape)
    axes = normalized_axes(axis, rank)
    kept_axes = tuple(each for each in range(rank) if each not in axes)
    outputs = tuple(plan.shape[each] for each in kept_axes)
    reducing.check_count(prod(plan.shape[each] for each in axes), prod(outputs))
    if 0 in plan.shape:
        return da.zeros(outputs, dtype=dtype.storage)
    (pairs, trailing), empty = _pairs(arrays, plan), _empty(rank, np.dtype(object))
    function = partial(_partial, replace(reducing, source=computation.aligned()), trailing, axes)
    identity: object = (trailing, axes, reducing.reduction)
    partials = _on_chunks(function, pairs, computation, empty, identity, dict.fromkeys(range(rank), 1))
    if axes:
        partials = da.reduction(partials, _merged, _merged, axis=axes, keepdims=True, dtype=object, meta=empty)
    chunks, _unified = unify_chunks(*pairs, warn=False)
    pairs, identity = (partials, tuple(range(rank))), (dtype.name, element_type.name, reducing.reduction)
    function, empty = partial(_finished, reducing, element_type), _empty(len(kept_axes), dtype.storage)
    return _on_chunks(
        function, pairs, computation, empty, identity, {each: chunks[each] for each in kept_axes}, kept_axes
    )


def as_operand(value: object, operand: str, types: Sequence[ElementType] = ()) -> tuple[Any, ElementType]:
    """Take a Dask array or a DataArray as it is, and anything else as an array; see ``AsOperand``.

    Raises:
        EltwiseError: for what is no array, or has chunks that are no NumPy arrays of known sizes.
    """
    if not check_operand(value, operand).is_lazy:
        return as_array(value, operand, types)
    if not hasattr(value, "dtype"):
        got = f"an xarray {type(value).__name__}"
        raise ElementTypeError("not an array", operand=operand, got=got, allowed="an xarray DataArray")
    return value, of_numpy(value.dtype, types, operand=operand)


def _pairs(arrays: Sequence[Any], plan: Plan) -> tuple[tuple[Any, ...], tuple[int, ...]]:
    """For ``blockwise``, each operand and the dimensions it lies in; and how many lie behind its last."""
    pairs: list[Any] = []
    trailing: list[int] = []
    for array, axes in zip(arrays, plan.axes, strict=True):
        trailing.append(len(plan.shape) - 1 - axes[-1] if axes else 0)
        is_literal = array.ndim == 0 and isinstance(array, np.ndarray)
        pairs += [array, None if is_literal else axes]
    return tuple(pairs), tuple(trailing)


def _empty(rank: int, dtype: np.dtype[Any]) -> np.ndarray:
    return np.empty((0,) * rank, dtype)


def _on_chunks(
    function: Callable[..., Any],
    pairs: Sequence[Any],
    computation: Computation,
    meta: np.ndarray,
    identity: object,
    adjusted: Mapping[int, Any] | None = None,
    result_axes: Sequence[int] | None = None,
) -> da.Array:
    """Call a function for each chunk of a result, on chunks that Dask aligns.

    The identity, the computation and the operands are what the function differs by: what has one name is computed
    once.
    """
    import dask.array as da
    from dask.base import tokenize

    token = tokenize(computation.name, repr((computation.expression, computation.rule)), identity, *pairs)
    name = computation.name.rpartition(".")[2].partition("-")[0].lower().replace(" ", "-")
    return da.blockwise(
        function,
        tuple(range(meta.ndim)) if result_axes is None else tuple(result_axes),
        *pairs,
        name=f"{name}-{token}",
        dtype=meta.dtype,
        meta=meta,
        adjust_chunks=adjusted,
        concatenate=True,
    )


def _padded(chunks: Sequence[np.ndarray], trailing: Sequence[int]) -> list[np.ndarray]:
    """Chunks that broadcast at their ends."""
    pairs = zip(chunks, trailing, strict=True)
    return [chunk.reshape(*chunk.shape, *(1,) * count) if count else chunk for chunk, count in pairs]


def _elements(computation: Computation, trailing: Sequence[int], *chunks: np.ndarray) -> np.ndarray:
    """Compute chunks of the result's rank."""
    with without_index():
        return np.asarray(calls_of(computation).apply(_padded(chunks, trailing)))


def _partial(reducing: Reducing, trailing: Sequence[int], axes: tuple[int, ...], *chunks: np.ndarray) -> np.ndarray:
    """Reduce chunks; the partial is the only element of an array."""
    operands = _padded(chunks, trailing)
    with without_index():
        partial, _element_type = reducing.partial(operands, axes, most_threads=1)
    result = np.empty((1,) * max(each.ndim for each in operands), object)
    result[...] = partial
    return result


def _merged(partials: np.ndarray, axis: Any, keepdims: bool) -> Any:
    with np.errstate(all="ignore"):  # NumPy sees what floats did in the merging.
        return np.sum(partials, axis=axis, keepdims=keepdims)


def _finished(reducing: Reducing, element_type: ElementType, partials: np.ndarray) -> Any:
    """Make a result of its partial."""
    return reducing.finished(partials.reshape(-1)[0], element_type)[()]
