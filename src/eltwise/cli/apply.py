"""``eltwise apply``: apply one operator version to tensor files, in blocks where they are large."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from eltwise.cli import printing
from eltwise.cli.attributes import Attributes, bound_operator
from eltwise.cli.blocks import Memory, Scheduler, is_in_blocks
from eltwise.cli.printing import Json
from eltwise.cli.progress import progress_of_tensors

if TYPE_CHECKING:
    from eltwise.core.dtypes import ElementType
    from eltwise.engine.api import Operator


def apply(
    op: Annotated[str, typer.Argument(metavar="OPERATOR", help="A versioned name, for example Sub-6.")],
    operands: Annotated[
        list[str], typer.Argument(metavar="FILE...", help="The tensor file of each operand, in order.")
    ],
    attributes: Attributes = None,
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="FILE", help="The file to write the result to.")
    ] = None,
    element_type: Annotated[
        str | None,
        typer.Option("--type", metavar="TYPE", help="The element type of raw bytes in .npy files, for example int4."),
    ] = None,
    memory: Memory = "2GiB",
    scheduler: Scheduler = None,
    json: Json = False,
) -> None:
    """Apply one operator version to tensor files, zarr stores or checkpoints; an ended command can be run again."""
    from eltwise.core.dtypes import by_name
    from eltwise.formats.tensor_files import check_tensor_files, parse_tensor_file, read_tensor_file, write_tensor_files

    bound = bound_operator(op, attributes or [])
    wanted = by_name(element_type) if element_type else None
    if is_in_blocks(operands, output):
        _apply_in_blocks(bound, operands, output, memory=memory, wanted=wanted, scheduler=scheduler, json=json)
        return
    place = {"result": parse_tensor_file(output)} if output else {}
    sources = [parse_tensor_file(text) for text in operands]
    check_tensor_files(place, sources)
    result = bound(*(read_tensor_file(source, wanted) for source in sources))
    write_tensor_files({"result": result}, place)
    printing.results({} if place else {"result": result}, json=json)


def _apply_in_blocks(
    operator_: Operator,
    operands: list[str],
    output: str | None,
    *,
    memory: str,
    wanted: ElementType | None,
    scheduler: str | None,
    json: bool,
) -> None:
    from eltwise.core.errors import AttributeValueError, counted
    from eltwise.scale.apply import apply_files
    from eltwise.scale.sources import parse_bytes

    if output is None:
        words, hint = "the result of files like these is not printed", "name a file with --output"
        raise AttributeValueError(words, operand="--output", hint=hint)
    with progress_of_tensors() as tell:
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
