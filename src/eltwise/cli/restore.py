"""``eltwise restore``: the tuned checkpoint, from its base and a delta."""

from __future__ import annotations

from pathlib import Path

import click

from eltwise.cli import options, printing
from eltwise.cli.progress import progress_of_bytes
from eltwise.core.errors import counted


@click.command(cls=options.Command)
@click.argument("base", type=options.PATH, help="The checkpoint that the delta was made with.")
@click.argument("delta", type=options.PATH, help="The delta.")
@click.option(
    "--output", "-o", type=options.OUTPUT_PATH, required=True, metavar="FILE", help="The .safetensors file to write."
)
@options.force
def restore(base: Path, delta: Path, output: Path, force: bool) -> None:
    """Write the checkpoint that a delta was made of, and verify every tensor of it."""
    from eltwise.scale.deltas import restore as write_restored

    with progress_of_bytes() as progress:
        restored = write_restored(base, delta, output, progress, force)
    printing.line(f"{counted(len(restored.tensors), 'tensor')} restored and verified")
