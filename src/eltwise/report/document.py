"""The results as a Markdown document for the repository: the matrix, and every deviation with how to see it. Pure."""

from __future__ import annotations

import shlex
from pathlib import Path

from eltwise.conformance.cells import VERDICTS, Cell
from eltwise.conformance.results import Results
from eltwise.formats import files
from eltwise.report import legend
from eltwise.report.findings import Finding, findings

_HEAD = """# Conformance

{summary}

Written by `eltwise conform --document`, not by hand; `make conform` measures anew. Each place of the matrix stands for
every broadcast rule and path that was asked (operands as inputs with static and with dynamic shapes, as constants,
between neighbours) and shows the worst verdict of them; `*` says that they are not all the same. Expected values come
from exact fractions, rounded once a step; integers wrap; any NaN equals any NaN ([semantics.md](semantics.md)).
"""


def write_document(results: Results, path: Path, source: str = "results.json") -> None:
    """Write the document of some results to a file; the arguments are those of ``document``.

    Raises:
        FileFormatError: where it cannot be written. What was there is then as it was.
    """
    files.write_atomically(path, [document(results, source).encode(errors="backslashreplace")])


def document(results: Results, source: str = "results.json") -> str:
    """Make the document of some results.

    Args:
        results: what was found.
        source: the name of the results file, for the commands that the document shows.
    """
    found = findings(results)
    parts = [
        _HEAD.format(summary=_text(legend.summary(results))),
        "\n".join(f"- {name}: {_text(text)}" for name, text in legend.facts(results)),
        "\n".join(_legend()),
        "## Matrix",
        *(_matrix(op, [cell for cell in results.cells if cell.op == op]) for op in legend.operators_of(results.cells)),
        "## Deviations",
        *(_deviation(number, finding, source) for number, finding in enumerate(found, 1)),
    ]
    if not found:
        parts.append("None.")
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


def _legend() -> list[str]:
    lines = ["| mark | verdict | what the runtime does |", "|---|---|---|"]
    return [*lines, *(f"| {legend.SIGNS[name].mark} | {name} | {legend.SIGNS[name].meaning} |" for name in VERDICTS)]


def _matrix(op: str, cells: list[Cell]) -> str:
    """Runtimes down, element types across."""
    types = legend.types_of(cells)
    lines = [f"### {op}", "", f"| runtime | {' | '.join(types)} |", f"|---|{'---|' * len(types)}"]
    for runtime in legend.runtimes_of(cells):
        own = [cell for cell in cells if cell.runtime == runtime]
        marks = [_mark([cell for cell in own if cell.dtype == name]) for name in types]
        lines.append(f"| {_text(runtime)} | {' | '.join(marks)} |")
    return "\n".join(lines)


def _mark(cells: list[Cell]) -> str:
    if not cells:
        return ""
    mark = legend.SIGNS[legend.worst(cells)].mark
    return mark if len({cell.verdict for cell in cells}) == 1 else f"{mark}\\*"


def _deviation(number: int, finding: Finding, source: str) -> str:
    command = shlex.join(["eltwise", "reproduce", source, finding.example.key, "--output", "case/"])
    sentences = " ".join(map(_text, finding.sentences))
    return f"### {number}. {_text(finding.title)}\n\n{sentences}\n\n```sh\n{command}\n```"


def _text(text: str) -> str:
    """A text in which Markdown reads no markup: a runtime's words are shown as they are, on one line."""
    line = " ".join(text.split())
    return "".join(f"\\{sign}" if sign in "\\`*_[]<>|#&" else sign for sign in line)
