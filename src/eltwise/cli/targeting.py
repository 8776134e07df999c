"""``eltwise repair``, and ``eltwise check --target``: whether a model runs right on a runtime, and what mends it."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer

from eltwise.cli import printing
from eltwise.cli.progress import progress_of_data, waiting

_RUNNING = "running the model here and there"


def check_target(model: Path, target: str, *, verify: bool, json: bool) -> None:
    """Print what a runtime does with a model; exit 1 where that is not what the model means."""
    from eltwise.targets.checking import check

    with waiting(_RUNNING) if verify else nullcontext():
        report = check(model, target, verify=verify)
    if json:
        printing.json_text(report.fields())
    else:
        printing.line(str(report))
    if not report.is_good:
        raise typer.Exit(1)


def repair(
    source: Annotated[Path, typer.Argument(metavar="IN", help="An .onnx file, or an .xml file with its .bin.")],
    out: Annotated[Path, typer.Argument(metavar="OUT", help="The file to write, of the same format.")],
    target: Annotated[str, typer.Option("--target", metavar="RUNTIME", help="onnxruntime or openvino.")],
    allow: Annotated[
        list[str] | None,
        typer.Option("--allow", metavar="KIND", help="Accept a difference, by the name that check --target gives it."),
    ] = None,
    verify: Annotated[
        bool, typer.Option("--verify", help="Run OUT there and IN here on hard values, before anything is written.")
    ] = False,
    in_place: Annotated[bool, typer.Option("--in-place", help="Let OUT be IN.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print what a program can read.")] = False,
) -> None:
    """Write exactly those nodes otherwise that a runtime refuses or gets wrong; refuse where nothing exact is known."""
    from eltwise.targets.files import repair_file

    with waiting(_RUNNING) if verify else progress_of_data() as progress:
        report = repair_file(
            source, out, target=target, allow=allow or (), verify=verify, in_place=in_place, progress=progress
        )
    if json:
        printing.json_text(report.fields())
    else:
        printing.line(str(report))
