"""``eltwise bench``: the project beside its peers, against what the machine's memory allows."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from eltwise.cli import printing
from eltwise.core.errors import FileFormatError

if TYPE_CHECKING:
    from eltwise.bench.results import Report
    from eltwise.bench.workloads import Workload


def bench(
    quick: Annotated[bool, typer.Option("--quick", help="Fewer and smaller workloads: about a minute.")] = False,
    html: Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Write a page with pictures.")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print what a program can read.")] = False,
) -> None:
    """Measure beside every installed peer; exit 1 where a result is not exact."""
    if html is not None and not html.absolute().parent.is_dir():
        raise FileFormatError("there is no such folder", where=str(html))
    report = _measured(quick)
    show(report, json=json)
    if html is not None:
        _write_page(report, html)
    if report.interrupted:
        raise typer.Exit(130)
    if report.refused:
        raise typer.Exit(1)


def _measured(quick: bool) -> Report:
    """Measure, with a bar on stderr where somebody watches it."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    from eltwise.bench.session import run_session

    console = Console(stderr=True)
    columns = (BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}", markup=False))
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("", total=None)

        def tell(number: int, count: int, workload: Workload) -> None:
            text = f"{workload.name}, {workload.element_type}"
            progress.update(task, completed=number, total=count, description=text)

        return run_session(quick, tell)


def show(report: Report, *, json: bool) -> None:
    """Print a measurement as a table, or as JSON."""
    if json:
        printing.json_text(report.fields())
        return
    from eltwise.bench.texts import COLUMNS, cells, notes, summary_lines

    first_lines, last_line = summary_lines(report)
    for text in first_lines:
        printing.line(text)
    columns = (*COLUMNS, "notes") if printing.is_wide() else COLUMNS
    table = printing.table(*columns, folding=columns[-1] if printing.is_wide() else "workload")
    for row in report.rows:
        table.add_row(*(*cells(row), notes(row))[: len(columns)])
    printing.show(table)
    if last_line:
        printing.line(last_line)
    versions = ", ".join(f"{name} {version}" for name, version in report.versions.items())
    missing = f"; not installed: {', '.join(report.missing)}" if report.missing else ""
    printing.line(f"{versions}{missing}")


def _write_page(report: Report, file: Path) -> None:
    from eltwise.bench.page import page

    try:
        file.write_text(page(report), encoding="utf-8")
    except OSError as error:
        raise FileFormatError(
            f"the page cannot be written: {error.strerror or type(error).__name__}", where=str(file)
        ) from None
    print(f"written to {file}", file=sys.stderr)  # noqa: T201
