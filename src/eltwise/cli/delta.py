"""``eltwise delta``: the difference of two checkpoints, from which ``restore`` gives every bit back."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from eltwise.cli import printing
from eltwise.cli.printing import Json
from eltwise.cli.progress import progress_of_tensors


def delta(
    tuned: Annotated[
        Path, typer.Argument(help="The checkpoint to store: .safetensors, its .safetensors.index.json, or the folder.")
    ],
    base: Annotated[Path, typer.Argument(help="The checkpoint that it was tuned from.")],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="The delta to write.")],
    level: Annotated[int, typer.Option("--level", min=1, max=19, help="The level of zstd's compression.")] = 3,
    json: Json = False,
) -> None:
    """Write the difference of two checkpoints: base and delta give every bit back."""
    from eltwise.scale.deltas import delta as write_delta

    with progress_of_tensors() as tell:
        report = write_delta(tuned, base, output, level, tell)
    if json:
        printing.json_text(report.fields())
    else:
        printing.line(str(report))
