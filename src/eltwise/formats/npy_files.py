"""Arrays in .npy and .npz files, checked before anything is allocated.

NumPy writes ml_dtypes arrays as raw void bytes; they are read back by the element type that is wanted.
Source: the NPY format, versions 1.0 and 2.0.
"""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import BinaryIO

import numpy as np

from eltwise.dtypes import BFLOAT16, ElementType
from eltwise.errors import ElementTypeError, FileFormatError, unknown_name
from eltwise.formats.files import read_bytes, unreadable
from eltwise.shapes import LARGEST_RANK, element_count

_HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
_LARGEST_INFLATION = 1040
"""Deflate cannot make a member more than about 1032 times as large."""


def read_npy(path: Path, wanted: ElementType | None) -> np.ndarray:
    """Read an .npy file.

    Raises:
        FileFormatError: where it is none, is truncated, or holds pickled objects.
        ElementTypeError: where it holds raw bytes and no element type is known for them.
    """
    try:
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
            if member.file_size > _LARGEST_INFLATION * max(member.compress_size, 1):
                raise FileFormatError("the archive states an impossible size", where=f"{path}:{key}")
            with archive.open(member) as file:
                content = file.read(member.file_size + 1)
    except (zipfile.BadZipFile, zipfile.LargeZipFile, NotImplementedError, EOFError, RuntimeError) as error:
        raise FileFormatError(f"this is no .npz file that can be read ({error})", where=str(path)) from None
    return _read_stream(io.BytesIO(content), len(content), f"{path}:{key or member.filename}", wanted)


def _member(archive: zipfile.ZipFile, key: str, path: Path) -> zipfile.ZipInfo:
    members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
    if not key and len(members) == 1:
        return next(iter(members.values()))
    if not key:
        names = ", ".join(f"{path.name}:{name}" for name in members)
        raise FileFormatError("the file holds several arrays", where=str(path), allowed=f"one of {names}")
    if key not in members:
        raise unknown_name("array", key, members, where=str(path))
    return members[key]


def _read_stream(file: BinaryIO, size: int, where: str, wanted: ElementType | None) -> np.ndarray:
    try:
        version = np.lib.format.read_magic(file)
        if version not in _HEADERS:
            raise FileFormatError("this version of .npy is not read", where=where, got=str(version))
        shape, fortran, dtype = _HEADERS[version](file)
    except ValueError as error:
        reason = str(error).splitlines()[0]
        raise FileFormatError(f"this is no .npy file that can be read ({reason})", where=where) from None
    if dtype.hasobject or dtype.fields is not None or dtype.subdtype is not None:
        raise ElementTypeError("the file holds objects or records, not numbers", where=where, got=str(dtype))
    if len(shape) > LARGEST_RANK or min(shape, default=0) < 0:
        raise FileFormatError("the header states an impossible shape", where=where, got=str(shape))
    needed, present = element_count(shape) * dtype.itemsize, size - file.tell()
    if needed != present:
        raise FileFormatError(
            f"shape {shape} of {dtype} needs {needed} bytes of data",
            where=where,
            got=str(present),
            hint="the file is truncated" if present < needed else "the file holds more than one array",
        )
    flat = np.frombuffer(bytearray(file.read(needed)), np.uint8)
    order = "F" if fortran else "C"
    return _typed(flat, dtype, wanted, where).reshape(shape, order=order)  # type: ignore[call-overload, no-any-return]


def _typed(flat: np.ndarray, dtype: np.dtype[np.generic], wanted: ElementType | None, where: str) -> np.ndarray:
    """Give raw bytes their type: the file's own, or for void bytes the wanted one."""
    if dtype.kind != "V":
        return flat.view(dtype) if dtype.itemsize else flat.astype(dtype)
    chosen = BFLOAT16 if wanted is None and dtype.itemsize == 2 else wanted
    if chosen is None:
        raise ElementTypeError(
            "the file holds raw bytes, as NumPy writes int4, uint4 and float8", where=where, hint="say which type it is"
        )
    if chosen.storage.itemsize != dtype.itemsize:
        raise ElementTypeError(
            f"the file holds raw values of {dtype.itemsize} bytes", where=where, allowed=f"{chosen.name} is wanted"
        )
    array = flat.view(chosen.storage)
    if chosen.bits < 8:
        clean = array.astype(np.int8).astype(chosen.storage).view(np.uint8)
        low_nibble_only = flat < 16
        if not np.logical_or(clean == flat, low_nibble_only).all():
            raise FileFormatError(f"the file holds bytes that are no {chosen.name}", where=where)
        return clean.view(chosen.storage)
    return array


def npy_bytes(array: np.ndarray) -> bytes:
    """The content of an .npy file."""
    stream = io.BytesIO()
    np.lib.format.write_array(stream, np.asarray(array), version=(1, 0), allow_pickle=False)
    return stream.getvalue()


def npz_bytes(arrays: dict[str, np.ndarray]) -> bytes:
    """The content of an .npz file; the same arrays always give the same bytes."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
        for key, array in arrays.items():
            archive.writestr(zipfile.ZipInfo(f"{key}.npy", (1980, 1, 1, 0, 0, 0)), npy_bytes(array))
    return stream.getvalue()
