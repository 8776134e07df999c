"""Compiled kernels on disk, so that a new process does not compile them again.

``ELTWISE_CACHE`` names the folder, or is ``off``; by default it is ``eltwise`` in the user's cache folder. A file holds
a checksum, the key, which is all that the code was made from, and the code: what does not match is not used. Files are
written beside and renamed, so that several processes may share the folder. A cache that cannot be read or written is no
error, only slower.

What is read there is run, and anyone can compute a checksum. Therefore folder and files must belong to the user, and
nobody else may write them or rename a folder above them; links are not followed. Windows says no such thing of files:
there the user's own folders are trusted, and so is ``ELTWISE_CACHE``.
"""

from __future__ import annotations

import contextlib
import os
import stat
import warnings
import zlib
from functools import cache
from itertools import accumulate

COMPILER = "258ad48b188f4658"
"""A digest of the sources of ``jit`` and ``linking``, part of every key: they decide what code a text becomes.

It is written down because reading the sources would slow down every start; ``tests/kernels/test_disk_cache.py`` fails
where it is not theirs, and says what it must be."""

LARGEST_FOLDER = 256 << 20
"""How many bytes the folder may hold; beyond that the files that were used longest ago go."""

WRITES_UNTIL_PRUNED = 64
"""After so many writes, on average, the folder is searched, which takes long where it holds thousands of files."""

_BLOCK_BYTES = 4096
_HEAD_BYTES = 8
"""The checksum of what follows and the length of the key, of 4 bytes each."""

_ENDING = ".object"


def folder() -> str | None:
    """The folder that is used, which is made; None where the cache is off or the folder cannot be trusted."""
    try:
        path = _requested()
        if path is None:
            return None
        above, name = os.path.split(os.path.abspath(path))
        folder = os.path.join(os.path.realpath(above), name)
        if not os.path.lexists(folder):
            os.makedirs(os.path.dirname(folder), exist_ok=True)
            with contextlib.suppress(FileExistsError):  # Another process was faster.
                os.mkdir(folder, mode=0o700)
        status = os.lstat(folder)
        is_safe = stat.S_ISDIR(status.st_mode) and _is_ours(status) and all(map(_keeps, _parents(folder)))
    except (OSError, ValueError):
        return None
    if not is_safe:
        _warn(folder)
    return folder if is_safe else None


def _requested() -> str | None:
    requested = os.environ.get("ELTWISE_CACHE", "").strip()
    if requested.lower() == "off":
        return None
    if requested:
        return requested
    home = os.environ.get("XDG_CACHE_HOME", "") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(home, "eltwise") if os.path.isabs(home) else None


def _parents(path: str) -> list[str]:
    parents = [os.path.dirname(path)]
    while parents[-1] != os.path.dirname(parents[-1]):
        parents.append(os.path.dirname(parents[-1]))
    return parents


def _is_ours(status: os.stat_result) -> bool:
    """Whether a file or folder is the user's, and nobody else may write it."""
    return not hasattr(os, "getuid") or (status.st_uid == os.getuid() and not status.st_mode & 0o022)


def _keeps(parent: str) -> bool:
    """Whether nobody but the user and root can put another folder in the place of one in here.

    A group with the number of the owner is taken for that user's own, as many systems make one for each user.
    """
    if not hasattr(os, "getuid"):
        return True
    status = os.lstat(parent)
    others = 0o002 if status.st_gid == status.st_uid else 0o022
    return status.st_uid in (0, os.getuid()) and bool(status.st_mode & stat.S_ISVTX or not status.st_mode & others)


@cache
def _warn(path: str) -> None:
    warnings.warn(
        f"{path}: the kernel cache is not used, since it is a link, or others may write it or a folder above it; "
        "set ELTWISE_CACHE to a folder that only you may write, or to off",
        RuntimeWarning,
        stacklevel=2,
    )


def name_of(key: bytes) -> str:
    """The name of the file for what was made from a key."""
    return f"{zlib.crc32(key):08x}{zlib.adler32(key):08x}{_ENDING}"


def load(key: bytes) -> bytes | None:
    """Read object code; None where there is none, or it is not what was written."""
    path = folder()
    if path is None:
        return None
    file = os.path.join(path, name_of(key))
    try:
        with open(file, "rb", opener=_without_links) as opened:
            if not _is_ours(os.fstat(opened.fileno())):
                return None
            content = opened.read()
        os.utime(file)
    except OSError:
        return None
    head = _head(key, content[_HEAD_BYTES + len(key) :]) + key
    return content[len(head) :] or None if content.startswith(head) else None


def _head(key: bytes, code: bytes) -> bytes:
    return zlib.crc32(code, zlib.crc32(key)).to_bytes(4, "little") + len(key).to_bytes(4, "little")


def _without_links(path: str, flags: int) -> int:
    """Open a file, but neither through a link nor, as of a pipe, by waiting for its writer."""
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))


def store(key: bytes, code: bytes) -> None:
    """Keep object code, and now and then let go of what was used longest ago where the folder got too large."""
    from eltwise.core.staging import Staging  # What is only read needs it not.

    path = folder()
    if path is None:
        return
    with contextlib.suppress(OSError):
        target = os.path.join(path, name_of(key))
        staging = Staging.made(target)
        try:
            with os.fdopen(staging.open("object", is_new=True), "wb") as file:
                file.write(_head(key, code) + key + code)
            staging.publish("object", target)
        finally:
            staging.remove()
        if zlib.crc32(key) % WRITES_UNTIL_PRUNED == 0:
            _prune(path)


def _prune(path: str) -> None:
    with os.scandir(path) as entries:  # Another process may remove a file meanwhile, which ends this.
        files = [(entry, entry.stat()) for entry in entries if entry.name.endswith(_ENDING)]
    files.sort(key=lambda each: each[1].st_mtime, reverse=True)
    sizes = accumulate(-(-status.st_size // _BLOCK_BYTES) * _BLOCK_BYTES for _entry, status in files)
    for (entry, _status), total in zip(files, sizes, strict=True):
        if total > LARGEST_FOLDER:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(entry.path)
