"""Attributes on the command line: NAME=VALUE, parsed as the operator version declares them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

import typer

from eltwise.core.errors import AttributeValueError, UnsupportedError

if TYPE_CHECKING:
    from eltwise.engine.api import Operator

Attributes = Annotated[
    list[str] | None, typer.Option("--attr", metavar="NAME=VALUE", help="An attribute, for example axis=1.")
]


def bound_operator(name: str, texts: Iterable[str]) -> Operator:
    """Bind an operator version to attributes written as NAME=VALUE; the schema refuses what it does not know."""
    from eltwise.engine.api import operator
    from eltwise.ops import registry

    kinds = {attribute.name: attribute.kind for attribute in registry.find(name).attributes}
    values: dict[str, object] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals:
            raise AttributeValueError("this option needs NAME=VALUE", operand="--attr", got=repr(text))
        if key in values:
            raise AttributeValueError("this attribute is given twice", operand=f"attribute {key}")
        values[key] = _value(kinds.get(key, "string"), value)
    return operator(name, **values)


def _value(kind: str, text: str) -> object:
    """Parse a value; a text of the wrong kind is returned as it is, for the schema to refuse."""
    match kind:
        case "int":
            return _integer(text)
        case "ints":
            return tuple(_integer(part) for part in text.split(",") if part)
        case "boolean":
            return {"true": True, "1": True, "false": False, "0": False}.get(text.casefold(), text)
        case "string":
            return text
    raise UnsupportedError(f"attributes of the kind {kind!r} are not supported on the command line")


def _integer(text: str) -> object:
    digits = text.removeprefix("-")
    return int(text) if digits.isascii() and digits.isdigit() and len(digits) < 20 else text
