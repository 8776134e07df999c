"""``eltwise infer``: the shape of a result, before a run."""

from __future__ import annotations

from typing import Annotated

import typer

from eltwise.cli import printing
from eltwise.cli.attributes import Attributes, bound_operator
from eltwise.cli.printing import Json


def infer(
    op: Annotated[str, typer.Argument(metavar="OPERATOR", help="A versioned name, for example Subtract-1.")],
    shapes: Annotated[
        list[str], typer.Argument(metavar="SHAPE...", help="The shape of each operand, for example ?,N,4,1..6.")
    ],
    attributes: Attributes = None,
    json: Json = False,
) -> None:
    """Infer the shape of a result and state what had to be assumed."""
    inferred = bound_operator(op, attributes or []).infer_shape(*shapes)
    if json:
        printing.json_text({"shape": str(inferred), "assumptions": list(inferred.assumptions)})
        return
    printing.line(str(inferred))
    for assumption in inferred.assumptions:
        printing.line(f"assumed: {assumption}")
