"""The results as a Markdown document for the repository: the matrix, and every finding with a command that shows it."""

from __future__ import annotations

import shlex
from pathlib import Path

from eltwise.conformance.results import OUTCOMES, Results, TestResult
from eltwise.formats import files
from eltwise.report import legend
from eltwise.report.findings import Finding, findings

_HEAD = """# Conformance

{summary}

Written by `eltwise conform --document`; `make conform` runs it. A test is an operator version with an element type, a
broadcast rule and an operand source on a runtime. Expected values are computed exactly and rounded once a step;
integers wrap; any NaN equals any NaN ([semantics.md](semantics.md)).
"""

_MATRIX = """Each mark is the worst outcome of all broadcast rules and operand sources, with `*` where they differ."""

_FINDINGS = """A finding names the fault model that gives every value of its tests, the wrong and the right ones. The
operand sources are `static` and `dynamic` (inputs of known and of unknown shapes), `a-constant`, `b-constant` and
`both-constant`, `neighbours` (other nodes make the operands and read the result), and `call` (arrays are passed to a
function)."""


def write_document(results: Results, path: Path, source: str = "results.json") -> None:
    """Write the document of some results to a file; the arguments are those of ``document``.

    Raises:
        FileFormatError: if it cannot be written; what was there is unchanged.
    """
    files.write_text(path, document(results, source))


def document(results: Results, source: str = "results.json") -> str:
    """Make the document of some results; ``source`` names the results file in the commands that it shows."""
    found = findings(results)
    parts = [
        _HEAD.format(summary=_text(legend.summary(results))),
        "\n".join(f"- {name}: {_text(text)}" for name, text in legend.facts(results)),
        "## Runtimes",
        "\n".join(_counts(results, found)),
        "## Matrix",
        _MATRIX,
        "\n".join(_legend()),
        *(_matrix(op, [test for test in results.tests if test.op == op]) for op in legend.operators_of(results.tests)),
        "## Findings",
        _FINDINGS if found else "None.",
        *(_finding(number, finding, source) for number, finding in enumerate(found, 1)),
    ]
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


def _counts(results: Results, found: list[Finding]) -> list[str]:
    """How many tests of each runtime have which outcome, and the numbers of its findings."""
    lines = [f"| runtime | {' | '.join(OUTCOMES)} | findings |", f"|---|{'---|' * len(OUTCOMES)}---|"]
    for runtime in legend.runtimes_of(results.tests):
        outcomes = [test.outcome for test in results.tests if test.runtime == runtime]
        numbers = [number for number, finding in enumerate(found, 1) if finding.example.runtime == runtime]
        counts = [f"{outcomes.count(outcome):,}" for outcome in OUTCOMES]
        where = f"{numbers[0]} to {numbers[-1]}" if len(numbers) > 1 else "".join(map(str, numbers))
        lines.append(f"| {_text(runtime)} | {' | '.join(counts)} | {where} |")
    return lines


def _legend() -> list[str]:
    lines = ["| mark | outcome | what the runtime does |", "|---|---|---|"]
    return [*lines, *(f"| {legend.SIGNS[name].mark} | {name} | {legend.SIGNS[name].meaning} |" for name in OUTCOMES)]


def _matrix(op: str, tests: list[TestResult]) -> str:
    """Runtimes down, element types across."""
    types = legend.types_of(tests)
    lines = [f"### {op}", "", f"| runtime | {' | '.join(types)} |", f"|---|{'---|' * len(types)}"]
    for runtime in legend.runtimes_of(tests):
        own = [test for test in tests if test.runtime == runtime]
        marks = [_mark([test for test in own if test.dtype == name]) for name in types]
        lines.append(f"| {_text(runtime)} | {' | '.join(marks)} |")
    return "\n".join(lines)


def _mark(tests: list[TestResult]) -> str:
    if not tests:
        return ""
    mark = legend.SIGNS[legend.worst(tests)].mark
    return mark if len({test.outcome for test in tests}) == 1 else f"{mark}\\*"


def _finding(number: int, finding: Finding, source: str) -> str:
    command = shlex.join(["eltwise", "reproduce", source, finding.example.key, "--output", "case/"])
    sentences = " ".join(map(_text, finding.sentences))
    return f"### {number}. {_text(finding.title)}\n\n{sentences}\n\n```sh\n{command}\n```"


def _text(text: str) -> str:
    """A text in which Markdown reads no markup: a runtime's words are shown as they are, on one line."""
    line = " ".join(text.split())
    return "".join(f"\\{sign}" if sign in "\\`*_[]<>|#&" else sign for sign in line)
