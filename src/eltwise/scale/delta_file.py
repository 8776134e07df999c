"""The container of a delta: zstd frames, a header in JSON behind them, and a footer that says where it begins.

    8 bytes   ELTDELTA
    frames    one a piece of a tensor, each a zstd frame of the byte planes of that piece
    header    JSON, UTF-8
    24 bytes  CRC-32C of the header, version, length of the header (little-endian: 4, 4, 8 bytes), ELTDELTA

The byte planes are those of differences of bit patterns: all lowest bytes first, then the next ones. The patterns are
subtracted as unsigned integers, which wrap around, so that adding the base gives every bit back. Half of each byte's
range is added (0x8080 for two bytes), so that a small difference of either sign changes the lowest bytes only and all
others are 0x80.

Nothing is allocated for a size that the file states before it is compared with the bytes that are there.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np

from eltwise.core.errors import EltwiseError, FileFormatError
from eltwise.core.fields import Check, Natural, from_json, plain
from eltwise.core.foreign import SCALE, library
from eltwise.formats.file_tensors import OpenFile
from eltwise.formats.safetensors_files import Entry, checked_header, type_of
from eltwise.scale.checksum import crc32c

MAGIC = b"ELTDELTA"
VERSION = 1
FOOTER = struct.Struct("<IIQ8s")
PIECE = 4 << 20
"""So many bytes of a tensor are a piece; the last one may be shorter."""

_BLOCK = 1 << 16
"""In bytes of a block; what is computed on it stays in the cache."""

PieceBytes = Annotated[int, Check(lambda size: size == PIECE, str(PIECE))]

Kind = Literal["difference", "added", "replaced"]
"""Whether a tensor is stored as a difference, or whole: because it is new, or has another type or shape."""


Width = Literal[1, 2, 4, 8]
"""How many byte planes a tensor is split into."""


def _is_text(text: str) -> bool:
    """Whether a string has no half of a surrogate pair."""
    return text.isascii() or not any("\ud800" <= sign <= "\udfff" for sign in text)


Text = Annotated[str, Check(_is_text, "a string without half a surrogate")]


@dataclass(frozen=True)
class DeltaTensor:
    """One tensor of the result.

    Attributes:
        name: what it is called.
        dtype: its element type as safetensors calls it.
        shape: its sizes.
        size: how many bytes it has.
        kind: how it is stored.
        width: how many byte planes it is split into.
        offset: where its first frame begins.
        frames: the length of each frame.
        checksum: CRC-32C of its bytes.
        base_checksum: of the base's bytes; None where the tensor is stored whole.
    """

    name: Text
    dtype: str
    shape: tuple[Natural, ...]
    size: Natural
    kind: Kind
    width: Width
    offset: Natural
    frames: tuple[Annotated[int, Check(lambda length: length > 0, "an integer above 0")], ...]
    checksum: Natural
    base_checksum: Natural | None = None

    @property
    def is_same(self) -> bool:
        """Whether the base has the same bytes, as far as the checksums say."""
        return self.checksum == self.base_checksum


@dataclass(frozen=True, repr=False)
class Delta:
    """What a delta file says about itself.

    Attributes:
        tensors: of the result, in the order of their bytes.
        dropped: the names of the base's tensors that the result has not.
        header: the safetensors header of the result.
    """

    tensors: tuple[DeltaTensor, ...]
    dropped: tuple[str, ...]
    header: bytes

    def __repr__(self) -> str:
        return f"<Delta: {', '.join(f'{count} {kind}' for kind, count in self.counts().items() if count)}>"

    def encoded(self) -> bytes:
        """The header and the footer."""
        header = _Header("eltwise delta", PIECE, self.tensors, self.dropped, self.header.decode())
        text = json.dumps(plain(header), separators=(",", ":"), ensure_ascii=False).encode()
        return text + FOOTER.pack(crc32c(text), VERSION, len(text), MAGIC)

    def counts(self) -> dict[str, int]:
        """How many tensors are of each kind."""
        differences = [tensor for tensor in self.tensors if tensor.kind == "difference"]
        same = sum(tensor.is_same for tensor in differences)
        whole = {kind: sum(each.kind == kind for each in self.tensors) for kind in ("added", "replaced")}
        return {"changed": len(differences) - same, "unchanged": same, **whole, "dropped": len(self.dropped)}


@dataclass(frozen=True)
class _Header:
    """The fields of the header."""

    format: Literal["eltwise delta"]
    piece_bytes: PieceBytes
    tensors: tuple[DeltaTensor, ...]
    dropped: tuple[Text, ...]
    safetensors_header: Text


def zstandard() -> Any:
    """The library that compresses.

    Raises:
        UnsupportedError: where it is not installed.
    """
    return library("zstandard", "a delta", package=SCALE)


def open_delta(path: Path) -> tuple[Delta, OpenFile]:
    """Open a delta file; frames stay unread.

    Raises:
        FileFormatError: where it is none, or states what is not there.
    """
    file = OpenFile(path)
    try:
        return _decoded(_header_text(file), file.size, str(path)), file
    except EltwiseError as error:
        raise error.located(where=str(path)) from None
    except _WrongHeaderError as error:
        raise FileFormatError(f"the delta's header is wrong ({error})", where=str(path)) from None


class _WrongHeaderError(ValueError):
    """What is wrong in a header."""


def _header_text(file: OpenFile) -> bytes:
    least = len(MAGIC) + FOOTER.size
    if file.size < least or file.bytes_at(0, len(MAGIC)).tobytes() != MAGIC:
        raise FileFormatError("this is no delta", hint="eltwise delta writes one")
    crc, version, length, magic = FOOTER.unpack(file.bytes_at(file.size - FOOTER.size, FOOTER.size).tobytes())
    if magic != MAGIC:
        raise FileFormatError("this is not the end of a delta: bytes are missing, or were appended")
    if version != VERSION:
        raise FileFormatError("unknown version of a delta", got=str(version), allowed=str(VERSION))
    if length > file.size - least:
        raise FileFormatError("the delta is truncated", got=f"a header of {length} bytes in {file.size} bytes")
    zstandard()
    text = file.bytes_at(file.size - FOOTER.size - length, length).tobytes()
    if crc32c(text) != crc:
        raise FileFormatError("the delta's header is damaged: its checksum is another one")
    return text


def _decoded(text: bytes, file_size: int, where: str) -> Delta:
    fields = from_json(_Header, text, where)
    end = file_size - FOOTER.size - len(text)
    for tensor in fields.tensors:
        _check_tensor(tensor, end)
    if len({tensor.name for tensor in fields.tensors}) != len(fields.tensors):
        raise _WrongHeaderError("two tensors have one name")
    extra = end - len(MAGIC) - sum(sum(tensor.frames) for tensor in fields.tensors)
    if extra:
        raise _WrongHeaderError(f"{abs(extra)} bytes {'are of no tensor' if extra > 0 else 'are missing'}")
    header = fields.safetensors_header.encode()
    _check_result(header, fields.tensors)
    return Delta(fields.tensors, fields.dropped, header)


def _check_tensor(tensor: DeltaTensor, end: int) -> None:
    name, frames = tensor.name, tensor.frames
    if tensor.size % tensor.width:
        raise _WrongHeaderError(f"tensor {name!r} has a size that its byte planes do not divide")
    if len(frames) != -(-tensor.size // PIECE):
        raise _WrongHeaderError(f"tensor {name!r} has {len(frames)} frames, expected {-(-tensor.size // PIECE)}")
    if tensor.offset < len(MAGIC) or tensor.offset + sum(frames) > end:
        raise _WrongHeaderError(f"the frames of tensor {name!r} lie beyond the end")
    if (tensor.base_checksum is None) == (tensor.kind == "difference"):
        raise _WrongHeaderError(f"tensor {name!r} of kind {tensor.kind!r} has no base_checksum, or one too many")


def _check_result(header: bytes, tensors: Sequence[DeltaTensor]) -> None:
    """Refuse a safetensors header that is none, or does not say what the tensors are."""
    stated: dict[str, Entry] = {}
    end = 0
    for tensor in tensors:
        try:
            is_right = type_of(tensor.dtype).file_bytes(_product(tensor.shape)) == tensor.size
        except EltwiseError as error:
            raise _WrongHeaderError(str(error)) from None
        if not is_right:
            raise _WrongHeaderError(f"tensor {tensor.name!r} is {tensor.size} bytes, which its type and shape are not")
        stated[tensor.name] = tensor.dtype, tensor.shape, end, end + tensor.size
        end += tensor.size
    if checked_header(header, end) != stated:
        raise _WrongHeaderError("'safetensors_header' says something else than 'tensors'")


def _product(shape: Sequence[int]) -> int:
    count = 1
    for size in shape:
        count = min(count * size, 1 << 63)
    return count


def _unsigned(width: int) -> tuple[np.dtype[np.unsignedinteger], np.unsignedinteger]:
    """The integer type of a width, and half of each byte's range in it."""
    kind: np.dtype[np.unsignedinteger] = np.dtype(f"<u{width}")
    return kind, kind.type(int("80" * width, 16))


