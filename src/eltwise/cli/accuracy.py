"""``eltwise accuracy``: measure how far the functions of runtimes are from the real values."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import click

from eltwise.cli import options, printing
from eltwise.cli.progress import progress_of_many
from eltwise.core.exit_codes import ExitCode


@click.command(cls=options.Command)
@click.option("--runtime", multiple=True, metavar="SPEC", help="A runtime. Default: all installed ones but eltwise.")
@click.option("--op", multiple=True, metavar="NAME", help="A function, such as Exp. Default: all.")
@click.option("--type", "types", multiple=True, metavar="NAME", help="A float type, such as float16. Default: all.")
@click.option("--numbers", type=options.Integer(1), default=10_000_000, help="How many float32 numbers.")
@click.option("--exhaustive", is_flag=True, help="Take all float32 numbers: 430 times as many.")
@click.option("--bound", type=options.Number(0.5, 1e9), default=4.0, help="The largest error that is right, in ULP.")
@options.seed_of("The seed of the numbers that are drawn.")
@options.json_file
@options.html_file
@click.option("--document", type=options.PATH, metavar="FILE", help="Write the results as Markdown; - for stdout.")
def accuracy(
    *,
    runtime: Sequence[str],
    op: Sequence[str],
    types: Sequence[str],
    numbers: int,
    exhaustive: bool,
    bound: float,
    seed: int,
    json: Path | None,
    html: Path | None,
    document: Path | None,
) -> ExitCode:
    """Measure functions on runtimes: exit 1 if one is beyond the bound or wrong at a special value."""
    from eltwise.accuracy.document import document as document_of
    from eltwise.accuracy.measure import measure, select

    printing.check_outputs([], json, html, texts=[document])
    selection = select(runtime, op, types)
    with progress_of_many() as progress:
        report = measure(*selection, numbers=None if exhaustive else numbers, seed=seed, bound=bound, progress=progress)
    reports = ((json, report.to_json), (html, report.to_html), (document, partial(document_of, report)))
    if not printing.write_outputs(*reports):
        printing.lines(str(report))
    return report.exit_code
