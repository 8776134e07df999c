"""The results as a Markdown document for the repository: the matrix, and every finding with a command that shows it."""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Iterator
from pathlib import Path

from eltwise.conformance import legend
from eltwise.conformance.findings import RuntimeFinding, findings
from eltwise.conformance.report import ConformanceReport
from eltwise.conformance.results import OUTCOMES
from eltwise.core.errors import named
from eltwise.report.markdown import literal, markdown_table

_HEAD = """# Conformance

{summary}

Written by `eltwise conform --document`; `make conform` runs it. A test is an operator version with an element type, a
broadcast rule and an operand source on a runtime. Expected values are computed exactly and rounded once a step;
integers wrap; any NaN equals any NaN ([semantics.md](semantics.md)).
"""

_INDEX = """The findings of each runtime, the most severe first."""

_MATRIX = """Each mark is the worst outcome of all broadcast rules and operand sources, with `*` where they differ."""

_FINDINGS = """A finding names the fault model that gives every value of its tests, the wrong and the right ones. The
operand sources are `static` and `dynamic` (inputs of known and of unknown shapes), `a-constant`, `b-constant` and
`both-constant`, `neighbours` (other nodes make the operands and read the result), and `call` (arrays are passed to a
function)."""


_COLUMNS = ("finding", "outcome", "effect", "operators", "tests")
_WIDTH = 150


def document(results: ConformanceReport, source: str = "results.json") -> str:
    """Make the document of some results; ``source`` is their file, whose name the commands have that it shows."""
    all_findings, name_of_file = findings(results.tests), Path(source).name  # It is read on other machines.
    parts = [
        _HEAD.format(summary=literal(results.summary)),
        "\n".join(line for name, text in results.facts for line in _bullet(f"{name}: {text}")),
        "## Index",
        _INDEX,
        *_index(results, all_findings),
        "## Runtimes",
        "\n".join(_counts(results, all_findings)),
        "## Matrix",
        _MATRIX,
        "\n".join(_legend()),
        *_matrix(results),
        "## Findings",
        _FINDINGS if all_findings else "None.",
        *(_finding(number, finding, name_of_file) for number, finding in enumerate(all_findings, 1)),
    ]
    return "\n\n".join(part.strip("\n") for part in parts) + "\n"


def _index(results: ConformanceReport, all_findings: list[RuntimeFinding]) -> Iterator[str]:
    """A table for each runtime, with a line for each of its findings."""
    for runtime, version in legend.runtimes_of(results.tests).items():
        rows = []
        for number, finding in enumerate(all_findings, 1):
            if finding.example.runtime == runtime:
                ops = legend.operators_of(finding.tests)
                effect = literal(finding.title.removeprefix(f"{runtime}: "))
                tests = finding.share.removesuffix(" tests")
                link = f"[{number}](#finding-{number})"
                rows.append((link, finding.outcome, effect, named(ops, 2), tests))
        yield f"### {literal(legend.first_line(f'{runtime} {version}', _WIDTH))}"
        yield "\n".join(markdown_table(_COLUMNS, rows)) if rows else "No findings."


def _counts(results: ConformanceReport, all_findings: list[RuntimeFinding]) -> list[str]:
    """How many tests of each runtime have which outcome, and the numbers of its findings."""
    rows = []
    for runtime in legend.runtimes_of(results.tests):
        outcomes = [test.outcome for test in results.tests if test.runtime == runtime]
        numbers = [number for number, finding in enumerate(all_findings, 1) if finding.example.runtime == runtime]
        counts = [f"{outcomes.count(outcome):,}" for outcome in OUTCOMES]
        where = f"{numbers[0]} to {numbers[-1]}" if len(numbers) > 1 else "".join(map(str, numbers))
        rows.append((literal(runtime), *counts, where))
    return markdown_table(("runtime", *OUTCOMES, "findings"), rows)


def _legend() -> list[str]:
    rows = ((legend.SIGNS[name].mark, name, legend.SIGNS[name].meaning) for name in OUTCOMES)
    return markdown_table(("mark", "outcome", "what the runtime does"), rows)


def _matrix(results: ConformanceReport) -> Iterator[str]:
    """For each operator version runtimes down, element types across."""
    for op, by_runtime in legend.matrix(results.tests).items():
        types = legend.types_of(test for test in results.tests if test.op == op)
        rows = []
        for runtime, by_type in by_runtime.items():
            marks = [literal(legend.mark(by_type[name])) if name in by_type else "" for name in types]
            rows.append((literal(runtime), *marks))
        yield "\n".join([f"### {op}", "", *markdown_table(("runtime", *types), rows)])


def _finding(number: int, finding: RuntimeFinding, source: str) -> str:
    lines = markdown_table(("", ""), (row for name, text in finding.rows for row in _rows(name, text)))
    command = f"eltwise reproduce {shlex.quote(source)} \\\n    {shlex.quote(finding.example.key)} --output case/"
    heading = f'<a id="finding-{number}"></a>\n\n### {number}. {literal(finding.title)}'
    return "\n\n".join((heading, "\n".join(lines), f"```sh\n{command}\n```"))


def _rows(name: str, text: str) -> Iterator[tuple[str, str]]:
    """A row of a table, which goes on in further rows where its text is long."""
    for number, line in enumerate(_wrapped(text)):
        yield "" if number else name, literal(line)


def _bullet(text: str) -> Iterator[str]:
    for number, line in enumerate(_wrapped(text)):
        yield f"{'  ' if number else '- '}{literal(line)}"


def _wrapped(text: str) -> list[str]:
    """Lines that are short also with every special character escaped."""
    lines = textwrap.wrap(" ".join(text.split()), _WIDTH)
    return lines if all(len(literal(line)) <= _WIDTH + 20 for line in lines) else textwrap.wrap(text, _WIDTH // 2)
