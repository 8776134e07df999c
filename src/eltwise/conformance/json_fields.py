"""Values out of a JSON or TOML file that somebody else may have written: each is checked where it is taken."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

from eltwise.core.errors import FileFormatError

Value = TypeVar("Value", str, int, bool, list[object])
Choice = TypeVar("Choice", bound=str)

_IN_WORDS: dict[type, str] = {
    str: "a string",
    int: "an integer that is not negative",
    bool: "true or false",
    list: "a list",
}


class Fields:
    """The fields of one object; every error names the place in the file."""

    def __init__(self, value: object, place: str) -> None:
        if not isinstance(value, dict):
            raise FileFormatError(f"{place} is not an object", got=_kind(value))
        self._values: dict[str, object] = value
        self._place = place

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def has(self, name: str) -> bool:
        """Whether a field is there and not null."""
        return self._values.get(name) is not None

    def value(self, name: str) -> object:
        """A field whatever it is; None where it is absent."""
        return self._values.get(name)

    def take(self, name: str, kind: type[Value], otherwise: Value | None = None) -> Value:
        """A field of a type; without ``otherwise`` it must be there."""
        value = self._values.get(name, otherwise)
        if not isinstance(value, kind) or (kind is int and (isinstance(value, bool) or value < 0)):
            raise self.error(name, _IN_WORDS[kind])
        return value

    def each(self, name: str, kind: type[Value]) -> tuple[Value, ...]:
        """A list of values of a type."""
        return tuple(Fields({name: value}, self._place).take(name, kind) for value in self.take(name, list))

    def choice(self, name: str, choices: Sequence[Choice], otherwise: Choice | None = None) -> Choice:
        """One of some texts."""
        value = self._values.get(name, otherwise)
        for choice in choices:
            if choice == value:
                return choice
        raise self.error(name, f"one of {', '.join(choices)}")

    def inner(self, name: str) -> Fields:
        """An object within this one."""
        return Fields(self._values.get(name), f"{self._place}, field {name!r}")

    def items(self, name: str, what: str) -> Iterator[Fields]:
        """The objects of a list; ``what`` names one of them in errors."""
        for number, value in enumerate(self.take(name, list)):
            yield Fields(value, f"{what} {number}")

    def error(self, name: str, allowed: str) -> FileFormatError:
        """Make the error for a field that cannot be read."""
        value = self._values.get(name)
        got = "nothing" if value is None else _kind(value)
        return FileFormatError(f"{self._place}: field {name!r} cannot be read", got=got, allowed=allowed)


def _kind(value: object) -> str:
    """A value in a few words: short texts and numbers as they are, the rest by kind."""
    if isinstance(value, bool | int | float):
        return str(value)[:40]
    if isinstance(value, str):
        return repr(value if len(value) <= 60 else f"{value[:57]}...")
    return {dict: "an object", list: "a list", type(None): "nothing"}.get(type(value), type(value).__name__)
