"""``eltwise compare``: compare two sets of tensors, and say which differ, where, by how much, and why."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.exceptions import Exit

from eltwise.cli import options, printing
from eltwise.cli.progress import progress_of_bytes

if TYPE_CHECKING:
    from eltwise.comparison.report import Report, TensorReport

_MOST_ROWS = 60


@click.command(cls=options.Command)
@click.argument("a", help="The reference: a file, a checkpoint, a zarr store, a folder.")
@click.argument("b", help="What is compared with it.")
@options.tolerance
@options.json_file
@options.html_file
@options.element_type
@click.option("--causes/--no-causes", default=True, help="Whether to look for the causes.")
def compare(
    a: str,
    b: str,
    tolerance: Sequence[str],
    json: Path | None,
    html: Path | None,
    element_type: str | None,
    causes: bool,
) -> None:
    """Compare two sets of tensors: exit 1 if bits differ, or something is beyond the tolerance."""
    from eltwise.comparison.compare import compare_sets, tensors_of
    from eltwise.comparison.tolerance import parse_tolerances
    from eltwise.core.dtypes import by_name

    printing.check_report(json, html, [Path(a), Path(b)])
    tolerances = parse_tolerances(tolerance)
    wanted = by_name(element_type) if element_type else None
    sides = tensors_of(a, "A", wanted), tensors_of(b, "B", wanted)
    with progress_of_bytes() as tell:
        report = compare_sets(*sides, tolerances, causes, tell)
    if not printing.write_report(report, json, html):
        _show(report)
    for sentence in report.unreadable:
        printing.note(f"eltwise: {sentence}")
    raise Exit(2 if report.unreadable else 0 if report.is_good else 1)


def _show(report: Report) -> None:
    """Print the report, on a terminal after a table of what differs."""
    shown = [each for each in report.by_badness if each.status != "equal" or each.cause]
    if len(shown) > 1 and printing.is_terminal():
        _show_table(shown[:_MOST_ROWS])
        if len(shown) > _MOST_ROWS:
            printing.line(f"... and {len(shown) - _MOST_ROWS} more")
    printing.line(str(report))


def _show_table(shown: list[TensorReport]) -> None:
    from eltwise.comparison.places import percent
    from eltwise.comparison.report import number

    table = printing.table(
        "tensor", "type", "differing", "beyond", "max abs", "max rel", "max ULP", "cause", folding="tensor"
    )
    for each in shown:
        kind = each.dtype if each.dtype == each.other_dtype else f"{each.dtype} / {each.other_dtype}"
        share = "" if each.cause_share in (None, 0.0, 1.0) else f" ({percent(each.cause_share)})"
        values = (each.differing, each.beyond_tolerance, each.max_abs, each.max_rel, each.max_ulp)
        table.add_row(each.label, kind, *map(number, values), f"{each.cause}{share}")
    printing.show(table)
