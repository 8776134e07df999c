"""``eltwise restore``: the tuned checkpoint, from its base and a delta."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from eltwise.cli import printing
from eltwise.cli.progress import progress_of_tensors


def restore(
    base: Annotated[Path, typer.Argument(help="The checkpoint that the delta was made with.")],
    delta: Annotated[Path, typer.Argument(help="The delta.")],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="The .safetensors file to write.")],
) -> None:
    """Write the checkpoint that a delta was made of, and verify every tensor of it."""
    from eltwise.scale.deltas import restore as write_restored

    with progress_of_tensors() as tell:
        made = write_restored(base, delta, output, tell)
    printing.line(f"{len(made.tensors)} tensors restored and verified")
