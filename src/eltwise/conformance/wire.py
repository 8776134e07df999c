"""The messages between the referee and the process of a runtime: frames of JSON and raw bytes, checked when read.

A frame is two lengths of 4 bytes each (little-endian), a JSON object, and the bytes of the arrays that it describes.
Nothing is executed that is read from a frame, and no more is allocated than ``LARGEST`` bytes.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, BinaryIO

import numpy as np

from eltwise.conformance.cases import Around, Case
from eltwise.core.dtypes import BY_NAME, of_numpy
from eltwise.core.errors import FileFormatError
from eltwise.ops import registry

LENGTHS = struct.Struct("<II")
LARGEST = 1 << 28
"""How many bytes the JSON or the arrays of one frame may have."""

_AROUND = ("is_cast", "slot", "constants", "is_dynamic", "is_shared", "is_followed")
"""What is said as it is of what stands around the node of a case."""


@dataclass(frozen=True)
class Message:
    """One frame: plain fields and arrays."""

    fields: dict[str, object]
    arrays: tuple[np.ndarray, ...] = ()


def encode(message: Message) -> bytes:
    """Make the bytes of a frame; every array must be of an element type that runs."""
    described = [
        {"dtype": of_numpy(array.dtype).name, "shape": list(array.shape)} for array in message.arrays
    ]  # Order and strides are not sent: the bytes are those of a C-contiguous native array.
    head = json.dumps({**message.fields, "arrays": described}).encode()
    body = b"".join(array.astype(array.dtype.newbyteorder("=")).tobytes() for array in message.arrays)
    return LENGTHS.pack(len(head), len(body)) + head + body


def lengths(start: bytes) -> tuple[int, int]:
    """Read the two lengths that a frame starts with.

    Raises:
        FileFormatError: where one is larger than a frame may be.
    """
    head, body = LENGTHS.unpack(start)
    if max(head, body) > LARGEST:
        raise FileFormatError("a frame is too large", got=f"{head} and {body} bytes", allowed=f"{LARGEST} bytes")
    return head, body


def decode(head: bytes, body: bytes) -> Message:
    """Read a frame.

    Raises:
        FileFormatError: where the JSON does not describe the bytes.
    """
    try:
        fields = json.loads(head)
        described = [(BY_NAME[item["dtype"]], tuple(map(int, item["shape"]))) for item in fields.pop("arrays")]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise FileFormatError("a frame is no description of arrays", got=repr(head[:60])) from None
    arrays, position = [], 0
    for element_type, shape in described:
        if min(shape, default=0) < 0 or not element_type.runs:
            raise FileFormatError("a frame describes no array", got=f"{element_type} {shape}")
        end = position + prod(shape) * element_type.storage.itemsize
        if end > len(body):
            raise FileFormatError("a frame has fewer bytes than it says", got=str(len(body)), allowed=str(end))
        arrays.append(np.frombuffer(body[position:end], element_type.storage).reshape(shape).copy())
        position = end
    return Message(fields, tuple(arrays))


def receive(stream: BinaryIO) -> Message | None:
    """Read the next frame of a stream; None at its end.

    Raises:
        FileFormatError: where it is none.
    """
    start = stream.read(LENGTHS.size)
    if len(start) < LENGTHS.size:
        return None
    head, body = lengths(start)
    return decode(stream.read(head), stream.read(body))


def send(stream: BinaryIO, message: Message) -> None:
    """Write a frame to a stream."""
    stream.write(encode(message))
    stream.flush()


def question(path: str, groups: Sequence[Sequence[Case]], thrifty: bool) -> Message:
    """Ask for cases: each group is to be asked in one model where the path has models; ``answers`` says the rest."""
    cases = [case for group in groups for case in group]
    fields: dict[str, object] = {
        "path": path,
        "thrifty": thrifty,
        "groups": [len(group) for group in groups],
        "cases": [_described(case) for case in cases],
    }
    return Message(fields, tuple(array for case in cases for array in _arrays(case)))


def _described(case: Case) -> dict[str, object]:
    fields: dict[str, object] = {"op": case.schema.versioned_name, "attributes": list(case.attributes)}
    if case.around is not None:
        around = {name: getattr(case.around, name) for name in _AROUND}
        maker = case.around.maker
        fields["around"] = around | {"maker": maker and maker.versioned_name}
    return fields


def _arrays(case: Case) -> tuple[np.ndarray, ...]:
    return (case.a, case.b) if case.around is None else (case.a, case.b, case.around.x, case.around.y)


def asked(message: Message) -> tuple[str, list[list[Case]], bool]:
    """Read a question: the path, the groups of cases, and whether to be thrifty."""
    path, sizes, described = (message.fields[name] for name in ("path", "groups", "cases"))
    assert isinstance(path, str)
    assert isinstance(sizes, list)
    assert isinstance(described, list)
    arrays = iter(message.arrays)
    cases = iter([_case(item, arrays) for item in described])
    return path, [[next(cases) for _place in range(size)] for size in sizes], bool(message.fields["thrifty"])


def _case(item: dict[str, Any], arrays: Iterator[np.ndarray]) -> Case:
    attributes = tuple((name, _hashable(value)) for name, value in item["attributes"])
    a, b = next(arrays), next(arrays)
    given = item.get("around")
    if given is None:
        return Case(registry.find(item["op"]), attributes, a, b)
    fields: dict[str, Any] = {name: _hashable(given[name]) for name in _AROUND}
    maker = given["maker"] and registry.find(given["maker"])
    around = Around(maker=maker, x=next(arrays), y=next(arrays), **fields)
    return Case(registry.find(item["op"]), attributes, a, b, around)


def _hashable(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value
