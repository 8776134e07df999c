"""``eltwise repair``: rewrite the nodes that a runtime refuses or computes incorrectly."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from eltwise.cli import printing
from eltwise.cli.check import RUNNING
from eltwise.cli.printing import Json
from eltwise.cli.progress import progress_of_data, waiting


def repair(
    source: Annotated[Path, typer.Argument(metavar="IN", help="An .onnx file, or an .xml file with its .bin.")],
    out: Annotated[Path, typer.Argument(metavar="OUT", help="The file to write, of the same format.")],
    target: Annotated[str, typer.Option("--target", metavar="RUNTIME", help="onnxruntime or openvino.")],
    allow: Annotated[
        list[str] | None,
        typer.Option("--allow", metavar="FAULT", help="Accept a fault, by the name that check --target gives it."),
    ] = None,
    verify: Annotated[
        bool, typer.Option("--verify", help="Run OUT on the runtime and compare it with IN before it is written.")
    ] = False,
    severity: Annotated[
        str,
        typer.Option(
            "--severity",
            metavar="LEAST",
            help="The least severity that is repaired: refused, wrong, precision or sign.",
        ),
    ] = "wrong values",
    in_place: Annotated[bool, typer.Option("--in-place", help="Allow OUT to be IN.")] = False,
    json: Json = False,
) -> None:
    """Rewrite exactly the nodes that a runtime refuses or computes incorrectly, or refuse with every reason."""
    from eltwise.targets.repair import repair_file

    with waiting(RUNNING) if verify else progress_of_data() as progress:
        report = repair_file(
            source,
            out,
            target=target,
            allow=allow or (),
            verify=verify,
            severity=severity,
            in_place=in_place,
            progress=progress,
        )
    printing.report(report, json)
