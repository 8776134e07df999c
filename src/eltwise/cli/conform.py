"""``eltwise conform``: test runtimes against the specifications, bit for bit."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from eltwise.cli import options, printing
from eltwise.cli.progress import progress_of_many
from eltwise.core.errors import AttributeValueError, counted
from eltwise.core.exit_codes import ExitCode, exit_code

if TYPE_CHECKING:
    from eltwise.conformance.results import Extent
    from eltwise.conformance.selection import Selection


@click.command(cls=options.Command)
@click.option(
    "--runtime",
    multiple=True,
    metavar="NAME",
    shell_complete=options.complete_runtime,
    help="A runtime, NAME==VERSION, or FILE.py:FUNCTION. Default: all installed.",
)
@click.option("--op", multiple=True, metavar="NAME", help="An operator version, such as Sub-14.")
@click.option("--type", "types", multiple=True, metavar="NAME", help="An element type, such as uint8.")
@click.option("--broadcast", multiple=True, metavar="RULE", help="A broadcast rule: legacy, numpy, none or pdpd.")
@click.option(
    "--source", "sources", multiple=True, metavar="SOURCE", help="An operand source: static, dynamic, a-constant, ..."
)
@click.option("--quick", is_flag=True, help="Run fewer cases: 20 seconds to four minutes for one runtime.")
@click.option("--thorough", is_flag=True, help="Run all cases, each in a model of its own.")
@options.seed_of("The seed of the random values.")
@click.option(
    "--limit",
    type=options.Number(0.1, 86400),
    default=30.0,
    metavar="NUMBER",
    help="The time limit of one answer in seconds.",
)
@options.json_file
@options.html_file
@click.option("--document", type=options.PATH, metavar="FILE", help="Write the results as Markdown; - for stdout.")
@click.option("--strict", type=options.PATH, metavar="FILE", help="Exit 1 unless the failures are those of this file.")
@click.option("--write-expected", type=options.PATH, metavar="FILE", help="Write the failures as a file for --strict.")
@click.option(
    "--export", type=options.OUTPUT_PATH, metavar="FOLDER", help="Write the cases as test vectors; run nothing."
)
@click.option("--resume", type=options.PATH, metavar="FILE", help="Continue from the results of an interrupted run.")
def conform(
    *,
    runtime: Sequence[str],
    op: Sequence[str],
    types: Sequence[str],
    broadcast: Sequence[str],
    sources: Sequence[str],
    quick: bool,
    thorough: bool,
    seed: int,
    limit: float,
    json: Path | None,
    html: Path | None,
    document: Path | None,
    strict: Path | None,
    write_expected: Path | None,
    export: Path | None,
    resume: Path | None,
) -> ExitCode:
    """Test runtimes on every operator version, compare the results bit for bit, and explain what differs."""
    if quick and thorough:
        raise AttributeValueError("--quick and --thorough exclude each other", allowed="one of them, or none")
    from eltwise.conformance.selection import select
    from eltwise.formats.files import check_outputs

    extent: Extent = "quick" if quick else "thorough" if thorough else "usual"
    printing.check_outputs([] if strict is None else [strict], json, html, texts=[document, write_expected])
    if resume is not None:  # Only its own results may replace it.
        others = (path for path in (html, document, write_expected) if path not in (None, printing.STDOUT))
        check_outputs([path for path in others if path != json], [resume])
    selection = select(runtime, op, types, broadcast, sources)
    if export is not None:
        _export(export, selection, extent, seed)
        return ExitCode.GOOD
    from eltwise.conformance.document import document as document_of
    from eltwise.conformance.expected_failures import expected_text, read_expected, surprises
    from eltwise.conformance.report import read_results
    from eltwise.conformance.run import RunSettings, run_tests
    from eltwise.report.base import document as page_of

    known = None if resume is None else read_results(resume)
    expected = None if strict is None else read_expected(strict)  # An unreadable file is reported before a long run.
    has_file = json not in (None, printing.STDOUT)
    source = str(json) if has_file else "results.json"
    with progress_of_many() as progress:
        keep = (lambda results: results.to_json(json)) if has_file else None
        results = run_tests(selection, RunSettings(extent, seed, limit), progress, known, keep)
    reports = (
        (json, results.to_json),
        (html, lambda: page_of(*results.page_content(source))),
        (document, partial(document_of, results, source=source)),
        (write_expected, partial(expected_text, results)),
    )
    if not printing.write_outputs(*reports):
        printing.lines(str(results))
    left_out = selection.left_out(extent)
    if left_out:
        printing.note(left_out)
    for reason in results.not_run:
        printing.note(reason)
    surprising = [] if expected is None else list(surprises(results.tests, expected))
    for surprise in surprising:
        printing.note(surprise)
    is_listed = strict is not None or write_expected is not None
    is_wrong = bool(surprising) if is_listed else results.has_wrong
    if results.not_started and runtime and not results.interrupted:
        return ExitCode.BAD_INPUT
    return exit_code(
        findings=is_wrong,
        is_established=(results.has_right or results.has_wrong) and not results.not_run,
        is_interrupted=results.interrupted,
    )


def _export(folder: Path, selection: Selection, extent: Extent, seed: int) -> None:
    from eltwise.conformance import test_vectors
    from eltwise.conformance.cases import SOURCES
    from eltwise.formats.files import check_new_folder

    check_new_folder(folder)
    variants = dict.fromkeys(job.variant for job in selection.jobs())
    sources = [source for source in SOURCES if source in (selection.sources or SOURCES)]
    with progress_of_many() as progress:
        count = test_vectors.export(folder, list(variants), sources, extent, seed, progress)
    printing.line(f"{folder}: {counted(count, 'case')}")
