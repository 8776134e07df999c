"""An operator on files larger than memory, block by block, with a result that can be resumed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from eltwise.core.dtypes import ElementType
from eltwise.core.errors import EltwiseError, FileFormatError, ValueRangeError
from eltwise.engine.api import Operator
from eltwise.engine.call import calls_of
from eltwise.formats import files
from eltwise.formats.zarr_stores import is_url
from eltwise.kernels.threads import num_threads
from eltwise.ops.schema import ElementwiseSchema, Operation
from eltwise.scale.blocks import Application, BlockCall, Computation, Grid, flat_grid
from eltwise.scale.file_target import FileTarget, file_header
from eltwise.scale.in_order import in_order
from eltwise.scale.journal import Journal
from eltwise.scale.sources import Sources, local, open_sources
from eltwise.scale.zarr_target import chunk_bytes

Tell = Callable[[int, int, str], None]
"""Receives how many bytes are done, how many there are, and what is done now."""

Count = Callable[[Sequence[np.ndarray], np.ndarray], int]
"""Counts something in operands and their result."""

BLOCK_BYTES = 8 << 20
"""Of a block of a file; those of zarr are chunks."""

MEMORY = 2 << 30
"""The default limit."""

_OWN_MEMORY = 256 << 20
"""What a process needs beside the blocks."""


@dataclass(frozen=True)
class Resources:
    """What a job may use.

    Attributes:
        memory: the limit, in bytes.
        scheduler: the address of a Dask cluster, if one computes.
        tell: receives progress.
    """

    memory: int = MEMORY
    scheduler: str | None = None
    tell: Tell | None = None

    def told(self, done: int, count: int, text: str) -> None:
        """Tell the progress to whom it may concern."""
        if self.tell is not None:
            self.tell(done, count, text)


@dataclass
class Outcome:
    """What was done.

    Attributes:
        blocks: how many blocks the result has.
        resumed: how many of them were done before.
        elements: how many elements the result has.
        not_inverted: for a subtraction of floats in checkpoints, of how many elements b + (a - b) is not a.
        is_complete: whether there was nothing to do.
    """

    blocks: int
    resumed: int
    elements: int
    not_inverted: int | None = None
    is_complete: bool = False
    failures: list[EltwiseError] = field(default_factory=list)

    def fields(self) -> dict[str, object]:
        """The numbers, for programs that read them."""
        numbers: dict[str, object] = {"blocks": self.blocks, "resumed": self.resumed, "elements": self.elements}
        return numbers if self.not_inverted is None else {**numbers, "not_inverted": self.not_inverted}


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


def threads_for(memory: int, block: int, where: str) -> int:
    """How many blocks can be worked on at a time.

    Raises:
        FileFormatError: where not one fits into the memory that may be used.
    """
    fitting = (memory - _OWN_MEMORY) // max(block, 1)
    if fitting < 1:
        needed = -(-(block + _OWN_MEMORY) // (1 << 20))
        words, hint = "a block does not fit into the memory that may be used", f"--memory {needed}MiB"
        raise FileFormatError(words, where=where, got=f"{memory} bytes", hint=hint)
    return min(num_threads(), int(fitting))


def block_memory(call: BlockCall, elements: int) -> int:
    """How many bytes a block needs while it is worked on: parts of operands, stored and unpacked, and results."""
    width = max(each.itemsize for each in (call.result_type.storage, *(tensor.storage for tensor in call.tensors)))
    parts = sum(elements * width + 2 * chunk_bytes(tensor) for tensor in call.tensors)
    return parts + (2 + call.temporaries) * elements * width


def _to_file(
    computation: Computation,
    sources: Sources,
    calls: Sequence[tuple[str, BlockCall]],
    output: Path,
    identity: dict[str, Any],
    resources: Resources,
) -> Outcome:
    grids = [flat_grid(call.shape, BLOCK_BYTES // call.result_type.storage.itemsize) for _name, call in calls]
    needed = [block_memory(call, prod(grid.step)) for (_, call), grid in zip(calls, grids, strict=True)]
    threads = threads_for(resources.memory, max(needed, default=0), str(output))
    count = lost_by(computation) if sources.is_named else None
    total, blocks = sum(call.bytes for _name, call in calls), sum(map(len, grids))
    with Journal(output, identity) as journal:
        target = FileTarget(output, file_header(output, calls, sources.metadata()), calls, journal)
        with closing(target):
            resumed, failures, done = len(journal.done), [], 0
            work = _file_work(calls, grids, target, count)
            try:
                for name, size, failure in in_order(work, threads):
                    done += size
                    resources.told(done, total, name)
                    failures += [failure] if failure else []
            except ValueRangeError:  # It would be raised again.
                target.discard()
                raise
            if failures:
                raise kept(failures, blocks, len(journal.done))
            target.finish()
        counted = sum(journal.done.values())
        journal.remove()
    elements = sum(prod(call.shape) for _name, call in calls)
    return Outcome(blocks, resumed, elements, None if count is None else counted)


def kept(failures: Sequence[EltwiseError], blocks: int, done: int) -> EltwiseError:
    """The first failure, with what is kept."""
    first = failures[0]
    others = f"; {len(failures) - 1} more blocks failed" if len(failures) > 1 else ""
    first.hint = f"{done} of {blocks} blocks are kept{others}; fix it and run the same command again"
    return first


@dataclass(frozen=True)
class _TensorWork:
    """The blocks of one tensor of a file.

    Attributes:
        name: of the tensor.
        place: which one of the file it is.
        first: the number of its first block in the file.
        call: what is computed.
        grid: its blocks.
        target: the file.
        count: counts something in operands and result.
    """

    name: str
    place: int
    first: int
    call: BlockCall
    grid: Grid
    target: FileTarget
    count: Count | None

    def block(self, index: int) -> tuple[str, int, EltwiseError | None]:
        """Compute a block if it is not done, and write it; the name, its bytes, and why it could not be read."""
        cut, number = self.grid[index], self.first + index
        size = prod(part.stop - part.start for part in cut) * self.call.result_type.storage.itemsize
        if number in self.target.journal.done:
            return self.name, size, None
        try:
            operands = self.call.read(cut)
        except FileFormatError as error:
            return self.name, size, error.located(operand=f"block {number}")
        result = self.call.compute(operands)
        counted = 0 if self.count is None else self.count(operands, result)
        start = int(np.ravel_multi_index([part.start for part in cut], self.grid.shape)) if cut else 0
        self.target.write(number, self.place, start, result, counted)
        return self.name, size, None


def _file_work(
    calls: Sequence[tuple[str, BlockCall]], grids: Sequence[Grid], target: FileTarget, count: Count | None
) -> Iterator[Callable[[], tuple[str, int, EltwiseError | None]]]:
    """The work on each block of a file."""
    first = 0
    for place, ((name, call), grid) in enumerate(zip(calls, grids, strict=True)):
        work = _TensorWork(name, place, first, call, grid, target, count)
        yield from (partial(work.block, index) for index in range(len(grid)))
        first += len(grid)


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
