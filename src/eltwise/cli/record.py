"""``eltwise record``: a run of a model as a file, for a trace on another machine or at another time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import click

from eltwise.cli import options, printing
from eltwise.cli.progress import progress_of_many
from eltwise.cli.run import files_of_inputs, read_inputs
from eltwise.core.errors import counted


@click.command(cls=options.Command)
@click.argument("model", type=options.PATH, help="An .onnx or .xml file with any operators.")
@options.runtime("The runtime that runs it.")
@options.inputs
@click.option("--values", default="outputs", metavar="CHOICE", help="outputs, or all: also the values between.")
@click.option("--output", "-o", required=True, type=options.OUTPUT_PATH, metavar="FILE", help="A .safetensors file.")
@options.seed
@click.option("--limit", type=options.Number(0.1), default=120.0, metavar="SECONDS", help="Of one answer.")
def record(
    *,
    model: Path,
    runtime: str,
    inputs: Sequence[str],
    values: Literal["outputs", "all"],
    output: Path,
    seed: int,
    limit: float,
) -> None:
    """Run a model in a runtime and write its inputs and values, which `trace` takes in place of a runtime."""
    from eltwise.formats.files import check_outputs, unknown_ending
    from eltwise.formats.registry import files_of
    from eltwise.model import read
    from eltwise.tracing.record import record as record_model
    from eltwise.tracing.recording import ENDING

    if output.suffix.lower() != ENDING:
        raise unknown_ending(output, ENDING)
    read_once = read(model, reads_weights=False)
    check_outputs([output], [*files_of(read_once.graph, model), *files_of_inputs(inputs)])
    arrays = read_inputs(read_once.graph, inputs)
    with progress_of_many() as progress:
        recording = record_model(
            read_once, runtime=runtime, inputs=arrays, values=values, seed=seed, limit=limit, progress=progress
        )
    recording.save(output)
    printing.line(f"{output}: {counted(len(recording.inputs), 'input')}, {counted(len(recording.values), 'value')}")
    if note := recording.metadata.get("note"):
        printing.note(note)
