"""What every report can do, in Python, in notebooks and as JSON."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Never, TypeVar, overload

from eltwise.core.border import public
from eltwise.core.errors import NameUnknownError, UnsupportedError, shown, unknown_name
from eltwise.core.escaping import to_json
from eltwise.core.exit_codes import ExitCode
from eltwise.core.foreign import library
from eltwise.formats import files
from eltwise.kernels.float_mode import default_mode

if TYPE_CHECKING:
    import pandas

RecordT = TypeVar("RecordT")

JSON_VERSION = 1
"""The version of everything that is written as JSON; it grows where a field goes or gets another meaning."""


def json_document(kind: str, fields: Mapping[str, object]) -> str:
    """Write fields as JSON with what they are and the version of that; what is not finite is a text such as ``"inf"``.

    Args:
        kind: names the schema, ``docs/reference/schemas/KIND.json``.
        fields: plain values.
    """
    return to_json(_finite({"format": f"eltwise-{kind}", "version": JSON_VERSION, **fields}), indent=2)


def saved(text: str, path: str | os.PathLike[str] | None) -> str:
    """Write a text to a file, if one is named; returns the text."""
    if path is not None:
        files.write_text(Path(path), text.rstrip("\n") + "\n")
    return text


class BaseReport(Generic[RecordT]):
    """A sequence of records, such as the nodes that were changed, with what is to be said of all of them.

    A dataclass of it says which field has the records, and what names them.
    """

    json_kind: ClassVar[str]
    """What its JSON is: the name of the schema."""

    records_field: ClassVar[str]
    """The field that has the records."""

    record_names: ClassVar[tuple[str, ...]] = ("name",)
    """The fields of a record that name it."""

    @property
    def exit_code(self) -> ExitCode:
        """Of a command that ends with this report."""
        raise NotImplementedError

    @property
    def is_good(self) -> bool:
        """Whether what was to be checked was checked, and nothing was found that counts."""
        return self.exit_code is ExitCode.GOOD

    @property
    def summary(self) -> str:
        """The result in a line."""
        return str(self).partition("\n")[0]

    def to_dict(self) -> dict[str, object]:
        """Everything as plain values: the fields of the JSON."""
        raise NotImplementedError

    @public
    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """The report as JSON, written to a file if one is named; what is not finite is a text such as ``"inf"``."""
        with default_mode():
            return saved(json_document(self.json_kind, self.to_dict()), path)

    @public
    def to_html(self, path: str | os.PathLike[str] | None = None) -> str:
        """The report as one page that needs nothing else, written to a file if one is named."""
        with default_mode():
            return saved(self._page(), path)

    def _page(self) -> str:
        """The page; that of a report without pictures is its text."""
        head = f'<meta charset="utf-8">\n<title>{escape(self.summary)}</title>'
        body = f"<pre>{escape(str(self))}</pre>"
        return f'<!doctype html>\n<html lang="en">\n<head>\n{head}\n</head>\n<body>\n{body}\n</body>\n</html>\n'

    @public
    def to_pandas(self) -> pandas.DataFrame:
        """The records as a DataFrame, a row each.

        Raises:
            UnsupportedError: where pandas is not installed.
        """
        records: Iterable[Any] = self
        frame: pandas.DataFrame = library("pandas", "a DataFrame").DataFrame([record.to_dict() for record in records])
        return frame

    def _repr_html_(self) -> str:
        """For notebooks."""
        return f"<pre>{escape(str(self))}</pre>"

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.summary}>"

    def __bool__(self) -> Never:
        raise UnsupportedError("a report is neither true nor false", hint="ask its is_good, or its length")

    @property
    def _records(self) -> Sequence[RecordT]:
        records: Sequence[RecordT] = getattr(self, self.records_field)
        return records

    def __iter__(self) -> Iterator[RecordT]:
        return iter(self._records)

    def __len__(self) -> int:
        return len(self._records)

    def __contains__(self, item: object) -> bool:
        return any(item in self._names(record) if isinstance(item, str) else item == record for record in self)

    @overload
    def __getitem__(self, key: str | int) -> RecordT: ...
    @overload
    def __getitem__(self, key: slice) -> Sequence[RecordT]: ...
    @public
    def __getitem__(self, key: str | int | slice) -> RecordT | Sequence[RecordT]:
        """The first record of a name, one by its number, or some by a slice of numbers."""
        if isinstance(key, str):
            for record in self:
                if key in self._names(record):
                    return record
            raise unknown_name("record", key, [name for record in self for name in self._names(record)])
        try:
            return self._records[key]
        except (IndexError, TypeError):
            allowed = f"a name, or a number below {len(self)}"
            raise NameUnknownError("there is no such record", got=shown(key), allowed=allowed) from None

    def _names(self, record: RecordT) -> list[str]:
        return [name for field in self.record_names if (name := getattr(record, field))]


def _finite(value: object) -> object:
    """The same value with texts for what JSON has no number of.

    >>> _finite({"a": [1.5, float("inf")]})
    {'a': [1.5, 'inf']}
    """
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {key: _finite(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(one) for one in value]
    return value
