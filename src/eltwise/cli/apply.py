"""``eltwise apply``: apply one operator version to tensor files, in blocks where they are large."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from eltwise.cli import options, printing
from eltwise.cli.progress import progress_of_bytes
from eltwise.core.errors import AttributeValueError, counted

if TYPE_CHECKING:
    from eltwise.core.dtypes import ElementType
    from eltwise.engine.api import Operator

_LARGE = 64 << 20
"""Files of more bytes are worked on in blocks, whatever their format."""


@click.command(cls=options.Command)
@click.argument("op", metavar="OPERATOR", help="A versioned name, for example Sub-6.")
@click.argument(
    "operands", metavar="FILE...", nargs=-1, required=True, help="The tensor file of each operand, in order."
)
@options.attributes
@options.output
@options.element_type
@options.memory
@options.scheduler
@options.json
def apply(
    op: str,
    operands: Sequence[str],
    attributes: Sequence[str],
    output: str | None,
    element_type: str | None,
    memory: str,
    scheduler: str | None,
    json: bool,
) -> None:
    """Apply one operator version to tensor files, zarr stores or checkpoints; an ended command can be run again."""
    from eltwise.core.dtypes import by_name
    from eltwise.formats.tensor_files import check_tensor_files, parse_tensor_file, read_tensor_file, write_tensor_files

    bound = options.bound_operator(op, attributes)
    wanted = by_name(element_type) if element_type else None
    if scheduler is not None or _is_in_blocks(operands, output):
        _apply_in_blocks(bound, operands, output, memory=memory, wanted=wanted, scheduler=scheduler, json=json)
        return
    place = {"result": parse_tensor_file(output)} if output else {}
    sources = [parse_tensor_file(text) for text in operands]
    check_tensor_files(place, sources)
    result = bound(*(read_tensor_file(source, wanted) for source in sources))
    write_tensor_files({"result": result}, place)
    printing.results({} if place else {"result": result}, json=json)


def _is_in_blocks(operands: Sequence[str], output: str | None) -> bool:
    """Whether files are worked on in blocks: zarr stores, checkpoints, and large .npy files."""
    from eltwise.scale.sources import is_streamed

    named = (*operands, *([output] if output else []))
    if any(map(is_streamed, named)):
        return True
    is_npy = all(Path(text).suffix.lower() == ".npy" for text in named)
    sizes = (path.stat().st_size for path in map(Path, operands) if path.is_file())
    return bool(output) and is_npy and sum(sizes) > _LARGE


def _apply_in_blocks(
    operator_: Operator,
    operands: Sequence[str],
    output: str | None,
    *,
    memory: str,
    wanted: ElementType | None,
    scheduler: str | None,
    json: bool,
) -> None:
    from eltwise.scale.apply import apply_files
    from eltwise.scale.sources import parse_bytes

    if output is None:
        words, hint = "the result of files like these is not printed", "name a file with --output"
        raise AttributeValueError(words, operand="--output", hint=hint)
    with progress_of_bytes() as tell:
        outcome = apply_files(
            operator_, operands, output, memory=parse_bytes(memory), wanted=wanted, scheduler=scheduler, tell=tell
        )
    if json:
        printing.json_text(outcome.fields())
    if outcome.is_complete:
        printing.note(f"{output} is complete already")
    elif outcome.resumed:
        printing.note(f"resumed: {outcome.resumed} of {counted(outcome.blocks, 'block')} were done before")
    if outcome.not_inverted and not json:
        printing.line(
            f"b + (a - b) is not a for {outcome.not_inverted} of {outcome.elements} elements, since floats are rounded;"
            " eltwise delta gives every bit back"
        )
