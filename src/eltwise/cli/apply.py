"""``eltwise apply``: apply one operator version to tensor files, in blocks where they are large."""

from __future__ import annotations

from collections.abc import Sequence

import click

from eltwise.cli import options, printing
from eltwise.cli.blocks import is_in_blocks, resources_of, show_outcomes


@click.command(cls=options.Command)
@click.argument("op", metavar="OPERATOR", help="A versioned name, for example Sub-6.")
@click.argument(
    "operands", metavar="FILE...", nargs=-1, required=True, help="The tensor file of each operand, in order."
)
@options.attributes
@options.output
@options.element_type
@options.limits
@options.json
def apply(
    op: str,
    operands: Sequence[str],
    attributes: Sequence[str],
    output: str | None,
    element_type: str | None,
    limits: options.Limits,
    json: bool,
) -> None:
    """Apply one operator version to tensor files, zarr stores or checkpoints; an ended command can be run again."""
    from eltwise.core.dtypes import by_name
    from eltwise.formats.tensor_files import check_tensor_files, parse_tensor_file, read_tensor_file, write_tensor_files

    bound = options.bound_operator(op, attributes)
    raw_type = by_name(element_type) if element_type else None
    if is_in_blocks(operands, [output] if output else [], limits.scheduler):
        from eltwise.scale.apply import apply_files

        with resources_of(limits) as resources:
            outcome = apply_files(bound, operands, output or "", resources, raw_type)
        show_outcomes({"result": outcome}, {"result": output or ""}, json=json)
        if outcome.not_inverted and not json:
            printing.line(
                f"b + (a - b) is not a for {outcome.not_inverted} of {outcome.elements} elements, since floats are"
                " rounded; eltwise delta gives every bit back"
            )
        return
    targets = {"result": parse_tensor_file(output)} if output else {}
    sources = [parse_tensor_file(text) for text in operands]
    check_tensor_files(targets, sources)
    result = bound(*(read_tensor_file(source, raw_type) for source in sources))
    write_tensor_files({"result": result}, targets)
    printing.results({} if targets else {"result": result}, json=json)
