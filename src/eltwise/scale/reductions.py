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
from eltwise.engine.dask_arrays import by_numpy_rule
from eltwise.engine.reduce import Axis, Reducing, normalized_axes
from eltwise.kernels.plan import Sizes
from eltwise.kernels.reduction import Partial
from eltwise.scale.apply import BLOCK_BYTES
from eltwise.scale.blocks import Application, BlockCall, Grid, flat_grid
from eltwise.scale.cluster import connected, run_on
from eltwise.scale.in_order import in_order
from eltwise.scale.jobs import Resources, block_memory, threads_for
from eltwise.scale.sources import Sources, absolute, open_sources
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

    @property
    def element_type(self) -> ElementType:
        return self.call.tensors[0].element_type

    def partial(self, number: int) -> Found:
        return number, self._partial(self.call.read(self.grid[number]))

    def _partial(self, operands: Sequence[np.ndarray]) -> Partial:
        reducing = replace(self.reducing, operation=by_numpy_rule(self.reducing.operation))
        return reducing.partial(operands, self.axes)[0]

    def result(self, found: Iterator[Found]) -> np.ndarray:
        """Merge partials, and round what is whole."""
        outputs: Sizes = tuple(self.grid.shape[axis] for axis in self.kept)
        result = np.empty(outputs, self.reducing.result_type(self.element_type).storage)
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
            result[tuple(cut[axis] for axis in self.kept)] = self.reducing.finished(merged, self.element_type)
        return result

    def empty(self) -> np.ndarray:
        """The result of no elements."""
        call, zero = self.call, np.zeros((), self.element_type.storage)
        places = zip(call.tensors, call.axes, strict=True)
        operands = [np.broadcast_to(zero, call.sizes_in(tensor.shape, axes)) for tensor, axes in places]
        return self.reducing.finished(self._partial(operands), self.element_type)


def reduce_files(
    reducing: Reducing,
    operands: Sequence[str],
    axis: Axis = None,
    resources: Resources | None = None,
    wanted: ElementType | None = None,
) -> dict[str, Any]:
    """Reduce an operator's results on .npy files, zarr stores or checkpoints, block by block.

    The sum is exact and rounded once, so that the result has the same bits for any blocks, and on any cluster.

    Args:
        reducing: what is reduced, and how.
        operands: paths, or URLs of zarr stores.
        axis: the axis of the result that is reduced, or several; by default all.
        resources: what may be used; the workers of a cluster read the same files.
        wanted: the element type of raw bytes in .npy files.

    Returns:
        The result, called ``result``; of checkpoints one for each tensor.

    Raises:
        EltwiseError: for operands that do not go together, and blocks that cannot be read.
    """
    resources = resources or Resources()
    sources = open_sources(operands, [wanted] * len(operands))
    jobs = _jobs(reducing, sources, axis)
    sizes = [prod(job.grid.shape) * job.element_type.storage.itemsize for job in jobs.values()]
    results, done = {}, 0
    with connected(resources.scheduler) as client:
        for (name, job), size in zip(jobs.items(), sizes, strict=True):
            if not len(job.grid):
                results[name] = job.empty()
                continue
            threads = threads_for(resources.memory, block_memory(job.call, job.grid), sources.texts[0])
            if client is None:
                found = in_order((partial(_located, job, number) for number in job.numbers()), threads)
            else:
                texts = tuple(map(absolute, sources.texts))
                function = partial(compute_partial, reducing, texts, sources.wanted, job.axes, name)
                found = run_on(
                    client, function, [*job.numbers()], prod(job.grid.step) * job.element_type.storage.itemsize
                )
            told = _told(found, resources, (done, sum(sizes)), size // len(job.grid), name)
            results[name] = job.result(told)
            done += size
    return {name: np.asarray(value)[()] for name, value in results.items()}


def _told(
    found: Iterator[Found], resources: Resources, place: tuple[int, int], size: int, name: str
) -> Iterator[Found]:
    for count, each in enumerate(found, start=1):
        resources.told(place[0] + count * size, place[1], name)
        yield each


def _jobs(reducing: Reducing, sources: Sources, axis: Axis) -> dict[str, _Job]:
    """What is reduced of the tensors of each name."""
    jobs = {}
    for name, call in sources.calls(Application(reducing.operation)):
        element_type = call.tensors[0].element_type
        try:
            reducing.result_type(element_type)
            axes = normalized_axes(axis, len(call.shape))
        except EltwiseError as error:
            raise error.located(where=sources.texts[0]) from None
        is_chunked = model_of(call) is not None
        grid = zarr_grid(call) if is_chunked else flat_grid(call.shape, BLOCK_BYTES // element_type.storage.itemsize)
        jobs[name] = _Job(reducing, call, grid, axes)
    return jobs


def _located(job: _Job, number: int) -> Found:
    try:
        return job.partial(number)
    except FileFormatError as error:
        raise error.located(operand=job.grid.name(number)) from None


Wanted = tuple[ElementType | None, ...]


def compute_partial(
    reducing: Reducing, operands: tuple[str, ...], wanted: Wanted, axes: tuple[int, ...], name: str, number: int
) -> Found:
    """Reduce one block: what a worker of a cluster runs."""
    return _located(_opened(reducing, operands, wanted, axes)[name], number)


@lru_cache(maxsize=4)
def _opened(reducing: Reducing, operands: tuple[str, ...], wanted: Wanted, axes: tuple[int, ...]) -> dict[str, _Job]:
    return _jobs(reducing, open_sources(operands, wanted), axes)
