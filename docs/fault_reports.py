"""Reports of faults for the maintainers of runtimes: the lines of ``reports/faults.toml`` are run, and each has a page.

``python docs/fault_reports.py`` writes the pages, or with names those of some; tests/test_fault_reports.py runs the
lines again.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from eltwise.core.machine import machine_name

FOLDER = Path(__file__).parent / "reports"
LIMIT = 120
ONNX = "https://onnx.ai/onnx/operators/onnx__{0}.html#{1}-{2}"


class Report(NamedTuple):
    """A fault.

    Attributes:
        name: of its page.
        title: what is wrong.
        packages: what its lines import, beside NumPy; the first one has the fault.
        code: lines of Python that print what came.
        expected: what they print where the fault is fixed.
        text: what the specification says.
        source: where it says so.
        schema: for ONNX, the operator and its version instead of the source.
        note: what else to know.
        thread: the address of a public thread about it.
        related: the address of a thread about something near it.
        by_processor: whether only some processors show it.
    """

    name: str
    title: str
    packages: list[str]
    code: str
    expected: str
    text: str
    source: str = ""
    schema: tuple[str, int] = ("", 0)
    note: str = ""
    thread: str = ""
    related: str = ""
    by_processor: bool = False

    @property
    def is_installed(self) -> bool:
        """Whether its lines can be run here."""
        return all(find_spec(package) for package in self.packages)


def reports() -> list[Report]:
    """All reports, in the order of the file."""
    tables: dict[str, dict[str, Any]] = tomllib.loads((FOLDER / "faults.toml").read_text(encoding="utf-8"))
    return [Report(name, **fields) for name, fields in tables.items()]


def actual(report: Report) -> str:
    """What the lines print with the installed versions, or how they end instead."""
    command = [sys.executable, "-W", "ignore", "-c", report.code]
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(command, capture_output=True, text=True, cwd=folder, timeout=LIMIT, check=False)  # noqa: S603
    if done.returncode < 0:
        return f"the process ended with {signal.Signals(-done.returncode).name}"
    return done.stdout.strip() if done.returncode == 0 else done.stderr.strip().splitlines()[-1].strip()


def page(report: Report, result: str) -> str:
    """The page of a report, with what its lines gave."""
    operator, since = report.schema
    source = ONNX.format(operator, operator.lower(), since) if operator else report.source
    label = f"{operator}-{since}" if operator else source.rpartition("/")[2].removesuffix(".html")
    thread = report.thread or (f"none found; related: {report.related}" if report.related else "none found")
    rows = {
        "expected": f"`{report.expected}`",
        "actual": f"`{result}`",
        "specification": f"[{label}]({source}): {report.text}",
        "versions": f"{', '.join(f'{name} {version(name)}' for name in report.packages)}; {machine_name()}",
        "public thread": thread,
    }
    table = [f"| {name} | {text.replace('|', chr(92) + '|')} |" for name, text in rows.items()]
    lines = [f"# {report.title}", "", "```python", report.code.strip(), "```", "", "| | |", "|---|---|", *table]
    return "\n".join([*lines, *(["", report.note] if report.note else []), ""])


def index(results: list[tuple[Report, str]]) -> str:
    """The page that lists the reports, by the package that has the fault."""
    lines = [
        "# Reports of faults",
        "",
        "Faults that the conformance suite, the accuracy measurements and public regressions found, each with lines of",
        "Python that need only the package itself. Written by `python docs/fault_reports.py`, which runs them.",
    ]
    for package in dict.fromkeys(report.packages[0] for report, _result in results):
        lines += [
            "",
            f"## {package} {version(package)}",
            "",
            "| report | expected | actual | thread |",
            "|---|---|---|---|",
        ]
        for report, result in results:
            if report.packages[0] == package:
                thread = f"[public]({report.thread})" if report.thread else "none found"
                link = f"[{report.title}]({report.name}.md)"
                lines.append(f"| {link} | `{report.expected}` | `{result}` | {thread} |")
    return "\n".join([*lines, ""])


def written(report: Report) -> str:
    """What the lines printed when the page was written."""
    lines = (FOLDER / f"{report.name}.md").read_text(encoding="utf-8").splitlines()
    return next(line.removeprefix("| actual | `").removesuffix("` |") for line in lines if line.startswith("| actual"))


def main(names: Sequence[str]) -> None:
    """Write the pages of reports, all where none is named; their packages must be installed."""
    results = list[tuple[Report, str]]()
    for report in reports():
        if names and report.name not in names:
            results.append((report, written(report)))
            continue
        result = actual(report)
        results.append((report, result))
        if result == report.expected:
            raise SystemExit(f"{report.name} is fixed in {report.packages[0]} {version(report.packages[0])}: remove it")
        (FOLDER / f"{report.name}.md").write_text(page(report, result), encoding="utf-8")
    (FOLDER / "index.md").write_text(index(results), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
