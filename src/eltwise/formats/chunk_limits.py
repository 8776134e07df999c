"""What a compressed chunk may hold: sizes along a chain of codecs, headers that are checked, decoders that stop.

A chunk of N bytes may take twice that and 64 MiB while it is decoded, whatever its file says. So what goes into a codec
and what comes out of it are each at most N and half of that slack, and less for small chunks.
Texts of their own length (``vlen-utf8``) are counted as ``BYTES_OF_TEXT`` each; all that a read gives share one slack.
"""

from __future__ import annotations

import base64
import bz2
import lzma
import struct
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

SLACK = 1 << 25
"""In bytes: so much may each end of a codec hold beyond the size of the chunk."""

BYTES_OF_TEXT = 1 << 9
"""So many bytes a text is counted as, with its letters in up to two arrays."""

_BYTES_OF_OBJECTS = 1 << 7
"""What a text takes in memory at most beside its letters, as an object of Python and in an array of NumPy."""

TEXTS = "vlen-utf8"
"""The codec of texts of their own length."""

_PIECE = 1 << 16
_LONGEST_ZSTD_BLOCK = 1 << 17
_SKIPPABLE = range(0x184D2A50, 0x184D2A60)
_BLOSC_HEADER = 16

_KEEP_SIZE = ("bytes", "endian", "transpose", "shuffle", "bitround")
_OTHER_TYPE = {
    "delta": ("dtype", "astype"),
    "fixedscaleoffset": ("dtype", "astype"),
    "quantize": ("dtype", "astype"),
    "astype": ("decode_dtype", "encode_dtype"),
}
"""The codecs that store another element type: the names of the parameters with the decoded and the encoded one."""

OF_OBJECTS = ("pickle", "json", "json2", "msgpack", "msgpack2", "categorize", "vlen-bytes", "vlen-array")
"""Codecs of Python objects, which arrays of numbers and texts do not need; reading a pickle runs code."""


def longest_encoded(codec: str, config: Mapping[str, Any], size: int) -> int:
    """So many bytes a codec makes at most of ``size`` bytes.

    >>> longest_encoded("gzip", {}, 1 << 20), longest_encoded("shuffle", {}, 100)
    (2162688, 100)

    Raises:
        ValueError: for a codec of Python objects, and for one whose element type is not one of numbers.
    """
    if codec in OF_OBJECTS:
        raise ValueError(f"the codec {codec!r} stores Python objects, and only those of numbers and texts are read")
    if codec == TEXTS:
        return (size + SLACK) // 2  # See ``TextLimits``.
    if codec in _OTHER_TYPE:
        decoded, encoded = (config.get(name) for name in _OTHER_TYPE[codec])
        return size * _width(codec, encoded or decoded) // _width(codec, decoded or encoded)
    if codec in _KEEP_SIZE:
        return size
    return 2 * size + _PIECE


def _width(codec: str, element_type: object) -> int:
    storage = np.dtype(element_type)  # type: ignore[call-overload]
    if storage.kind not in "biufc":
        raise ValueError(f"the codec {codec!r} stores {storage}, and only numbers are read")
    return int(storage.itemsize)


class TextLimits:
    """What the texts of one read may take beyond the size of their chunks.

    Attributes:
        excess: how many bytes those that were checked take beyond it.
    """

    def __init__(self) -> None:
        self.excess = 0

    def check(self, data: memoryview, size: int) -> None:
        """Check a chunk of texts before it is decoded.

        Args:
            data: the chunk: how many texts it holds, and of each its length and its bytes.
            size: ``BYTES_OF_TEXT`` for each text that is expected.

        Raises:
            ValueError: for another number of texts, for another length, and where they would take too much memory.
        """
        count, stated, position = size // BYTES_OF_TEXT, int.from_bytes(data[:4], "little"), 4
        if stated != count:
            raise ValueError(f"a {TEXTS} chunk holds {stated} texts, expected {count}")
        for _ in range(count):
            position += 4 + int.from_bytes(data[position : position + 4], "little")
        if position != len(data):
            raise ValueError(f"a {TEXTS} chunk is {len(data)} bytes, and its texts need {position}")
        raw = np.frombuffer(data, np.uint8)
        first = raw[:-1][raw[1:] >= 0x80].max(initial=0)  # Of the bytes of a letter, and hardly ever one of a length.
        width = 4 if first >= 0xF0 else 2 if first >= 0xC4 else 1  # Of a letter in memory; see PEP 393.
        self.excess += max(_BYTES_OF_OBJECTS * count + (width + 1) * len(data) - size, 0)
        if self.excess > SLACK:
            raise ValueError(f"a {TEXTS} chunk is {len(data)} bytes, which is too large for {count} texts")


