"""Memory that a host and the process of its runtime both map, so that large arrays are not sent through a pipe."""

from __future__ import annotations

import mmap
import os
import tempfile
from math import prod
from pathlib import Path

import numpy as np

from eltwise.core.errors import FileFormatError

ALIGNMENT = 64
"""Arrays start at multiples of it."""

_SMALLEST = 1 << 24


class SharedMemory:
    """Arrays one after another in memory without a name of its own in the file system, where the system has that.

    What is put there stays until ``clear``; arrays that were given out then see what comes next.

    Attributes:
        path: what another process opens it by.
        used: how many bytes are used.
    """

    def __init__(self, path: str = "") -> None:
        """Make new memory, or open that of another process."""
        self._is_named = False
        if path:
            self._file = os.open(path, os.O_RDWR)
        elif hasattr(os, "memfd_create"):  # Of Linux, in most Pythons.
            self._file = os.memfd_create("eltwise")
            path = f"/proc/{os.getpid()}/fd/{self._file}"
        else:
            self._file, path = tempfile.mkstemp()
            self._is_named = True
        self.path = path
        self.used = 0
        self._map: mmap.mmap | None = None
        self._whole = np.empty(0, np.uint8)

    def clear(self) -> None:
        """Use it from its start again."""
        self.used = 0

    def reserve(self, size: int) -> None:
        """Make so many bytes available behind those that are used, so that arrays there lie in one mapping."""
        end = self.used + size
        if end > self._whole.size:
            if end > os.fstat(self._file).st_size:
                os.ftruncate(self._file, max(end, 2 * self._whole.size, _SMALLEST))
            self._open()

    def new(self, dtype: np.dtype[np.generic], shape: tuple[int, ...]) -> np.ndarray:
        """Make an array behind those that are there."""
        start = -(-self.used // ALIGNMENT) * ALIGNMENT
        self.reserve(start - self.used + prod(shape) * dtype.itemsize)
        return self.at(start, dtype, shape)

    def put(self, array: np.ndarray) -> int:
        """Copy an array into it, unless it lies there; returns its offset."""
        if array.flags.c_contiguous and array.nbytes and self._whole.size:
            offset = array.ctypes.data - self._whole.ctypes.data
            if 0 <= offset <= self._whole.size - array.nbytes:
                return offset
        placed = self.new(array.dtype, array.shape)
        placed[...] = array
        return int(placed.ctypes.data - self._whole.ctypes.data) if placed.size else 0

    def at(self, offset: int, dtype: np.dtype[np.generic], shape: tuple[int, ...]) -> np.ndarray:
        """The array at an offset.

        Raises:
            FileFormatError: if it would not lie in this memory.
        """
        end = offset + prod(shape) * dtype.itemsize
        if end > self._whole.size and end <= os.fstat(self._file).st_size:
            self._open()
        if offset < 0 or min(shape, default=0) < 0 or end > self._whole.size:
            raise FileFormatError("the array does not lie in the shared memory", got=f"{end} bytes")
        self.used = max(self.used, end)
        return self._whole[offset:end].view(dtype).reshape(shape)

    def close(self) -> None:
        """Give the memory back as soon as no array needs it."""
        self._map, self._whole = None, np.empty(0, np.uint8)
        os.close(self._file)
        if self._is_named:
            Path(self.path).unlink()

    def _open(self) -> None:
        """Map all of it. Arrays that were given out keep the mapping that they were made on."""
        self._map = mmap.mmap(self._file, os.fstat(self._file).st_size)
        self._whole = np.frombuffer(self._map, np.uint8)
