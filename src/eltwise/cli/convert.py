"""``eltwise convert``: convert a model to another format, opset or IR version."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from eltwise.cli import printing
from eltwise.cli.printing import Json
from eltwise.cli.progress import progress_of_data, waiting


def convert(
    source: Annotated[Path, typer.Argument(metavar="IN", help="An .onnx file, or an .xml file with its .bin.")],
    target: Annotated[Path, typer.Argument(metavar="OUT", help="The .onnx or .xml file to write.")],
    opset: Annotated[
        int | None, typer.Option("--opset", metavar="N", help="The ONNX opset of OUT. Default for an IR: 17.")
    ] = None,
    ir_version: Annotated[
        int | None,
        typer.Option(
            "--ir-version", metavar="N", help="The IR version of OUT, 10 or 11. Default for an ONNX model: 11."
        ),
    ] = None,
    verify: Annotated[
        bool, typer.Option("--verify", help="Run both models and compare the bits before OUT is written.")
    ] = False,
    in_place: Annotated[bool, typer.Option("--in-place", help="Allow OUT to be IN.")] = False,
    json: Json = False,
) -> None:
    """Convert a model to another format, opset or IR version: exactly, or not at all."""
    from eltwise.passes.convert import convert_file

    with waiting("running both models") if verify else progress_of_data() as progress:
        report = convert_file(
            source,
            target,
            opset=opset,
            ir_version=ir_version,
            verify=verify,
            in_place=in_place,
            progress=progress,
        )
    printing.report(report, json)
