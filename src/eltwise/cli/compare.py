"""``eltwise compare``: compare two sets of tensors, and say which differ, where, by how much, and why."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import click

from eltwise.cli import options, printing
from eltwise.cli.progress import progress_of_bytes
from eltwise.core.exit_codes import ExitCode


@click.command(cls=options.Command)
@click.argument("a", type=click.Path(), help="The reference: a file, a checkpoint, a zarr store, a folder.")
@click.argument("b", type=click.Path(), help="What is compared with it.")
@options.tolerance
@options.json_file
@options.html_file
@options.element_type
@click.option("--causes/--no-causes", default=True, help="Whether to look for the causes.")
@click.option("--order", metavar="MODEL", help="A model in whose order the tensors are reported.")
@click.option("--summary", "detail", flag_value="summary", help="Print the result of the whole only.")
@click.option("--all", "detail", flag_value="all", help="Print every tensor that differs.")
def compare(
    a: str,
    b: str,
    tolerance: Sequence[str],
    json: Path | None,
    html: Path | None,
    element_type: str | None,
    causes: bool,
    order: str | None,
    detail: Literal["summary", "all"] | None,
) -> ExitCode:
    """Compare two sets of tensors: exit 1 if bits differ, or something is beyond the tolerance."""
    from eltwise.comparison.compare import compare_sets, graph_of, tensors_of
    from eltwise.comparison.tolerance import parse_tolerances, tolerance_files
    from eltwise.core.dtypes import by_name

    tolerances = parse_tolerances(tolerance)
    raw_type = by_name(element_type) if element_type else None
    sides = tensors_of(a, "A", raw_type), tensors_of(b, "B", raw_type)
    graph = None if order is None else graph_of(order)
    read = [
        a,
        b,
        *([order] if order else []),
        *(each.where for side in sides for each in side.values()),
        *tolerance_files(tolerance),
    ]
    printing.check_outputs(list(map(Path, dict.fromkeys(read))), json, html)
    with progress_of_bytes() as progress:
        report = compare_sets(*sides, tolerances, causes, progress, graph)
    if not printing.write_outputs((json, report.to_json), (html, report.to_html)):
        printing.lines(report.to_text(detail or "worst"))
    for sentence in report.unreadable_shown():
        printing.note(f"eltwise: {sentence}")
    return report.exit_code