@dataclass(frozen=True)
class CodecLimits:
    """A codec, and how many bytes may go into its decoder and come out of it.

    Attributes:
        codec: its name in the registry of numcodecs.
        config: its parameters.
        decoded: what its decoder may give.
        encoded: what its decoder may be given.
        texts: what checks texts of their own length; None in an array of others.
    """

    codec: str
    config: Mapping[str, Any]
    decoded: int
    encoded: int
    texts: TextLimits | None = None

    def check(self, data: memoryview) -> None:
        """Check what is to be decoded, before a decoder written in C trusts its header.

        Raises:
            ValueError: where it is too long, too short for what its header says, or would become too long.
        """
        if len(data) > self.encoded:
            raise ValueError(f"a {self.codec} chunk is {len(data)} bytes, expected up to {self.encoded}")
        if self.texts is not None and self.codec == TEXTS:
            self.texts.check(data, self.decoded)
        elif self.codec == "blosc":
            _check_blosc(data, self.decoded)
        elif self.codec == "lz4":
            self.check_decoded(int.from_bytes(data[:4], "little"))
        elif self.codec == "zstd":
            stated, at_most = _zstd_sizes(data)
            if stated is not None:
                self.check_decoded(stated)
            elif at_most > self.decoded + SLACK:  # Whole blocks are counted where the frame states no size.
                raise ValueError(f"a zstd chunk holds up to {at_most} bytes, expected up to {self.decoded}")

    def check_decoded(self, size: int) -> None:
        """Check how many bytes a decoder gives, or will give."""
        if size > self.decoded:
            raise ValueError(f"a {self.codec} chunk holds {size} bytes, expected up to {self.decoded}")

    @property
    def decoder(self) -> Callable[[memoryview], memoryview] | None:
        """A decoder that stops at the limit, for the formats that state no size; None for others."""
        new = _streams(self.codec, self.config)
        if new is not None:
            return lambda data: self._decoded(data, new)
        if self.codec == "base64":
            return lambda data: memoryview(base64.b64decode(data, validate=True))
        return None

    def _decoded(self, data: memoryview, new: Callable[[], Any]) -> memoryview:
        """Decode streams that follow each other up to the end of the chunk."""
        out, size, position = np.empty(self.decoded, np.uint8), 0, 0
        while position < len(data):
            stream = new()
            while not stream.eof:
                piece = data[position : position + _PIECE]
                if not piece:
                    raise ValueError(f"a {self.codec} chunk ends too early, after {len(data)} bytes")
                part = stream.decompress(piece, self.decoded - size + 1)
                self.check_decoded(size + len(part))
                out[size : size + len(part)] = np.frombuffer(part, np.uint8)
                size, position = size + len(part), position + len(piece)
            position -= len(stream.unused_data)
        return out[:size].data


def _streams(codec: str, config: Mapping[str, Any]) -> Callable[[], Any] | None:
    """What makes a decoder that stops after so many bytes; None for codecs that have none."""
    if codec in ("gzip", "zlib"):
        bits = zlib.MAX_WBITS + (16 if codec == "gzip" else 0)
        return lambda: zlib.decompressobj(bits)
    if codec == "bz2":
        return bz2.BZ2Decompressor
    if codec == "lzma":
        form = config.get("format", lzma.FORMAT_XZ)
        filters = config.get("filters") if form == lzma.FORMAT_RAW else None
        return lambda: lzma.LZMADecompressor(format=form, filters=filters)
    return None


def _check_blosc(data: memoryview, limit: int) -> None:
    """Compare the header of a blosc chunk with its length: the C library reads as many bytes as the header says."""
    if len(data) < _BLOSC_HEADER:
        raise ValueError(f"a blosc chunk is {len(data)} bytes, expected at least {_BLOSC_HEADER}")
    _version, _lz, flags, width, size, block, length = struct.unpack("<BBBBIII", data[:_BLOSC_HEADER])
    if length != len(data):
        raise ValueError(f"a blosc chunk is {len(data)} bytes, and its header says {length}")
    if size > limit:
        raise ValueError(f"a blosc chunk holds {size} bytes, expected up to {limit}")
    is_copy = bool(flags & 2)
    if (is_copy and size + _BLOSC_HEADER != length) or not width or not 0 < block <= max(size, 1):
        raise ValueError("the header of a blosc chunk contradicts itself")
    if not is_copy and _BLOSC_HEADER + 4 * -(-size // block) > length:
        raise ValueError("a blosc chunk is too short for its blocks")
    if length + size + 2 * block > 2 * (limit + SLACK):  # Two blocks are held beside the result.
        raise ValueError(f"the blocks of a blosc chunk are {block} bytes, which is too large")


def _zstd_sizes(data: memoryview) -> tuple[int | None, int]:
    """The bytes that zstd frames state together, None where one does not, and what their blocks can hold at most."""
    stated: int | None = 0
    at_most, position = 0, 0
    while position < len(data):
        magic = int.from_bytes(data[position : position + 4], "little")
        if magic in _SKIPPABLE:
            position += 8 + int.from_bytes(data[position + 4 : position + 8], "little")
        elif magic == 0xFD2FB528:
            size, held, position = _zstd_frame(data, position + 4)
            stated, at_most = (None if size is None or stated is None else stated + size), at_most + held
        else:
            raise ValueError("a zstd chunk holds something else than zstd frames")
    if position > len(data):
        raise ValueError(f"a zstd chunk ends too early, after {len(data)} bytes")
    return stated, at_most


def _zstd_frame(data: memoryview, position: int) -> tuple[int | None, int, int]:
    """The bytes that a frame states, what its blocks can hold at most, and where it ends; see RFC 8878."""
    descriptor = int.from_bytes(data[position : position + 1], "little")
    is_single, width = descriptor >> 5 & 1, (descriptor >> 5 & 1, 2, 4, 8)[descriptor >> 6]
    window = int.from_bytes(data[position + 1 : position + 2], "little")
    position += 2 - is_single + (0, 1, 2, 4)[descriptor & 3]
    size = int.from_bytes(data[position : position + width], "little") + (256 if width == 2 else 0) if width else None
    position += width
    longest = (size or 0) if is_single else (8 + (window & 7)) << (7 + (window >> 3))
    longest, held, is_last = min(longest, _LONGEST_ZSTD_BLOCK), 0, 0
    while not is_last and position <= len(data):
        header = int.from_bytes(data[position : position + 3], "little")
        is_last, kind, length = header & 1, header >> 1 & 3, header >> 3
        held += longest if kind == 2 else length
        position += 3 + (1 if kind == 1 else length)
    return size, held, position + 4 * (descriptor >> 2 & 1)
