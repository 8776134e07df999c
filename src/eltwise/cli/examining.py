"""``eltwise infer`` and ``eltwise check``: what can be said before a run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from eltwise.cli import printing, targeting
from eltwise.cli.attributes import bound_operator
from eltwise.core.errors import AttributeValueError, EltwiseError, GraphError, ManyProblemsError, counted
from eltwise.model import examine

Json = Annotated[bool, typer.Option("--json", help="Print what a program can read.")]


def infer(
    op: Annotated[str, typer.Argument(metavar="OPERATOR", help="A versioned name, for example Subtract-1.")],
    shapes: Annotated[
        list[str], typer.Argument(metavar="SHAPE...", help="The shape of each operand, for example ?,N,4,1..6.")
    ],
    attributes: Annotated[
        list[str] | None, typer.Option("--attr", metavar="NAME=VALUE", help="An attribute, for example axis=1.")
    ] = None,
    json: Json = False,
) -> None:
    """Infer the shape of a result, and say what had to be assumed."""
    inferred = bound_operator(op, attributes or []).infer_shape(*shapes)
    if json:
        printing.json_text({"shape": str(inferred), "assumptions": list(inferred.assumptions)})
        return
    printing.line(str(inferred))
    for assumption in inferred.assumptions:
        printing.line(f"assumed: {assumption}")


def check(
    model: Annotated[Path, typer.Argument(help="An .onnx or .xml file.")],
    target: Annotated[
        str | None,
        typer.Option(
            "--target", metavar="RUNTIME", help="Whether it runs there as it is meant: onnxruntime, openvino."
        ),
    ] = None,
    verify: Annotated[
        bool, typer.Option("--verify", help="With --target: also run it there and here on hard values.")
    ] = False,
    json: Json = False,
) -> None:
    """Find every problem of every node, of the model itself or with a runtime; exit 1 when there is one."""
    if target is not None:
        targeting.check_target(model, target, verify=verify, json=json)
        return
    if verify:
        raise AttributeValueError("nothing is run without a runtime", operand="--verify", hint="add --target RUNTIME")
    problems, assumptions, nodes = _examined(model)
    if json:
        fields = [problem.fields() for problem in problems]
        printing.json_text({"problems": fields, "assumptions": list(assumptions)})
    else:
        for problem in problems:
            printing.line(str(problem))
        for assumption in assumptions:
            printing.line(f"assumed: {assumption}")
        printing.line(f"{model.name}: {counted(len(problems), 'problem')}, {counted(nodes, 'node')} read")
    if problems:
        raise typer.Exit(1)


def _examined(path: Path) -> tuple[Sequence[EltwiseError], Sequence[str], int]:
    """The problems of a model, what was assumed, and the number of nodes that were read."""
    try:
        found = examine(path)
    except GraphError as error:
        return (error,), (), 0  # A graph whose parts cannot even be put in order is a finding, not a broken file.
    except ManyProblemsError as error:
        return error.problems, (), 0
    return found.problems, found.inference.assumptions, len(found.graph.nodes)
