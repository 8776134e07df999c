"""``eltwise infer``: the shape of a result, before a run."""

from __future__ import annotations

from collections.abc import Sequence

import click

from eltwise.cli import options, printing


@click.command(cls=options.Command)
@click.argument("op", metavar="OPERATOR", help="A versioned name, for example Subtract-1.")
@click.argument(
    "shapes", metavar="SHAPE...", nargs=-1, required=True, help="The shape of each operand, for example ?,N,4,1..6."
)
@options.attributes
@options.json
def infer(op: str, shapes: Sequence[str], attributes: Sequence[str], json: bool) -> None:
    """Infer the shape of a result and state what had to be assumed."""
    inferred = options.bound_operator(op, attributes).infer_shape(*shapes)
    if json:
        printing.json_text("shape", {"shape": str(inferred), "assumptions": list(inferred.assumptions)})
        return
    printing.line(str(inferred))
    for assumption in inferred.assumptions:
        printing.line(f"assumed: {assumption}")
