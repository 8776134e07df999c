"""Protobuf messages of ONNX files: parsed, checked to be text where they must be, and walked through."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import TypeVar

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import DecodeError, Message
from onnx import ModelProto, NodeProto, TensorProto

from eltwise.core.errors import FileFormatError, shown

_DEEPEST = 99
"""How many messages protobuf reads inside each other, below the outermost."""

_Kind = TypeVar("_Kind", ModelProto, TensorProto)


def parse_message(data: bytes, kind: type[_Kind], what: str) -> _Kind:
    """Parse the bytes of a file as a message; ``what`` says in errors what the file should be."""
    if not data:
        raise FileFormatError("the file is empty", allowed=what)
    try:
        message: _Kind = kind.FromString(data)
    except DecodeError:
        raise FileFormatError(
            f"this is not {what}, or a part of it is missing",
            got=f"{len(data)} bytes that are no such protobuf message",
        ) from None
    check_text(message)
    return message


def check_text(message: Message) -> None:
    """Refuse a message with a name or other text that is not UTF-8, which protobuf lets pass as bytes.

    The descriptions of nodes, attributes, tensors and values are left out, as they are not read.
    """
    for inner in walk(message):
        for name in _fields(inner.DESCRIPTOR)[0]:
            value = getattr(inner, name)
            for text in (value,) if isinstance(value, str | bytes) else value:
                if not isinstance(text, str):
                    raise FileFormatError(f"the {name} of a {inner.DESCRIPTOR.name} is not UTF-8 text", got=shown(text))


def walk(message: Message, whole: type[Message] | tuple[()] = ()) -> Iterator[Message]:
    """A message and all messages in it, in the file's order, but not those in messages that are taken as a ``whole``.

    Fields that hold bytes are not looked at.
    """
    waiting = [(message, 0)]
    while waiting:
        current, depth = waiting.pop()
        if depth > _DEEPEST:
            kind = current.DESCRIPTOR.name
            raise FileFormatError(f"a {kind} is nested too deep", got=f"more than {_DEEPEST} messages in each other")
        yield current
        if isinstance(current, whole):
            continue
        _texts, single, repeated = _fields(current.DESCRIPTOR)
        inner = [getattr(current, name) for name in single if current.HasField(name)]
        for name in repeated:
            inner += getattr(current, name)
        waiting += [(one, depth + 1) for one in reversed(inner)]


@cache
def _fields(descriptor: Descriptor) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """The names of a message's fields that hold text, one message, and several messages."""
    described = descriptor.name in ("ModelProto", "GraphProto")
    texts = [field.name for field in descriptor.fields if field.type == FieldDescriptor.TYPE_STRING]
    messages = [field for field in descriptor.fields if field.type == FieldDescriptor.TYPE_MESSAGE]
    return (
        tuple(name for name in texts if described or name != "doc_string"),
        tuple(field.name for field in messages if field.has_presence),
        tuple(field.name for field in messages if not field.has_presence),
    )


_LEAST_FILE_VERSION = 8
"""No older version is asked for: files of it are read by every runtime."""

_LAST_TYPES = ((16, 0), (20, 9), (22, 10), (23, 11), (24, 12), (26, 13))
"""The number of the last element type of all before float8, then of versions that brought new ones."""

_NEWER_TYPES = 14
_VERSION_OF_FIELD = {
    "attribute_proto": 9,
    "overload": 10,
    "metadata_props": 10,
    "configuration": 11,
    "device_configurations": 11,
    "opaque_type": 14,
}
_TYPE_FIELDS = ("data_type", "elem_type", "key_type")
_TYPE_ATTRIBUTES = ("to", "dtype", "output_dtype", "softmax_precision", "stash_type")


def version_of_type(number: int) -> int:
    """The first ``ir_version`` that has the element type of a number; 0 where every one has it."""
    return next((version for last, version in _LAST_TYPES if number <= last), _NEWER_TYPES)


def needed_file_version(model: ModelProto) -> tuple[int, str]:
    """Find the oldest ``ir_version``, from 8 on, that has everything which a model holds.

    Source: the comments on the versions in onnx.proto.

    Returns:
        The version, and what needs it, in words.
    """
    needs = [(_LEAST_FILE_VERSION, "")]
    for message in walk(model):
        kind, fields = message.DESCRIPTOR.name, message.DESCRIPTOR.fields_by_name
        for name, version in _VERSION_OF_FIELD.items():
            if name not in fields or (name, kind) == ("metadata_props", "ModelProto"):  # That one was always there.
                continue
            if message.HasField(name) if fields[name].has_presence else getattr(message, name):
                needs.append((version, f"the {name} of a {kind}"))
        numbers = [getattr(message, name) for name in _TYPE_FIELDS if name in fields and not fields[name].message_type]
        needs += [(version_of_type(number), f"element type {number}") for number in numbers]
        for attribute in message.attribute if isinstance(message, NodeProto) else ():
            if attribute.name in _TYPE_ATTRIBUTES:
                reason = f"element type {attribute.i} of a {message.op_type}"
                needs.append((version_of_type(attribute.i), reason))
    return max(needs, key=lambda need: need[0])
