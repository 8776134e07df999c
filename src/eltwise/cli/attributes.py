"""Attributes as they are written at the shell: NAME=VALUE, read by the kind that the row gives them."""

from __future__ import annotations

from collections.abc import Iterable

from eltwise.core.errors import AttributeValueError, UnsupportedError
from eltwise.engine.api import Operator, operator
from eltwise.ops import registry
from eltwise.ops.schema import OpSchema


def bound_operator(name: str, attributes: Iterable[str]) -> Operator:
    """Bind a versioned name to attributes as they are written at the shell, NAME=VALUE.

    Raises:
        EltwiseError: for a name or a value that the row does not have.
    """
    return operator(name, **_attributes(registry.find(name), attributes))


def _attributes(schema: OpSchema, texts: Iterable[str]) -> dict[str, object]:
    """Read NAME=VALUE by the kind that the row gives the attribute; an unknown name is left for the row to refuse."""
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
    """A value as its attribute's kind; a text that is none is handed on, for the row to refuse."""
    if kind == "int":
        return _integer(text)
    if kind == "ints":
        return tuple(_integer(part) for part in text.split(",") if part)
    if kind == "string":
        return text
    raise UnsupportedError(f"attributes of the kind {kind!r} cannot be given here")


def _integer(text: str) -> object:
    digits = text.removeprefix("-")
    return int(text) if digits.isascii() and digits.isdigit() and len(digits) < 20 else text
