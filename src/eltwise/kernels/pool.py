"""Memory for results, used again when an array dies: the page faults of fresh memory cost as much as the arithmetic.

Large results lie in blocks that begin at a page. A block comes back when the last view of its array is gone; blocks
that wait for work are kept up to a bound, and beyond it are given back to the system.
"""

from __future__ import annotations

import math
import mmap
from collections import deque
from contextlib import suppress

import numpy as np

from eltwise.core.dtypes import ElementType
from eltwise.core.errors import ShapeError
from eltwise.core.machine import memory_bytes
from eltwise.core.shapes import of_sizes

LEAST_BYTES = 1 << 18
"""Smaller results come from NumPy's own allocator, which keeps such memory itself."""

_LEAST_BYTES_OF_LARGE_PAGES = 1 << 22
_STEPS_PER_DOUBLING = 8


class MemoryPool:
    """The blocks that wait for work. One pool serves all threads.

    There is no lock and no count: the garbage collector may give a block back anywhere, and a signal handler may raise
    between any two instructions. Each change is one operation on a dictionary or a deque.

    Attributes:
        bound: how many bytes may wait.
    """

    def __init__(self, bound: int) -> None:
        self.bound = bound
        self._waiting: dict[int, deque[_Block]] = {}

    @property
    def idle_bytes(self) -> int:
        """How many bytes wait for work."""
        idle = 0  # Not a generator, which takes longer; the items are copied, as threads may add some.
        for size, blocks in tuple(self._waiting.items()):
            idle += size * len(blocks)
        return idle

    def clear(self) -> None:
        """Give the memory that waits back to the system; arrays that are alive keep theirs."""
        self._waiting.clear()

    def __repr__(self) -> str:
        return f"MemoryPool(idle_bytes={self.idle_bytes}, bound={self.bound})"

    def empty(self, sizes: tuple[int, ...], storage: np.dtype[np.generic]) -> np.ndarray:
        """Make an array whose values are not set, from a block that waits where there is one.

        Raises:
            MemoryError: where the machine has no memory left, also after the blocks that wait are given back.
        """
        needed = math.prod(sizes) * storage.itemsize
        if needed < LEAST_BYTES:
            return np.empty(sizes, storage)
        size = _block_bytes(needed)
        lease = _Lease(self, self._taken(size))
        return np.asarray(lease)[:needed].view(storage).reshape(sizes)

    def _taken(self, size: int) -> _Block:
        blocks = self._waiting.get(size)
        if blocks:
            with suppress(IndexError):  # Another thread may take the last one meanwhile.
                return blocks.pop()
        try:
            return _Block(size)
        except (OSError, ValueError, OverflowError):
            self.clear()
        try:
            return _Block(size)
        except (OSError, ValueError, OverflowError):
            raise MemoryError from None

    def give_back(self, block: _Block) -> None:
        """Take a block back, or drop it, which gives it to the system, where more would wait than may."""
        if self.idle_bytes + block.size > self.bound:
            return
        blocks = self._waiting.setdefault(block.size, deque())
        blocks.append(block)
        if self.idle_bytes > self.bound:  # Another thread gave one back meanwhile.
            with suppress(IndexError):
                blocks.pop()


class _Block:
    """Memory of whole pages, and what NumPy reads of it."""

    __slots__ = ("interface", "memory", "size")

    def __init__(self, size: int) -> None:
        self.size, self.memory = size, _mapped(size)
        address = np.frombuffer(self.memory, np.uint8).__array_interface__["data"][0]
        self.interface = {"shape": (size,), "typestr": "|u1", "data": (address, False), "version": 3}


def _mapped(size: int) -> mmap.mmap:
    """Map fresh memory; large blocks in large pages where the system has them, which takes fewer page faults."""
    # Private: what a process writes after a fork is its own. Python's default would share it.
    private = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS if hasattr(mmap, "MAP_PRIVATE") else None
    block = mmap.mmap(-1, size) if private is None else mmap.mmap(-1, size, flags=private)
    if size >= _LEAST_BYTES_OF_LARGE_PAGES and hasattr(mmap, "MADV_HUGEPAGE"):
        with suppress(OSError):  # A kernel without them says so; then the pages are the common ones.
            block.madvise(mmap.MADV_HUGEPAGE)
    return block


class _Lease:
    """What an array of the pool rests on; NumPy keeps it alive as long as any view of the array is."""

    _leased: tuple[MemoryPool, _Block] | None = None
    """None where a signal handler raised before there was anything to give back."""

    def __init__(self, pool: MemoryPool, block: _Block) -> None:
        self._leased = pool, block
        self.__array_interface__ = block.interface

    def __del__(self) -> None:
        if self._leased is not None:
            pool, block = self._leased
            pool.give_back(block)


def _block_bytes(needed: int) -> int:
    """Round up to whole pages and to one of eight steps between powers of two, so that near sizes share blocks."""
    step = max(mmap.PAGESIZE, 1 << max((needed - 1).bit_length() - _STEPS_PER_DOUBLING.bit_length(), 0))
    return -(-needed // step) * step


def largest_idle_bytes() -> int:
    """The bound on memory that waits: an eighth of the machine's, and at most 1 GiB."""
    memory = memory_bytes()
    return 1 << 28 if memory is None else min(1 << 30, memory // 8)


POOL = MemoryPool(largest_idle_bytes())


def memory_pool() -> MemoryPool:
    """Give the pool that results come from: it says how many bytes wait, and clears them.

    >>> memory_pool().clear()
    >>> memory_pool().idle_bytes
    0
    """
    return POOL


def allocated(sizes: tuple[int, ...], element_type: ElementType) -> np.ndarray:
    """Make an array for a result; its values are not set.

    Raises:
        ShapeError: where no memory is left for it.
    """
    try:
        return POOL.empty(sizes, element_type.storage)
    except (MemoryError, ValueError):  # NumPy raises the latter for what exceeds the address space.
        raise ShapeError("the result does not fit into memory", got=f"shape ({of_sizes(sizes)})") from None
