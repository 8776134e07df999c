"""Compiled kernels on disk, so that a new process does not compile them again.

``ELTWISE_CACHE`` names the folder, or is ``off``; by default it is ``eltwise`` in the user's cache folder. A file holds
object code behind its own checksum: what does not match is not used. Files are written beside and renamed, so that
several processes may share the folder. A cache that cannot be read or written is no error, only slower.

What is read there is run, and anyone can compute a checksum. Therefore folder and files must belong to the user, and
nobody else may write them or rename a folder above them; links are not followed. Windows says no such thing of files:
there the user's own folders are trusted, and so is ``ELTWISE_CACHE``.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import tempfile
import warnings
from functools import cache
from itertools import accumulate
from pathlib import Path
from random import random

LARGEST_FOLDER = 64 << 20
"""How many bytes the folder may hold; beyond that the files that were used longest ago go."""

PRUNED_SHARE = 1 / 64
"""After which share of the writes the folder is searched, which takes long where it holds thousands of files."""

_BLOCK_BYTES = 4096
_DIGEST_BYTES = hashlib.sha256().digest_size
_ENDING = ".object"


def folder() -> Path | None:
    """The folder that is used, which is made; None where the cache is off or the folder cannot be trusted."""
    try:
        place = _wanted()
        if place is None:
            return None
        place = Path(os.path.realpath(place.parent)) / place.name
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        is_safe = stat.S_ISDIR(place.lstat().st_mode) and _is_ours(place.lstat()) and all(map(_keeps, place.parents))
    except (OSError, ValueError, RuntimeError):  # The last where there is no home folder.
        return None
    if not is_safe:
        _warn(place)
    return place if is_safe else None


def _wanted() -> Path | None:
    wanted = os.environ.get("ELTWISE_CACHE", "").strip()
    if wanted.lower() == "off":
        return None
    if wanted:
        return Path(wanted)
    home = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(home) if home else Path.home() / ".cache") / "eltwise"


def _is_ours(status: os.stat_result) -> bool:
    """Whether a file or folder is the user's, and nobody else may write it."""
    return not hasattr(os, "getuid") or (status.st_uid == os.getuid() and not status.st_mode & 0o022)


def _keeps(parent: Path) -> bool:
    """Whether nobody but the user and root can put another folder in the place of one in here.

    A group with the number of the owner is taken for that user's own, as many systems make one for each user.
    """
    if not hasattr(os, "getuid"):
        return True
    status = parent.lstat()
    others = 0o002 if status.st_gid == status.st_uid else 0o022
    return status.st_uid in (0, os.getuid()) and bool(status.st_mode & stat.S_ISVTX or not status.st_mode & others)


@cache
def _warn(place: Path) -> None:
    warnings.warn(
        f"{place}: the kernel cache is not used, since it is a link, or others may write it or a folder above it; "
        "set ELTWISE_CACHE to a folder that only you may write, or to off",
        RuntimeWarning,
        stacklevel=2,
    )


def key_of(*parts: str) -> str:
    """The name of what was made from these texts and from nothing else."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def load(key: str) -> bytes | None:
    """Read object code; None where there is none, or it is not what was written."""
    place = folder()
    if place is None:
        return None
    file = place / f"{key}{_ENDING}"
    try:
        with open(file, "rb", opener=_without_links) as opened:
            if not _is_ours(os.fstat(opened.fileno())):
                return None
            content = opened.read()
        os.utime(file)
    except OSError:
        return None
    digest, code = content[:_DIGEST_BYTES], content[_DIGEST_BYTES:]
    return code if code and _digest(key, code) == digest else None


def _digest(key: str, code: bytes) -> bytes:
    """The checksum of a file; it covers the name, since another kernel's code must not run in this one's place."""
    return hashlib.sha256(key.encode() + code).digest()


def _without_links(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0))


def store(key: str, code: bytes) -> None:
    """Keep object code, and now and then let go of what was used longest ago where the folder got too large."""
    place = folder()
    if place is None:
        return
    with contextlib.suppress(OSError):
        descriptor, beside = tempfile.mkstemp(dir=place, suffix=".part")
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(_digest(key, code) + code)
            Path(beside).replace(place / f"{key}{_ENDING}")
        finally:
            Path(beside).unlink(missing_ok=True)
        if random() < PRUNED_SHARE:  # noqa: S311 - no secret
            _prune(place)


def _prune(place: Path) -> None:
    with os.scandir(place) as entries:  # Another process may remove a file meanwhile, which ends this.
        found = [(entry, entry.stat()) for entry in entries if entry.name.endswith(_ENDING)]
    found.sort(key=lambda each: each[1].st_mtime, reverse=True)
    sizes = accumulate(-(-status.st_size // _BLOCK_BYTES) * _BLOCK_BYTES for _entry, status in found)
    for (entry, _status), total in zip(found, sizes, strict=True):
        if total > LARGEST_FOLDER:
            Path(entry.path).unlink(missing_ok=True)
