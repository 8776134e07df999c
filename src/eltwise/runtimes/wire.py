"""The frames that a host and a worker exchange: JSON and raw arrays, checked when they are read.

A frame is two lengths of 4 bytes each (little-endian), a JSON object, and the bytes of the arrays that it describes.
Nothing that is read is executed, and no more than ``LARGEST`` bytes are allocated.
"""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass
from math import prod
from typing import BinaryIO

import numpy as np

from eltwise.core.dtypes import BY_NAME, of_numpy
from eltwise.core.errors import FileFormatError

LARGEST = 1 << 28
"""The most bytes of the JSON or the arrays of one frame."""

_LENGTHS = struct.Struct("<II")


@dataclass(frozen=True)
class Message:
    """One frame: plain fields and arrays."""

    fields: dict[str, object]
    arrays: tuple[np.ndarray, ...] = ()


def encode(message: Message) -> bytes:
    """Make the bytes of a frame; the arrays must be of element types that run here.

    Raises:
        FileFormatError: if it is larger than a frame may be.
    """
    described = [{"dtype": of_numpy(array.dtype).name, "shape": list(array.shape)} for array in message.arrays]
    head = json.dumps({**message.fields, "arrays": described}).encode()
    body = b"".join(array.astype(array.dtype.newbyteorder("=")).tobytes() for array in message.arrays)
    _check_lengths(len(head), len(body))
    return _LENGTHS.pack(len(head), len(body)) + head + body


def decode(head: bytes, body: bytes) -> Message:
    """Read a frame.

    Raises:
        FileFormatError: if the JSON does not describe the bytes.
    """
    try:
        fields = json.loads(head)
        described = [(BY_NAME[item["dtype"]], tuple(map(int, item["shape"]))) for item in fields.pop("arrays")]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise FileFormatError("the frame does not describe its arrays", got=repr(head[:60])) from None
    arrays, position = [], 0
    for element_type, shape in described:
        if min(shape, default=0) < 0 or not element_type.runs:
            raise FileFormatError("the frame describes an array that cannot be made", got=f"{element_type} {shape}")
        end = position + prod(shape) * element_type.storage.itemsize
        if end > len(body):
            raise FileFormatError("the frame is too short", got=f"{len(body)} bytes", allowed=f"{end} bytes")
        arrays.append(np.frombuffer(body[position:end], element_type.storage).reshape(shape).copy())
        position = end
    return Message(fields, tuple(arrays))


def receive(stream: BinaryIO) -> Message | None:
    """Read the next frame of a stream; None at its end.

    Raises:
        FileFormatError: if it is not a frame.
    """
    start = stream.read(_LENGTHS.size)
    if len(start) < _LENGTHS.size:
        return None
    lengths = _LENGTHS.unpack(start)
    _check_lengths(*lengths)
    head, body = (stream.read(length) for length in lengths)
    return decode(head, body) if (len(head), len(body)) == lengths else None


def send(stream: BinaryIO, message: Message) -> None:
    """Write a frame to a stream."""
    stream.write(encode(message))
    stream.flush()


def _check_lengths(head: int, body: int) -> None:
    if max(head, body) > LARGEST:
        raise FileFormatError("the frame is too large", got=f"{head + body} bytes", allowed=f"{LARGEST} bytes")
