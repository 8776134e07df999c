"""Files as bytes: read with a sentence for every failure, written beside and renamed."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from eltwise.core.errors import FileFormatError

Buffer = bytes | bytearray | memoryview
Chunk = Buffer | int
"""A part of a file's content; a number is so many zero bytes, left as a hole."""

LARGEST_PROTOBUF = 2**31 - 1
"""The largest protobuf message, in bytes."""

_SMALLEST_TAG = 8
"""Less has the field number 0, which there is not."""


def read_bytes(path: Path, limit: int | None = None) -> bytes:
    """Read a whole file.

    Raises:
        FileFormatError: where it does not exist, cannot be read, or is longer than ``limit`` bytes.
    """
    try:
        check_regular(path)
        size = path.stat().st_size
        if limit is not None and size > limit:
            raise FileFormatError("the file is too large", where=str(path), got=f"{size} bytes", allowed=f"{limit}")
        return path.read_bytes()
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from None


def read_message(path: Path) -> bytes:
    """Read a file that holds one protobuf message; where its first byte begins none the rest is not read.

    Raises:
        FileFormatError: where it does not exist, cannot be read, or is too large.
    """
    check_regular(path)
    try:
        with path.open("rb") as file:
            first = file.read(1)
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from None
    if first and first[0] < _SMALLEST_TAG:
        raise FileFormatError("this is no protobuf message", where=str(path), got=f"a first byte of {first[0]}")
    return read_bytes(path, LARGEST_PROTOBUF)


def check_regular(path: Path) -> None:
    """Refuse what is there but no file: a folder, and a pipe or device, which might never end.

    Raises:
        FileFormatError: naming it.
    """
    if path.exists() and not path.is_file():
        raise FileFormatError("this is a folder, a pipe or a device, not a file", where=str(path))


def unreadable(path: Path, error: OSError | ValueError) -> FileFormatError:
    """Make the error for a file that the operating system does not give."""
    if isinstance(error, FileNotFoundError):
        return FileFormatError("there is no such file", where=str(path))
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return FileFormatError(f"the file cannot be read ({reason})", where=str(path))


def write_atomically(path: Path, chunks: Iterable[Chunk]) -> None:
    """Write a file beside its place and rename it: whatever happens, the place holds the old file or the whole new one.

    Raises:
        FileFormatError: where the folder does not exist or cannot be written.
    """
    write_together([(path, chunks)])


def write_together(contents: Sequence[tuple[Path, Iterable[Chunk]]]) -> None:
    """Write a file, the last one, and its data: all of them beside their places first, then rename each, in order.

    A link in the file's place is followed, one in the data's place is replaced.

    Raises:
        FileFormatError: where a folder does not exist or cannot be written, or data is there and no file that it
            belongs to. Where that shows before the first file is renamed, as nearly always, no place has changed.
    """
    staged: list[tuple[Path, Path]] = []
    target = place = contents[-1][0]
    try:
        for path, chunks in contents:
            check_writable(path)
            if path != target and os.path.lexists(path) and not target.exists():
                raise FileFormatError(
                    f"the model's data would replace {path.name}, and there is no {target.name} that it belongs to",
                    where=str(target),
                    hint="choose another name",
                )
            place = Path(os.path.realpath(path)) if path == target else path
            descriptor, beside = tempfile.mkstemp(dir=place.parent, prefix=f".{place.name[:40]}.", suffix=".part")
            staged.append((Path(beside), place))
            with os.fdopen(descriptor, "wb") as file:
                for chunk in chunks:
                    if isinstance(chunk, int):
                        file.seek(chunk, os.SEEK_CUR)
                    else:
                        file.write(chunk)
                file.truncate()
            Path(beside).chmod(_mode(place))
        for written, place in staged:
            written.replace(place)
    except OSError as error:
        raise _unwritable(place, error) from None
    finally:
        for written, _place in staged:
            written.unlink(missing_ok=True)


def _mode(place: Path) -> int:
    """The mode of the file that is replaced, or of a new one; what we write is nothing to execute."""
    return (place.lstat().st_mode if place.is_file() and not place.is_symlink() else ~_umask()) & 0o666


def check_writable(path: Path) -> None:
    """Refuse a place that no file can be written to.

    Raises:
        FileFormatError: where its folder does not exist, or something that is no file is there.
    """
    try:
        is_file = stat.S_ISREG(path.stat().st_mode)
    except (FileNotFoundError, NotADirectoryError):
        is_file = True  # It can become one.
    except (OSError, ValueError) as error:
        raise _unwritable(path, error) from None
    if not is_file:
        raise FileFormatError("this is a folder or a device, not a file", where=str(path))
    if not path.parent.is_dir():
        raise FileFormatError(
            "the output's folder does not exist", where=str(path), got=str(path.parent), hint="make the folder first"
        )


def _unwritable(path: Path, error: OSError | ValueError) -> FileFormatError:
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return FileFormatError(f"the file cannot be written ({reason})", where=str(path))


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask
