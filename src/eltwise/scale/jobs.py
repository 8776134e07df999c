"""Jobs: the blocks of a result in a target, what may be used for them, what is done, and what failed."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from math import prod
from typing import Protocol, TypeVar

import numpy as np

from eltwise.core.blocks import Grid
from eltwise.core.errors import EltwiseError, FileFormatError, errors_located
from eltwise.core.fields import plain
from eltwise.core.progress import Progress, no_progress
from eltwise.formats.zarr_stores import ZarrArray
from eltwise.ir.tensors import Tensor
from eltwise.kernels.threads import num_threads
from eltwise.scale.blocks import BlockCall
from eltwise.scale.checksum import crc32c
from eltwise.scale.journal import Entry, Journal

T = TypeVar("T")

Count = Callable[[Sequence[np.ndarray], np.ndarray], int]
"""Counts something in operands and their result."""

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
        progress: receives how many bytes are done.
        wait: for how many seconds a cluster may be without workers.
        say: receives a sentence when the job waits.
    """

    memory: int = MEMORY
    scheduler: str | None = None
    progress: Progress = no_progress
    wait: float = 300
    say: Callable[[str], None] = lambda _sentence: None


@dataclass
class JobOutcome:
    """What was done.

    Attributes:
        blocks: how many blocks the result has.
        resumed: how many of them were done before, and have the same elements still.
        damaged: how many were done before, and had other elements when they were read again, so that they were computed
            again.
        changed: the inputs that are others than when the job was begun, so that all blocks were computed again.
        elements: how many elements the result has.
        bytes: how many bytes it has.
        not_inverted: for a subtraction of floats in checkpoints, of how many elements b + (a - b) is not a.
        was_complete: whether the result was there already, with the elements that were written.
    """

    blocks: int
    elements: int
    bytes: int
    resumed: int = 0
    not_inverted: int | None = None
    was_complete: bool = False
    damaged: int = 0
    changed: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, object]:
        """Everything as plain values, for programs that read it."""
        return dict(plain(self))


class Blocks(Protocol):
    """Where blocks are written."""

    def write(self, part: JobPart, index: int, block: np.ndarray) -> None:
        """Write a block, which is in C order.

        Raises:
            FileFormatError: where that is not possible; blocks that are there stay.
            OSError: the same.
        """

    def checksum(self, part: JobPart, index: int) -> int | None:
        """The CRC-32C of a block as it is there; None where it cannot be read."""


class JobTarget(Blocks, Protocol):
    """Where a result is written.

    Attributes:
        journal: which blocks are done.
    """

    @property
    def journal(self) -> Journal: ...  # noqa: D102 - said by the class

    def finish(self) -> None:
        """Make the result appear under its name."""


@dataclass(frozen=True)
class Done:
    """A block that was worked on.

    Attributes:
        number: of the block in the result.
        name: of its tensor.
        entry: what the journal says of it; None where it could not be read.
        is_old: whether it was done before.
        failure: why it could not be read.
    """

    number: int
    name: str
    entry: Entry | None = None
    is_old: bool = False
    failure: EltwiseError | None = None


@dataclass(frozen=True)
class JobPart:
    """A tensor of a result.

    Attributes:
        name: of the tensor.
        call: what computes it.
        grid: its blocks.
        first: the number of its first block in the result.
    """

    name: str
    call: BlockCall
    grid: Grid
    first: int = 0

    @property
    def block_bytes(self) -> int:
        """How many bytes a block of the result has."""
        return prod(self.grid.step) * self.call.result_type.storage.itemsize

    def read(self, index: int) -> list[np.ndarray]:
        """Read what a block needs of each operand.

        Raises:
            FileFormatError: where it cannot be read, naming the block.
        """
        with errors_located(operand=self.grid.name(index)):
            return self.call.read(self.grid[index])

    def bytes_of(self, index: int) -> int:
        """How many bytes a block of the result has, which is the last of an axis or not."""
        elements: int = prod(each.stop - each.start for each in self.grid[index])
        return elements * self.call.result_type.storage.itemsize

    def compute(self, index: int, target: Blocks, count: Count | None = None, entry: Entry | None = None) -> Done:
        """Compute a block and write it, unless it is there as the journal says."""
        number = self.first + index
        if entry is not None and target.checksum(self, index) == entry.checksum:
            return Done(number, self.name, entry, is_old=True)
        try:
            operands = self.read(index)
        except FileFormatError as error:
            return Done(number, self.name, failure=error)
        result = np.asarray(self.call.compute(operands), order="C")
        target.write(self, index, result)
        counted = 0 if count is None else count(operands, result)
        return Done(number, self.name, Entry(counted, crc32c(result.reshape(-1).view(np.uint8))))

    def memory(self) -> int:
        """How many bytes a block needs while it is worked on: parts of operands, stored and unpacked, and results."""
        call, elements = self.call, prod(self.grid.step)
        width = max(each.itemsize for each in (call.result_type.storage, *(tensor.storage for tensor in call.tensors)))
        parts = sum(elements * width + 2 * _chunk_bytes(tensor) for tensor in call.tensors)
        return parts + (2 + call.temporaries) * elements * width


def _chunk_bytes(tensor: Tensor) -> int:
    """How many bytes of a tensor are held at least when a part of it is read."""
    if isinstance(tensor.source, ZarrArray):
        return prod(tensor.source.chunk) * tensor.storage.itemsize
    return 0


def follow(done: Iterator[Done], journal: Journal, outcome: JobOutcome, resources: Resources) -> None:
    """Wait for blocks, and report the progress.

    Raises:
        EltwiseError: the first failure, with what is kept, once all others are done.
    """
    failures: list[EltwiseError] = []
    before = set(journal.done)
    try:
        for count, each in enumerate(done, start=1):
            failures += [each.failure] if each.failure else []
            outcome.resumed += each.is_old
            outcome.damaged += not each.is_old and each.number in before
            resources.progress(outcome.bytes * count // outcome.blocks, outcome.bytes, each.name)
    except FileFormatError as error:  # Of a block that cannot be written.
        failures = [error]
    if failures:
        others = f"; {len(failures) - 1} more blocks failed" if len(failures) > 1 else ""
        message = f"{len(journal.done)} of {outcome.blocks} blocks are kept for the same command with the same inputs"
        hints = (failures[0].hint, f"{message}{others}" if journal.done else "")
        failures[0].hint = "; ".join(filter(None, hints))
        raise failures[0]


def threads_for(memory: int, parts: Iterable[JobPart], where: str) -> int:
    """How many blocks can be worked on at a time.

    Raises:
        FileFormatError: where not one fits into the memory that may be used.
    """
    block = max((part.memory() for part in parts), default=0)
    fitting = (memory - _OWN_MEMORY) // max(block, 1)
    if fitting < 1:
        needed = -(-(block + _OWN_MEMORY) // (1 << 20))
        problem, hint = "a block does not fit into the memory that may be used", f"--memory {needed}MiB"
        raise FileFormatError(problem, where=where, got=f"{memory} bytes", hint=hint)
    return min(num_threads(), int(fitting))


def in_order(work: Iterable[Callable[[], T]], threads: int) -> Iterator[T]:
    """Run pieces of work on threads, and give their results in order.

    Args:
        work: the pieces; taken only when a thread is about to be free.
        threads: how many; at most twice as many pieces are started and not yet given.
    """
    waiting: deque[Future[T]] = deque()
    with ThreadPoolExecutor(threads, "eltwise-files") as pool:
        try:
            for piece in work:
                waiting.append(pool.submit(piece))
                if len(waiting) >= 2 * threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()
