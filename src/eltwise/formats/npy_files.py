"""Arrays in .npy and .npz files, checked before anything is allocated.

ml_dtypes arrays are raw void bytes there, as NumPy writes them; they are read back by the element type that is wanted.
"""

from __future__ import annotations

import io
import zipfile
import zlib
from pathlib import Path
from typing import BinaryIO

import numpy as np

from eltwise.core.dtypes import BFLOAT16, BOOL, TYPES, ElementType, of_numpy
from eltwise.core.errors import ElementTypeError, FileFormatError, unknown_name
from eltwise.core.shapes import LARGEST_RANK, element_count, is_addressable
from eltwise.formats.files import check_regular, read_bytes, unreadable
from eltwise.formats.npy_header import NpyHeader, read_header

_LARGEST_INFLATION = 1040
"""Deflate cannot make a member more than about 1032 times as large."""


def read_npy(path: Path, wanted: ElementType | None) -> np.ndarray:
    """Read an .npy file.

    Raises:
        FileFormatError: where it is none, is truncated, or does not hold what its header says.
        ElementTypeError: where it holds no numbers, or raw bytes that are not of the wanted element type.
    """
    try:
        check_regular(path)
        size = path.stat().st_size
        with path.open("rb") as file:
            return _read_stream(file, size, str(path), wanted)
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from None


def read_npz(path: Path, key: str, wanted: ElementType | None) -> np.ndarray:
    """Read one array of an .npz file; without a key, its only one.

    Raises:
        FileFormatError: where it is none, or holds several arrays and no key says which.
        NameUnknownError: where it has no such key.
    """
    data = read_bytes(path)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            member = _member(archive, key, path)
            place = f"{path}:{key or member.filename}"
            if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise FileFormatError("this way of compression is not read", where=place, allowed="none or deflate")
            if member.file_size > _LARGEST_INFLATION * max(member.compress_size, 1):
                raise FileFormatError("the archive states an impossible size", where=place)
            with archive.open(member) as file:
                return _read_stream(file, member.file_size, place, wanted)  # type: ignore[arg-type]
    except (
        *(zipfile.BadZipFile, zipfile.LargeZipFile, zlib.error, EOFError),
        *(NotImplementedError, RuntimeError, ValueError, OSError, KeyError),
    ) as error:
        raise FileFormatError(f"this is no .npz file that can be read ({error})", where=str(path)) from None


def _member(archive: zipfile.ZipFile, key: str, path: Path) -> zipfile.ZipInfo:
    members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
    if not key and len(members) == 1:
        return next(iter(members.values()))
    if not key:
        names = ", ".join(f"{path.name}:{name}" for name in members)
        raise FileFormatError(
            "the file holds several arrays" if members else "the file holds no array",
            where=str(path),
            allowed=f"one of {names}" if members else "",
        )
    if key not in members:
        raise unknown_name("array", key, members, where=str(path))
    return members[key]


def _read_stream(file: BinaryIO, size: int, where: str, wanted: ElementType | None) -> np.ndarray:
    header = read_header(file, where)
    shape = header.shape
    if len(shape) > LARGEST_RANK or not is_addressable(shape, header.item_bytes):
        raise FileFormatError("the header states an impossible shape", where=where, got=str(shape)[:80])
    needed, present = element_count(shape) * header.item_bytes, size - file.tell()
    if needed != present:
        raise FileFormatError(
            f"shape {shape} of {header} needs {needed} bytes of data",
            where=where,
            got=str(present),
            hint="the file is truncated" if present < needed else "the file holds more than one array",
        )
    element_type = header.element_type or _type_of_raw_bytes(header, wanted, where)
    data = np.frombuffer(file.read(needed), np.uint8)
    if data.size < needed:
        raise FileFormatError("the file is truncated", where=where, got=f"{data.size} bytes", allowed=f"{needed} bytes")
    values = _checked(data, element_type, where).view(element_type.storage.newbyteorder(header.order))
    return values.reshape(shape, order="F" if header.fortran else "C")


def _type_of_raw_bytes(header: NpyHeader, wanted: ElementType | None, where: str) -> ElementType:
    """Raw bytes are of the wanted type, if that is one which NumPy would have written so."""
    chosen = BFLOAT16 if wanted is None and header.item_bytes == 2 else wanted
    if chosen is None:
        raise ElementTypeError(
            "the file holds raw bytes, as NumPy writes int4, uint4 and float8",
            where=where,
            hint="say which type it is (--type at the shell)",
        )
    if not _fits_raw(chosen, header.item_bytes):
        raise ElementTypeError(
            f"raw bytes are no {chosen.name} here",
            where=where,
            got=f"{header.item_bytes}-byte elements",
            allowed=", ".join(each.name for each in TYPES if _fits_raw(each, header.item_bytes)) or "none",
        )
    return chosen


def _is_written_raw(element_type: ElementType) -> bool:
    """Whether it is a type of ml_dtypes, which the .npy format has no name for."""
    return element_type.storage.isbuiltin == 2


def _fits_raw(element_type: ElementType, item_bytes: int) -> bool:
    return element_type.runs and _is_written_raw(element_type) and element_type.storage.itemsize == item_bytes


def _checked(data: np.ndarray, element_type: ElementType, where: str) -> np.ndarray:
    """Refuse bytes that are no value of the type; a 4-bit value fills the upper half with 0 or with its sign."""
    if element_type.bits < 8:
        clean = data & np.uint8(15)
        extended = data.view(np.int8) == (clean ^ np.uint8(8)).view(np.int8) - np.int8(8)
        valid = (data == clean) | (extended if element_type.kind == "signed" else False)
    else:
        clean, valid = data, data < 2 if element_type is BOOL else np.True_
    if not np.all(valid):
        raise FileFormatError(f"the file holds bytes that are no {element_type.name}", where=where)
    return clean


def npy_bytes(array: np.ndarray) -> bytes:
    """The content of an .npy file."""
    element_type = of_numpy(array.dtype)
    native = array.astype(element_type.storage, copy=False)
    named = native.view(f"V{native.itemsize}") if _is_written_raw(element_type) else native
    stream = io.BytesIO()
    np.lib.format.write_array(stream, named, version=(1, 0), allow_pickle=False)
    return stream.getvalue()


def npz_bytes(arrays: dict[str, np.ndarray]) -> bytes:
    """The content of an .npz file; the same arrays always give the same bytes."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
        for key, array in arrays.items():
            archive.writestr(zipfile.ZipInfo(f"{key}.npy", (1980, 1, 1, 0, 0, 0)), npy_bytes(array))
    return stream.getvalue()
