"""External data: the bytes of ONNX tensors in files beside the model, read and written without leaving its folder.

No name in a model chooses a file that is written: what an unpacked archive says must not reach files of the user.
Source: ONNX's ExternalData page and the fields of TensorProto.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path, PureWindowsPath
from weakref import WeakValueDictionary

import numpy as np
from onnx import ModelProto, StringStringEntryProto, TensorProto

from eltwise.core.errors import FileFormatError, FileMissingError, UnsupportedError, shown
from eltwise.core.foreign import reason_of
from eltwise.core.progress import Meter, Progress, no_progress
from eltwise.core.shapes import LARGEST_SIZE
from eltwise.formats.file_tensors import OpenFile
from eltwise.formats.files import Chunk, check_outputs, copied
from eltwise.formats.onnx.messages import walk

_ALIGNMENT = 4096
"""Where each tensor starts in a file that is written: the page size that ONNX recommends for memory mapping."""

_SMALLEST = 1024
"""The least number of bytes of a tensor that ``ExternalWriter`` writes."""

_Part = tuple[int, Iterable[Chunk]]
"""Where a part of a file starts, and its content."""


class ExternalData:
    """The files beside a model.

    A range that several tensors share is read once. Different ranges of a file together never hold more bytes than
    the file, so that a small model cannot ask for more memory than its files take.
    """

    def __init__(self, model: Path | None) -> None:
        self._model = model
        self._ranges: dict[tuple[Path, int, int], np.ndarray] = {}
        self._taken: dict[Path, int] = {}
        self._files: WeakValueDictionary[Path, OpenFile] = WeakValueDictionary()

    def read(self, entries: Iterable[StringStringEntryProto], needed: int) -> np.ndarray:
        """Read the bytes that a tensor's entries point to, as a read-only array.

        Args:
            entries: the tensor's ``external_data``: ``location``, and ``offset`` and ``length`` if they are there.
            needed: how many bytes its type and shape need.
        """
        file, offset = self.open(entries, needed)
        key = (file.path, offset, needed)
        if key not in self._ranges:
            self._taken[file.path] = self._taken.get(file.path, 0) + needed
            if self._taken[file.path] > file.size:
                raise UnsupportedError(f"the tensors' ranges of external data in {file.path.name!r} overlap")
            self._ranges[key] = file.bytes_at(offset, needed)
            self._ranges[key].flags.writeable = False
        return self._ranges[key]

    def open(self, entries: Iterable[StringStringEntryProto], needed: int) -> tuple[OpenFile, int]:
        """The file, which is open as long as something refers to it, and the offset of what ``read`` would read.

        Raises:
            FileFormatError: for a range that is not in the file, and a file that is none, or not in the folder.
        """
        location, offset = _range_of(entries, needed)
        path = self.path_of(location)
        file = self._files.get(path)
        if file is None:
            file = self._files[path] = OpenFile(path)
        if offset + needed > file.size:
            raise FileFormatError(
                f"the external data lies beyond the end of {location!r}",
                got=f"{needed} bytes at offset {offset}",
                allowed=f"up to byte {file.size}",
            )
        return file, offset

    def check(self, entries: Iterable[StringStringEntryProto], needed: int) -> None:
        """Refuse what ``read`` would refuse, without reading; of a model without a path no file is looked at."""
        if self._model is None:
            _check_location(_range_of(entries, needed)[0])
        else:
            self.open(entries, needed)

    def path_of(self, location: str) -> Path:
        """The file that a location names, with all symbolic links followed.

        It may lie beside the file that a link at the model's path leads to, as in caches that link to files by content.
        """
        if self._model is None:
            raise FileFormatError(
                f"the data lies outside the model, in {location!r}, and the model's folder is not known",
                hint="load the model from its file instead of from bytes or a ModelProto",
            )
        _check_location(location)
        try:
            folders = [self._model.parent.resolve(strict=True), self._model.resolve().parent]
            path = (folders[0] / location).resolve(strict=True)
        except (OSError, RuntimeError, ValueError) as error:
            raise _unreadable(location, error) from None
        if not any(map(path.is_relative_to, folders)):
            problem = "the external data's location leads out of the model's folder over a symbolic link"
            raise FileFormatError(problem, got=repr(location), allowed="a path inside the model's folder")
        return path


def _range_of(entries: Iterable[StringStringEntryProto], needed: int) -> tuple[str, int]:
    """The location and the offset of a tensor that needs so many bytes."""
    fields = _fields_of(entries)
    offset = _natural(fields.get("offset", "0"), "offset")
    length = _natural(fields["length"], "length") if "length" in fields else needed
    if length != needed:
        problem = "the external data's length is not what type and shape need"
        raise FileFormatError(problem, got=f"{length} bytes", allowed=f"{needed} bytes")
    return fields.get("location", ""), offset


def _fields_of(entries: Iterable[StringStringEntryProto]) -> dict[str, str]:
    fields: dict[str, str] = {}
    for entry in entries:
        if entry.key in fields:
            raise FileFormatError(f"the external data's {entry.key!r} is given twice")
        fields[entry.key] = entry.value
    return fields


def _natural(text: str, key: str) -> int:
    if text.isascii() and text.isdigit() and len(text) <= 19 and int(text) <= LARGEST_SIZE:
        return int(text)
    problem, allowed = f"the external data's {key} is not a size", f"an integer from 0 to {LARGEST_SIZE}"
    raise FileFormatError(problem, got=shown(text, 60), allowed=allowed)


def _check_location(location: str) -> None:
    """Refuse a location that is absolute on any system, or climbs above its start by ``..``."""
    if "\0" in location:
        problem = "the external data's location is no path"
        raise FileFormatError(problem, got=repr(location), allowed="a path without a NUL character")
    windows = PureWindowsPath(location)
    climbs = Path(os.path.normpath(location)).parts[:1] == ("..",)
    if not location or location.startswith("/") or windows.drive or windows.root or climbs:
        problem = "the external data's location is not inside the model's folder"
        raise FileFormatError(problem, got=repr(location), allowed="a relative path inside the model's folder")


def _unreadable(location: str, error: OSError | RuntimeError | ValueError) -> FileFormatError:
    if isinstance(error, FileNotFoundError):
        return FileMissingError(f"there is no external data file {location!r} in the model's folder")
    return FileFormatError(f"the external data file {location!r} cannot be read ({reason_of(error)})")


class ExternalWriter:
    """Collects the bytes of large tensors for one file beside a model that is written."""

    def __init__(self, model: Path) -> None:
        self._path = model.with_name(location_beside(model))
        self._parts: list[_Part] = []
        self._end = 0

    def take(self, proto: TensorProto) -> None:
        """Move the raw data of a tensor to the file, if it is large."""
        data = np.frombuffer(proto.raw_data, np.uint8)
        if data.nbytes < _SMALLEST:
            return
        proto.ClearField("raw_data")
        offset = -(-self._end // _ALIGNMENT) * _ALIGNMENT
        proto.data_location = TensorProto.EXTERNAL
        for key, value in (("location", self._path.name), ("offset", str(offset)), ("length", str(data.nbytes))):
            proto.external_data.add(key=key, value=value)
        self._parts.append((offset, [data.data]))
        self._end = offset + data.nbytes

    def files(self) -> list[tuple[Path, Iterable[Chunk]]]:
        """The file and its content; none where no tensor is large."""
        return [(self._path, _content(self._parts, Meter(0)))] if self._parts else []


def location_beside(path: Path) -> str:
    """The name of the external data file of a model file."""
    name = f"{path.name}.data"
    try:
        name.encode()
    except UnicodeEncodeError:
        problem, hint = "external data needs a file name in UTF-8", "choose another file name"
        raise FileFormatError(problem, where=repr(str(path)), hint=hint) from None
    return name


def data_files(model: ModelProto, path: Path) -> dict[Path, list[TensorProto]]:
    """The files of a model's external data, with the tensors that each holds, those in attributes and subgraphs too."""
    external, tensors = ExternalData(path), dict[Path, list[TensorProto]]()
    for tensor in walk(model):
        if isinstance(tensor, TensorProto) and tensor.data_location == TensorProto.EXTERNAL:
            location = _fields_of(tensor.external_data).get("location", "")
            tensors.setdefault(external.path_of(location), []).append(tensor)
    return tensors


