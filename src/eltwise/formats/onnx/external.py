"""External data: the bytes of ONNX tensors in files beside the model, read and written without leaving its folder.

Source: ONNX's ExternalData page and the fields of TensorProto.
"""

from __future__ import annotations

import stat
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath, PureWindowsPath

import numpy as np
from onnx import StringStringEntryProto, TensorProto

from eltwise.core.errors import FileFormatError, UnsupportedError
from eltwise.core.shapes import LARGEST_SIZE
from eltwise.formats.files import Buffer

ALIGNMENT = 4096
"""Where each tensor starts in a file that is written: the page size that ONNX recommends for memory mapping."""


class ExternalData:
    """The files beside a model.

    A range that several tensors share is read once. Different ranges of a file together never hold more bytes than
    the file, so that a small model cannot ask for more memory than its files take.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._ranges: dict[tuple[Path, int, int], np.ndarray] = {}
        self._taken: dict[Path, int] = {}

    def read(self, entries: Iterable[StringStringEntryProto], needed: int) -> np.ndarray:
        """Read the bytes that a tensor's entries point to.

        Args:
            entries: the tensor's ``external_data``: ``location``, and ``offset`` and ``length`` if they are there.
            needed: how many bytes its type and shape need.

        Returns:
            A read-only array of bytes.

        Raises:
            FileFormatError: where the entries are ill-formed, or the bytes are not there or not inside the folder.
            UnsupportedError: where the tensors' ranges overlap.
        """
        location, offset = _said(entries, needed)
        path = self.path_of(location)
        size = self._checked_size(path, location, offset, needed)
        return self._range(path, offset, needed, size)

    def check(self, entries: Iterable[StringStringEntryProto], needed: int) -> None:
        """Refuse what ``read`` would refuse, without reading; where the folder is not known, no file is looked at.

        Raises:
            FileFormatError: where the entries are ill-formed, or the bytes are not there or not inside the folder.
        """
        location, offset = _said(entries, needed)
        if self._folder is None:
            _check_location(location)
        else:
            self._checked_size(self.path_of(location), location, offset, needed)

    def path_of(self, location: str) -> Path:
        """The file that a location names, with all symbolic links followed.

        Raises:
            FileFormatError: where there is none, or it is not inside the folder.
        """
        if self._folder is None:
            raise FileFormatError(
                f"the data lies outside the model, in {location!r}, and the model's folder is not known",
                hint="load the model from its file instead of from bytes or a ModelProto",
            )
        _check_location(location)
        try:
            folder = self._folder.resolve(strict=True)
            path = (folder / location).resolve(strict=True)
        except (OSError, RuntimeError, ValueError) as error:
            raise _unreadable(location, error) from None
        if not path.is_relative_to(folder):
            raise FileFormatError(
                "the external data's location leads out of the model's folder over a symbolic link",
                got=repr(location),
                allowed="a path inside the model's folder",
            )
        return path

    def _checked_size(self, path: Path, location: str, offset: int, length: int) -> int:
        size = size_of(path)
        if offset + length > size:
            raise FileFormatError(
                f"the external data lies beyond the end of {location!r}",
                got=f"{length} bytes at offset {offset}",
                allowed=f"up to byte {size}",
            )
        return size

    def _range(self, path: Path, offset: int, length: int, size: int) -> np.ndarray:
        key = (path, offset, length)
        if key in self._ranges:
            return self._ranges[key]
        taken = self._taken.get(path, 0) + length
        if taken > size:
            raise UnsupportedError(f"the tensors' ranges of external data in {path.name!r} overlap")
        self._taken[path] = taken
        self._ranges[key] = _read_range(path, offset, length)
        return self._ranges[key]


def size_of(path: Path) -> int:
    """The size of a regular file; asked before it is opened, since opening a pipe would wait forever.

    Raises:
        FileFormatError: where it is no regular file.
    """
    try:
        status = path.stat()
    except OSError as error:
        raise _unreadable(path.name, error) from None
    if not stat.S_ISREG(status.st_mode):
        raise FileFormatError("the external data's location is no regular file", got=repr(str(path)))
    return status.st_size


def move(tensor: TensorProto, location: str, start: int, keeps_notes: bool) -> bool:
    """Point a tensor to a file that holds the old one from a start on.

    Args:
        tensor: the tensor.
        location: the new file.
        start: where the old one starts in it.
        keeps_notes: whether the checksum, and what others note there, still is of the file as a whole.

    Returns:
        Whether that changed the tensor.
    """
    before = fields_of(tensor.external_data)
    after = {key: text for key, text in before.items() if keeps_notes or key in ("location", "offset", "length")}
    after["location"] = location
    if start:
        after["offset"] = str(_natural(before.get("offset", "0"), "offset") + start)
    del tensor.external_data[:]
    for key, text in after.items():
        tensor.external_data.add(key=key, value=text)
    return after != before


def _said(entries: Iterable[StringStringEntryProto], needed: int) -> tuple[str, int]:
    """The location and the offset of a tensor that needs so many bytes."""
    fields = fields_of(entries)
    offset = _natural(fields.get("offset", "0"), "offset")
    length = _natural(fields["length"], "length") if "length" in fields else needed
    if length != needed:
        raise FileFormatError(
            "the external data's length is not what type and shape need",
            got=f"{length} bytes",
            allowed=f"{needed} bytes",
        )
    return fields.get("location", ""), offset


def _check_location(location: str) -> None:
    if "\0" in location:
        raise FileFormatError(
            "the external data's location is no path", got=repr(location), allowed="a path without a NUL character"
        )
    if not location or _leads_out(location):
        raise FileFormatError(
            "the external data's location is not inside the model's folder",
            got=repr(location),
            allowed="a relative path inside the model's folder",
        )


def _leads_out(location: str) -> bool:
    """Whether a location is absolute on any system, or climbs above its start by ``..``."""
    if PurePosixPath(location).is_absolute() or PureWindowsPath(location).is_absolute() or location[0] == "\\":
        return True
    depth = 0
    for part in PurePosixPath(location).parts:
        depth += -1 if part == ".." else 1
        if depth < 0:
            return True
    return False


def fields_of(entries: Iterable[StringStringEntryProto]) -> dict[str, str]:
    """A tensor's entries by their keys.

    Raises:
        FileFormatError: where one is given twice.
    """
    fields: dict[str, str] = {}
    for entry in entries:
        if entry.key in fields:
            raise FileFormatError(f"the external data's {entry.key!r} is given twice")
        fields[entry.key] = entry.value
    return fields


def _natural(text: str, key: str) -> int:
    if text.isascii() and text.isdigit() and len(text) <= 19 and int(text) <= LARGEST_SIZE:
        return int(text)
    raise FileFormatError(
        f"the external data's {key} is not a size", got=repr(text[:40]), allowed=f"an integer from 0 to {LARGEST_SIZE}"
    )


def _unreadable(location: str, error: OSError | RuntimeError | ValueError) -> FileFormatError:
    if isinstance(error, FileNotFoundError):
        return FileFormatError(f"there is no external data file {location!r} in the model's folder")
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return FileFormatError(f"the external data file {location!r} cannot be read ({reason})")


def _read_range(path: Path, offset: int, length: int) -> np.ndarray:
    try:
        data = np.empty(length, np.uint8)
        with path.open("rb", buffering=0) as file:
            file.seek(offset)
            view, filled = data.data, 0
            while filled < length:
                count = file.readinto(view[filled:])
                if not count:
                    raise FileFormatError(f"the external data file {path.name!r} ended while it was read")
                filled += count
    except OSError as error:
        raise _unreadable(path.name, error) from None
    except MemoryError:
        raise FileFormatError("the external data does not fit into memory", got=f"{length} bytes") from None
    data.flags.writeable = False
    return data


class ExternalWriter:
    """Collects the bytes of tensors for one file beside the model."""

    def __init__(self, location: str) -> None:
        self._location = location
        self._parts: list[tuple[int, np.ndarray]] = []
        self._end = 0

    def place(self, proto: TensorProto, data: np.ndarray) -> None:
        """Give the bytes of a tensor a place in the file, and note it in the tensor."""
        offset = -(-self._end // ALIGNMENT) * ALIGNMENT
        proto.data_location = TensorProto.EXTERNAL
        for key, value in (("location", self._location), ("offset", str(offset)), ("length", str(data.nbytes))):
            proto.external_data.add(key=key, value=value)
        self._parts.append((offset, data))
        self._end = offset + data.nbytes

    @property
    def is_empty(self) -> bool:
        """Whether no tensor was placed."""
        return not self._parts

    def chunks(self) -> Iterator[Buffer]:
        """The content of the file, part by part."""
        position = 0
        for offset, data in self._parts:
            yield bytes(offset - position)
            yield data.data
            position = offset + data.nbytes


def location_beside(path: Path) -> str:
    """The name of the external data file of a model file.

    Raises:
        FileFormatError: where the model's name is no text that a model can hold.
    """
    name = f"{path.name}.data"
    try:
        name.encode()
    except UnicodeEncodeError:
        raise FileFormatError(
            "external data needs a file name in UTF-8", where=repr(str(path)), hint="choose another file name"
        ) from None
    return name
