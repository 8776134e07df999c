"""``eltwise reproduce``: one cell of the referee's results as files that show it with that runtime alone."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from eltwise.cli import printing
from eltwise.formats.folders import check_new_folder


def reproduce(
    results: Annotated[Path, typer.Argument(metavar="RESULTS", help="What eltwise conform --json wrote.")],
    cell: Annotated[
        str, typer.Argument(metavar="CELL", help="RUNTIME/OPERATOR/TYPE/BROADCAST/PATH, as the page and the table say.")
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FOLDER", help="Where to; a new or an empty folder.")
    ],
    json: Annotated[bool, typer.Option("--json", help="Print what a program can read.")] = False,
) -> None:
    """Write a cell's smallest failing case: a model, inputs, what is exact, what came, and a script that shows it."""
    from eltwise.conformance.reproduce import SCRIPT
    from eltwise.conformance.reproduce import reproduce as write_files
    from eltwise.conformance.results_file import read_results

    check_new_folder(output)
    names = write_files(read_results(results), cell, output)
    if json:
        printing.json_text({"folder": str(output), "files": list(names)})
        return
    printing.line(f"{output}: {', '.join(names)}")
    printing.line(f"run: python {shlex.quote(str(output / SCRIPT))}")
