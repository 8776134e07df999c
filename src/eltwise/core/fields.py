"""Checked fields of JSON and TOML: dataclasses to plain values and back, with the types that their annotations state.

An annotation may be a scalar type, ``object``, ``Literal``, a union, ``tuple[X, ...]``, ``frozenset[X]``,
``Mapping[str, X]``, a dataclass or a named tuple; ``Annotated`` adds a ``Check`` or a ``Form``. A file may be somebody
else's: whatever it holds, the error is one sentence that names the file and the path of the field in it.
"""

from __future__ import annotations

import json
import tomllib
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    NamedTuple,
    Never,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

from eltwise.core.errors import EltwiseError, FileFormatError, shown, unknown_name
from eltwise.core.escaping import shortened

T = TypeVar("T")
_Function = Callable[[Any], Any]

_LONGEST = 60
_SCALARS: dict[type, str] = {str: "a string", int: "an integer", bool: "true or false", float: "a number"}


class Check(NamedTuple):
    """For ``Annotated``: what a value must fulfil beside its type."""

    is_valid: Callable[[Any], bool]
    allowed: str  # For errors, such as ``an integer that is not negative``.


class Form(NamedTuple):
    """For ``Annotated``: a type whose values stand in files as values of another annotation."""

    annotation: Any  # Of the value in the file.
    read: _Function  # From that value; may raise an ``EltwiseError``.
    write: _Function  # Back to it.


def one_of(choices: Collection[object]) -> Check:
    """A check that a string or number is one of several."""
    return Check(frozenset(choices).__contains__, f"one of {', '.join(map(str, choices))}")


NATURAL = Check(lambda number: number >= 0, "an integer that is not negative")
Natural = Annotated[int, NATURAL]


class _InvalidError(Exception):
    """An error on its way out of the values: its path grows by a step at each."""

    def __init__(self, error: EltwiseError) -> None:
        super().__init__(str(error))
        self.error, self.path = error, ""

    def below(self, step: str) -> _InvalidError:
        self.path = f"{shortened(step, _LONGEST)}{'.' if self.path[:1] not in ('', '[') else ''}{self.path}"
        return self


