"""``eltwise reproduce``: write a failing case as files that show it with its runtime alone."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from eltwise.cli import options, printing


@click.command(cls=options.Command)
@click.argument("results", type=options.PATH, help="A file that `eltwise conform --json` wrote.")
@click.argument("test", help="The test: RUNTIME/OPERATOR/TYPE/BROADCAST/SOURCE.")
@click.option(
    "--output",
    "-o",
    type=options.OUTPUT_PATH,
    required=True,
    metavar="FOLDER",
    help="The folder to write, new or empty.",
)
@options.json
def reproduce(results: Path, test: str, output: Path, json: bool) -> None:
    """Write the smallest failing case of a test: model, inputs, expected and actual result, and a script."""
    from eltwise.conformance.report import read_results
    from eltwise.conformance.reproduce import SCRIPT
    from eltwise.conformance.reproduce import reproduce as write_files
    from eltwise.formats.files import check_new_folder

    check_new_folder(output)
    names = write_files(read_results(results), test, output)
    if json:
        printing.json_text("case", {"folder": str(output), "files": list(names)})
        return
    printing.line(f"{output}: {', '.join(names)}")
    printing.line(f"run: python {shlex.quote(str(output / SCRIPT))}")
