"""Arrays in .npy and .npz files, checked before anything is allocated.

The header is not read by NumPy, which drops the byte order of the raw void bytes that it writes for ml_dtypes arrays
(``>V2``) and cannot read its own ``<f1`` of float8_e5m2. Raw bytes are read as the element type that is wanted.
Source: the NPY format, versions 1.0 to 3.0.
"""

from __future__ import annotations

import ast
import io
import re
import zipfile
import zlib
from dataclasses import dataclass
from typing import BinaryIO

import numpy as np

from eltwise.core.dtypes import BFLOAT16, BY_NAME, TYPES, ElementType, of_numpy
from eltwise.core.errors import ElementTypeError, FileFormatError, shown
from eltwise.core.shapes import LARGEST_RANK, element_count, is_addressable
from eltwise.ir.values import type_of_array

MAGIC = b"\x93NUMPY"
"""How an .npy file begins."""

_VERSIONS = {b"\1\0": (2, "latin-1"), b"\2\0": (4, "latin-1"), b"\3\0": (4, "utf-8")}
"""In how many bytes each states the length of the header, and how that is encoded."""

_LONGEST_HEADER = 10_000
"""In bytes; the header of an array of rank 64 has some hundred."""

_LARGEST_INFLATION = 1040
"""Deflate expands no member by more than about 1032 times."""

ZIP_ERRORS = (
    *(zipfile.BadZipFile, zipfile.LargeZipFile, zlib.error, EOFError),
    *(NotImplementedError, RuntimeError, ValueError, KeyError),
)
"""What Python's zipfile raises for archives that are none, beside errors of the system."""

_WARNS = re.compile(r"\\|\d[A-Za-z_]")
"""Escapes and numbers with letters: Python warns of some, and no header of numbers has any."""

_VALUES = re.compile(r"[<>|=]?([SU][1-9][0-9]{0,7}|c(8|16)|[mM]8(\[[0-9a-zA-Z]+\])?)", re.ASCII)
"""The types of texts, complex numbers, dates and spans of time, as NumPy writes them."""

_RUN = [each for each in TYPES if each.runs]
_BY_CODE = {each.storage.str[1:]: each for each in _RUN if each.storage.kind != "V"}


def check_member(member: zipfile.ZipInfo, where: str) -> None:
    """Refuse a member that cannot be unpacked, or states a size that nothing compresses to."""
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise FileFormatError("unsupported compression method", where=where, allowed="none or deflate")
    if member.file_size > _LARGEST_INFLATION * max(member.compress_size, 1):
        raise FileFormatError("the archive states an impossible size", where=where)


@dataclass(frozen=True)
class NpyLayout:
    """What the header of an .npy file says, checked against the size of the file.

    Attributes:
        element_type: the type of the elements; of other values NumPy's.
        order: the byte order as NumPy writes it.
        shape: the sizes.
        fortran: whether the first axis moves fastest.
    """

    element_type: ElementType | np.dtype[np.generic]
    order: str
    shape: tuple[int, ...]
    fortran: bool


def read_layout(file: BinaryIO, size: int, where: str, raw_type: ElementType | None) -> NpyLayout:
    """Read the header of an .npy file of this size, and leave the file at the data.

    Raises:
        EltwiseError: where the header is none, or promises more or less than the file holds.
    """
    if not size:
        raise FileFormatError("the file is empty", where=where, allowed="an .npy file")
    fields = _read_header(file, where)
    shape, fortran = fields["shape"], fields["fortran_order"]
    values = _type_of_values(fields["descr"])
    order, element_type, item_bytes = ("=", None, values.itemsize) if values else _type_of(fields["descr"], where)
    if not isinstance(fortran, bool):
        raise FileFormatError("the header's fortran_order is neither True nor False", where=where)
    if (
        not isinstance(shape, tuple)
        or not all(type(one) is int and 0 <= one < 2**63 for one in shape)
        or len(shape) > LARGEST_RANK
        or not is_addressable(shape, item_bytes)
    ):
        raise FileFormatError("the header states an impossible shape", where=where, got=shown(shape))
    needed, present = element_count(shape) * item_bytes, size - file.tell()
    if needed != present:
        raise FileFormatError(
            f"shape {shape} of {element_type or values or f'{item_bytes} raw bytes'} needs {needed} bytes of data",
            where=where,
            got=str(present),
            hint="the file is truncated" if present < needed else "the file holds more than one array",
        )
    stored_type = values or element_type or _type_of_raw_bytes(item_bytes, raw_type, where)
    return NpyLayout(stored_type, order, shape, fortran)


