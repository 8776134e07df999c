"""Memory for results, used again when an array dies: the page faults of fresh memory cost as much as the arithmetic.

Large results lie in blocks that begin at a page. A block comes back when the last view of its array is gone; blocks
that wait for work are kept up to a bound, and beyond it are given back to the system.
"""

from __future__ import annotations

import math
import mmap
import os
from collections import deque
from contextlib import suppress
from threading import Lock

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

    Attributes:
        bound: how many bytes may wait.
    """

    def __init__(self, bound: int) -> None:
        self.bound, self._idle, self._lock = bound, 0, Lock()
        self._waiting: dict[int, list[mmap.mmap]] = {}
        self._returned = deque[tuple[int, mmap.mmap]]()

    @property
    def idle_bytes(self) -> int:
        """How many bytes wait for work."""
        with self._lock:
            self._collect()
            return self._idle

    def clear(self) -> None:
        """Give the memory that waits back to the system; arrays that are alive keep theirs."""
        with self._lock:
            self._collect()
            self._waiting.clear()
            self._idle = 0

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
        block = self._taken(size)
        lease = _Lease(self, size, block)
        return np.asarray(lease)[:needed].view(storage).reshape(sizes)

    def _taken(self, size: int) -> mmap.mmap:
        with self._lock:
            self._collect()
            blocks = self._waiting.get(size)
            if blocks:
                self._idle -= size
                return blocks.pop()
        try:
            return _mapped(size)
        except (OSError, ValueError, OverflowError):
            self.clear()
        try:
            return _mapped(size)
        except (OSError, ValueError, OverflowError):
            raise MemoryError from None

    def _collect(self) -> None:
        """Sort in what came back; the lock is held. A block beyond the bound is dropped, which gives it back."""
        while self._returned:
            size, block = self._returned.popleft()
            if self._idle + size <= self.bound:
                self._waiting.setdefault(size, []).append(block)
                self._idle += size

    def give_back(self, size: int, block: mmap.mmap) -> None:
        """Take a block back. The garbage collector may call this anywhere, so that it must not wait for the lock."""
        self._returned.append((size, block))
        if self._lock.acquire(blocking=False):
            try:
                self._collect()
            finally:
                self._lock.release()


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

    def __init__(self, pool: MemoryPool, size: int, block: mmap.mmap) -> None:
        self._pool, self._size, self._block = pool, size, block
        address = np.frombuffer(block, np.uint8).__array_interface__["data"][0]
        self.__array_interface__ = {"shape": (size,), "typestr": "|u1", "data": (address, False), "version": 3}

    def __del__(self) -> None:
        self._pool.give_back(self._size, self._block)


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


def _forget_lock() -> None:
    """After a fork nobody is there to open the old lock."""
    POOL._lock = Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_lock)