def from_json(annotation: type[T], data: bytes, where: str) -> T:
    """Read a value from JSON.

    Raises:
        EltwiseError: if the data is not JSON, states a name twice or a number that is none, or the value has another
            type than the annotation; with ``where``, and the path of the field as the operand.
    """
    try:
        value = json.loads(data.decode(), object_pairs_hook=unique, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise FileFormatError(f"not JSON ({error})", where=where) from None
    return read(annotation, value, where)


def from_toml(annotation: type[T], data: bytes, where: str) -> T:
    """Read a value from TOML; raises what ``from_json`` does."""
    try:
        value = tomllib.loads(data.decode())
    except (ValueError, RecursionError) as error:
        raise FileFormatError(f"not TOML ({error})", where=where) from None
    return read(annotation, value, where)


def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON, for ``object_pairs_hook``.

    Raises:
        ValueError: where a name occurs twice.
    """
    values = dict(pairs)
    if len(values) != len(pairs):
        ((name, _count),) = Counter(name for name, _value in pairs).most_common(1)
        raise ValueError(f"the name {name!r} occurs twice")
    return values


def _no_number(text: str) -> Never:
    raise ValueError(f"{text} is not a number")


def read(annotation: type[T], value: object, where: str = "") -> T:
    """Read a value from plain values.

    Raises:
        EltwiseError: as ``from_json`` does.
    """
    try:
        result: T = _reader(cast(Any, annotation))(value)
    except _InvalidError as invalid:
        raise invalid.error.located(where=where, operand=invalid.path) from None
    return result


def plain(value: object) -> Any:
    """The plain values of a dataclass or a container; fields that are None are left out.

    >>> plain(Check(len, "text")._replace(is_valid=None))
    {'allowed': 'text'}
    """
    kind: Any = type(value)
    return _plain_of(kind)(value)


@cache
def _plain_of(kind: type) -> _Function:
    """What gives the plain values of the values of a type."""
    if is_dataclass(kind) or hasattr(kind, "_fields"):
        writers = [(name, _writer(annotation)) for name, annotation in _annotations(kind).items()]
        return lambda value: {
            name: write(item) for name, write in writers if (item := getattr(value, name)) is not None
        }
    if issubclass(kind, Mapping):
        return lambda value: {name: plain(item) for name, item in value.items()}
    if issubclass(kind, frozenset):
        return lambda value: sorted(map(plain, value))
    return (lambda value: list(map(plain, value))) if issubclass(kind, list | tuple) else _as_it_is


def _as_it_is(value: object) -> object:
    return value


def toml_text(scalar: object) -> str:
    """A string, integer or boolean as TOML, whose basic strings are those of JSON but for one control character."""
    return json.dumps(scalar, ensure_ascii=False).replace("\x7f", "\\u007f")


@cache
def _writer(annotation: Any) -> _Function:
    """Only forms need their annotation; everything else is written as what it is."""
    for form in getattr(annotation, "__metadata__", ()):
        if isinstance(form, Form):
            return lambda value: plain(form.write(value))
    annotation = getattr(annotation, "__origin__", annotation) if hasattr(annotation, "__metadata__") else annotation
    if annotation in _SCALARS:
        return _as_it_is
    origin, inner = get_origin(annotation), [each for each in get_args(annotation) if each not in (NoneType, ...)]
    if origin is tuple:
        write = _writer(inner[0])
        return list if write is _as_it_is else lambda value: list(map(write, value))
    return _writer(inner[0]) if origin in (Union, UnionType) and len(inner) == 1 else plain


def _annotations(record: type) -> dict[str, Any]:
    hints = get_type_hints(record, include_extras=True)
    names = [each.name for each in fields(record) if each.init] if is_dataclass(record) else hints
    return {name: hints[name] for name in names}


@cache
def _reader(annotation: Any) -> _Function:
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _annotated(annotation)
    if origin is Literal:
        return _annotated(Annotated[str if isinstance(inner[0], str) else int, one_of(inner)])
    if origin in (Union, UnionType):
        return _union(inner)
    if origin in (tuple, frozenset):
        return _sequence(origin, inner[0])
    if origin is not None:
        return _mapping(*inner)
    if is_dataclass(annotation) or hasattr(annotation, "_fields"):
        return _record(annotation)
    return _scalar(annotation)


def _scalar(annotation: type) -> _Function:
    if annotation is object:
        return lambda value: value

    def read(value: object) -> object:
        if not isinstance(value, annotation) or (annotation is int and isinstance(value, bool)):
            raise _invalid(value, _SCALARS[annotation])
        return value

    return read


def _annotated(annotation: Any) -> _Function:
    read_base, checks = _reader(annotation.__origin__), annotation.__metadata__
    if isinstance(checks[0], Form):
        return _converted(checks[0])

    def read(value: object) -> object:
        try:
            result = read_base(value)
        except _InvalidError as invalid:
            raise invalid if invalid.path else _invalid(value, checks[0].allowed) from None
        for check in checks:
            if not check.is_valid(result):
                raise _invalid(value, check.allowed)
        return result

    return read


def _converted(form: Form) -> _Function:
    read_base = _reader(form.annotation)

    def read(value: object) -> object:
        result = read_base(value)
        try:
            return form.read(result)
        except EltwiseError as error:
            raise _InvalidError(error) from None

    return read


def _union(members: tuple[Any, ...]) -> _Function:
    readers = [_reader(each) for each in members if each is not NoneType]
    is_optional = len(readers) < len(members)

    def read(value: object) -> object:
        if value is None and is_optional:
            return None
        for reader in readers[:-1]:
            try:
                return reader(value)
            except _InvalidError:
                continue
        return readers[-1](value)

    return read


def _sequence(origin: type, item: Any) -> _Function:
    read_item = _reader(item)

    def read(value: object) -> object:
        if not isinstance(value, list):
            raise _invalid(value, "a list")
        return origin([_below(f"[{index}]", read_item, each) for index, each in enumerate(value)])

    return read


def _mapping(key: Any, item: Any) -> _Function:
    read_key, read_item = _reader(key), _reader(item)

    def read(value: object) -> object:
        if not isinstance(value, dict):
            raise _invalid(value, "an object")
        return {_below(name, read_key, name): _below(name, read_item, each) for name, each in value.items()}

    return read


def _below(step: str, read_value: _Function, value: object) -> Any:
    """Read a value in another one; ``step`` leads to it."""
    try:
        return read_value(value)
    except _InvalidError as invalid:
        raise invalid.below(step) from None


def _record(record: type) -> _Function:
    readers = {name: _reader(annotation) for name, annotation in _annotations(record).items()}
    optional = _with_defaults(record)

    def read(value: object) -> object:
        if not isinstance(value, dict):
            raise _invalid(value, "an object")
        for name in value.keys() - readers.keys():
            raise _InvalidError(unknown_name("field", name, readers))
        present = {name: each for name, each in readers.items() if name in value or name not in optional}
        return record(**{name: _below(name, each, value.get(name)) for name, each in present.items()})

    return read


def _with_defaults(record: Any) -> Collection[str]:
    if not is_dataclass(record):
        return tuple(record._field_defaults)
    return [each.name for each in fields(record) if (each.default, each.default_factory) != (MISSING, MISSING)]


def _invalid(value: object, allowed: str) -> _InvalidError:
    return _InvalidError(FileFormatError("this value cannot be read", got=_shown(value), allowed=allowed))


def _shown(value: object) -> str:
    """A value for an error: short strings and numbers as they are, the rest by kind."""
    if isinstance(value, bool | int | float):
        return shortened(str(value), _LONGEST)
    if isinstance(value, str):
        return shown(value, _LONGEST)
    return {dict: "an object", list: "a list", NoneType: "nothing"}.get(type(value), type(value).__name__)
