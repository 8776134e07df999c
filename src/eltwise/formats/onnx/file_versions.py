"""The oldest ``ir_version`` in which a model can be written as it is.

Source: the comments on the versions in onnx.proto, from version 8 on.
"""

from __future__ import annotations

from google.protobuf.message import Message
from onnx import ModelProto, NodeProto

LEAST = 8
"""No older version is asked for: files of it are read by every runtime."""

_TYPES = {
    **dict.fromkeys(range(17, 21), 9),  # float8
    **dict.fromkeys((21, 22), 10),  # 4-bit integers
    23: 11,  # float4
    24: 12,  # float8 of exponents
    **dict.fromkeys((25, 26), 13),  # 2-bit integers
}
_NEWER_TYPES = 14
_FIELDS = {
    "attribute_proto": 9,
    "overload": 10,
    "configuration": 11,
    "device_configurations": 11,
    "opaque_type": 14,
}
_TYPE_FIELDS = ("data_type", "elem_type", "key_type")
_TYPE_ATTRIBUTES = ("to", "dtype", "output_dtype", "softmax_precision", "stash_type")


def needed_file_version(model: ModelProto) -> tuple[int, str]:
    """Find the oldest version that has everything which a model holds.

    Returns:
        The version, and what needs it, in words.
    """
    needed, reason = LEAST, ""
    waiting: list[Message] = [model]
    while waiting:
        message = waiting.pop()
        for version, words in _needs(message):
            if version > needed:
                needed, reason = version, words
        for field, value in message.ListFields():
            if field.message_type is not None:
                waiting += [value] if isinstance(value, Message) else value
    return needed, reason


def _needs(message: Message) -> list[tuple[int, str]]:
    found = []
    kind = message.DESCRIPTOR.name
    for field, value in message.ListFields():
        if field.name in _FIELDS:
            found.append((_FIELDS[field.name], f"the field {field.name} of a {kind}"))
        if field.name == "metadata_props" and kind not in ("ModelProto",):
            found.append((10, f"the metadata of a {kind}"))
        # The ``elem_type`` of a sequence or an optional is a message, which is looked into by itself.
        if field.name in _TYPE_FIELDS and field.message_type is None:
            found.append((_version_of(value), f"element type {value}"))
    if isinstance(message, NodeProto):
        types = [attribute.i for attribute in message.attribute if attribute.name in _TYPE_ATTRIBUTES]
        found += [(_version_of(number), f"element type {number} of a {message.op_type}") for number in types]
    return found


def _version_of(number: int) -> int:
    if number <= 16:
        return LEAST
    return _TYPES.get(number, _NEWER_TYPES)