def move_data(
    model: ModelProto, path: Path | None, target: Path, progress: Progress = no_progress
) -> tuple[list[tuple[Path, Iterable[Chunk]]], bool]:
    """Point a model to the file that its external data goes to, where that is not in the target's folder already.

    Args:
        model: the model, whose tensors point to the new file afterwards.
        path: the file beside which the data is; None where it is not known.
        target: the file that the model will be written to.
        progress: receives how many bytes have been copied, while the content is read.

    Returns:
        The new file and its content, the old files one after another; none where the data stays where it is. And
        whether the model was changed for it.
    """
    if path is None:
        return [], False
    files = data_files(model, path)
    check_outputs([target], files)
    folder = target.parent.resolve()
    if not files or (path.parent.resolve() == folder and all(data.is_relative_to(folder) for data in files)):
        return [], False
    name = location_beside(target)
    check_outputs([target.with_name(name)], files)
    parts: list[_Part] = []
    end, is_moved = 0, False
    for data, tensors in files.items():
        start, size = -(-end // _ALIGNMENT) * _ALIGNMENT, OpenFile(data).size
        end = start + size
        parts.append((start, copied(data, size)))
        for tensor in tensors:
            is_moved |= _move(tensor, name, start, keeps_notes=len(files) == 1)
    return [(target.with_name(name), _content(parts, Meter(end, progress, name)))], is_moved


def _move(tensor: TensorProto, location: str, start: int, keeps_notes: bool) -> bool:
    """Point a tensor to a file that holds the old one from a start on; gives whether that changed the tensor.

    The checksum, and what else is noted of the old file as a whole, is kept where it still holds.
    """
    before = _fields_of(tensor.external_data)
    after = {key: text for key, text in before.items() if keeps_notes or key in ("location", "offset", "length")}
    after["location"] = location
    if start:
        after["offset"] = str(_natural(before.get("offset", "0"), "offset") + start)
    del tensor.external_data[:]
    for key, text in after.items():
        tensor.external_data.add(key=key, value=text)
    return after != before


def _content(parts: Iterable[_Part], meter: Meter) -> Iterator[Chunk]:
    for start, pieces in parts:
        yield start - meter.done
        meter.done = start
        for piece in pieces:
            yield piece
            meter.add(piece if isinstance(piece, int) else len(piece))
