"""Options of the commands that work on files in blocks."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Memory = Annotated[str, typer.Option("--memory", metavar="SIZE", help="How much memory may be used, such as 2GiB.")]
Scheduler = Annotated[
    str | None,
    typer.Option("--scheduler", metavar="ADDRESS", help="A Dask cluster, such as tcp://host:8786, for zarr stores."),
]

_LARGE = 64 << 20
"""Files of more bytes are worked on in blocks, whatever their format."""


def is_in_blocks(operands: list[str], output: str | None) -> bool:
    """Whether files are worked on in blocks: zarr stores, checkpoints, and large .npy files."""
    from eltwise.scale.sources import is_streamed

    if any(is_streamed(text) for text in (*operands, *([output] if output else []))):
        return True
    paths = [Path(text) for text in operands]
    is_npy = all(path.suffix.lower() == ".npy" for path in (*paths, *([Path(output)] if output else [])))
    return bool(output) and is_npy and sum(path.stat().st_size for path in paths if path.is_file()) > _LARGE
