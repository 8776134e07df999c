"""Dask arrays: operators and reductions as graphs that Dask runs, checked before anything runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import isnan, prod
from typing import TYPE_CHECKING, Any

import numpy as np

from eltwise.core.casting import cast
from eltwise.core.dtypes import ElementType, of_numpy
from eltwise.core.errors import ElementTypeError, ShapeError, UnsupportedError, ValueRangeError
from eltwise.engine.arrays import as_array
from eltwise.engine.call import calls_of
from eltwise.engine.reduce import Axis, Reducing, normalized_axes
from eltwise.kernels.plan import Plan
from eltwise.kernels.reduction import Partial
from eltwise.ops.schema import ElementwiseSchema, Operation

if TYPE_CHECKING:
    import dask.array as da


def apply(operation: Operation, operands: Sequence[object]) -> da.Array:
    """Compute an operation lazily: one task a chunk, on chunks that Dask aligns.

    Raises:
        EltwiseError: where operands, types or shapes do not go together, now and not when it is computed.
    """
    import dask.array as da

    arrays, element_type, plan = calls_of(operation).check(operands, taken)
    result_type = operation.result_type(element_type)
    if 0 in plan.shape:
        return da.zeros(plan.shape, dtype=result_type.storage)
    aligned = _aligned(arrays, plan)
    meta = np.empty((0,) * len(plan.shape), result_type.storage)
    return aligned.blockwise(_OnChunks(by_numpy_rule(operation), aligned.trailing), operation, meta)


def reduce(reducing: Reducing, operands: Sequence[object], axis: Axis) -> da.Array:
    """Reduce an operation lazily: a partial for each chunk; they are merged as a tree, and finished.

    Raises:
        EltwiseError: as ``apply`` does; only an integer sum that overflows is found when it is computed.
    """
    import dask.array as da

    arrays, element_type, plan = calls_of(reducing.operation).check(operands, taken)
    wanted, rank = reducing.result_type(element_type), len(plan.shape)
    axes = normalized_axes(axis, rank)
    kept = tuple(each for each in range(rank) if each not in axes)
    outputs = tuple(plan.shape[each] for each in kept)
    reducing.check_count(prod(plan.shape[each] for each in axes), prod(outputs))
    if 0 in plan.shape:
        return da.zeros(outputs, dtype=wanted.storage)
    aligned, meta = _aligned(arrays, plan), np.empty((0,) * rank, object)
    on_chunks = _Partials(_OnChunks(by_numpy_rule(reducing.operation), aligned.trailing), reducing, axes)
    partials = aligned.blockwise(on_chunks, reducing.operation, meta, adjust_chunks=dict.fromkeys(range(rank), 1))
    if axes:
        partials = da.reduction(partials, _merged, _merged, axis=axes, keepdims=True, dtype=object, meta=meta)
    return da.blockwise(
        _Finish(reducing, element_type),
        kept,
        partials,
        range(rank),
        adjust_chunks={each: aligned.chunks[each] for each in kept},
        concatenate=True,
        dtype=wanted.storage,
        meta=np.empty((0,) * len(kept), wanted.storage),
    )


def taken(value: object, operand: str, types: Sequence[ElementType] = ()) -> tuple[Any, ElementType]:
    """Take an operand in: a Dask array as it is.

    Raises:
        ElementTypeError, UnsupportedError, ShapeError: where its chunks are no NumPy arrays of known sizes.
    """
    import dask.array as da

    if not isinstance(value, da.Array):
        if type(value).__module__.partition(".")[0] == "dask":
            raise ElementTypeError(
                "not an array", operand=operand, got=f"a dask {type(value).__name__}", allowed="a dask.array"
            )
        return as_array(value, operand, types)
    chunk = value._meta
    if type(chunk) is not np.ndarray:
        where = f"{type(chunk).__module__.partition('.')[0]}.{type(chunk).__name__}"
        raise UnsupportedError("the chunks are no NumPy arrays", operand=operand, got=where, hint="convert them first")
    if any(isnan(size) for size in value.shape):
        raise ShapeError("sizes are unknown", operand=operand, hint="call its compute_chunk_sizes() first")
    return value, of_numpy(value.dtype, types, operand=operand)


def cast_lazily(array: da.Array, source: ElementType, target: ElementType, saturate: bool) -> da.Array:
    """Convert a Dask array to another element type, chunk by chunk."""
    meta = np.empty((0,) * array.ndim, target.storage)
    return array.map_blocks(cast, source, target, saturate, dtype=target.storage, meta=meta)


@lru_cache(maxsize=256)
def by_numpy_rule(operation: Operation) -> Operation:
    """The same on operands that have the result's rank: these broadcast as NumPy does, whatever the rule was."""
    schema = operation.schema
    assert isinstance(schema, ElementwiseSchema)
    return Operation(replace(schema, broadcasting="numpy"), operation.given)


