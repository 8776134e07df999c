"""The journal of a job: what the job is, and which blocks of its target are done.

Its first line says what the job is, in digests. Every other line is a block that is done, written after its elements:
its number, what was counted in it, the CRC-32C of its elements, and the CRC-32C of the line before that. A journal is
never trusted further than to say which blocks are worth reading again.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from threading import Lock

from eltwise.core.errors import FileFormatError, shown
from eltwise.core.staging import ENDING, Staging, in_the_way
from eltwise.formats import files
from eltwise.scale.checksum import crc32c
from eltwise.scale.journal_lines import KIND, NAME, FileLines, Lines, RemoteLines

_LINE = re.compile(rb"((0|[1-9]\d{0,17}) (0|[1-9]\d{0,17}) ([0-9a-f]{8})) ([0-9a-f]{8})", re.ASCII)
_LOCKED_BYTE = 1 << 40


@dataclass(frozen=True)
class Entry:
    """A block that is done.

    Attributes:
        counted: how many of its elements were counted.
        checksum: the CRC-32C of its elements in C order.
    """

    counted: int
    checksum: int


@dataclass(frozen=True)
class JobIdentity:
    """What a job is.

    Attributes:
        computation: a digest of what is computed of which operands, and in which blocks; with another one it is another
            job.
        states: a digest of the state of each input's files; with another one it is the same job, begun anew.
        texts: the path or URL of each input, for messages.
    """

    computation: str
    states: tuple[str, ...]
    texts: tuple[str, ...]

    def text(self) -> str:
        """The first line of a journal."""
        return " ".join((KIND, self.computation, *self.states))

    def changed(self, text: str) -> tuple[str, ...]:
        """The inputs that were others when a first line was written.

        Raises:
            FileFormatError: for the first line of another job.
        """
        kind, computation, *states = *text.split(" "), "", ""
        if (kind, computation) != (KIND, self.computation) or len(states) != len(self.states) + 2:
            raise FileFormatError("another job on this target was begun and not finished")
        return tuple(name for name, a, b in zip(self.texts, states, self.states, strict=False) if a != b)


class Journal:
    """An open journal.

    Args:
        target: what the job writes, for errors.
        identity: what the job is.
        blocks: how many blocks it has.
        lines: where the lines are.
        where: what to delete to begin anew, for errors.

    Attributes:
        identity: what the job is.
        done: the blocks that are done.
        changed: the inputs that changed since the job was begun, so that none of its blocks is used.

    Raises:
        FileFormatError: for the journal of another job, and for one that was not written by this package.
    """

    def __init__(self, target: str, identity: JobIdentity, blocks: int, lines: Lines, where: str) -> None:
        self.done: dict[int, Entry] = {}
        self.changed: tuple[str, ...] = ()
        self._target, self.identity, self._blocks, self._lines, self._where = target, identity, blocks, lines, where
        self._lock = Lock()
        entries = lines.read()
        first = next(entries, b"").decode("ascii", "replace")
        if first and first != identity.text():
            self.changed = self._changed(first)
        if not first or self.changed:
            self.forget()
            return
        for line in entries:
            number, entry = self._entry(line)
            self.done[number] = entry

    def _changed(self, first: str) -> tuple[str, ...]:
        try:
            return self.identity.changed(first)
        except FileFormatError as error:
            error.hint = f"run that one again, or delete {self._where} and begin anew"
            raise error.located(where=self._target) from None

    def _entry(self, line: bytes) -> tuple[int, Entry]:
        match = _LINE.fullmatch(line)
        if match is None or crc32c(match[1]) != int(match[5], 16) or int(match[2]) >= self._blocks:
            raise FileFormatError(
                "the journal of the unfinished job names a block that the result does not have, or is damaged",
                where=self._target,
                got=shown(line.decode("ascii", "replace"), 60),
                hint=f"delete {self._where} and begin anew",
            )
        return int(match[2]), Entry(int(match[3]), int(match[4], 16))

    def forget(self) -> None:
        """Begin anew: what was written is not there."""
        self._lines.clear()
        self._lines.append(self.identity.text().encode())
        self.done.clear()

    def add(self, number: int, entry: Entry) -> None:
        """Note that a block is done."""
        line = f"{number} {entry.counted} {entry.checksum:08x}".encode()
        with self._lock:
            self._lines.append(line + b" %08x" % crc32c(line))
            self.done[number] = entry

    def end(self) -> None:
        """Note that nothing of it will be gone on with: the job is done, or what was written is worth nothing."""
        self.done.clear()


def checksum_of(checksums: Iterable[int]) -> int:
    """One CRC-32C of those of all blocks in their order."""
    total = 0
    for each in checksums:
        total = crc32c(each.to_bytes(4, "little"), total)
    return total


def open_journal(stack: ExitStack, target: Path, identity: JobIdentity, blocks: int) -> tuple[Staging, Journal]:
    """Open and lock the folder in which a target is written, and the journal in it.

    Args:
        stack: closes both; where no block is done, nothing of them stays.
        target: what is written.
        identity: what the job is.
        blocks: how many blocks it has.

    Raises:
        FileFormatError: where another process writes the target, another job has begun it, or something that is not of
            this package lies where the folder is.
    """
    folder = Staging.at(str(files.unfollowed(target)))
    stack.callback(folder.leave)
    names = folder.names()
    if set(names) - {NAME, files.STAGED} or (names and NAME not in names):
        raise in_the_way(folder.path, "a folder that holds " + ", ".join(names[:4]))
    descriptor = folder.open(NAME)
    lines = FileLines(descriptor)
    stack.callback(lines.close)
    if not _locked(descriptor) or not folder.has(NAME, descriptor):
        raise FileFormatError("another process writes this target", where=str(target), hint="wait until it is done")
    if not lines.is_ours(is_alone=files.STAGED not in names):
        raise in_the_way(folder.of(NAME), "a file that is no journal")
    try:
        journal = Journal(str(target), identity, blocks, lines, folder.path)
    except OSError:  # The disk is full.
        if not names:
            lines.close()
            folder.discard(NAME)
        raise
    stack.callback(_clean, folder, journal, lines)
    return folder, journal


def open_remote_journal(stack: ExitStack, url: str, identity: JobIdentity, blocks: int) -> Journal:
    """Open the journal of a target behind a URL; see ``open_journal``."""
    lines = RemoteLines(url)
    stack.callback(lines.close)
    journal = Journal(url, identity, blocks, lines, url)
    stack.callback(lambda: None if journal.done else lines.clear())
    return journal


def _clean(folder: Staging, journal: Journal, lines: FileLines) -> None:
    """Remove what nobody can go on with."""
    if journal.done:
        return
    try:
        folder.discard(files.STAGED)
    finally:
        if sys.platform == "win32":  # It removes no open file.
            lines.close()
        folder.discard(NAME)


def remove_journal(target: Path, identity: JobIdentity, blocks: int) -> None:
    """Remove what a job has left that ended between its last block and its last call of the system."""
    if os.path.lexists(target.with_name(f".{target.name}{ENDING}")):
        with contextlib.suppress(FileFormatError), ExitStack() as stack:  # It is of another job.
            open_journal(stack, target, identity, blocks)[1].end()


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
