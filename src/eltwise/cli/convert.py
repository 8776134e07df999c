"""``eltwise convert``: convert a model to another format, opset or IR version."""

from __future__ import annotations

from pathlib import Path

import click

from eltwise.cli import options, printing
from eltwise.cli.progress import progress_of_bytes, waiting
from eltwise.core.exit_codes import ExitCode


@click.command(cls=options.Command)
@options.source
@click.argument("target", type=options.OUTPUT_PATH, metavar="OUT", help="The .onnx or .xml file to write.")
@click.option("--opset", type=int, metavar="N", help="The ONNX opset of OUT. Default for an IR: 17.")
@click.option(
    "--ir-version", type=int, metavar="N", help="The IR version of OUT, 10 or 11. Default for an ONNX model: 11."
)
@click.option("--verify", is_flag=True, help="Run both models and compare the bits before OUT is written.")
@options.in_place
@options.json
def convert(
    source: Path, target: Path, opset: int | None, ir_version: int | None, verify: bool, in_place: bool, json: bool
) -> ExitCode:
    """Convert a model to another format, opset or IR version: exactly, or not at all.

    Exit 3 if the bits were to be compared and could not be; OUT is written then.
    """
    from eltwise.conversion import convert_file

    with waiting("running both models") if verify else progress_of_bytes() as progress:
        report = convert_file(
            source, target, opset=opset, ir_version=ir_version, verify=verify, in_place=in_place, progress=progress
        )
    printing.report(report, as_json=json)
    return report.exit_code
