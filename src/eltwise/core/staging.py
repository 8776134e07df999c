"""Folders that only this user can use, in which files are written before they are renamed to where they belong.

What lies beside a target may be anything: a link, a pipe, a file of the user. Therefore nothing is written under a name
that others can foresee, except in a folder that was made exclusively, belongs to the user and is closed to all others;
in it names are opened relative to the folder, and links are not followed.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from typing import Self

from eltwise.core.errors import FileFormatError

ENDING = ".eltwise"
"""How the name of each such folder ends."""

_MODE = 0o700
_LONGEST_NAME = 40
_TRIES = 16
_HAS_OWNERS = hasattr(os, "getuid")
_IS_RELATIVE = {os.open, os.stat, os.unlink, os.rename, os.rmdir} <= os.supports_dir_fd and hasattr(os, "O_DIRECTORY")
"""Whether the system opens names relative to an open folder; Windows does not."""

_FLAGS = getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0)


class Staging:
    """An open folder of this user alone.

    Args:
        path: of the folder, which exists; its parents are resolved.

    Raises:
        FileFormatError: for what is not a folder, is a link, belongs to another user, or is open to others.
        OSError: where it cannot be opened.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._descriptor, self._maker = -1, 0
        status = os.lstat(path)
        _check_private(path, status)
        if _IS_RELATIVE:
            self._descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | _FLAGS)
            try:
                is_same = os.path.samestat(status, os.fstat(self._descriptor))
            except OSError:
                is_same = False
            if not is_same:
                self.close()
                raise FileNotFoundError(errno.ENOENT, "the folder was replaced while it was opened", path)

    @classmethod
    def made(cls, target: str) -> Self:
        """Make a folder beside a path, under a name that nobody can foresee."""
        parent, name = os.path.split(target)
        for _ in range(_TRIES):
            path = os.path.join(parent, f".{name[:_LONGEST_NAME]}.{os.urandom(8).hex()}{ENDING}")
            try:
                os.mkdir(path, _MODE)
                staging = cls(path)
                staging._maker = os.getpid()
                return staging
            except FileExistsError:
                continue
            except BaseException:  # A signal may come as soon as it is made.
                with contextlib.suppress(OSError):
                    os.rmdir(path)
                raise
        raise FileExistsError(errno.EEXIST, "no name for a temporary folder is free", parent)

    @classmethod
    def at(cls, target: str) -> Self:
        """Open the one folder of a path, ``.NAME.eltwise`` beside it, which is made where it is missing."""
        parent, name = os.path.split(target)
        path = os.path.join(parent, f".{name}{ENDING}")
        for _ in range(_TRIES):  # Another process may remove it while it is opened.
            with contextlib.suppress(FileExistsError):
                os.mkdir(path, _MODE)
            with contextlib.suppress(FileNotFoundError):
                return cls(path)
        raise FileNotFoundError(errno.ENOENT, "a folder is removed again and again", path)

    def __del__(self) -> None:
        """Remove a folder that was made and that, as a signal came, nobody got; a forked process removes none."""
        if getattr(self, "_maker", 0) == os.getpid():
            with contextlib.suppress(OSError):
                self.remove()

    def names(self) -> list[str]:
        """What the folder holds."""
        return sorted(os.listdir(self._descriptor if _IS_RELATIVE else self.path))

    def open(self, name: str, *, is_new: bool = False) -> int:
        """Open a file to read and write it, which is made where it is missing.

        Args:
            name: of the file in this folder.
            is_new: whether it must not exist.

        Returns:
            The descriptor, which the caller closes.

        Raises:
            FileFormatError: for what is not a file of this folder alone.
            OSError: where it cannot be opened.
        """
        folder, at = self._at(name)
        if not is_new:
            with contextlib.suppress(FileNotFoundError):
                _check_plain(self.of(name), os.stat(folder, follow_symlinks=False, **at))
        flags = os.O_RDWR | os.O_CREAT | _FLAGS | (os.O_EXCL if is_new else 0)
        return os.open(folder, flags, 0o600, **at)

    def has(self, name: str, descriptor: int) -> bool:
        """Whether an open file is still the one of a name."""
        folder, at = self._at(name)
        try:
            return os.path.samestat(os.fstat(descriptor), os.stat(folder, follow_symlinks=False, **at))
        except FileNotFoundError:
            return False

    def check_folder(self, name: str) -> None:
        """Refuse what lies at a name where only a folder of this package may lie.

        Raises:
            FileFormatError: for a link, a file, a pipe or a device.
        """
        folder, at = self._at(name)
        with contextlib.suppress(FileNotFoundError):
            if not stat.S_ISDIR(os.stat(folder, follow_symlinks=False, **at).st_mode):
                raise in_the_way(self.of(name), "a link or a file")

    def of(self, name: str) -> str:
        """The path of a name in this folder."""
        return os.path.join(self.path, name)

    def publish(self, name: str, target: str) -> None:
        """Rename a file or folder to where it belongs, in the place of what is there, as ``os.replace`` does.

        The folder in this one in which it lay goes if it is empty.
        """
        folder, at = self._at(name)
        os.replace(folder, target, **{f"src_{key}": value for key, value in at.items()})
        around = os.path.dirname(name)
        if around:
            folder, at = self._at(around)
            with contextlib.suppress(OSError):
                os.rmdir(folder, **at)

    def discard(self, name: str) -> None:
        """Remove a file, or a folder with all that is in it, if it is there."""
        folder, at = self._at(name)
        with contextlib.suppress(FileNotFoundError):
            if not stat.S_ISDIR(os.stat(folder, follow_symlinks=False, **at).st_mode):
                os.unlink(folder, **at)
                return
            import shutil  # Few folders hold others.

            shutil.rmtree(self.of(name))

    def remove(self) -> None:
        """Remove the folder with all that is in it."""
        for name in self.names():
            self.discard(name)
        self.leave()

    def leave(self) -> None:
        """Remove the folder if it is empty."""
        with contextlib.suppress(OSError):  # Another process has begun in it.
            os.rmdir(self.path)
        self.close()

    def close(self) -> None:
        """Close the folder; what it holds stays."""
        self._maker = 0
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _at(self, name: str) -> tuple[str, dict[str, int]]:
        return (name, {"dir_fd": self._descriptor}) if _IS_RELATIVE else (self.of(name), {})


