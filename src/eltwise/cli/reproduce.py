"""``eltwise reproduce``: write a failing case as files that show it with its runtime alone."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from eltwise.cli import printing
from eltwise.cli.printing import Json


def reproduce(
    results: Annotated[Path, typer.Argument(metavar="RESULTS", help="A file that `eltwise conform --json` wrote.")],
    cell: Annotated[str, typer.Argument(metavar="CELL", help="The test: RUNTIME/OPERATOR/TYPE/BROADCAST/PATH.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FOLDER", help="The folder to write, new or empty.")
    ],
    json: Json = False,
) -> None:
    """Write the smallest failing case of a test: model, inputs, expected and actual result, and a script."""
    from eltwise.conformance.reproduce import SCRIPT
    from eltwise.conformance.reproduce import reproduce as write_files
    from eltwise.conformance.results import read_results
    from eltwise.formats.files import check_new_folder

    check_new_folder(output)
    names = write_files(read_results(results), cell, output)
    if json:
        printing.json_text({"folder": str(output), "files": list(names)})
        return
    printing.line(f"{output}: {', '.join(names)}")
    printing.line(f"run: python {shlex.quote(str(output / SCRIPT))}")
