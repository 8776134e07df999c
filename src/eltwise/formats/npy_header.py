"""The header of an .npy file, read here and not by NumPy, which knows neither every type nor every bad input.

NumPy writes ml_dtypes arrays as raw void bytes (``<V2``), but float8_e5m2 as ``<f1``, which it cannot read back, and
it forgets the byte order of void bytes when it reads them.
Source: the NPY format, versions 1.0 and 2.0; version 3.0 is only for records.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import BinaryIO, Literal

from eltwise.core.dtypes import BY_NAME, TYPES, ElementType
from eltwise.core.errors import ElementTypeError, FileFormatError

_MAGIC = b"\x93NUMPY"
_LENGTH_BYTES = {(1, 0): 2, (2, 0): 4}
_LONGEST = 10_000
"""The longest header that is read, in bytes: that of an array of rank 64 has some hundred."""

ByteOrder = Literal["<", ">", "|", "="]
_WARNED_OF = re.compile(r"\\|\d[A-Za-z_]")
"""What Python may warn of where a program's text is concerned; no header of numbers has it."""

_ORDERS: tuple[ByteOrder, ...] = ("<", ">", "|", "=")
_BY_CODE = {each.storage.str[1:]: each for each in TYPES if each.runs and each.storage.kind != "V"}


@dataclass(frozen=True)
class NpyHeader:
    """What the header states.

    Attributes:
        shape: the sizes.
        fortran: whether the first index moves fastest.
        order: the byte order as NumPy writes it: ``<``, ``>``, ``|`` or ``=``.
        element_type: the type; None for raw void bytes.
        item_bytes: the size of an element.
    """

    shape: tuple[int, ...]
    fortran: bool
    order: ByteOrder
    element_type: ElementType | None
    item_bytes: int

    def __str__(self) -> str:
        return str(self.element_type) if self.element_type else f"{self.item_bytes} raw bytes"


def read_header(file: BinaryIO, where: str) -> NpyHeader:
    """Read magic, version and header; the file then stands at the data.

    Raises:
        FileFormatError: where this is no .npy file of a version that is read.
        ElementTypeError: where it holds anything but numbers of a type that is run here.
    """
    start = file.read(8)
    if start[:6] != _MAGIC or len(start) < 8:
        raise FileFormatError("this is no .npy file", where=where, got=f"the bytes {start[:6].hex(' ')}")
    version = (start[6], start[7])
    if version not in _LENGTH_BYTES:
        raise FileFormatError("this version of .npy is not read", where=where, got=f"{version[0]}.{version[1]}")
    length = int.from_bytes(file.read(_LENGTH_BYTES[version]), "little")
    if length > _LONGEST:
        raise FileFormatError("the header is too long", where=where, got=f"{length} bytes", allowed=f"{_LONGEST}")
    text = file.read(length)
    if len(text) < length:
        raise FileFormatError("the file is truncated in its header", where=where)
    fields = _fields(text, where)
    shape, fortran = fields["shape"], fields["fortran_order"]
    if not isinstance(shape, tuple) or not all(type(size) is int and 0 <= size < 2**63 for size in shape):
        raise FileFormatError("the header states an impossible shape", where=where)
    if not isinstance(fortran, bool):
        raise FileFormatError("the header's fortran_order is no truth value", where=where)
    return NpyHeader(shape, fortran, *_type_of(fields["descr"], where))


def _fields(text: bytes, where: str) -> dict[str, object]:
    """The header's dictionary; Python 2 wrote sizes with an L behind them."""
    literal = re.sub(r"(\d)L\b", r"\1", text.decode("latin-1")).strip()
    try:
        found = None if _WARNED_OF.search(literal) else ast.literal_eval(literal)
        if isinstance(found, dict) and set(found) == {"descr", "fortran_order", "shape"}:
            return found
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        pass  # All that literal_eval raises on what is no literal; the sentence below says enough.
    raise FileFormatError(
        "the header cannot be read", where=where, allowed="a dictionary of descr, fortran_order and shape"
    )


def _type_of(descr: object, where: str) -> tuple[ByteOrder, ElementType | None, int]:
    """The byte order, the element type (None for raw bytes) and the bytes of an element."""
    text = descr if isinstance(descr, str) else ""
    order: ByteOrder = next((order for order in _ORDERS if text.startswith(order)), "=")
    code = text.removeprefix(order)
    void = re.fullmatch(r"V([1-9][0-9]?)", code, re.ASCII)
    if void:
        return order, None, int(void[1])
    row = _BY_CODE.get(code) or BY_NAME.get(code)
    if row is None or not row.runs:
        raise ElementTypeError(
            "the file holds no numbers of a type that is run here",
            where=where,
            got=repr(descr)[:60],
            allowed=", ".join(each.name for each in TYPES if each.runs),
        )
    return order, row, row.storage.itemsize
