r"""Texts without control characters, bidirectional overrides and lone surrogates, and not too long to be read.

Names in files may hold any of these, and be of any length.
"""

from __future__ import annotations

from collections.abc import Iterable

LONGEST_LINE = 2000
"""So many characters of a line, or of a field of an error, are shown."""


def shortened(text: str, longest: int = 80) -> str:
    """A text of so many characters at most: of one that is longer the beginning and the end.

    >>> shortened("abcdef", 6), shortened("abcdefgh", 7)
    ('abcdef', 'abc...h')
    """
    ahead, behind = longest - longest // 2 - 1, longest // 2 - 2
    return text if len(text) <= longest else f"{text[:ahead]}...{text[len(text) - behind :]}"


def escaped(text: str) -> str:
    r"""A text with its line breaks and everything else that is not printable escaped.

    >>> escaped("two\nlines")
    'two\\nlines'
    """
    if text.isprintable():
        return text
    return "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in text)


def on_one_line(text: str) -> str:
    """A text for a reader, escaped; of one that is too long the beginning and the end."""
    return escaped(shortened(text, LONGEST_LINE))


def as_lines(lines: Iterable[object]) -> str:
    r"""A text of these lines, in which every line break is one between them.

    >>> as_lines(["one", "a name\nwith a break"])
    'one\na name\\nwith a break'
    """
    return "\n".join([on_one_line(str(line)) for line in lines])


def in_columns(rows: Iterable[Iterable[str]]) -> list[str]:
    r"""The lines of a table: each cell on one line, each column as wide as its widest cell.

    >>> in_columns([("name", "size"), ("a\tb", "1"), ("c", "200")])
    ['name  size', 'a\\tb  1', 'c     200']
    """
    shown = [list(map(on_one_line, row)) for row in rows]
    widths = [max(map(len, column)) for column in zip(*shown, strict=True)]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in shown]


def escape_lines(text: str) -> str:
    r"""A text with everything escaped that is not printable, except its line feeds.

    >>> escape_lines("one\ntwo\r")
    'one\ntwo\\r'
    """
    return text if text.isprintable() or text == "\n" else "\n".join(map(escaped, text.split("\n")))


def to_json(value: object, indent: int | None = None) -> str:
    r"""A value as JSON in which only the line feeds of ``indent`` are not printable; it is read back as the same value.

    >>> to_json("é\x9b")
    '"é\\u009b"'
    """
    import json  # Few errors and calls write any.

    lines = json.dumps(value, indent=indent, ensure_ascii=False).split("\n")
    return "\n".join(
        line if line.isprintable() else "".join(s if s.isprintable() else json.dumps(s)[1:-1] for s in line)
        for line in lines
    )
