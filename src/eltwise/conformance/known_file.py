"""The first file of known differences, written from results; people then say why each differs and where that stands.

What differs in one way is one entry. A part of a cell's name is ``*`` where all cells that were asked go wrong so.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from eltwise.conformance.cells import Cell
from eltwise.conformance.results import Results
from eltwise.formats import files

NO_LINK = "not reported yet"
_HEAD = "# Known differences, for `eltwise conform --strict`: say of each why it differs, and where that is reported.\n"
_SPECIAL = {"*": "[*]", "?": "[?]", "[": "[[]"}
_LONGEST_REASON = 200

Parts = tuple[str, ...]


def write_known(results: Results, path: Path) -> None:
    """Write the entries for everything that is not right, beside its place first.

    Raises:
        FileFormatError: where it cannot be written.
    """
    files.write_atomically(path, [known_text(results).encode(errors="replace")])


def known_text(results: Results) -> str:
    """The entries as TOML; the same text for the same results."""
    groups: dict[tuple[str, str, str], list[Cell]] = {}
    for cell in results.cells:
        if cell.verdict != "ok":
            groups.setdefault((cell.runtime, cell.verdict, cell.explanation), []).append(cell)
    return _HEAD + "".join(_entry(cells, results) for cells in groups.values())


def _entry(cells: Sequence[Cell], results: Results) -> str:
    first = cells[0]
    asked = [_parts(cell) for cell in results.cells if cell.runtime == first.runtime]
    runtime = "".join(_SPECIAL.get(sign, sign) for sign in first.runtime)
    patterns = ["/".join((runtime, *pattern)) for pattern in _patterns([_parts(cell) for cell in cells], asked)]
    said = " ".join((first.message or first.explanation or first.verdict).split())[:_LONGEST_REASON]
    lines = ["", "[[known]]", "cells = [", *(f"    {_quoted(pattern)}," for pattern in patterns), "]"]
    lines += [f'verdict = "{first.verdict}"']
    lines += [f"explanation = {_quoted(first.explanation)}"] if first.explanation else []
    lines += [f"reason = {_quoted(said)}", f'link = "{NO_LINK}"']
    return "\n".join(lines) + "\n"


def _parts(cell: Cell) -> Parts:
    return (cell.op, cell.dtype, cell.broadcast, cell.path)


def _patterns(chosen: Sequence[Parts], asked: Sequence[Parts]) -> Iterator[Parts]:
    """The shortest patterns that name the chosen among those that were asked, and no other."""
    if len(chosen) == len(asked):
        yield ("*",) * len(asked[0])
        return
    for part in dict.fromkeys(parts[0] for parts in chosen):
        below = [parts[1:] for parts in chosen if parts[0] == part]
        asked_below = [parts[1:] for parts in asked if parts[0] == part]
        yield from ((part, *pattern) for pattern in _patterns(below, asked_below))


def _quoted(text: str) -> str:
    """A basic string of TOML, which is one of JSON but for the last control character."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
