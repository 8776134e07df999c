"""Nested dictionaries, lists and tuples as their leaves. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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
    """The name of a leaf: its keys with dots between them."""
    return ".".join(map(str, keys))
