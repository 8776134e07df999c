"""Protobuf messages of ONNX files: parsed, and refused where their text is not text."""

from __future__ import annotations

from functools import cache
from typing import TypeVar

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import DecodeError, Message
from onnx import ModelProto, TensorProto

from eltwise.core.errors import FileFormatError

DEEPEST = 99
"""How many messages protobuf reads inside each other, below the outermost."""

_Kind = TypeVar("_Kind", ModelProto, TensorProto)


def parse_message(data: bytes, kind: type[_Kind], what: str) -> _Kind:
    """Parse the bytes of a file as a message.

    Args:
        data: the content of the file.
        kind: the message.
        what: what the file should be, for errors.

    Raises:
        FileFormatError: where the bytes are no such message, or not a whole one.
    """
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


def parse_model(data: bytes) -> ModelProto:
    """Parse the bytes of an .onnx file; the errors are those of ``parse_message``."""
    return parse_message(data, ModelProto, "an ONNX model")


def check_text(message: Message) -> None:
    """Refuse a message with a name or other text that is not UTF-8, which protobuf lets pass as bytes.

    A message that is made in memory may also be nested deeper than protobuf reads or copies one.

    The descriptions of nodes, attributes, tensors and values are left out, as they are not read.

    Raises:
        FileFormatError: naming the field.
    """
    waiting: list[tuple[Message, int]] = [(message, 0)]
    while waiting:
        current, depth = waiting.pop()
        if depth > DEEPEST:
            raise FileFormatError(
                f"a {current.DESCRIPTOR.name} is nested too deep", got=f"more than {DEEPEST} messages in each other"
            )
        texts, single, repeated = _fields(current.DESCRIPTOR)
        for name in texts:
            value = getattr(current, name)
            for text in (value,) if isinstance(value, str | bytes) else value:
                if not isinstance(text, str):
                    raise FileFormatError(
                        f"the {name} of a {current.DESCRIPTOR.name} is not UTF-8 text", got=repr(text)[:80]
                    )
        waiting += ((getattr(current, name), depth + 1) for name in single if current.HasField(name))
        for name in repeated:
            waiting += ((inner, depth + 1) for inner in getattr(current, name))


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
