"""Results in files, block by block, of operators and of all else that is computed so; they can be resumed."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from eltwise.core.dtypes import ElementType
from eltwise.core.errors import FileFormatError, ValueRangeError
from eltwise.engine.api import Operator
from eltwise.engine.call import calls_of
from eltwise.formats import files
from eltwise.formats.zarr_stores import is_url
from eltwise.ops.schema import ElementwiseSchema, Operation
from eltwise.scale.blocks import Application, BlockCall, Computation, flat_grid
from eltwise.scale.file_target import FileTarget
from eltwise.scale.in_order import in_order
from eltwise.scale.jobs import Count, Outcome, Part, Resources, block_memory, follow, threads_for
from eltwise.scale.journal import Journal
from eltwise.scale.sources import Sources, local, open_sources

BLOCK_BYTES = 8 << 20
"""Of a block of a file; those of zarr are chunks."""


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
    calls = sources.calls(computation)
    check_target(sources, output)
    identity: dict[str, Any] = {"computation": computation.identity(), "operands": sources.identity()}
    if is_url(output) or Path(output).suffix.lower() == ".zarr":
        from eltwise.scale import zarr_apply

        return zarr_apply.apply(computation, sources, calls[0][1], output, identity, resources)
    if resources.scheduler is not None:
        words, hint = "the workers of a cluster write zarr stores only", "name the output *.zarr"
        raise FileFormatError(words, where=output, hint=hint)
    identity["block_bytes"] = BLOCK_BYTES
    return _to_file(computation, sources, calls, Path(output), identity, resources)


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


def _to_file(
    computation: Computation,
    sources: Sources,
    calls: Sequence[tuple[str, BlockCall]],
    output: Path,
    identity: dict[str, Any],
    resources: Resources,
) -> Outcome:
    parts, first = [], 0
    for name, call in calls:
        parts.append(Part(name, call, flat_grid(call.shape, BLOCK_BYTES // call.result_type.storage.itemsize), first))
        first += len(parts[-1].grid)
    needed = max((block_memory(part.call, part.grid) for part in parts), default=0)
    threads = threads_for(resources.memory, needed, str(output))
    count = lost_by(computation) if sources.is_named else None
    elements, size = sum(prod(call.shape) for _name, call in calls), sum(call.bytes for _name, call in calls)
    with Journal(output, identity) as journal:
        with closing(FileTarget(output, parts, sources.metadata(), journal)) as target:
            outcome = Outcome(first, len(journal.done), elements, size)
            missing = (
                partial(part.compute, index, target, count)
                for part in parts
                for index in range(len(part.grid))
                if part.first + index not in journal.done
            )
            try:
                follow(in_order(missing, threads), outcome, resources)
            except ValueRangeError:  # It would be raised again.
                target.discard()
                raise
            target.finish()
        outcome.not_inverted = None if count is None else sum(journal.done.values())
        journal.remove()
    return outcome


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
