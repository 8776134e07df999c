"""Nested dictionaries, lists, tuples and dataclasses as their leaves. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass

import numpy as np

from eltwise.core.errors import AttributeValueError

Keys = tuple[object, ...]

CONTAINERS = "containers"
"""What the form of containers is called among what decides on the meaning of tensors."""

_DEEPEST = 64
_OF_ARRAYS = ("__array__", "__dlpack__")
"""What a dataclass has that is an array itself."""


def items_of(value: object) -> Iterable[tuple[object, object]] | None:
    """What is in a container, with its keys, those of a dataclass the names of its fields; None for what is none.

    A key that is a scalar of NumPy is the number or the text that it equals.

    >>> items_of([4]), items_of({np.str_("a"): 4}), items_of(4)
    ([(0, 4)], [('a', 4)], None)
    """
    if isinstance(value, Mapping):
        return [(key.item() if isinstance(key, np.generic) else key, item) for key, item in value.items()]
    if isinstance(value, list | tuple):
        return list(enumerate(value))
    if is_dataclass(value) and not isinstance(value, type) and not any(hasattr(value, name) for name in _OF_ARRAYS):
        return [(field.name, getattr(value, field.name)) for field in fields(value)]
    return None


def leaves(value: object, where: str, keys: Keys = ()) -> Iterator[tuple[Keys, object]]:
    """What is in containers and is none, with its keys; an empty container in another one is a leaf: ``[]`` or ``{}``.

    Raises:
        AttributeValueError: for containers that are nested deeper than what anyone writes, such as one in itself.

    >>> list(leaves({"a": [1, ()]}, ""))
    [(('a', 0), 1), (('a', 1), [])]
    """
    if len(keys) > _DEEPEST:
        raise AttributeValueError("containers are nested too deeply", operand=where, allowed=f"{_DEEPEST} levels")
    items = items_of(value)
    if items is None or (keys and not items):
        yield keys, value if items is None else [] if isinstance(value, list | tuple) else {}
        return
    for key, item in items:
        yield from leaves(item, where, (*keys, key))


def form_of(value: object) -> str:
    """What the dotted names of leaves do not tell of containers; empty for what is none.

    That is which are lists or tuples, which are no different, nor are mappings and dataclasses, and which keys of
    mappings are no texts, or have dots.

    >>> form_of({"a": 1}), form_of({"a": [1], "b": {1: 2}})
    ('a mapping', "a mapping; 'a' is a list; 'b' is a mapping with the keys 1")
    """
    forms = list(_forms(value, ""))
    return "; ".join([*forms[:1], *sorted(forms[1:])])  # The order of keys is no difference.


def _forms(value: object, name: str) -> Iterator[str]:
    """The form of a container and of those in it; that of a mapping in another one only if its keys need it."""
    items = items_of(value)
    if items is None:
        return
    is_mapping = not isinstance(value, list | tuple)
    keys = sorted(text_of(key) for key, _item in items if not isinstance(key, str) or "." in key) if is_mapping else []
    kind = "a mapping" if is_mapping else "a list"
    if keys or not (name and is_mapping):
        yield f"{f'{name!r} is ' if name else ''}{kind}{' with the keys ' if keys else ''}{', '.join(keys)}"
    for key, item in items:
        yield from _forms(item, dotted((name, key) if name else (key,)))


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
