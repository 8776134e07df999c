"""Files as bytes: read with a sentence for every failure, written beside and renamed."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

from eltwise.errors import FileFormatError

Buffer = bytes | bytearray | memoryview

LARGEST_PROTOBUF = 2**31 - 1
"""The largest protobuf message, in bytes."""


def read_bytes(path: Path, limit: int | None = None) -> bytes:
    """Read a whole file.

    Raises:
        FileFormatError: where it does not exist, cannot be read, or is longer than ``limit`` bytes.
    """
    try:
        if path.is_dir():
            raise FileFormatError("this is a folder, not a file", where=str(path))
        size = path.stat().st_size
        if limit is not None and size > limit:
            raise FileFormatError("the file is too large", where=str(path), got=f"{size} bytes", allowed=f"{limit}")
        return path.read_bytes()
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from None


def unreadable(path: Path, error: OSError | ValueError) -> FileFormatError:
    """Make the error for a file that the operating system does not give."""
    if isinstance(error, FileNotFoundError):
        return FileFormatError("there is no such file", where=str(path))
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return FileFormatError(f"the file cannot be read ({reason})", where=str(path))


def write_atomically(path: Path, chunks: Iterable[Buffer]) -> None:
    """Write a file beside its place and rename it: whatever happens, the place holds the old file or the whole new one.

    Raises:
        FileFormatError: where the folder does not exist or cannot be written.
    """
    path = path.resolve() if path.is_symlink() else path
    folder = path.parent
    if path.exists() and not path.is_file():
        raise FileFormatError("this is a folder or a device, not a file", where=str(path))
    if not folder.is_dir():
        raise no_folder(path)
    try:
        descriptor, beside = tempfile.mkstemp(dir=folder, prefix=f".{path.name[:80]}.", suffix=".part")
    except OSError as error:
        raise _unwritable(path, error) from None
    try:
        with os.fdopen(descriptor, "wb") as file:
            for chunk in chunks:
                file.write(chunk)
        Path(beside).chmod(path.stat().st_mode & 0o7777 if path.exists() else 0o666 & ~_umask())
        Path(beside).replace(path)
    except BaseException as error:
        Path(beside).unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise _unwritable(path, error) from None
        raise


def no_folder(path: Path) -> FileFormatError:
    """Make the error for an output whose folder does not exist."""
    return FileFormatError(
        "the output's folder does not exist", where=str(path), got=str(path.parent), hint="make the folder first"
    )


def _unwritable(path: Path, error: OSError) -> FileFormatError:
    return FileFormatError(f"the file cannot be written ({error.strerror or error})", where=str(path))


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
