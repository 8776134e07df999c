"""Cells that go wrong in the same way, as one finding: a title, two sentences, and the cell that shows it. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from eltwise.conformance.cells import VERDICTS, Cell, Verdict
from eltwise.conformance.results import Results
from eltwise.report.legend import (
    both_ways,
    counted,
    first_line,
    listed,
    operators_of,
    types_of,
)


@dataclass(frozen=True)
class Finding:
    """One deviation of one runtime.

    Attributes:
        verdict: what it is.
        title: the runtime and what it does, in a few words.
        sentences: where it does it, and one example or the runtime's own words.
        cells: the cells that show it.
        example: the one of them that shows it best.
    """

    verdict: Verdict
    title: str
    sentences: tuple[str, str]
    cells: tuple[Cell, ...]
    example: Cell


def findings(results: Results) -> list[Finding]:
    """Gather the cells that are not right: by runtime as in the results, the worst first, the most frequent first."""
    groups: dict[tuple[str, ...], list[Cell]] = {}
    for cell in results.cells:
        if cell.verdict != "ok":
            groups.setdefault(_sameness(cell), []).append(cell)
    runtimes = list(dict.fromkeys(cell.runtime for cell in results.cells))
    found = [_finding(group, results) for group in groups.values()]
    return sorted(
        found,
        key=lambda one: (
            runtimes.index(one.example.runtime),
            -VERDICTS.index(one.verdict),
            -len(one.cells),
        ),
    )


def _sameness(cell: Cell) -> tuple[str, ...]:
    """What makes two cells one finding: the explanation, or for what has none the runtime's words but for numbers."""
    why = cell.explanation or re.sub(r"\d+", "0", _words(cell))
    return (cell.runtime, cell.verdict, why)


def _words(cell: Cell) -> str:
    """The runtime's own words, without what the referee adds to them about the other cases of the cell."""
    return first_line(re.split(r"; of \d+ cases |; \d+ cases more ", cell.message)[0])


def _finding(cells: list[Cell], results: Results) -> Finding:
    best = min(cells, key=lambda cell: (cell.example is None, cell.case is None, len(cell.explanation)))
    where = f"In {len(cells):,} of {counted(_asked(cells, results), 'cell')}: {places(cells)}."
    return Finding(best.verdict, _title(best), (where, _shows(best)), tuple(cells), best)


def _title(cell: Cell) -> str:
    what = {
        "differs": cell.explanation or "gives other bits",
        "refused": cell.explanation or "refuses what is allowed",
        "accepted": cell.explanation or "takes what must be refused",
        "hung": "gives no answer in time",
        "crashed": "crashes",
    }
    return f"{cell.runtime}: {what[cell.verdict]}"


def _asked(cells: Sequence[Cell], results: Results) -> int:
    """How many cells there are of the same runtime, operators and types."""
    touched = {(cell.runtime, cell.op, cell.dtype) for cell in cells}
    return sum((cell.runtime, cell.op, cell.dtype) in touched for cell in results.cells)


def places(cells: Sequence[Cell]) -> str:
    """Where it happens: operators with their types, then the broadcast rules and paths."""
    by_types: dict[str, list[str]] = {}
    for op in operators_of(cells):
        types = listed(types_of(cell for cell in cells if cell.op == op))
        by_types.setdefault(types, []).append(op)
    operators = "; ".join(f"{types} in {listed(ops)}" for types, ops in by_types.items())
    rules = listed(list(dict.fromkeys(cell.broadcast for cell in cells)))
    paths = listed(list(dict.fromkeys(cell.path for cell in cells)))
    return f"{operators}; {rules} broadcasting; path{'s' if ' and ' in paths else ''} {paths}"


def _shows(cell: Cell) -> str:
    example = cell.example
    if example is None or example.got is None:
        words = _words(cell)
        return f"In its own words: {words}" if words else "It says nothing more."
    operands = f"A = {both_ways(example.a)} and B = {both_ways(example.b)}"
    count = f" {cell.wrong:,} of {counted(cell.total, 'element')} of that cell are wrong." if cell.total else ""
    if example.expected is None:
        return f"For {operands} it gives {both_ways(example.got)}, where it must refuse."
    right = f"{both_ways(example.expected)} is exact"
    return f"For {operands} in {cell.op} it gives {both_ways(example.got)}, where {right};{count}".rstrip(";")
