"""What an attribute of an operator version is, and the canonical form of its values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple, SupportsIndex

import numpy as np

from eltwise.core.dtypes import ElementType, by_name, not_run, of_numpy
from eltwise.core.errors import AttributeValueError, ElementTypeError, UnsupportedError, shown

AttributeKind = Literal["int", "ints", "float", "floats", "string", "element type", "boolean", "tensor", "not run"]
AttributeValue = object
"""An int, a tuple of ints, a string, an element type or a tensor, as the attribute's kind says; hashable."""


class Attribute(NamedTuple):
    """One attribute of an operator version.

    Attributes:
        name: the specification's name.
        kind: what its value is.
        default: the value where it is absent; None means that absence has a meaning of its own.
        choices: the allowed values; empty where the kind alone limits it.
        synonyms: other spellings of a choice.
        required: whether it must be there.
        meaning: one sentence.
        limits: the least and the greatest integer that are allowed; None where the kind alone limits it.
    """

    name: str
    kind: AttributeKind
    default: AttributeValue = None
    choices: tuple[AttributeValue, ...] = ()
    synonyms: tuple[tuple[str, str], ...] = ()
    required: bool = False
    meaning: str = ""
    limits: tuple[int, int] | None = None

    def checked(self, value: object, operator: str) -> AttributeValue:
        """Bring a value to its canonical form.

        Raises:
            AttributeValueError: where its type or value is not allowed.
            ElementTypeError: where its value is an element type that is not allowed.
            UnsupportedError: where the attribute is valid but unsupported.
        """
        if self.kind == "not run":
            raise UnsupportedError("this attribute is unsupported", operator=operator, operand=f"attribute {self.name}")
        kind, canonical_form = _KINDS[self.kind]
        canonical = canonical_form(value)
        if isinstance(canonical, str) and self.choices and canonical not in self.choices:
            canonical = dict(self.synonyms).get(canonical.casefold(), canonical.casefold())
        is_allowed = canonical is not None and (not self.choices or canonical in self.choices)
        if self.limits and isinstance(canonical, int):
            kind, is_allowed = (
                "an integer from {} to {}".format(*self.limits),
                self.limits[0] <= canonical <= self.limits[1],
            )
        if not is_allowed:
            # Types that a version allows and that do not run are not among the choices.
            is_type = isinstance(canonical, ElementType)
            if isinstance(canonical, ElementType) and not canonical.runs:
                allowed = [each for each in self.choices if isinstance(each, ElementType)]
                raise not_run(canonical, allowed, operator=operator, operand=f"attribute {self.name}")
            raise (ElementTypeError if is_type else AttributeValueError)(
                "this element type is not allowed" if is_type else "this value is not allowed",
                operator=operator,
                operand=f"attribute {self.name}",
                got=shown(value),
                allowed=", ".join(map(str, self.choices)) or kind,
            )
        return canonical


def _integer(value: object) -> int | None:
    if type(value) is int:  # What most attributes are; to look for the protocol takes longer than all the rest.
        whole = value
    elif isinstance(value, bool) or not isinstance(value, SupportsIndex):
        return None
    else:
        try:
            whole = value.__index__()
        except TypeError:  # NumPy's arrays have __index__, but few are one integer.
            return None
    return whole if -(2**63) <= whole < 2**63 else None


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _list_of(item: Callable[[object], AttributeValue]) -> Callable[[object], AttributeValue]:
    def checked(value: object) -> AttributeValue:
        items = tuple(map(item, value)) if isinstance(value, list | tuple) else (None,)
        return None if None in items else items

    return checked


def _instance(kind: type) -> Callable[[object], AttributeValue]:
    return lambda value: value if isinstance(value, kind) else None


def _element_type(value: object) -> ElementType | None:
    if isinstance(value, ElementType):
        return value
    if isinstance(value, str):
        return by_name(value)
    return of_numpy(np.dtype(value)) if isinstance(value, type | np.dtype) else None


_KINDS: dict[AttributeKind, tuple[str, Callable[[object], AttributeValue]]] = {
    "int": ("an integer of 64 bits", _integer),
    "ints": ("a list of integers", _list_of(_integer)),
    "float": ("a number", _number),
    "floats": ("a list of numbers", _list_of(_number)),
    "string": ("a text", _instance(str)),
    "boolean": ("true or false", _instance(bool)),
    "element type": ("an element type", _element_type),
    "tensor": ("a tensor", lambda value: value),
}
"""For each kind its name in words, and the canonical form of a value; None where a value is of another kind."""
