"""``eltwise compare``: compare two sets of tensors, and say which differ, where, by how much, and why."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from eltwise.cli import printing
from eltwise.cli.progress import progress_of_tensors
from eltwise.formats import files

if TYPE_CHECKING:
    from eltwise.comparison.report import Report, TensorReport

Tolerance = Annotated[
    list[str] | None,
    typer.Option(
        "--tolerance",
        metavar="TOLERANCE",
        help="What is forgiven: ulp<=1, or rtol=1e-3, atol=1e-5; NAME: TOLERANCE for some tensors; @FILE for a file.",
    ),
]
Json = Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Write the report as JSON; - for stdout.")]
Html = Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Write the report as an HTML page.")]

_MOST_ROWS = 60


def compare(
    a: Annotated[str, typer.Argument(metavar="A", help="The reference: a file, a checkpoint, a zarr store, a folder.")],
    b: Annotated[str, typer.Argument(metavar="B", help="What is compared with it.")],
    tolerance: Tolerance = None,
    json: Json = None,
    html: Html = None,
    type_: Annotated[
        str, typer.Option("--type", metavar="TYPE", help="The element type of raw bytes in .npy files.")
    ] = "",
    causes: Annotated[bool, typer.Option("--causes/--no-causes", help="Whether to look for the causes.")] = True,
) -> None:
    """Compare two sets of tensors: exit 1 if bits differ, or something is beyond the tolerance."""
    from eltwise.comparison.compare import compare_sets, tensors_of
    from eltwise.comparison.tolerance import parse_tolerances
    from eltwise.core.dtypes import by_name

    is_json_printed = json == Path("-")
    files.check_outputs([path for path in (json, html) if path is not None and path != Path("-")], [Path(a), Path(b)])
    tolerances = parse_tolerances(tolerance)
    wanted = by_name(type_) if type_ else None
    sides = tensors_of(a, "A", wanted), tensors_of(b, "B", wanted)
    with progress_of_tensors() as tell:
        report = compare_sets(*sides, tolerances, causes, tell)
    if json is not None and not is_json_printed:
        report.to_json(json)
    if html is not None:
        report.to_html(html)
    if is_json_printed:
        printing.line(report.to_json())
    else:
        show(report)
    for sentence in report.unreadable:
        printing.note(f"eltwise: {sentence}")
    raise typer.Exit(2 if report.unreadable else 0 if report.is_good else 1)


def show(report: Report) -> None:
    """Print the report, on a terminal after a table of what differs."""
    shown = [each for each in report.by_badness if each.status != "equal" or each.cause]
    if len(shown) > 1 and printing.is_terminal():
        _show_table(shown[:_MOST_ROWS])
        if len(shown) > _MOST_ROWS:
            printing.line(f"... and {len(shown) - _MOST_ROWS} more")
    printing.line(str(report))


def _show_table(shown: list[TensorReport]) -> None:
    from eltwise.comparison.report import number

    table = printing.table(
        "tensor", "type", "differing", "beyond", "max abs", "max rel", "max ULP", "cause", folding="tensor"
    )
    for each in shown:
        kind = each.dtype if each.dtype == each.other_dtype else f"{each.dtype} / {each.other_dtype}"
        share = "" if each.cause_share in (None, 0.0, 1.0) else f" ({each.cause_share:.1%})"
        values = (each.differing, each.beyond_tolerance, each.max_abs, each.max_rel, each.max_ulp)
        table.add_row(each.label, kind, *map(number, values), f"{each.cause}{share}")
    printing.show(table)
