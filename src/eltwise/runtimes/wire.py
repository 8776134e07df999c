"""The frames that a host and a worker exchange: JSON and raw arrays, checked when they are read.

A frame is two lengths of 4 bytes each (little-endian), a JSON object, and the bytes of the arrays that it describes.
Nothing that is read is executed, and no more than ``LARGEST`` bytes are allocated. Where both sides share memory, large
arrays lie there, and the frame says where.
"""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass
from math import prod
from typing import BinaryIO

import numpy as np

from eltwise.core.dtypes import BY_NAME, native, of_numpy
from eltwise.core.errors import FileFormatError, shown
from eltwise.runtimes.memory import SharedMemory

LARGEST = 1 << 28
"""The most bytes of the JSON or the arrays of one frame."""

_LENGTHS = struct.Struct("<II")
_LARGE = 1 << 12
"""Arrays of so many bytes go into shared memory."""


@dataclass(frozen=True)
class Message:
    """One frame: plain fields and arrays."""

    fields: dict[str, object]
    arrays: tuple[np.ndarray, ...] = ()


def encode(message: Message, memory: SharedMemory | None = None) -> bytes:
    """Make the bytes of a frame; the arrays must be of element types that run here.

    Raises:
        FileFormatError: if it is larger than a frame may be.
    """
    described: list[dict[str, object]] = []
    parts = []
    for array in message.arrays:
        elements = native(array)
        described.append({"dtype": of_numpy(elements.dtype).name, "shape": list(elements.shape)})
        if memory is not None and elements.nbytes >= _LARGE:
            described[-1]["at"] = memory.put(elements)
        else:
            parts.append(elements.tobytes())
    head, body = json.dumps({**message.fields, "arrays": described}).encode(), b"".join(parts)
    _check_lengths(len(head), len(body))
    return _LENGTHS.pack(len(head), len(body)) + head + body


def decode(head: bytes, body: bytes, memory: SharedMemory | None = None) -> Message:
    """Read a frame; arrays in shared memory are not copied.

    Raises:
        FileFormatError: if the JSON does not describe the bytes.
    """
    try:
        fields = json.loads(head)
        described = [
            (BY_NAME[item["dtype"]], tuple(map(int, item["shape"])), item.get("at")) for item in fields.pop("arrays")
        ]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise FileFormatError("the frame does not describe its arrays", got=shown(head, 60)) from None
    arrays, position = [], 0
    for element_type, shape, offset in described:
        if min(shape, default=0) < 0 or not element_type.runs:
            raise FileFormatError("the frame describes an array that cannot be made", got=f"{element_type} {shape}")
        if memory is not None and isinstance(offset, int):
            arrays.append(memory.at(offset, element_type.storage, shape))
            continue
        end = position + prod(shape) * element_type.storage.itemsize
        if end > len(body):
            raise FileFormatError("the frame is too short", got=f"{len(body)} bytes", allowed=f"{end} bytes")
        arrays.append(np.frombuffer(body[position:end], element_type.storage).reshape(shape).copy())
        position = end
    return Message(fields, tuple(arrays))


def receive(stream: BinaryIO, memory: SharedMemory | None = None) -> Message | None:
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
    return decode(head, body, memory) if (len(head), len(body)) == lengths else None


def send(stream: BinaryIO, message: Message, memory: SharedMemory | None = None) -> None:
    """Write a frame to a stream."""
    stream.write(encode(message, memory))
    stream.flush()


def _check_lengths(head: int, body: int) -> None:
    if max(head, body) > LARGEST:
        raise FileFormatError("the frame is too large", got=f"{head + body} bytes", allowed=f"{LARGEST} bytes")
