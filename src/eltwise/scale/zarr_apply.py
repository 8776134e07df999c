"""An operator on zarr stores: each block is a chunk of the result, computed by a thread here or a worker of Dask."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import lru_cache, partial
from math import prod
from pathlib import Path
from typing import Any

from eltwise.core.dtypes import ElementType
from eltwise.core.errors import EltwiseError, FileFormatError
from eltwise.formats.zarr_stores import is_url
from eltwise.scale.blocks import BlockCall, Computation
from eltwise.scale.cluster import claimed, connected, run_on
from eltwise.scale.in_order import in_order
from eltwise.scale.jobs import Outcome, Part, Resources, block_memory, follow, threads_for
from eltwise.scale.journal import Journal
from eltwise.scale.sources import Sources, absolute, open_sources
from eltwise.scale.zarr_target import ZarrTarget, zarr_grid, zarr_target

Done = tuple[str, EltwiseError | None]


def apply(
    computation: Computation,
    sources: Sources,
    call: BlockCall,
    output: str,
    identity: dict[str, Any],
    resources: Resources,
) -> Outcome:
    """Compute the chunks of a result that are not there yet; see ``apply_files``."""
    grid = zarr_grid(call)
    threads = threads_for(resources.memory, block_memory(call, grid), output)
    if not is_url(output) and not Path(output).resolve().parent.is_dir():
        raise FileFormatError("the output's folder does not exist", where=output, hint="create it first")
    with connected(resources.scheduler) as client, _claimed(output, client):
        target, is_complete = zarr_target(output, call, grid, identity)
        there = target.done(grid)
        outcome = Outcome(len(grid), len(there), prod(grid.shape), call.bytes, is_complete=is_complete)
        if is_complete:
            return outcome
        every = range(len(grid))
        missing = [number for number in every if number not in there] if there else every
        if client is None:
            done = in_order((partial(Part("", call, grid).compute, number, target) for number in missing), threads)
        else:
            texts = tuple(map(absolute, sources.texts))
            function = partial(compute_chunk, computation, texts, sources.wanted, absolute(output))
            done = run_on(client, function, missing, prod(grid.step) * call.result_type.storage.itemsize)
        follow(done, outcome, resources)
        target.finish()
    return outcome


@contextmanager
def _claimed(output: str, client: Any) -> Iterator[None]:
    """Keep other processes from a target: those that see its folder, or, of a URL, those of the cluster."""
    if is_url(output):
        with nullcontext() if client is None else claimed(client, output):
            yield
        return
    with Journal(Path(output.rstrip("/")), {}) as journal:  # What is done, the chunks say.
        try:
            yield
        finally:
            journal.remove()


Wanted = tuple[ElementType | None, ...]


def compute_chunk(
    computation: Computation, operands: tuple[str, ...], wanted: Wanted, output: str, number: int
) -> Done:
    """Compute one chunk and write it: what a worker of a cluster runs."""
    part, target = _opened(computation, operands, wanted, output)
    if target.has(part.grid.index(number)):  # The worker that computed it died before it could say so.
        return part.name, None
    return part.compute(number, target)


@lru_cache(maxsize=4)
def _opened(
    computation: Computation, operands: tuple[str, ...], wanted: Wanted, output: str
) -> tuple[Part, ZarrTarget]:
    ((_name, call),) = open_sources(operands, wanted).calls(computation)
    return Part("", call, zarr_grid(call)), ZarrTarget.opened(output)
