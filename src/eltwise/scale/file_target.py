"""A result in one file, .npy or .safetensors: written in a folder of its own, and renamed with the last block."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Lock

import numpy as np

from eltwise.core.errors import errors_located
from eltwise.core.staging import Staging, sync_folder
from eltwise.formats import files, npy
from eltwise.formats.file_tensors import OpenFile
from eltwise.formats.safetensors_files import dtype_of, header_of
from eltwise.scale.checksum import crc32c
from eltwise.scale.jobs import JobPart
from eltwise.scale.journal import JobIdentity, Journal, open_journal

_BLOCK = 512
"""Bytes in which systems count the room that a file takes."""


def _header(path: Path, parts: Sequence[JobPart], metadata: dict[str, str]) -> bytes:
    """What precedes the elements of results in a file."""
    if path.suffix.lower() == ".npy":
        (part,) = parts
        return npy.npy_header(part.call.result_type, part.call.shape)
    entries = [(part.name, dtype_of(part.call.result_type), part.call.shape, part.call.bytes) for part in parts]
    text = header_of(entries, metadata)
    return len(text).to_bytes(8, "little") + text


@contextmanager
def file_target(
    path: Path, parts: Sequence[JobPart], metadata: dict[str, str], identity: JobIdentity
) -> Iterator[FileTarget]:
    """Open a file to be written, or the one that the same job has begun.

    Raises:
        FileFormatError: where another job has begun one, or no file can be written.
    """
    with ExitStack() as stack:
        folder, journal = open_journal(stack, path, identity, sum(len(part.grid) for part in parts))
        target = FileTarget(path, parts, metadata, folder, journal)
        stack.callback(target.close)
        target.begin()
        yield target


class FileTarget:
    """The file while it is written; see ``JobTarget``."""

    def __init__(
        self, path: Path, parts: Sequence[JobPart], metadata: dict[str, str], folder: Staging, journal: Journal
    ) -> None:
        self._header = _header(path, parts, metadata)
        self.path, self.journal, self._folder, self._lock = path, journal, folder, Lock()
        self._resolved = files.unfollowed(path)
        self._offsets, self._size = dict[str, int](), len(self._header)
        for part in parts:
            self._offsets[part.name] = self._size
            self._size += part.call.bytes
        self._descriptor, self._reader = -1, None  # type: int, OpenFile | None

    def begin(self) -> None:
        """Open the file that the job has begun, or a new one, and write what precedes the elements.

        Raises:
            FileFormatError: where the disk has no room for it.
            OSError: where it cannot be written.
        """
        self._descriptor = self._folder.open(files.STAGED)
        status = os.fstat(self._descriptor)
        if status.st_size != self._size:
            self.journal.forget()
        files.check_space(self.path, self._size - getattr(status, "st_blocks", 0) * _BLOCK)
        os.ftruncate(self._descriptor, self._size)
        self._write(0, memoryview(self._header))
        if self.journal.done:
            self._reader = OpenFile(Path(self._folder.of(files.STAGED)))

    def write(self, part: JobPart, index: int, block: np.ndarray) -> None:
        """Write a block; see ``JobTarget``."""
        with errors_located(operand=part.grid.name(index)), files.writing_errors(self.path):
            self._write(self._offset(part, index), block.reshape(-1).view(np.uint8).data)

    def checksum(self, part: JobPart, index: int) -> int:
        """The CRC-32C of a block as it is in the file; see ``JobTarget``."""
        assert self._reader is not None
        return crc32c(self._reader.bytes_at(self._offset(part, index), part.bytes_of(index)))

    def _offset(self, part: JobPart, index: int) -> int:
        begin = tuple(each.start for each in part.grid[index])
        start = int(np.ravel_multi_index(begin, part.grid.shape)) if begin else 0
        return self._offsets[part.name] + start * part.call.result_type.storage.itemsize

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
        files.prepare(self._descriptor, self._resolved)
        self.close()
        self._folder.publish(files.STAGED, str(self._resolved))
        self.journal.end()
        sync_folder(str(self._resolved.parent))

    def close(self) -> None:
        """Close the file."""
        self._reader = None
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