def _read_header(file: BinaryIO, where: str) -> dict[str, object]:
    """Read magic, version and header, and leave the file at the data."""
    start = file.read(8)
    if not start.startswith(MAGIC) or len(start) < 8:
        raise FileFormatError("not an .npy file", where=where, got=f"the bytes {start[:6].hex(' ')}")
    if start[6:] not in _VERSIONS:
        raise FileFormatError("unsupported version of .npy", where=where, got=f"{start[6]}.{start[7]}")
    width, encoding = _VERSIONS[start[6:]]
    length = int.from_bytes(file.read(width), "little")
    if length > _LONGEST_HEADER:
        allowed = f"{_LONGEST_HEADER}"
        raise FileFormatError("the header is too long", where=where, got=f"{length} bytes", allowed=allowed)
    text = file.read(length)
    if len(text) < length:
        raise FileFormatError("the file is truncated in its header", where=where)
    try:
        literal = re.sub(
            r"(\d)L\b", r"\1", text.decode(encoding)
        ).strip()  # Python 2 wrote sizes with an L behind them.
        fields = None if _WARNS.search(literal) else ast.literal_eval(literal)
        if isinstance(fields, dict) and set(fields) == {"descr", "fortran_order", "shape"}:
            return fields
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        pass  # All that literal_eval raises for what is not a literal, and decode for what is not UTF-8.
    allowed = "a dictionary of descr, fortran_order and shape"
    raise FileFormatError("the header cannot be read", where=where, allowed=allowed)


def _type_of_values(descr: object) -> np.dtype[np.generic] | None:
    """The NumPy type of texts, complex numbers, dates and records; None of numbers and of what is not compared."""
    is_one = isinstance(descr, str) and _VALUES.fullmatch(descr)
    if not (is_one or (isinstance(descr, list) and descr)):
        return None
    try:
        dtype = np.lib.format.descr_to_dtype(descr)  # type: ignore[arg-type]
    except (TypeError, ValueError, KeyError, IndexError, AttributeError, SyntaxError, OverflowError, MemoryError):
        return None
    return dtype if type_of_array(dtype) else None


def _type_of(descr: object, where: str) -> tuple[str, ElementType | None, int]:
    """The byte order, the element type (None for raw bytes) and the bytes of an element."""
    text = descr if isinstance(descr, str) else ""
    order = text[:1] if text[:1] in tuple("<>|=") else "="
    code = text.removeprefix(order)
    void = re.fullmatch(r"V([1-9][0-9]?)", code, re.ASCII)
    if void:
        return order, None, int(void[1])
    element_type = _BY_CODE.get(code) or BY_NAME.get(code)
    if element_type is None or not element_type.runs:
        allowed = ", ".join(each.name for each in _RUN)
        hint = (
            "objects are pickled, and pickles are never loaded: save the array with one of these"
            if code.startswith("O")
            else ""
        )
        problem, got = "unsupported element type", shown(descr)
        raise ElementTypeError(problem, where=where, got=got, allowed=allowed, hint=hint)
    return order, element_type, element_type.storage.itemsize


def _type_of_raw_bytes(item_bytes: int, raw_type: ElementType | None, where: str) -> ElementType:
    """The wanted type, if it is one that NumPy writes as raw bytes of this size."""
    fitting = [each for each in _RUN if _is_written_raw(each) and each.storage.itemsize == item_bytes]
    chosen = BFLOAT16 if raw_type is None and item_bytes == 2 else raw_type
    if chosen is None:
        problem = "the file holds raw bytes, as NumPy writes int4, uint4 and float8"
        raise ElementTypeError(problem, where=where, hint="specify the element type")
    if chosen not in fitting:
        raise ElementTypeError(
            f"raw bytes cannot be read as {chosen.name}",
            where=where,
            got=f"{item_bytes}-byte elements",
            allowed=", ".join(each.name for each in fitting) or "none",
        )
    return chosen


def _is_written_raw(element_type: ElementType) -> bool:
    """Whether it is a type of ml_dtypes, which has no name in the .npy format."""
    return element_type.storage.isbuiltin == 2


def npy_bytes(array: np.ndarray) -> bytes:
    """The content of an .npy file."""
    element_type = of_numpy(array.dtype)
    return npy_header(element_type, array.shape) + array.astype(element_type.storage, copy=False).reshape(-1).tobytes()


def npy_header(element_type: ElementType, shape: tuple[int, ...]) -> bytes:
    """What precedes the elements, in C order and native byte order, of an .npy file."""
    stored = element_type.storage
    named = np.dtype(f"V{stored.itemsize}") if _is_written_raw(element_type) else stored
    stream = io.BytesIO()
    fields = {"descr": np.lib.format.dtype_to_descr(named), "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(stream, fields)
    return stream.getvalue()


def npz_bytes(arrays: dict[str, np.ndarray]) -> bytes:
    """The content of an .npz file; the same arrays always give the same bytes."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
        for key, array in arrays.items():
            archive.writestr(zipfile.ZipInfo(f"{key}.npy", (1980, 1, 1, 0, 0, 0)), npy_bytes(array))
    return stream.getvalue()
