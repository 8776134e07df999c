"""What commands on files of any size share: whether they work in blocks, what they may use, and what they say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from eltwise.cli import printing
from eltwise.cli.options import Limits
from eltwise.cli.progress import progress_of_bytes
from eltwise.core.errors import AttributeValueError, FileFormatError, counted

if TYPE_CHECKING:
    from eltwise.scale.jobs import JobOutcome, Resources

_LARGE = 64 << 20
"""Files of more bytes are worked on in blocks, whatever their format."""


def is_in_blocks(operands: Sequence[str], outputs: Sequence[str], scheduler: str | None) -> bool:
    """Whether files are worked on in blocks: on a cluster, zarr stores, checkpoints, and large .npy files.

    Raises:
        AttributeValueError: where they are, and no output is named.
        FileFormatError: where an output would be gone with the process of the command.
    """
    from eltwise.formats.store_paths import is_in_memory
    from eltwise.scale.sources import is_streamed

    if lost := next(filter(is_in_memory, outputs), ""):
        problem, hint = "what is written to memory is gone when the command ends", "name a file, or a store that lasts"
        raise FileFormatError(problem, where=lost, hint=hint)
    is_npy = all(Path(text).suffix.lower() == ".npy" for text in (*operands, *outputs))
    sizes = (path.stat().st_size for path in map(Path, operands) if path.is_file())
    is_large = (
        scheduler is not None
        or any(map(is_streamed, (*operands, *outputs)))
        or (bool(outputs) and is_npy and sum(sizes) > _LARGE)
    )
    if is_large and not outputs:
        problem, hint = "the result of files like these is not printed", "name a file with --output"
        raise AttributeValueError(problem, operand="--output", hint=hint)
    return is_large


@contextmanager
def resources_of(limits: Limits) -> Iterator[Resources]:
    """What options say may be used; progress is shown, and what a job waits for."""
    from eltwise.scale.jobs import Resources

    with progress_of_bytes() as progress:
        yield Resources(limits.memory, limits.scheduler, progress, limits.wait, printing.note)


def show_outcomes(outcomes: Mapping[str, JobOutcome], outputs: Mapping[str, str], *, json: bool) -> None:
    """Say for each output, by its name, what was done, and in which file it was begun before."""
    if json:
        printing.json_text("blocks", {"outputs": {name: outcome.to_dict() for name, outcome in outcomes.items()}})
    for name, outcome in outcomes.items():
        output = outputs[name]
        if outcome.was_complete:
            printing.note(f"{output} is complete already")
        elif outcome.changed:
            printing.note(f"begun anew, since {' and '.join(outcome.changed)} changed since {output} was begun")
        elif outcome.resumed or outcome.damaged:
            of = f" of {output}" if len(outcomes) > 1 else ""
            blocks = counted(outcome.blocks, "block")
            again = f"; {outcome.damaged} had changed since and were computed again" if outcome.damaged else ""
            printing.note(f"resumed: {outcome.resumed} of {blocks}{of} were done before{again}")
