"""Where the lines of a journal are kept: in a file that a process locks, or in objects below a URL."""

from __future__ import annotations

import contextlib
import io
import os
import time
from collections.abc import Iterator
from typing import TypeAlias

from eltwise.core.errors import FileFormatError
from eltwise.core.foreign import reason_of
from eltwise.core.staging import ENDING

NAME = "journal"
"""What it is called in the folder of a job."""

KIND = "eltwise-job-2"
"""How the first line of a journal begins."""

_LONGEST_FIRST, _LONGEST_LINE = 1 << 20, 1 << 7


class FileLines:
    """Lines in the file ``journal`` of a folder of our own; locked as long as it is open."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def read(self) -> Iterator[bytes]:
        """All lines, without their ends; what follows the last whole line is cut off."""
        os.lseek(self._descriptor, 0, os.SEEK_SET)
        whole, longest = 0, _LONGEST_FIRST
        with io.BufferedReader(io.FileIO(self._descriptor, closefd=False)) as reader:
            while (line := reader.readline(longest)).endswith(b"\n"):
                yield line[:-1]
                whole, longest = whole + len(line), _LONGEST_LINE
        if line.strip(b"\0") and len(line) == longest:
            yield line  # Longer than any line of ours.
        os.ftruncate(self._descriptor, whole)
        os.lseek(self._descriptor, whole, os.SEEK_SET)

    def is_ours(self, *, is_alone: bool) -> bool:
        """Whether this package wrote the file: its first line was begun, or it is empty and nothing lies beside it."""
        os.lseek(self._descriptor, 0, os.SEEK_SET)
        with io.FileIO(self._descriptor, closefd=False) as reader:
            begin = reader.read(len(KIND))
        return begin == KIND.encode()[: len(begin)] and bool(begin or is_alone)

    def append(self, line: bytes) -> None:
        """Keep another line."""
        data = memoryview(line + b"\n")
        while data:
            data = data[os.write(self._descriptor, data) :]

    def clear(self) -> None:
        """Remove all lines."""
        os.lseek(self._descriptor, 0, os.SEEK_SET)
        os.ftruncate(self._descriptor, 0)

    def close(self) -> None:
        """Close the file."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


class RemoteLines:
    """Lines below the URL of a target, in objects of some lines each, as object stores append to none.

    Raises:
        FileFormatError: where the file system of the URL does not read, write or remove them.
    """

    _MOST, _SECONDS = 256, 2.0

    def __init__(self, url: str) -> None:
        from fsspec.core import url_to_fs

        self._url, (self._system, root) = url, url_to_fs(url)
        self._folder = f"{root.rstrip('/')}/.{NAME}{ENDING}"
        self._number, self._open, self._since = 0, list[bytes](), time.monotonic()

    def read(self) -> Iterator[bytes]:
        """All lines, without their ends."""
        with _foreign(self._url):
            names = self._names()
            self._number = 1 + max((int(name.rpartition("/")[2]) for name in names), default=-1)
            lines = [line for name in names for line in self._system.cat_file(name).split(b"\n")[:-1]]
        yield from lines

    def _names(self) -> list[str]:
        self._system.invalidate_cache()
        with contextlib.suppress(FileNotFoundError):
            return sorted(name for name in self._system.find(self._folder) if name.rpartition("/")[2].isdecimal())
        return []

    def append(self, line: bytes) -> None:
        """Keep another line; those of the last seconds are lost with the process."""
        self._open.append(line + b"\n")
        if len(self._open) >= self._MOST or time.monotonic() - self._since > self._SECONDS:
            self._flush()

    def _flush(self) -> None:
        with _foreign(self._url):
            if self._open:
                self._system.pipe_file(f"{self._folder}/{self._number:010d}", b"".join(self._open))
        self._number, self._open, self._since = self._number + 1, [], time.monotonic()

    def clear(self) -> None:
        """Remove all lines."""
        with _foreign(self._url):
            for name in self._names():
                self._system.rm_file(name)
        self._number, self._open = 0, []

    def close(self) -> None:
        """Keep what is not kept yet."""
        self._flush()


Lines: TypeAlias = FileLines | RemoteLines
"""Where the lines of a journal are kept."""


@contextlib.contextmanager
def _foreign(url: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # noqa: BLE001 - file systems raise what they like
        problem = f"the journal of the job cannot be kept there ({reason_of(error)})"
        raise FileFormatError(problem, where=url) from None