def is_ours(status: os.stat_result) -> bool:
    """Whether a file or folder belongs to the user; of systems without owners always."""
    return not _HAS_OWNERS or status.st_uid == os.getuid()


def sync_folder(path: str) -> None:
    """Wait until renamed files of a folder are on the disk, where the system can."""
    if _IS_RELATIVE:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _check_private(path: str, status: os.stat_result) -> None:
    if not stat.S_ISDIR(status.st_mode):
        reason = "a link" if stat.S_ISLNK(status.st_mode) else "not a folder"
    elif not is_ours(status):
        reason = "a folder of another user"
    elif _HAS_OWNERS and status.st_mode & 0o077:
        reason = f"a folder that others may use (mode {stat.S_IMODE(status.st_mode):o})"
    else:
        return
    raise in_the_way(path, reason)


def _check_plain(path: str, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        reason = "a link" if stat.S_ISLNK(status.st_mode) else "not a file"
    elif status.st_nlink != 1:
        reason = "a file with a second name"
    elif not is_ours(status):
        reason = "a file of another user"
    else:
        return
    raise in_the_way(path, reason)


def in_the_way(path: str, what: str) -> FileFormatError:
    """Make the error for what lies where this package keeps its own."""
    return FileFormatError(
        "eltwise keeps unfinished work under this name, and what lies there is not its own",
        where=path,
        got=what,
        hint="move it away, or choose another name for the output",
    )
