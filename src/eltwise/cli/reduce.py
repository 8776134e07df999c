"""``eltwise reduce``: sums, means, minima and maxima of files, exact and in blocks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from eltwise.cli import options, printing
from eltwise.cli.blocks import resources_of
from eltwise.core.errors import AttributeValueError, unknown_name

if TYPE_CHECKING:
    import numpy as np


@click.command(cls=options.Command)
@click.argument(
    "reduction",
    help="mean-squared-difference, mean-absolute-difference or max-absolute-difference of two files;"
    " or sum, mean, min or max, followed by an operator.",
)
@click.argument(
    "operands", metavar="[OPERATOR] FILE...", nargs=-1, required=True, help="The file of each operand, in order."
)
@options.attributes
@click.option("--axis", metavar="AXES", help="The axes to reduce, such as 0,2; by default all.")
@options.output
@options.element_type
@options.limits
@options.json
def reduce(
    reduction: str,
    operands: Sequence[str],
    attributes: Sequence[str],
    axis: str | None,
    output: str | None,
    element_type: str | None,
    limits: options.Limits,
    json: bool,
) -> None:
    """Reduce an operator's results on files of any size: exactly, rounded once, the same bits everywhere."""
    from eltwise.core.dtypes import by_name
    from eltwise.engine.reduce import REDUCTIONS, SHORTHANDS, reducing_of
    from eltwise.formats.tensor_files import check_tensor_files, parse_tensor_file, write_tensor_files
    from eltwise.scale.reductions import reduce_files
    from eltwise.scale.sources import open_sources

    if reduction not in REDUCTIONS:
        raise unknown_name("reduction", reduction, REDUCTIONS)
    if reduction in SHORTHANDS and attributes:
        raise AttributeValueError("a reduction of differences has no attributes", operand="--attr")
    has_operator = reduction not in SHORTHANDS
    chosen = options.bound_operator(operands[0], attributes) if has_operator else None
    reducing = reducing_of(reduction, chosen)
    files, raw_type = operands[has_operator:], by_name(element_type) if element_type else None
    targets = {"result": parse_tensor_file(output)} if output else {}
    sources = open_sources(files, [raw_type] * len(files))
    check_tensor_files(targets, (), sources.files())
    if targets and sources.is_named:
        problem, hint = "the results of checkpoints are printed", "leave out --output"
        raise AttributeValueError(problem, operand="--output", hint=hint)
    with resources_of(limits) as resources:
        results = reduce_files(reducing, sources, _axes(axis), resources)
    write_tensor_files(results if targets else {}, targets)
    if json:
        printing.json_text("reduction", {"results": {name: _fields(value) for name, value in results.items()}})
    elif not targets:
        printing.results(results, json=False)


def _fields(array: np.ndarray) -> dict[str, object]:
    """A result in full, floats also in hexadecimal."""
    from eltwise.core.dtypes import of_numpy

    is_float = of_numpy(array.dtype).kind == "float"
    hexadecimal = {"hexadecimal": [float(each).hex() for each in array.reshape(-1)]} if is_float else {}
    return {**printing.array_fields(array, "values"), **hexadecimal}


def _axes(text: str | None) -> tuple[int, ...] | None:
    if text is None:
        return None
    try:
        return tuple(map(int, text.split(",")))
    except ValueError:
        raise AttributeValueError("not axes", operand="--axis", got=repr(text), allowed="for example 0,2") from None