@dataclass(frozen=True)
class _Aligned:
    """Operands whose chunks meet.

    Attributes:
        chunks: the sizes of the result's chunks in each dimension.
        pairs: for ``blockwise``, each operand and the dimensions of the result that it lies in.
        trailing: for each operand, how many dimensions of the result lie behind its last.
    """

    chunks: tuple[tuple[int, ...], ...]
    pairs: tuple[Any, ...]
    trailing: tuple[int, ...]

    def blockwise(
        self, function: Any, operation: Operation, meta: np.ndarray, adjust_chunks: dict[int, int] | None = None
    ) -> da.Array:
        """One task for each chunk of the result."""
        import dask.array as da
        from dask.base import tokenize

        return da.blockwise(
            function,
            tuple(range(len(self.chunks))),
            *self.pairs,
            name=f"{operation.schema.name.lower()}-{tokenize(function, *self.pairs)}",
            dtype=meta.dtype,
            meta=meta,
            adjust_chunks=adjust_chunks,
        )


def _aligned(arrays: Sequence[Any], plan: Plan) -> _Aligned:
    from dask.array.core import unify_chunks

    indices = tuple(range(len(plan.shape)))
    pairs: list[Any] = []
    trailing: list[int] = []
    for array, sizes in zip(arrays, plan.operands, strict=True):
        rank = array.ndim
        start = next(start for start in range(len(sizes) + 1) if sizes[start : start + rank] == array.shape)
        trailing.append(len(sizes) - start - rank if rank else 0)
        is_literal = rank == 0 and isinstance(array, np.ndarray)
        pairs += [array, None if is_literal else indices[start : start + rank]]
    chunks, _unified = unify_chunks(*pairs, warn=False)
    return _Aligned(tuple(chunks[index] for index in indices), tuple(pairs), tuple(trailing))


@dataclass(frozen=True)
class _OnChunks:
    """An operation as a function on chunks, which workers get.

    Attributes:
        operation: broadcasts as NumPy does.
        trailing: for each operand, how many dimensions follow its last.
    """

    operation: Operation
    trailing: tuple[int, ...]

    def __dask_tokenize__(self) -> tuple[object, ...]:
        operation = self.operation
        return operation.schema.versioned_name, operation.function, repr(operation.given), self.trailing

    def padded(self, chunks: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Chunks that broadcast at their ends."""
        pairs = zip(chunks, self.trailing, strict=True)
        return [chunk.reshape(*chunk.shape, *(1,) * count) if count else chunk for chunk, count in pairs]

    def __call__(self, *chunks: np.ndarray) -> np.ndarray:
        try:
            return calls_of(self.operation).function(*self.padded(chunks))
        except ValueRangeError as error:
            raise _in_a_chunk(error) from None


@dataclass(frozen=True)
class _Partials:
    """What reduces chunks, which workers get; the partial is the only element of an array."""

    elements: _OnChunks
    reducing: Reducing
    axes: tuple[int, ...]

    def __dask_tokenize__(self) -> tuple[object, ...]:
        return *self.elements.__dask_tokenize__(), self.reducing.reduction, self.axes

    def __call__(self, *chunks: np.ndarray) -> np.ndarray:
        reducing = replace(self.reducing, operation=self.elements.operation)
        try:
            partial, _element_type = reducing.partial(self.elements.padded(chunks), self.axes, most_threads=1)
        except ValueRangeError as error:
            raise _in_a_chunk(error).located(operator=self.elements.operation.schema.versioned_name) from None
        found = np.empty((1,) * _rank(chunks, self.elements.trailing), object)
        found[...] = partial
        return found


def _rank(chunks: Sequence[np.ndarray], trailing: Sequence[int]) -> int:
    return max(chunk.ndim + count for chunk, count in zip(chunks, trailing, strict=True))


def _in_a_chunk(error: ValueRangeError) -> ValueRangeError:
    """The same error without an index, which would be one of the chunk."""
    return ValueRangeError(
        error.problem, operator=error.operator, operand=error.operand, got=error.got.partition(" at index")[0]
    )


def _merged(partials: np.ndarray, axis: Any, keepdims: bool) -> Any:
    with np.errstate(all="ignore"):  # NumPy sees what floats did in the merging.
        return np.sum(partials, axis=axis, keepdims=keepdims)


@dataclass(frozen=True)
class _Finish:
    """What makes results of partials."""

    reducing: Reducing
    element_type: ElementType

    def __dask_tokenize__(self) -> tuple[object, ...]:
        return self.reducing.reduction, str(self.reducing.dtype), self.element_type.name

    def __call__(self, partials: np.ndarray) -> Any:
        partial: Partial = partials.reshape(-1)[0]
        return self.reducing.finished(partial, self.element_type)[()]
