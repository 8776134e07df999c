"""Tables in Markdown, which reports for repositories and code hosts have."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from eltwise.core.escaping import on_one_line

_SPECIAL = {ord(sign): f"\\{sign}" for sign in "\\`*_[]<>#&~@"} | {ord("|"): "&#124;"}
"""Not every reader of tables takes a bar behind a backslash for a part of its cell."""


def literal(text: str) -> str:
    r"""A text on one line that Markdown, also in a table, shows as it is.

    >>> literal("a|b\n<c>")
    'a&#124;b \\<c\\>'
    """
    return on_one_line(" ".join(text.split())).translate(_SPECIAL)


def markdown_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """The lines of a table; cells are written as they are.

    >>> markdown_table(("name", ""), [("a", "1")])
    ['| name | |', '|---|---|', '| a | 1 |']
    """
    names = "".join(f" {name} |" if name else " |" for name in columns)
    return [f"|{names}", f"|{'---|' * len(columns)}", *(f"| {' | '.join(row)} |" for row in rows)]
