"""Reductions of files larger than memory: a partial for each block, merged exactly, and rounded once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import product
from math import prod
from typing import Any

import numpy as np

from eltwise.core.dtypes import ElementType
from eltwise.core.errors import EltwiseError, FileFormatError
from eltwise.engine.reduce import Axis, Reducing, normalized_axes
from eltwise.kernels.plan import Sizes
from eltwise.kernels.reduction import Partial
from eltwise.scale.apply import BLOCK_BYTES, MEMORY, Tell, block_memory, threads_for
from eltwise.scale.blocks import BlockCall, Grid, flat_grid
from eltwise.scale.in_order import in_order
from eltwise.scale.sources import absolute, open_sources
from eltwise.scale.zarr_target import model_of, zarr_grid

Found = tuple[int, Partial]


@dataclass(frozen=True)
class _Job:
    """A reduction of the tensors of one name."""

    reducing: Reducing
    call: BlockCall
    grid: Grid
    axes: tuple[int, ...]

    @property
    def kept(self) -> tuple[int, ...]:
        return tuple(axis for axis in range(len(self.grid.shape)) if axis not in self.axes)

    def numbers(self) -> Iterator[int]:
        """All blocks, those of an output one after the other."""
        counts = self.grid.counts
        order = (*self.kept, *self.axes)
        for index in product(*(range(counts[axis]) for axis in order)):
            by_axis = dict(zip(order, index, strict=True))
            place = [by_axis[axis] for axis in range(len(counts))]
            yield int(np.ravel_multi_index(place, counts)) if counts else 0

    def partial(self, number: int) -> Found:
        operands = self.call.read(self.grid[number])
        reducing = replace(self.reducing, operation=self.call.operation)
        found, _element_type = reducing.partial(operands, self.axes)
        return number, found

    def result(self, found: Iterator[Found]) -> np.ndarray:
        """Merge partials, and round what is whole."""
        outputs: Sizes = tuple(self.grid.shape[axis] for axis in self.kept)
        element_type = self.call.element_type
        result = np.empty(outputs, self.reducing.result_type(element_type).storage)
        needed = prod(self.grid.counts[axis] for axis in self.axes)
        open_: dict[Sizes, tuple[int, Partial]] = {}
        for number, part in found:
            index = self.grid.index(number)
            place = tuple(index[axis] for axis in self.kept)
            count, before = open_.pop(place, (0, None))
            merged = part if before is None else before + part  # type: ignore[operator]  # All are of one kind.
            if count + 1 < needed:
                open_[place] = count + 1, merged
                continue
            cut = self.grid[number]
            result[tuple(cut[axis] for axis in self.kept)] = self.reducing.finished(merged, element_type)
        return result

    def empty(self) -> np.ndarray:
        """The result of no elements."""
        storage = self.call.element_type.storage
        operands = [np.broadcast_to(np.zeros((), storage), padded) for padded in self.call.plan.operands]
        reducing = replace(self.reducing, operation=self.call.operation)
        found, element_type = reducing.partial(operands, self.axes)
        return reducing.finished(found, element_type)


def reduce_files(
    reducing: Reducing,
    operands: Sequence[str],
    axis: Axis = None,
    *,
    memory: int = MEMORY,
    wanted: ElementType | None = None,
    scheduler: str | None = None,
    tell: Tell | None = None,
) -> dict[str, Any]:
    """Reduce an operator's results on .npy files, zarr stores or checkpoints, block by block.

    The sum is exact and rounded once, so that the result has the same bits for any blocks, and on any cluster.

    Args:
        reducing: what is reduced, and how.
        operands: paths, or URLs of zarr stores.
        axis: the axis of the result that is reduced, or several; by default all.
        memory: the limit, in bytes.
        wanted: the element type of raw bytes in .npy files.
        scheduler: the address of a Dask cluster, whose workers read the same files.
        tell: receives progress.

    Returns:
        The result, called ``result``; of checkpoints one for each tensor.

    Raises:
        EltwiseError: for operands that do not go together, and blocks that cannot be read.
    """
    tell = tell or (lambda _done, _count, _text: None)
    sources = open_sources(operands, wanted)
    jobs = [(name, _job(reducing, call, axis, operands[0])) for name, call in sources.calls(reducing.operation)]
    sizes = [prod(job.grid.shape) * job.call.element_type.storage.itemsize for _name, job in jobs]
    results, done = {}, 0
    for (name, job), size in zip(jobs, sizes, strict=True):
        if not len(job.grid):
            results[name] = job.empty()
            continue
        threads = threads_for(memory, block_memory(job.call, prod(job.grid.step)), operands[0])
        if scheduler is None:
            found = in_order((partial(_located, job, number) for number in job.numbers()), threads)
        else:
            from eltwise.scale.cluster import run_on

            texts = tuple(map(absolute, operands))
            found = run_on(scheduler, partial(compute_partial, reducing, texts, axis, name), job.numbers())
        told = _told(found, tell, (done, sum(sizes)), size // len(job.grid), name)
        results[name] = job.result(told)
        done += size
    return {name: np.asarray(value)[()] for name, value in results.items()}


def _told(found: Iterator[Found], tell: Tell, place: tuple[int, int], size: int, name: str) -> Iterator[Found]:
    for count, each in enumerate(found, start=1):
        tell(place[0] + count * size, place[1], name)
        yield each


def _job(reducing: Reducing, call: BlockCall, axis: Axis, where: str) -> _Job:
    try:
        reducing.result_type(call.element_type)
        axes = normalized_axes(axis, len(call.plan.shape))
    except EltwiseError as error:
        raise error.located(where=where) from None
    has_chunks = model_of(call) is not None
    width = call.element_type.storage.itemsize
    grid = zarr_grid(call) if has_chunks else flat_grid(call.plan.shape, BLOCK_BYTES // width)
    return _Job(reducing, call, grid, axes)


def _located(job: _Job, number: int) -> Found:
    try:
        return job.partial(number)
    except FileFormatError as error:
        raise error.located(operand=f"chunk {list(job.grid.index(number))}") from None


def compute_partial(reducing: Reducing, operands: tuple[str, ...], axis: Axis, name: str, number: int) -> Found:
    """Reduce one block: what a worker of a cluster runs."""
    return _located(_opened(reducing, operands, axis, name), number)


@lru_cache(maxsize=64)
def _opened(reducing: Reducing, operands: tuple[str, ...], axis: Axis, name: str) -> _Job:
    calls = dict(open_sources(operands).calls(reducing.operation))
    return _job(reducing, calls[name], axis, operands[0])
