"""Nested dictionaries, lists and tuples as their leaves. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from eltwise.core.errors import AttributeValueError

Keys = tuple[object, ...]

_DEEPEST = 64


def leaves(value: object, where: str, keys: Keys = ()) -> Iterator[tuple[Keys, object]]:
    """What is in containers and is none, with its keys; an empty container in another one is a leaf.

    Raises:
        AttributeValueError: for containers that are nested deeper than what anyone writes, such as one in itself.

    >>> list(leaves({"a": [1, ()]}, ""))
    [(('a', 0), 1), (('a', 1), ())]
    """
    if len(keys) > _DEEPEST:
        raise AttributeValueError("containers are nested too deeply", operand=where, allowed=f"{_DEEPEST} levels")
    is_container = isinstance(value, Mapping | list | tuple)
    if not is_container or (keys and not value):
        yield keys, value
        return
    items: Any = value.items() if isinstance(value, Mapping) else enumerate(value)  # type: ignore[arg-type]
    for key, item in items:
        yield from leaves(item, where, (*keys, key))


def dotted(keys: Keys) -> str:
    """The name of a leaf: its keys with dots between them.

    Raises:
        AttributeValueError: for a key that has no text.
    """
    return ".".join(text_of(key, str) for key in keys)


def text_of(value: object, form: Callable[[object], str] = repr) -> str:
    """The text of a value; of an integer that has more digits than Python writes out the hexadecimal one.

    Raises:
        AttributeValueError: for an object that fails when its text is asked for.

    >>> text_of("a"), text_of("a", str), text_of(2**20000)[:4]
    ("'a'", 'a', '0x10')
    """
    try:
        return form(value)
    except Exception:  # noqa: BLE001 - objects that are somebody else's raise what they like
        if isinstance(value, int):
            return hex(value)
        raise AttributeValueError("a value has no text", got=f"an object of {type(value).__name__}") from None
