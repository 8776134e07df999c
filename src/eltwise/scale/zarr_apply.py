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
from eltwise.scale.apply import Outcome, Resources, block_memory, kept, threads_for
from eltwise.scale.blocks import BlockCall, Computation, Grid
from eltwise.scale.cluster import claimed, connected, run_on
from eltwise.scale.in_order import in_order
from eltwise.scale.journal import Journal
from eltwise.scale.sources import Sources, absolute, open_sources
from eltwise.scale.zarr_target import ZarrTarget, zarr_grid, zarr_target

Done = tuple[int, EltwiseError | None]
"""A block, and why it could not be computed."""


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
    threads = threads_for(resources.memory, block_memory(call, prod(grid.step)), output)
    if not is_url(output) and not Path(output).resolve().parent.is_dir():
        raise FileFormatError("the output's folder does not exist", where=output, hint="create it first")
    with connected(resources.scheduler) as client, _claimed(output, client):
        target, is_complete = zarr_target(output, call, grid, identity)
        there = target.done(grid)
        outcome = Outcome(len(grid), len(there), prod(grid.shape), is_complete=is_complete)
        if is_complete:
            return outcome
        missing = [number for number in range(len(grid)) if number not in there]
        if client is None:
            done = in_order((partial(_block, call, grid, target, number) for number in missing), threads)
        else:
            texts = tuple(map(absolute, sources.texts))
            function = partial(compute_chunk, computation, texts, sources.wanted, absolute(output))
            done = run_on(client, function, missing, prod(grid.step) * call.result_type.storage.itemsize)
        _follow(done, outcome, call.bytes, resources)
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


def _follow(done: Iterator[Done], outcome: Outcome, size: int, resources: Resources) -> None:
    finished, failures = outcome.resumed, []
    for count, (_number, failure) in enumerate(done, start=outcome.resumed + 1):
        failures += [failure] if failure else []
        finished += failure is None
        resources.told(size * count // outcome.blocks, size, "")
    if failures:
        raise kept(failures, outcome.blocks, finished)


def _block(call: BlockCall, grid: Grid, target: ZarrTarget, number: int) -> Done:
    cut = grid[number]
    try:
        operands = call.read(cut)
    except FileFormatError as error:
        return number, error.located(operand=f"chunk {list(grid.index(number))}")
    target.write(cut, call.compute(operands))
    return number, None


Wanted = tuple[ElementType | None, ...]


def compute_chunk(
    computation: Computation, operands: tuple[str, ...], wanted: Wanted, output: str, number: int
) -> Done:
    """Compute one chunk and write it: what a worker of a cluster runs."""
    call, grid, target = _opened(computation, operands, wanted, output)
    if target.has(grid.index(number)):  # The worker that computed it died before it could say so.
        return number, None
    return _block(call, grid, target, number)


@lru_cache(maxsize=4)
def _opened(
    computation: Computation, operands: tuple[str, ...], wanted: Wanted, output: str
) -> tuple[BlockCall, Grid, ZarrTarget]:
    ((_name, call),) = open_sources(operands, wanted).calls(computation)
    return call, zarr_grid(call), ZarrTarget.opened(output)
