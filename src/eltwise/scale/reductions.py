"""Reductions of files larger than memory: a partial for each block, merged exactly, and rounded once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from math import prod

import numpy as np

from eltwise.core.blocks import Grid
from eltwise.core.dtypes import ElementType
from eltwise.core.errors import EltwiseError, errors_located
from eltwise.core.shapes import Sizes
from eltwise.engine.arrays import Axis
from eltwise.engine.reducing import Reducing, normalized_axes
from eltwise.formats.file_states import check_unchanged
from eltwise.kernels.reduction import Partial
from eltwise.scale.blocks import Application
from eltwise.scale.cluster import connected, run_on
from eltwise.scale.jobs import JobPart, Resources, in_order, threads_for
from eltwise.scale.sources import NamedSources, Sources
from eltwise.scale.zarr_target import zarr_grid

Found = tuple[int, Partial]


@dataclass(frozen=True)
class _Job:
    """A reduction of the tensors of one name."""

    reducing: Reducing
    part: JobPart
    axes: tuple[int, ...]
    sources: Sources

    @property
    def grid(self) -> Grid:
        return self.part.grid

    @property
    def kept(self) -> tuple[int, ...]:
        return tuple(axis for axis in range(len(self.grid.shape)) if axis not in self.axes)

    def numbers(self) -> list[int]:
        """All blocks, those of an output one after the other."""
        every = np.arange(len(self.grid)).reshape(self.grid.counts)
        numbers: list[int] = every.transpose(*self.kept, *self.axes).ravel().tolist()
        return numbers

    @property
    def element_type(self) -> ElementType:
        return self.part.call.tensors[0].element_type

    def partial(self, number: int) -> Found:
        return number, self.reducing.partial(self.part.read(number), self.axes)[0]

    def result(self, partials: Iterator[Found]) -> np.ndarray:
        """Merge partials, and round what is whole."""
        outputs: Sizes = tuple(self.grid.shape[axis] for axis in self.kept)
        result = np.empty(outputs, self.reducing.result_type(self.element_type).storage)
        needed = prod(self.grid.counts[axis] for axis in self.axes)
        open_: dict[Sizes, tuple[int, Partial]] = {}
        for number, part in partials:
            index = self.grid.index(number)
            position = tuple(index[axis] for axis in self.kept)
            count, before = open_.pop(position, (0, None))
            merged = part if before is None else before + part  # type: ignore[operator]  # All are of one kind.
            if count + 1 < needed:
                open_[position] = count + 1, merged
                continue
            cut = self.grid[number]
            with errors_located(where=self.sources.where(self.part.name)):
                result[tuple(cut[axis] for axis in self.kept)] = self.reducing.finished(merged, self.element_type)
        return result

    def empty(self) -> np.ndarray:
        """The result of no elements."""
        call = self.part.call
        places = zip(call.tensors, call.axes, strict=True)
        shapes = tuple(call.sizes_in(tensor.shape, axes) for tensor, axes in places)
        try:
            return _of_nothing(self.reducing, self.element_type, shapes, self.axes).copy()
        except EltwiseError as error:
            raise error.located(where=self.sources.where(self.part.name)) from None


@lru_cache(maxsize=1024)
def _of_nothing(
    reducing: Reducing, element_type: ElementType, shapes: Sequence[Sizes], axes: tuple[int, ...]
) -> np.ndarray:
    """The result for operands of these shapes, whose results have no elements."""
    zero = np.zeros((), element_type.storage)
    partial_, found_type = reducing.partial([np.broadcast_to(zero, shape) for shape in shapes], axes)
    return np.asarray(reducing.finished(partial_, found_type))


def reduce_files(
    reducing: Reducing, sources: Sources, axis: Axis = None, resources: Resources | None = None
) -> dict[str, np.ndarray]:
    """Reduce an operator's results on opened operands, block by block.

    By default all axes are reduced. A sum is exact and rounded once: it has the same bits for any blocks and cluster.

    Returns:
        The result, called ``result``; of checkpoints one for each tensor.

    Raises:
        EltwiseError: for operands that do not go together, and blocks that cannot be read.
    """
    resources = resources or Resources()
    jobs = _jobs(reducing, sources, axis)
    sizes = {name: len(job.grid) * job.part.block_bytes for name, job in jobs.items()}
    results, done, states, total = {}, 0, sources.states(), sum(sizes.values())
    with connected(resources.scheduler) as client:
        operands = None if client is None else sources.named()
        for name, job in jobs.items():
            if not len(job.grid):
                results[name] = job.empty()
                continue
            threads = threads_for(resources.memory, [job.part], sources.texts[0])
            if operands is None:
                partials = in_order((partial(job.partial, number) for number in job.numbers()), threads)
            else:
                function = partial(compute_partial, reducing, operands, job.axes, name)
                partials = run_on(client, function, job.numbers(), job.part.block_bytes, resources)
            results[name] = job.result(_reported(partials, resources, done, total, job.part))
            done += sizes[name]
    for each in states:
        check_unchanged(each)
    return results


def _reported(partials: Iterator[Found], resources: Resources, done: int, count: int, part: JobPart) -> Iterator[Found]:
    for number, each in enumerate(partials, start=1):
        resources.progress(done + number * part.block_bytes, count, part.name)
        yield each


def _jobs(reducing: Reducing, sources: Sources, axis: Axis) -> dict[str, _Job]:
    """What is reduced of the tensors of each name; their blocks broadcast as NumPy's arrays do."""
    jobs = {}
    on_blocks = replace(reducing, source=reducing.source.computation(len(sources.sets)).aligned())
    calls = sources.calls(Application(reducing.source))
    for name, call in calls:
        try:
            reducing.result_type(call.tensors[0].element_type)
            axes = normalized_axes(axis, len(call.shape))
        except EltwiseError as error:
            raise error.located(where=sources.where(name)) from None
        jobs[name] = _Job(on_blocks, JobPart(name, call, zarr_grid(call)), axes, sources)
    return jobs


def compute_partial(reducing: Reducing, sources: NamedSources, axes: tuple[int, ...], name: str, number: int) -> Found:
    """Reduce one block: what a worker of a cluster runs."""
    return _opened(reducing, sources, axes)[name].partial(number)


@lru_cache(maxsize=4)
def _opened(reducing: Reducing, sources: NamedSources, axes: tuple[int, ...]) -> dict[str, _Job]:
    return _jobs(reducing, sources.open(), axes)
