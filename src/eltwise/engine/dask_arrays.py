"""Dask arrays: operators and reductions as graphs that Dask runs, checked before anything runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from eltwise.core.dtypes import ElementType, of_numpy
from eltwise.core.errors import ElementTypeError, ShapeError
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
    pairs, layouts = _pairs(computation, arrays, plan)
    function = partial(_elements, computation.aligned(), layouts)
    empty = _empty(len(plan.shape), result_type.storage)
    trailing = tuple(each.trailing for each in layouts)
    return _on_chunks(function, pairs, computation, empty, trailing)


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
    (pairs, layouts), empty = _pairs(computation, arrays, plan), _empty(rank, np.dtype(object))
    function = partial(_partial, replace(reducing, source=computation.aligned()), layouts, axes)
    identity: object = (tuple(each.trailing for each in layouts), axes, reducing.reduction)
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


@dataclass(frozen=True)
class _Layout:
    """How the chunks of an operand lie in those of the result.

    Attributes:
        operator: what is computed, for errors.
        operand: its name, for errors.
        dtype: of its elements.
        axes: for each of its dimensions that of the result whose chunks it has; None where its size is 1.
        trailing: how many dimensions of the result lie behind its last.
    """

    operator: str
    operand: str
    dtype: np.dtype[Any]
    axes: tuple[int | None, ...]
    trailing: int

    def placed(self, chunk: Any, shape: Sequence[int]) -> Any:
        """A chunk that broadcasts at its end to a chunk of the result of this shape.

        Raises:
            EltwiseError: for one that is not what its array says, so that elements would be missing or count twice.
        """
        if not isinstance(chunk, np.ndarray | np.generic):
            return chunk  # It is refused as any other operand.
        if chunk.dtype.newbyteorder("=") != self.dtype.newbyteorder("="):
            raise ElementTypeError(allowed=str(self.dtype), got=str(chunk.dtype), **self._located())
        expected = tuple(1 if axis is None else shape[axis] for axis in self.axes)
        if chunk.shape != expected:
            raise ShapeError(allowed=str(expected), got=str(chunk.shape), **self._located())
        return chunk.reshape(*chunk.shape, *(1,) * self.trailing) if self.trailing else chunk

    def _located(self) -> dict[str, str]:
        problem = "a chunk is another one than its Dask array says"
        return {"problem": problem, "operator": self.operator, "operand": self.operand}


def _pairs(computation: Computation, arrays: Sequence[Any], plan: Plan) -> tuple[tuple[Any, ...], tuple[_Layout, ...]]:
    """For ``blockwise``, each operand and the dimensions it lies in; and how its chunks lie there."""
    pairs: list[Any] = []
    layouts: list[_Layout] = []
    for name, array, axes in zip(computation.operands, arrays, plan.axes, strict=True):
        of_chunks = tuple(None if size == 1 else axis for size, axis in zip(array.shape, axes, strict=True))
        trailing = len(plan.shape) - 1 - axes[-1] if axes else 0
        layouts.append(_Layout(computation.name, name, array.dtype, of_chunks, trailing))
        is_literal = array.ndim == 0 and isinstance(array, np.ndarray)
        pairs += [array.copy(), None] if is_literal else [array, axes]  # It may be changed before it is used.
    return tuple(pairs), tuple(layouts)


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

    The function is first given the shape of the result's chunk, unless it merges chunks. The identity, the computation
    and the operands are what it differs by: what has one name is computed once.
    """
    import dask.array as da
    from dask.array.core import unify_chunks
    from dask.base import tokenize
    from dask.layers import ArrayChunkShapeDep

    token = tokenize(computation.name, repr((computation.expression, computation.rule)), identity, *pairs)
    chunks, unified = unify_chunks(*pairs)
    aligned = [each for pair in zip(unified, pairs[1::2], strict=True) for each in pair]
    if result_axes is None:
        result_axes = tuple(range(meta.ndim))
        shapes = ArrayChunkShapeDep(tuple(chunks[axis] for axis in result_axes))
        shapes.__dask_tokenize__ = partial(str, token)  # Which says them already; to pickle many takes its time.
        aligned = [shapes, result_axes, *aligned]
    name = computation.name.rpartition(".")[2].partition("-")[0].lower().replace(" ", "-")
    return da.blockwise(
        function,
        tuple(result_axes),
        *aligned,
        name=f"{name}-{token}",
        dtype=meta.dtype,
        meta=meta,
        adjust_chunks=adjusted,
        concatenate=True,
        align_arrays=False,
    )


def _placed(layouts: Sequence[_Layout], shape: Sequence[int], chunks: Sequence[Any]) -> list[Any]:
    return [layout.placed(chunk, shape) for layout, chunk in zip(layouts, chunks, strict=True)]


def _elements(computation: Computation, layouts: Sequence[_Layout], shape: Sequence[int], *chunks: Any) -> np.ndarray:
    """Compute chunks of the result's rank."""
    with without_index():
        return np.asarray(calls_of(computation).apply(_placed(layouts, shape, chunks)))


def _partial(
    reducing: Reducing, layouts: Sequence[_Layout], axes: tuple[int, ...], shape: Sequence[int], *chunks: Any
) -> np.ndarray:
    """Reduce chunks; the partial is the only element of an array."""
    with without_index():
        partial, _element_type = reducing.partial(_placed(layouts, shape, chunks), axes, most_threads=1)
    result = np.empty((1,) * len(shape), object)
    result[...] = partial
    return result


def _merged(partials: np.ndarray, axis: Any, keepdims: bool) -> Any:
    with np.errstate(all="ignore"):  # NumPy sees what floats did in the merging.
        return np.sum(partials, axis=axis, keepdims=keepdims)


def _finished(reducing: Reducing, element_type: ElementType, partials: np.ndarray) -> Any:
    """Make a result of its only partial."""
    return reducing.finished(partials.item(), element_type)[()]
