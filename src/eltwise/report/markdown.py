"""Tables in Markdown, which reports for repositories and code hosts have."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def markdown_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """The lines of a table; cells are written as they are.

    >>> markdown_table(("name", ""), [("a", "1")])
    ['| name | |', '|---|---|', '| a | 1 |']
    """
    names = "".join(f" {name} |" if name else " |" for name in columns)
    return [f"|{names}", f"|{'---|' * len(columns)}", *(f"| {' | '.join(row)} |" for row in rows)]
