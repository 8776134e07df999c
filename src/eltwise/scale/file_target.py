"""A result in one file, .npy or .safetensors: written beside its path block by block, and renamed with the last one."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from eltwise.core.errors import ValueRangeError
from eltwise.formats import files, npy
from eltwise.formats.safetensors_files import dtype_of, header_of
from eltwise.scale.jobs import Part
from eltwise.scale.journal import Journal


def _header(path: Path, parts: Sequence[Part], metadata: dict[str, str]) -> bytes:
    """What precedes the elements of results in a file."""
    if path.suffix.lower() == ".npy":
        (part,) = parts
        return npy.npy_header(part.call.result_type, part.call.shape)
    entries = [(part.name, dtype_of(part.call.result_type), part.call.shape, part.call.bytes) for part in parts]
    text = header_of(entries, metadata)
    return len(text).to_bytes(8, "little") + text


@contextmanager
def file_target(
    path: Path, parts: Sequence[Part], metadata: dict[str, str], identity: dict[str, Any]
) -> Iterator[FileTarget]:
    """Open a file to be written, or the one that the same job has begun.

    Raises:
        FileFormatError: where another job has begun one, or no file can be written.
    """
    with closing(Journal(path, identity)) as journal, closing(FileTarget(path, parts, metadata, journal)) as target:
        try:
            yield target
        except ValueRangeError:  # It would be raised again.
            target.discard()
            raise


class FileTarget:
    """The file while it is written; see ``Target``."""

    is_complete = False

    def __init__(self, path: Path, parts: Sequence[Part], metadata: dict[str, str], journal: Journal) -> None:
        header = _header(path, parts, metadata)
        self._resolved = Path(os.path.realpath(path))
        self.path, self.done, self._journal, self._lock = path, journal.done, journal, Lock()
        self._part = self._resolved.parent / f".{self._resolved.name}.part"
        self._offsets, size = {}, len(header)
        for part in parts:
            self._offsets[part.name] = size
            size += part.call.bytes
        is_whole = self._part.exists() and self._part.stat().st_size == size
        if not is_whole and journal.done:
            journal.forget()
        try:
            self._descriptor = os.open(self._part, os.O_RDWR | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o666)
            os.ftruncate(self._descriptor, size)
            self._write(0, memoryview(header))
        except OSError as error:
            raise files.unwritable(path, error) from None

    def write(self, part: Part, index: int, block: np.ndarray, counted: int) -> None:
        """Write a block; see ``Target``."""
        begin = tuple(each.start for each in part.grid[index])
        start = int(np.ravel_multi_index(begin, part.grid.shape)) if begin else 0
        offset = self._offsets[part.name] + start * block.itemsize
        try:
            self._write(offset, np.ascontiguousarray(block).reshape(-1).view(np.uint8).data)
        except OSError as error:
            failure = files.unwritable(self.path, error)
            failure.operand = part.grid.name(index)
            failure.hint = f"{len(self.done)} blocks are kept; the same command goes on there"
            raise failure from None
        self._journal.add(part.first + index, counted)

    def _write(self, offset: int, data: memoryview) -> None:
        while data:
            if hasattr(os, "pwrite"):
                written = os.pwrite(self._descriptor, data, offset)
            else:
                with self._lock:  # Windows has no write at an offset.
                    os.lseek(self._descriptor, offset, os.SEEK_SET)
                    written = os.write(self._descriptor, data)
            data, offset = data[written:], offset + written

    def finish(self) -> None:
        """Rename the file, which is whole now."""
        try:
            os.fsync(self._descriptor)
            self.close()
            self._part.replace(self._resolved)
        except OSError as error:
            raise files.unwritable(self.path, error) from None
        self._journal.remove()

    def discard(self) -> None:
        """Remove what was written."""
        self._part.unlink(missing_ok=True)
        self._journal.remove()

    def close(self) -> None:
        """Close the file."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
