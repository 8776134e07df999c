"""The results as one HTML page: findings, the matrix, and a record for each test that fails."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from html import escape
from urllib.parse import quote

from eltwise.conformance import legend
from eltwise.conformance.findings import RuntimeFinding, findings
from eltwise.conformance.results import OUTCOMES, Example, TestResult
from eltwise.core.errors import counted
from eltwise.core.escaping import escape_lines, on_one_line
from eltwise.report.base import Html, filters, fold, head, section, table, text

_MATRIX = """Each mark is the worst outcome of all broadcast rules and operand sources, with * where they differ; it
leads to the first test that has it."""


def content(summary: str, facts: Sequence[tuple[str, str]], tests: Sequence[TestResult], source: str) -> str:
    """Make the content of the page of some results; ``source`` names their file in the commands that it shows."""
    failing = [test for test in tests if test.outcome != "ok"]
    all_findings = findings(tests)
    present = {test.outcome for test in tests}
    parts = [
        head("Conformance of element-wise operators", [summary], facts),
        filters({name: name for name in OUTCOMES if name in present}),
        section("Findings", len(all_findings), "".join(map(_finding, all_findings)) or "None.", is_open=True),
        fold("<b>Matrix</b>", f'<div class="matrix"><p class="soft">{_MATRIX}</p>{_matrix(tests)}</div>', is_open=True),
        section("Tests that fail", len(failing), "".join(_test(test, source) for test in failing) or "None."),
    ]
    return "\n".join(parts)


def _status(test: TestResult, title: str) -> str:
    mark = legend.SIGNS[test.outcome].mark
    return f'<span class="status {test.outcome}">{mark} {test.outcome}</span><b>{text(title)}</b>'


def _address(test: TestResult) -> str:
    return f"#{quote(on_one_line(test.key), safe='')}"


def _finding(finding: RuntimeFinding) -> str:
    content = f'<div>{table(finding.rows)}<a href="{_address(finding.example)}">The test that shows it best</a></div>'
    summary = f'{_status(finding.example, finding.title)}<span class="soft">{finding.share}</span>'
    return fold(summary, content, kind=finding.outcome)


def _matrix(tests: Sequence[TestResult]) -> str:
    """Operator versions and runtimes down, element types across."""
    types = legend.types_of(tests)
    rows, kinds = [], []
    for op, by_runtime in legend.matrix(tests).items():
        for runtime, by_type in by_runtime.items():
            marks = [_mark(name, by_type[name]) if name in by_type else "" for name in types]
            rows.append((op, runtime, *marks))
            kinds.append(legend.worst(test for of_type in by_type.values() for test in of_type))
    return table(rows, ("operator", "runtime", *types), kinds)


def _mark(type_name: str, tests: list[TestResult]) -> Html:
    outcomes = [test.outcome for test in tests]
    worst = legend.worst(tests)
    tally = ", ".join(f"{name} {outcomes.count(name)}" for name in reversed(OUTCOMES) if name in outcomes)
    mark = f'{legend.mark(tests)}<span class="hidden"> {type_name}: {tally}</span>'
    if worst == "ok":
        return Html(f'<span class="mark ok">{mark}</span>')
    address = _address(tests[outcomes.index(worst)])
    return Html(f'<a class="mark {worst}" href="{address}" title="{type_name}: {tally}">{mark}</a>')


def _test(test: TestResult, source: str) -> str:
    """What is known of a test that fails, and the command that shows it again."""
    summary = (
        f"{_status(test, f'{test.op}, {test.dtype}')}"
        f'<span class="soft">{text(f"{test.runtime} {test.version}")}</span>'
        f'<code>{test.broadcast}, {test.source}</code><span class="why">{text(test.explanation)}</span>'
    )
    wrong = f"{test.wrong:,} of {counted(test.total, 'element' if test.outcome == 'differs' else 'case')}"
    command = f"eltwise reproduce {shlex.quote(source)} {shlex.quote(test.key)} --output case/"
    call = legend.call_of(test)
    rows = [("outcome", legend.SIGNS[test.outcome].meaning), ("wrong", wrong), *([("for", call)] if call else [])]
    parts = [
        f"<div><h3>Result</h3>{table(rows)}</div>",
        *([_example(test.example)] if test.example else []),
        *([f"<div><h3>Message</h3><pre>{escape(escape_lines(test.message))}</pre></div>"] if test.message else []),
        f"<div><h3>Reproduce it with that runtime alone</h3><code>{text(command)}</code></div>",
    ]
    return fold(summary, "".join(parts), kind=test.outcome, name=test.key)


def _example(example: Example) -> str:
    """The smallest case: each number in decimal, in hexadecimal and bit by bit."""
    rows = [(name, shown.value, shown.bits, _binary(shown.bits)) for name, shown in example.items() if shown]
    return f'<div><h3>The smallest case that shows it</h3><div class="number">{table(rows)}</div></div>'


def _binary(bits: str) -> str:
    """Binary digits in bytes; empty for what is no bit pattern.

    >>> _binary("0x0180")
    '00000001 10000000'
    """
    if not re.fullmatch("0x[0-9a-fA-F]{1,16}", bits):
        return ""
    return " ".join(f"{int(byte, 16):0{4 * len(byte)}b}" for byte in re.findall("..?", bits[2:]))
