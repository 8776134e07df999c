"""Attributes on the command line: NAME=VALUE, parsed as the operator version declares them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

import typer

from eltwise.core.errors import AttributeValueError, UnsupportedError
from eltwise.engine.api import Operator, operator
from eltwise.ops import registry

if TYPE_CHECKING:
    from eltwise.ops.schema import OpSchema

Attributes = Annotated[
    list[str] | None, typer.Option("--attr", metavar="NAME=VALUE", help="An attribute, for example axis=1.")
]


def bound_operator(name: str, attributes: Iterable[str]) -> Operator:
    """Bind an operator version to attributes written as NAME=VALUE.

    Raises:
        EltwiseError: for an unknown name or an invalid value.
    """
    return operator(name, **_attributes(registry.find(name), attributes))


def _attributes(schema: OpSchema, texts: Iterable[str]) -> dict[str, object]:
    """Parse each NAME=VALUE by the declared kind; the schema refuses unknown names later."""
    kinds = {attribute.name: attribute.kind for attribute in schema.attributes}
    values: dict[str, object] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise AttributeValueError("this option needs NAME=VALUE", operand="--attr", got=repr(text))
        if name in values:
            raise AttributeValueError("this attribute is given twice", operand=f"attribute {name}")
        values[name] = _value(kinds.get(name, "string"), value)
    return values


def _value(kind: str, text: str) -> object:
    """Parse a value; a text of the wrong kind is returned as it is, for the schema to refuse."""
    if kind == "int":
        return _integer(text)
    if kind == "ints":
        return tuple(_integer(part) for part in text.split(",") if part)
    if kind == "boolean":
        return {"true": True, "1": True, "false": False, "0": False}.get(text.casefold(), text)
    if kind == "string":
        return text
    raise UnsupportedError(f"attributes of the kind {kind!r} are not supported on the command line")


def _integer(text: str) -> object:
    digits = text.removeprefix("-")
    return int(text) if digits.isascii() and digits.isdigit() and len(digits) < 20 else text
