"""``eltwise infer``: the shape of a result, before a run."""

from __future__ import annotations

from typing import Annotated

import typer

from eltwise.cli import printing
from eltwise.cli.attributes import bound_operator


def infer(
    op: Annotated[str, typer.Argument(metavar="OPERATOR", help="A versioned name, for example Subtract-1.")],
    shapes: Annotated[
        list[str], typer.Argument(metavar="SHAPE...", help="The shape of each operand, for example ?,N,4,1..6.")
    ],
    attributes: Annotated[
        list[str] | None, typer.Option("--attr", metavar="NAME=VALUE", help="An attribute, for example axis=1.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Infer the shape of a result and state what had to be assumed."""
    inferred = bound_operator(op, attributes or []).infer_shape(*shapes)
    if json:
        printing.json_text({"shape": str(inferred), "assumptions": list(inferred.assumptions)})
        return
    printing.line(str(inferred))
    for assumption in inferred.assumptions:
        printing.line(f"assumed: {assumption}")
