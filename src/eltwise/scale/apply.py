"""Results in files, block by block, of operators and of all else that is computed so; they can be resumed."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from functools import lru_cache, partial
from hashlib import sha256
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from eltwise.core.dtypes import ElementType
from eltwise.core.errors import ChangedInputError, FileFormatError, ValueRangeError
from eltwise.engine.api import Operator
from eltwise.engine.call import calls_of
from eltwise.formats import files
from eltwise.formats.file_states import States, check_unchanged
from eltwise.formats.store_paths import is_store, is_url, local
from eltwise.ops.expression import expression_of
from eltwise.ops.schema import Operation
from eltwise.scale.blocks import Application, BlockComputation
from eltwise.scale.cluster import connected, run_on
from eltwise.scale.file_target import file_target
from eltwise.scale.jobs import Count, Done, JobOutcome, JobPart, JobTarget, Resources, follow, in_order, threads_for
from eltwise.scale.journal import Entry, JobIdentity, Journal, remove_journal
from eltwise.scale.sources import NamedSources, Sources, absolute, open_sources
from eltwise.scale.zarr_target import ZarrBlocks, ZarrTarget, complete_array, zarr_grid, zarr_target


def apply_files(
    operator_: Operator,
    operands: Sequence[str],
    output: str,
    resources: Resources | None = None,
    raw_type: ElementType | None = None,
) -> JobOutcome:
    """Apply an operator to .npy files, zarr stores or checkpoints, block by block.

    A job that was ended goes on where it was: what is done of it is in the folder ``.NAME.eltwise`` beside the output.

    Args:
        operator_: the operator.
        operands: paths, or URLs of zarr stores.
        output: the path to write, or the URL of a zarr store; its ending selects the format.
        resources: what may be used; a cluster for zarr stores only, which its workers write.
        raw_type: the element type of raw bytes in .npy files.

    Raises:
        EltwiseError: for operands that do not go together, before anything is read; for blocks that cannot be read or
            written.
    """
    sources = open_sources(operands, [raw_type] * len(operands))
    return compute_files(Application(operator_.operation), sources, output, resources or Resources())


def compute_files(computation: BlockComputation, sources: Sources, output: str, resources: Resources) -> JobOutcome:
    """Compute a result of opened operands, block by block; see ``apply_files``."""
    output = local(output)
    parts = _parts(computation, sources, output)
    check_target(sources, output)
    if resources.scheduler is not None and not _is_zarr(output):
        problem, hint = "the workers of a cluster write zarr stores only", "name the output *.zarr"
        raise FileFormatError(problem, where=output, hint=hint)
    threads = threads_for(resources.memory, parts, output)
    count = lost_by(computation) if sources.is_named else None
    states = [computation.states(), *sources.states()]
    identity = _identity(computation, sources, parts, states)
    outcome = JobOutcome(
        blocks=sum(len(part.grid) for part in parts),
        elements=sum(prod(part.call.shape) for part in parts),
        bytes=sum(part.call.bytes for part in parts),
    )
    with files.writing_errors(output):
        present = complete_array(output, identity) if _is_zarr(output) else None
        if present is not None:
            (part,) = parts
            checksums = (partial(present.checksum, part, index) for index in range(len(part.grid)))
            present.check_complete(in_order(checksums, threads))
            if not is_url(output):
                remove_journal(Path(output), identity, outcome.blocks)
            return replace(outcome, was_complete=True)
        with connected(resources.scheduler) as client, _target(sources, parts, output, identity, client) as target:
            outcome.changed = target.journal.changed
            if client is None:
                done = _in_threads(parts, target, count, threads)
            else:
                done = _on_cluster(client, computation, sources, parts[0], target, resources)
            with _ending(target.journal):
                try:
                    follow(done, target.journal, outcome, resources)
                except FileFormatError:  # What is gone for a moment cannot be read, since it was changed.
                    _check_unchanged(states)
                    raise
                _check_unchanged(states)
            outcome.not_inverted = None if count is None else sum(each.counted for each in target.journal.done.values())
            target.finish()
    return outcome


def _identity(
    computation: BlockComputation, sources: Sources, parts: Sequence[JobPart], states: Sequence[States]
) -> JobIdentity:
    """What the job is: what is computed of which operands, in which blocks, and in which state its files are."""
    steps = [part.grid.step for part in parts]
    digest = _digest([computation.identity(), sources.identities(), steps])
    return JobIdentity(digest, tuple(map(_digest, states)), ("the model", *sources.texts))


def _digest(value: object) -> str:
    return sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def _check_unchanged(states: Sequence[States]) -> None:
    for each in states:
        check_unchanged(each)


@contextmanager
def _ending(journal: Journal) -> Iterator[None]:
    """End a job whose blocks are worth nothing: it would fail again, or its inputs changed while they were read."""
    try:
        yield
    except (ValueRangeError, ChangedInputError):
        journal.end()
        raise


def _in_threads(parts: Sequence[JobPart], target: JobTarget, count: Count | None, threads: int) -> Iterator[Done]:
    """Compute blocks in this process."""
    before = dict(target.journal.done)

    def work(part: JobPart, index: int) -> Done:
        return _noted(part.compute(index, target, count, before.get(part.first + index)), target)

    return in_order((partial(work, part, index) for part in parts for index in range(len(part.grid))), threads)


def _on_cluster(
    client: Any, computation: BlockComputation, sources: Sources, part: JobPart, target: JobTarget, resources: Resources
) -> Iterator[Done]:
    """Compute blocks on the workers of a cluster, which see the store in which the result is written."""
    assert isinstance(target, ZarrTarget)
    before = dict(target.journal.done)
    operands = sources.named(computation.states())
    function = partial(compute_chunk, computation, operands, target.text, absolute(target.store))
    items = [(number, before.get(number)) for number in range(len(part.grid))]
    return (_noted(each, target) for each in run_on(client, function, items, part.block_bytes, resources))


def _noted(done: Done, target: JobTarget) -> Done:
    """Note in the journal that a block is done, once its elements are written."""
    if done.entry is not None and not done.is_old:
        target.journal.add(done.number, done.entry)
    return done


def _is_zarr(output: str) -> bool:
    return is_url(output) or Path(output).suffix.lower() == ".zarr"


def _parts(computation: BlockComputation, sources: Sources, output: str) -> list[JobPart]:
    """The tensors of a result; a zarr store holds one."""
    parts, first = [], 0
    is_zarr, is_named = _is_zarr(output), sources.is_named
    for name, call in sources.calls(computation):
        grid = zarr_grid(call) if is_zarr else call.flat_grid()
        parts.append(JobPart(name if is_named else "", call, grid, first))
        first += len(grid)
    return parts


def _target(
    sources: Sources, parts: Sequence[JobPart], output: str, identity: JobIdentity, client: Any
) -> AbstractContextManager[JobTarget]:
    if _is_zarr(output):
        return zarr_target(output, parts[0], identity, client)
    return file_target(Path(output), parts, sources.metadata(), identity)


def compute_chunk(
    computation: BlockComputation, sources: NamedSources, output: str, store: str, item: tuple[int, Entry | None]
) -> Done:
    """Compute one chunk and write it, unless it is there: what a worker of a cluster runs."""
    part, target = _opened(computation, sources, output, store)
    number, entry = item
    return part.compute(number, target, entry=entry)


@lru_cache(maxsize=4)
def _opened(
    computation: BlockComputation, sources: NamedSources, output: str, store: str
) -> tuple[JobPart, ZarrBlocks]:
    (part,) = _parts(computation, sources.open(), output)
    return part, ZarrBlocks.opened(output, store)


def check_target(sources: Sources, output: str, inputs: Sequence[Path] = ()) -> None:
    """Refuse an output that cannot be written, before anything is computed.

    Raises:
        FileFormatError: for another ending, an input, and a place where no file can be made.
    """
    ending = Path(output).suffix.lower()
    allowed = (".safetensors",) if sources.is_named else (".npy", ".zarr")
    if ending not in allowed and not (is_url(output) and not sources.is_named):
        problem = "the result cannot be written to a file with this ending"
        raise FileFormatError(problem, where=output, got=ending or "none", allowed=", ".join(allowed))
    if is_url(output):
        if output in sources.texts:
            raise FileFormatError("the output would replace an input", where=output, hint="choose another name")
        return
    files.check_outputs([Path(output)], [*sources.files(), *inputs], are_folders=ending == ".zarr")
    stores = [path for path in map(os.path.realpath, sources.files()) if is_store(Path(path))]
    if any(map(Path(os.path.realpath(output)).is_relative_to, stores)):
        raise FileFormatError("the output lies in an input", where=output, hint="choose another folder")


def lost_by(computation: BlockComputation) -> Count | None:
    """What counts, for a subtraction, for how many elements b + (a - b) has other bits than a."""
    operation = computation.operation if isinstance(computation, Application) else None
    if not isinstance(operation, Operation) or operation.function != "subtract":
        return None
    subtract = operation.computation(2)
    add = calls_of(replace(subtract, expression=expression_of("add"), name="Add").aligned())

    def count(operands: Sequence[np.ndarray], difference: np.ndarray) -> int:
        a, b = operands
        bits = np.dtype(f"u{a.dtype.itemsize}")
        whole = np.ascontiguousarray(np.broadcast_to(a, difference.shape))
        return int(np.count_nonzero(add.apply((b, difference)).view(bits) != whole.view(bits)))

    return count
