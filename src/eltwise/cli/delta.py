"""``eltwise delta``: the difference of two checkpoints, from which ``restore`` gives every bit back."""

from __future__ import annotations

from pathlib import Path

import click

from eltwise.cli import options, printing
from eltwise.cli.progress import progress_of_bytes


@click.command(cls=options.Command)
@click.argument(
    "tuned",
    type=options.PATH,
    help="The checkpoint to store: .safetensors, its .safetensors.index.json, or the folder.",
)
@click.argument("base", type=options.PATH, help="The checkpoint that it was tuned from.")
@click.option("--output", "-o", type=options.OUTPUT_PATH, required=True, metavar="FILE", help="The delta to write.")
@click.option("--level", type=options.Integer(1, 19), default=3, help="The level of zstd's compression.")
@options.force
@options.json
def delta(tuned: Path, base: Path, output: Path, level: int, force: bool, json: bool) -> None:
    """Write the difference of two checkpoints: base and delta give every bit back."""
    from eltwise.scale.deltas import delta as write_delta

    with progress_of_bytes() as progress:
        report = write_delta(tuned, base, output, level, progress, force)
    if json:
        printing.json_text("delta", report.to_dict())
    else:
        printing.lines(str(report))
