"""Compiled kernels on disk, so that a new process does not compile them again.

``ELTWISE_CACHE`` names the folder, or is ``off``; by default it is ``eltwise`` in the user's cache folder. A file holds
object code behind its own checksum: what does not match is not used. Files are written beside and renamed, so that
several processes may share the folder. A cache that cannot be read or written is no error, only slower.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from pathlib import Path

LARGEST_FOLDER = 64 << 20
"""How many bytes the folder may hold; beyond that the files that were used longest ago go."""

_DIGEST_BYTES = hashlib.sha256().digest_size
_ENDING = ".object"


def folder() -> Path | None:
    """The folder that is used, None where the cache is off."""
    wanted = os.environ.get("ELTWISE_CACHE", "").strip()
    if wanted.lower() == "off":
        return None
    if wanted:
        return Path(wanted)
    home = os.environ.get("XDG_CACHE_HOME", "")
    try:
        return (Path(home) if home else Path.home() / ".cache") / "eltwise"
    except RuntimeError:  # There is no home folder.
        return None


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
        content = file.read_bytes()
        os.utime(file)
    except OSError:
        return None
    digest, code = content[:_DIGEST_BYTES], content[_DIGEST_BYTES:]
    return code if code and hashlib.sha256(code).digest() == digest else None


def store(key: str, code: bytes) -> None:
    """Keep object code, and let go of what was used longest ago where the folder gets too large."""
    place = folder()
    if place is None:
        return
    with contextlib.suppress(OSError):
        place.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor, beside = tempfile.mkstemp(dir=place, suffix=".part")
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(hashlib.sha256(code).digest() + code)
            Path(beside).replace(place / f"{key}{_ENDING}")
        finally:
            Path(beside).unlink(missing_ok=True)
        _bound(place)


def _bound(place: Path) -> None:
    entries = [(file, file.stat()) for file in place.glob(f"*{_ENDING}")]
    total = sum(status.st_size for _file, status in entries)
    for file, status in sorted(entries, key=lambda entry: entry[1].st_mtime):
        if total <= LARGEST_FOLDER:
            return
        file.unlink(missing_ok=True)
        total -= status.st_size
