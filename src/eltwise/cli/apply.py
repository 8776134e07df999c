"""``eltwise apply``: apply one operator version to tensor files."""

from __future__ import annotations

from typing import Annotated

import typer

from eltwise.cli import printing
from eltwise.cli.attributes import Attributes, bound_operator
from eltwise.cli.printing import Json


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
    json: Json = False,
) -> None:
    """Apply one operator version to tensor files."""
    from eltwise.core.dtypes import by_name
    from eltwise.formats.tensor_files import check_tensor_files, parse_tensor_file, read_tensor_file, write_tensor_files

    bound = bound_operator(op, attributes or [])
    wanted = by_name(element_type) if element_type else None
    place = {"result": parse_tensor_file(output)} if output else {}
    sources = [parse_tensor_file(text) for text in operands]
    check_tensor_files(place, sources)
    result = bound(*(read_tensor_file(source, wanted) for source in sources))
    write_tensor_files({"result": result}, place)
    printing.results({} if place else {"result": result}, json=json)
