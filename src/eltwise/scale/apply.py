"""Results in files, block by block, of operators and of all else that is computed so; they can be resumed."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import lru_cache, partial
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from eltwise.core.dtypes import ElementType
from eltwise.core.errors import FileFormatError
from eltwise.engine.api import Operator
from eltwise.engine.call import calls_of
from eltwise.formats import files
from eltwise.formats.zarr_stores import is_url
from eltwise.ops.schema import ElementwiseSchema, Operation
from eltwise.scale.blocks import Application, Computation
from eltwise.scale.cluster import connected, run_on
from eltwise.scale.file_target import file_target
from eltwise.scale.jobs import Count, Done, Outcome, Part, Resources, Target, follow, in_order, threads_for
from eltwise.scale.sources import Sources, absolute, local, open_sources
from eltwise.scale.zarr_target import ZarrTarget, zarr_grid, zarr_target


def apply_files(
    operator_: Operator,
    operands: Sequence[str],
    output: str,
    resources: Resources | None = None,
    wanted: ElementType | None = None,
) -> Outcome:
    """Apply an operator to .npy files, zarr stores or checkpoints, block by block.

    A job that was ended goes on where it was: what is done of it lies beside the output, or in the zarr store.

    Args:
        operator_: the operator.
        operands: paths, or URLs of zarr stores.
        output: the path to write, or the URL of a zarr store; its ending selects the format.
        resources: what may be used; a cluster for zarr stores only, which its workers write.
        wanted: the element type of raw bytes in .npy files.

    Raises:
        EltwiseError: for operands that do not go together, before anything is read; for blocks that cannot be read or
            written.
    """
    sources = open_sources(operands, [wanted] * len(operands))
    return compute_files(Application(operator_.operation), sources, output, resources or Resources())


def compute_files(computation: Computation, sources: Sources, output: str, resources: Resources) -> Outcome:
    """Compute a result of opened operands, block by block; see ``apply_files``."""
    output = local(output)
    parts = _parts(computation, sources, output)
    check_target(sources, output)
    if resources.scheduler is not None and not _is_zarr(output):
        words, hint = "the workers of a cluster write zarr stores only", "name the output *.zarr"
        raise FileFormatError(words, where=output, hint=hint)
    threads = threads_for(resources.memory, parts, output)
    count = lost_by(computation) if sources.is_named else None
    identity = {"computation": computation.identity(), "operands": sources.identity()}
    with connected(resources.scheduler) as client, _target(sources, parts, output, identity, client) as target:
        outcome = Outcome(
            blocks=sum(len(part.grid) for part in parts),
            resumed=len(target.done),
            elements=sum(prod(part.call.shape) for part in parts),
            bytes=sum(part.call.bytes for part in parts),
            is_complete=target.is_complete,
        )
        if outcome.is_complete:
            return outcome
        missing = _missing(parts, target)
        if client is None:
            done = in_order((partial(part.compute, index, target, count) for part, index in missing), threads)
        else:
            function = partial(compute_chunk, computation, sources, absolute(output))
            done = run_on(client, function, [index for _part, index in missing], parts[0].block_bytes)
        follow(done, outcome, resources)
        target.finish()
        outcome.not_inverted = None if count is None else sum(target.done.values())
    return outcome


def _is_zarr(output: str) -> bool:
    return is_url(output) or Path(output).suffix.lower() == ".zarr"


def _parts(computation: Computation, sources: Sources, output: str) -> list[Part]:
    """The tensors of a result; a zarr store holds one."""
    parts, first = [], 0
    for name, call in sources.calls(computation):
        grid = zarr_grid(call) if _is_zarr(output) else call.flat_grid()
        parts.append(Part(name if sources.is_named else "", call, grid, first))
        first += len(grid)
    return parts


def _target(
    sources: Sources, parts: Sequence[Part], output: str, identity: dict[str, Any], client: Any
) -> AbstractContextManager[Target]:
    if _is_zarr(output):
        return zarr_target(output, parts[0], identity, client)
    identity["blocks"] = [part.grid.step for part in parts]
    return file_target(Path(output), parts, sources.metadata(), identity)


def _missing(parts: Sequence[Part], target: Target) -> Iterator[tuple[Part, int]]:
    for part in parts:
        yield from ((part, index) for index in range(len(part.grid)) if part.first + index not in target.done)


def compute_chunk(computation: Computation, sources: Sources, output: str, number: int) -> Done:
    """Compute one chunk and write it: what a worker of a cluster runs."""
    part, target = _opened(computation, sources, output)
    if target.has(part.grid.index(number)):  # The worker that computed it died before it could say so.
        return part.name, None
    return part.compute(number, target)


@lru_cache(maxsize=4)
def _opened(computation: Computation, sources: Sources, output: str) -> tuple[Part, ZarrTarget]:
    (part,) = _parts(computation, sources, output)
    return part, ZarrTarget.opened(output)


def check_target(sources: Sources, output: str) -> None:
    """Refuse an output that cannot be written, before anything is computed.

    Raises:
        FileFormatError: for another ending, an input, and a place where no file can be made.
    """
    ending = Path(output).suffix.lower()
    allowed = (".safetensors",) if sources.is_named else (".npy", ".zarr")
    if ending not in allowed and not (is_url(output) and not sources.is_named):
        words = "the result cannot be written to a file with this ending"
        raise FileFormatError(words, where=output, got=ending or "none", allowed=", ".join(allowed))
    read = {os.path.realpath(text) for text in sources.texts if not is_url(text)}
    read |= {os.path.realpath(tensor.where) for each in sources.sets for tensor in each.values()}
    if output in sources.texts or (not is_url(output) and os.path.realpath(output) in read):
        raise FileFormatError("the output would be written over an input", where=output, hint="choose another name")
    if not is_url(output) and ending != ".zarr":
        files.check_writable(Path(output))
    elif not is_url(output) and not Path(output).resolve().parent.is_dir():
        raise FileFormatError("the output's folder does not exist", where=output, hint="create it first")


def lost_by(computation: Computation) -> Count | None:
    """What counts, for a subtraction, for how many elements b + (a - b) has other bits than a."""
    if not isinstance(computation, Application) or computation.operation.function != "subtract":
        return None
    schema = computation.operation.schema
    assert isinstance(schema, ElementwiseSchema)
    add = calls_of(Operation(replace(schema, function="add"), computation.operation.given)).function

    def count(operands: Sequence[np.ndarray], difference: np.ndarray) -> int:
        a, b = operands
        bits = np.dtype(f"u{a.dtype.itemsize}")
        whole = np.ascontiguousarray(np.broadcast_to(a, difference.shape))
        return int(np.count_nonzero(add(b, difference).view(bits) != whole.view(bits)))

    return count
