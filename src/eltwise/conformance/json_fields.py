"""Values out of a JSON file that somebody else may have written: each is checked where it is taken."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeVar

from eltwise.core.errors import FileFormatError
from eltwise.formats import files

LARGEST_FILE = 2**30
"""The largest JSON file that is read, in bytes."""

Choice = TypeVar("Choice", bound=str)


class Fields:
    """The fields of one JSON object; every error names the place in the file."""

    def __init__(self, value: object, place: str) -> None:
        if not isinstance(value, dict):
            raise FileFormatError(f"{place} is not a JSON object", got=_kind(value))
        self._values: dict[str, object] = value
        self._place = place

    def has(self, name: str) -> bool:
        """Whether a field is there and not null."""
        return self._values.get(name) is not None

    def value(self, name: str) -> object:
        """A field whatever it is; None where it is absent."""
        return self._values.get(name)

    def text(self, name: str, otherwise: str | None = None) -> str:
        """A text; without ``otherwise`` it must be there."""
        value = self._values.get(name, otherwise)
        if not isinstance(value, str):
            raise self._wrong(name, "a string", value)
        return value

    def choice(self, name: str, choices: Sequence[Choice], otherwise: Choice | None = None) -> Choice:
        """One of some texts."""
        value = self._values.get(name, otherwise)
        for choice in choices:
            if choice == value:
                return choice
        raise self._wrong(name, f"one of {', '.join(choices)}", value)

    def count(self, name: str, otherwise: int | None = None) -> int:
        """A whole number that is not negative."""
        value = self._values.get(name, otherwise)
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise self._wrong(name, "an integer that is not negative", value)
        return value

    def counts(self, name: str) -> tuple[int, ...]:
        """A list of whole numbers that are not negative."""
        return tuple(Fields({name: value}, self._place).count(name) for value in self._list(name))

    def flag(self, name: str) -> bool:
        """True or false; false where it is absent."""
        value = self._values.get(name, False)
        if not isinstance(value, bool):
            raise self._wrong(name, "true or false", value)
        return value

    def texts(self, name: str) -> dict[str, str]:
        """An object of texts; empty where it is absent."""
        if not self.has(name):
            return {}
        texts = self.inner(name)
        return {key: texts.text(key) for key in texts}

    def words(self, name: str) -> tuple[str, ...]:
        """A list of texts."""
        return tuple(Fields({name: value}, self._place).text(name) for value in self._list(name))

    def lists_of_words(self, name: str) -> Iterator[tuple[str, ...]]:
        """A list of lists of texts."""
        for value in self._list(name):
            yield Fields({name: value}, self._place).words(name)

    def patterns(self, name: str, bits: int) -> tuple[int, ...]:
        """A list of bit patterns written as ``"0xff"``, each of at most so many bits."""
        return tuple(self._pattern(name, value, bits) for value in self._list(name))

    def inner(self, name: str) -> Fields:
        """An object within this one."""
        return Fields(self._values.get(name), f"{self._place}, field {name!r}")

    def items(self, name: str, what: str) -> Iterator[Fields]:
        """The objects of a list; ``what`` names one of them in errors."""
        for number, value in enumerate(self._list(name)):
            yield Fields(value, f"{what} {number}")

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def error(self, name: str, allowed: str) -> FileFormatError:
        """Make the error for a field whose value means nothing here."""
        return self._wrong(name, allowed, self._values.get(name))

    def _list(self, name: str) -> list[object]:
        value = self._values.get(name)
        if not isinstance(value, list):
            raise self._wrong(name, "a list", value)
        return value

    def _pattern(self, name: str, value: object, bits: int) -> int:
        digits = value[2:] if isinstance(value, str) and value.startswith("0x") else ""
        if not 0 < len(digits) <= 16 or not all(digit in "0123456789abcdefABCDEF" for digit in digits):
            raise self._wrong(name, "bit patterns such as 0xff", value)
        pattern = int(digits, 16)
        if pattern >> bits:
            raise self._wrong(name, f"at most {bits} bits", value)
        return pattern

    def _wrong(self, name: str, allowed: str, value: object) -> FileFormatError:
        got = "nothing" if value is None else _kind(value)
        return FileFormatError(f"{self._place}: field {name!r} cannot be read", got=got, allowed=allowed)


def read_object(path: Path) -> Fields:
    """Read a file that holds one JSON object.

    Raises:
        FileFormatError: if there is no such file, or it holds something else.
    """
    data = files.read_bytes(path, LARGEST_FILE)
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise FileFormatError(f"not a JSON file ({error})", where=str(path)) from None
    return Fields(value, "the file")


def _kind(value: object) -> str:
    """A value in a few words: short texts and numbers as they are, the rest by kind."""
    if isinstance(value, bool | int | float):
        return str(value)[:40]
    if isinstance(value, str):
        return repr(value if len(value) <= 60 else f"{value[:57]}...")
    return {dict: "an object", list: "a list", type(None): "nothing"}.get(type(value), type(value).__name__)