def to_planes(values: np.ndarray, base: np.ndarray | None, width: int) -> np.ndarray:
    """Make the planes of the difference of bytes and those of a base; without one, of the bytes themselves.

    Args:
        values: the bytes, a multiple of ``width``.
        base: as many bytes.
        width: of an element in bytes: 1, 2, 4 or 8.

    >>> to_planes(np.uint8([1, 2, 3, 4]), None, 2).tolist()
    [1, 3, 2, 4]
    """
    if width == 1 and base is None:
        return values
    kind, half = _unsigned(width)
    elements = values.view(kind)
    planes = np.empty((width, elements.size), np.uint8)
    step = _BLOCK // width * min(width, 2)
    room = np.empty(min(step, elements.size), kind)
    for start in range(0, elements.size, step):
        part = slice(start, min(start + step, elements.size))
        block = room[: part.stop - start]
        if base is None:
            np.copyto(block, elements[part])
        else:
            np.subtract(elements[part], base.view(kind)[part], out=block)
            np.add(block, half, out=block)
        np.copyto(planes[0, part], block, casting="unsafe")
        for plane in planes[1:]:
            np.right_shift(block, kind.type(8), out=block)
            np.copyto(plane[part], block, casting="unsafe")
    return planes.reshape(-1)


def from_planes(planes: np.ndarray, base: np.ndarray | None, width: int) -> np.ndarray:
    """Make the bytes of planes again.

    >>> from_planes(to_planes(np.uint8([1, 2, 3, 4]), np.uint8([9, 9, 9, 9]), 2), np.uint8([9, 9, 9, 9]), 2).tolist()
    [1, 2, 3, 4]
    """
    if width == 1 and base is None:
        return planes
    kind, half = _unsigned(width)
    by_plane = planes.reshape(width, -1)
    elements = np.empty(by_plane.shape[1], kind)
    step = _BLOCK // width * min(width, 2)
    for start in range(0, elements.size, step):
        part = slice(start, start + step)
        block = elements[part]
        np.copyto(block, by_plane[-1, part])
        for plane in by_plane[-2::-1]:
            np.left_shift(block, kind.type(8), out=block)
            np.bitwise_or(block, plane[part], out=block)
        if base is not None:
            np.subtract(block, half, out=block)
            np.add(block, base.view(kind)[part], out=block)
    return elements.view(np.uint8)
