"""``eltwise convert``: a model file in another opset, format or version of it, or every reason why not."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from eltwise.cli import printing
from eltwise.cli.progress import waiting
from eltwise.passes.files import convert_file

if TYPE_CHECKING:
    from eltwise.passes.files import Progress


def convert(
    source: Annotated[Path, typer.Argument(metavar="IN", help="An .onnx file, or an .xml file with its .bin.")],
    target: Annotated[Path, typer.Argument(metavar="OUT", help="The .onnx or .xml file to write.")],
    opset: Annotated[
        int | None, typer.Option("--opset", help="The opset of an ONNX model; 17 where the model was an IR.")
    ] = None,
    ir_version: Annotated[
        int | None, typer.Option("--ir-version", help="The version of an IR, 10 or 11; 11 where the model was ONNX.")
    ] = None,
    verify: Annotated[
        bool, typer.Option("--verify", help="Run both on hard values and compare the bits, before anything is written.")
    ] = False,
    in_place: Annotated[bool, typer.Option("--in-place", help="Let OUT be IN.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print what a program can read.")] = False,
) -> None:
    """Carry a model to another opset or format, exactly; refuse it with every reason where that cannot be."""
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
    if json:
        printing.json_text(report.fields())
    else:
        printing.line(str(report))


@contextmanager
def progress_of_data() -> Iterator[Progress | None]:
    """Show how much external data is copied, where somebody watches."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn

    columns = (TextColumn("copying weights"), BarColumn(), DownloadColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", visible=False)
        yield lambda done, total: bar.update(task, completed=done, total=total, visible=True)
