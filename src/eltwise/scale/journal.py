"""The journal of a job: who writes a target, what the job is, and which blocks are done.

It lies beside the target, is locked while a process works on it, and is removed with the last block. Its first line
says what the job is; every other line is a block that is done, written after its elements.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from threading import Lock
from typing import Any

from eltwise.core.errors import FileFormatError
from eltwise.formats import files

_LOCKED_BYTE = 1 << 40


class Journal:
    """An open and locked journal.

    Attributes:
        done: for each block that is done, the number that was counted in it.
    """

    def __init__(self, target: Path, identity: dict[str, Any]) -> None:
        resolved = Path(os.path.realpath(target))
        self.path = resolved.parent / f".{resolved.name}.eltwise"
        self.target = target
        self.done: dict[int, int] = {}
        self._lock = Lock()
        try:
            self._file = self.path.open("a+b", buffering=0)
        except OSError as error:
            raise files.unwritable(self.path, error) from None
        if not _locked(self._file.fileno()) or not self._is_still_there():
            self.close()
            words = "another process writes this target"
            raise FileFormatError(words, where=str(target), hint="wait until it is done")
        self._file.seek(0)
        lines = self._file.readall().split(b"\n")[:-1]  # A line that was cut off does not count.
        if lines:
            self._resume(lines, identity)
        else:
            self._file.truncate(0)
            self._append(json.dumps(identity).encode())

    def _is_still_there(self) -> bool:
        try:
            return os.path.samestat(os.fstat(self._file.fileno()), self.path.stat())
        except OSError:
            return False

    def _resume(self, lines: list[bytes], identity: dict[str, Any]) -> None:
        try:
            begun = json.loads(lines[0])
            for line in lines[1:]:
                number, counted = map(int, line.split())
                self.done[number] = counted
        except (ValueError, TypeError):
            begun = None
        if begun != json.loads(json.dumps(identity)):
            self.close()
            raise FileFormatError(
                "another job on this target was begun and not finished, or its operands were changed",
                where=str(self.target),
                hint=f"run that one again, or delete {self.path} and begin anew",
            )
        self._begun = len(lines[0]) + 1
        self._file.truncate(sum(len(line) + 1 for line in lines))

    def forget(self) -> None:
        """Begin anew: what was written is not there."""
        self._file.truncate(self._begun)
        self.done.clear()

    def add(self, number: int, counted: int) -> None:
        """Note that a block is done."""
        with self._lock:
            self._append(f"{number} {counted}".encode())
            self.done[number] = counted

    def _append(self, line: bytes) -> None:
        try:
            self._file.write(line + b"\n")
        except OSError as error:
            raise files.unwritable(self.path, error) from None

    def remove(self) -> None:
        """Remove it: the job is done."""
        self.path.unlink(missing_ok=True)

    def close(self) -> None:
        """Let other processes take it."""
        self._file.close()


def _locked(descriptor: int) -> bool:
    """Lock a file as long as its descriptor is open; whether that was possible."""
    try:
        if sys.platform == "win32":
            import msvcrt

            os.lseek(descriptor, _LOCKED_BYTE, os.SEEK_SET)
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
