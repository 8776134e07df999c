"""External data follows its model into another folder: copied in pieces, holes kept, never read as tensors.

A copy and no link: two models that share a file would change together when one of them is written again.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from onnx import ModelProto, TensorProto

from eltwise.core.errors import FileFormatError
from eltwise.formats.files import check_regular, unreadable
from eltwise.formats.onnx.external import ExternalData
from eltwise.passes.onnx_versions.tensors_held import all_tensors

Progress = Callable[[int, int], None]
"""What is told how many bytes of how many have been copied."""

_PIECE = 1 << 22


@dataclass(frozen=True)
class Carried:
    """A file of external data and the place that it goes to."""

    source: Path
    place: Path


def files_to_carry(model: ModelProto, source: Path, target: Path) -> list[Carried]:
    """List the files of external data that a model needs beside its new place and that are not there.

    Args:
        model: the model.
        source: its file.
        target: the file that it will be written to.

    Raises:
        FileFormatError: where a location is not inside the model's folder or names no file, where another file
            has its place already, and where the model would be written over its own data.
    """
    external = ExternalData(source.parent)
    same_folder = source.parent.resolve() == target.parent.resolve()
    carried = []
    for location in dict.fromkeys(_locations(model)):
        place = target.parent / location
        if place.resolve() == target.resolve():
            raise FileFormatError("the model would be written over its own external data", where=str(target))
        if same_folder:
            continue
        data = external.path_of(location)
        check_regular(data)
        if place.exists() and not _is_same(data, place):
            raise FileFormatError(
                "the model's external data goes beside it, and another file is there",
                where=str(place),
                hint="choose another folder",
            )
        if not place.exists():
            carried.append(Carried(data, place))
    return carried


def _locations(model: ModelProto) -> Iterator[str]:
    """The locations of all tensors in other files, those in attributes and subgraphs too."""
    for tensor in (held.tensor for held in all_tensors(model)):
        if tensor.data_location == TensorProto.EXTERNAL:
            yield next((entry.value for entry in tensor.external_data if entry.key == "location"), "")


def carry(files: list[Carried], progress: Progress | None = None) -> None:
    """Copy files to their places, each beside its place first; where one fails, none of them is left there.

    Raises:
        FileFormatError: where one cannot be read or written.
    """
    total = sum(file.source.stat().st_size for file in files)
    done, placed = 0, []
    try:
        for file in files:
            with _named(file.place):
                file.place.parent.mkdir(parents=True, exist_ok=True)
                descriptor, beside = tempfile.mkstemp(dir=file.place.parent, prefix=".", suffix=".part")
                try:
                    done = _copy(file.source, descriptor, done, total, progress)
                    Path(beside).chmod(file.source.stat().st_mode & 0o777)
                    Path(beside).replace(file.place)
                finally:
                    Path(beside).unlink(missing_ok=True)
            placed.append(file.place)
    except BaseException:
        for place in placed:
            place.unlink(missing_ok=True)
        raise


def discard(files: list[Carried]) -> None:
    """Remove files that were carried for a model that could not be written."""
    for file in files:
        with contextlib.suppress(OSError):
            file.place.unlink(missing_ok=True)


def _copy(source: Path, descriptor: int, done: int, total: int, progress: Progress | None) -> int:
    with source.open("rb", buffering=0) as reader, os.fdopen(descriptor, "wb") as writer:
        size = os.fstat(reader.fileno()).st_size
        writer.truncate(size)
        for start, end in _written_parts(reader.fileno(), size):
            reader.seek(start)
            writer.seek(start)
            position = start
            while position < end:
                piece = reader.read(min(_PIECE, end - position))
                if not piece:
                    raise FileFormatError("the external data file ended while it was copied", where=str(source))
                writer.write(piece)
                position += len(piece)
                if progress:
                    progress(done + position, total)
    return done + size


def _written_parts(descriptor: int, size: int) -> Iterator[tuple[int, int]]:
    """The parts of a file that are no holes; all of it where the system does not tell."""
    if not hasattr(os, "SEEK_DATA"):
        yield 0, size
        return
    end = 0
    while end < size:
        try:
            start = os.lseek(descriptor, end, os.SEEK_DATA)
            end = os.lseek(descriptor, start, os.SEEK_HOLE)
        except OSError:
            return  # Only a hole is left.
        yield start, end


def _is_same(one: Path, other: Path) -> bool:
    """Whether two files hold the same bytes."""
    try:
        check_regular(other)
        if one.samefile(other):
            return True
        if one.stat().st_size != other.stat().st_size:
            return False
        with one.open("rb", buffering=0) as left, other.open("rb", buffering=0) as right:
            while piece := left.read(_PIECE):
                if piece != right.read(len(piece)):
                    return False
    except OSError as error:
        raise unreadable(other, error) from None
    return True


@contextlib.contextmanager
def _named(place: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise FileFormatError(f"the external data cannot be copied ({reason})", where=str(place)) from None
