"""New folders: filled beside their place and renamed, so that they are there whole or not at all."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from eltwise.core.errors import FileFormatError


def check_new_folder(folder: Path) -> None:
    """Refuse a place that no new folder can be made at.

    Raises:
        FileFormatError: where something is there that is no empty folder, or the folder above does not exist.
    """
    place = _place(folder)
    try:
        if place.is_dir() and any(place.iterdir()):
            raise FileFormatError(
                "the folder is not empty", where=str(folder), hint="give one that does not exist yet, or an empty one"
            )
        if place.exists() and not place.is_dir():
            raise FileFormatError("this is a file, not a folder", where=str(folder))
        if not place.parent.is_dir():
            raise FileFormatError(
                "the folder above does not exist",
                where=str(folder),
                got=str(place.parent),
                hint="make that folder first",
            )
    except (OSError, ValueError) as error:
        raise _unwritable(folder, error) from None


@contextmanager
def new_folder(folder: Path) -> Iterator[Path]:
    """Give a folder to fill; when all is well in the end it is renamed to its place, else nothing is left of it.

    Raises:
        FileFormatError: where the place is taken, or something in it cannot be written.
    """
    check_new_folder(folder)
    place = _place(folder)
    beside = place.parent / f".{place.name[:40]}.{secrets.token_hex(4)}.part"
    try:
        beside.mkdir()
        yield beside
        if place.is_dir():
            place.rmdir()
        beside.rename(place)
    except OSError as error:
        raise _unwritable(folder, error) from None
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def write_into(folder: Path, name: str, data: bytes) -> None:
    """Write a file into a folder that is being filled; ``name`` may hold folders of its own."""
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data)


def _place(folder: Path) -> Path:
    return Path(os.path.realpath(folder))


def _unwritable(folder: Path, error: OSError | ValueError) -> FileFormatError:
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return FileFormatError(f"the folder cannot be written ({reason})", where=str(folder))
