"""Known differences: a file that says which cells are not right, why, and where that is reported.

A TOML file with an entry for each difference:

    [[known]]
    cells = ["somewhere/Sub-14/*int8/*/static"]   # RUNTIME/OPERATOR/TYPE/BROADCAST/PATH, * and ? as in a shell
    verdict = "differs"
    explanation = "saturation"                    # may be left out: then any explanation will do
    reason = "8-bit results are clamped."
    link = "https://example.org/issues/1"

A cell that is not right and that no entry names is reported, and so is a cell that an entry names and that is right,
or goes wrong in another way than the entry says.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Literal

from eltwise.conformance.cells import VERDICTS, Cell, Verdict
from eltwise.conformance.json_fields import Fields
from eltwise.conformance.results import Results
from eltwise.core.errors import EltwiseError, FileFormatError, unknown_name
from eltwise.formats import files

_LARGEST_FILE = 2**24
_FIELDS = ("cells", "verdict", "explanation", "reason", "link")
_PARTS = 5


@dataclass(frozen=True)
class Known:
    """An entry of the file.

    Attributes:
        patterns: which cells it is about, each a pattern for every part of a cell's name.
        verdict: what they must have.
        explanation: what their explanation must be; empty for any.
        reason: why they differ.
        link: where that is reported or discussed.
    """

    patterns: tuple[tuple[str, ...], ...]
    verdict: Verdict
    explanation: str
    reason: str
    link: str

    def names(self, cell: Cell) -> bool:
        """Whether it is about a cell."""
        parts = (cell.runtime, cell.op, cell.dtype, cell.broadcast, cell.path)
        return any(all(map(fnmatchcase, parts, pattern)) for pattern in self.patterns)

    def holds(self, cell: Cell) -> bool:
        """Whether a cell goes wrong as the entry says."""
        return cell.verdict == self.verdict and self.explanation in ("", cell.explanation)


@dataclass(frozen=True)
class Surprise:
    """A cell that is not as the file says.

    Attributes:
        kind: ``new`` where no entry names it, ``stale`` where an entry does that no longer holds.
        cell: the cell.
        text: what is to be said of it, one sentence.
    """

    kind: Literal["new", "stale"]
    cell: Cell
    text: str


def check(results: Results, path: Path) -> list[Surprise]:
    """Compare results with the file of known differences; entries about cells that were not asked are passed over.

    Raises:
        FileFormatError: where there is no such file, or an entry cannot be read.
    """
    return surprises(results.cells, read_known(path))


def surprises(cells: Iterable[Cell], known: Iterable[Known]) -> list[Surprise]:
    """Find the cells that are not as the entries say."""
    entries = list(known)
    found = []
    for cell in cells:
        about = [entry for entry in entries if entry.names(cell)]
        holding = [entry for entry in about if entry.holds(cell)]
        if cell.verdict == "ok":
            found += [Surprise("stale", cell, f"{cell.key} is right now; {_meant(entry)}") for entry in about]
        elif not about:
            found.append(Surprise("new", cell, f"{cell.key} {_said(cell)}; no entry of the file names it"))
        elif not holding:
            found.append(Surprise("stale", cell, f"{cell.key} {_said(cell)}; {_meant(about[0])}"))
    return found


def read_known(path: Path) -> list[Known]:
    """Read the file of known differences.

    Raises:
        FileFormatError: where there is no such file, or an entry cannot be read.
    """
    data = files.read_bytes(path, _LARGEST_FILE)
    try:
        read = Fields(tomllib.loads(data.decode()), "the file")
    except ValueError as error:
        raise FileFormatError(f"this is no TOML ({error})", where=str(path)) from None
    try:
        for name in read:
            if name != "known":
                raise unknown_name("table", name, ["known"])
        return [_entry(fields) for fields in read.items("known", "entry")] if read.has("known") else []
    except EltwiseError as error:
        raise error.located(where=str(path)) from None


def _entry(fields: Fields) -> Known:
    for name in fields:
        if name not in _FIELDS:
            raise unknown_name("field", name, _FIELDS)
    patterns = (fields.text("cells"),) if isinstance(fields.value("cells"), str) else fields.words("cells")
    for pattern in patterns:
        if pattern.count("/") < _PARTS - 1:
            raise fields.error("cells", "RUNTIME/OPERATOR/TYPE/BROADCAST/PATH, where * stands for anything")
    for name in ("reason", "link"):
        if not fields.text(name, "").strip():
            raise fields.error(name, "a text that says something")
    verdict = fields.choice("verdict", VERDICTS[1:])
    # A runtime's name may itself hold a slash.
    split = tuple(tuple(pattern.rsplit("/", _PARTS - 1)) for pattern in patterns)
    return Known(split, verdict, fields.text("explanation", ""), fields.text("reason"), fields.text("link"))


def _said(cell: Cell) -> str:
    return f"{cell.verdict}: {cell.explanation}" if cell.explanation else cell.verdict


def _meant(entry: Known) -> str:
    what = f"{entry.verdict}: {entry.explanation}" if entry.explanation else entry.verdict
    return f"the file says {what} ({entry.reason.strip()} {entry.link.strip()})"
