"""``eltwise conform``: test runtimes against the specifications, bit for bit."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from eltwise.cli import printing
from eltwise.cli.progress import progress_of_many
from eltwise.core.errors import AttributeValueError, unknown_name
from eltwise.formats import files
from eltwise.formats.files import check_new_folder

if TYPE_CHECKING:
    from eltwise.conformance.results import Extent, Results
    from eltwise.conformance.run import Outcome, Selection


def conform(  # noqa: PLR0917 - a command has as many parameters as options
    runtime: Annotated[
        list[str] | None,
        typer.Option("--runtime", metavar="NAME", help="A runtime, or FILE.py:FUNCTION. Default: all installed."),
    ] = None,
    op: Annotated[
        list[str] | None, typer.Option("--op", metavar="NAME", help="An operator version, such as Sub-14.")
    ] = None,
    type_: Annotated[
        list[str] | None, typer.Option("--type", metavar="NAME", help="An element type, such as uint8.")
    ] = None,
    broadcast: Annotated[
        list[str] | None,
        typer.Option("--broadcast", metavar="RULE", help="A broadcast rule: legacy, numpy, none or pdpd."),
    ] = None,
    path: Annotated[
        list[str] | None,
        typer.Option("--path", metavar="PATH", help="An operand source: static, dynamic, a-constant, ..."),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Run fewer cases: about a minute for one runtime.")] = False,
    thorough: Annotated[bool, typer.Option("--thorough", help="Run all cases, each in a model of its own.")] = False,
    seed: Annotated[int, typer.Option("--seed", min=0, help="The seed of the random values.")] = 0,
    limit: Annotated[
        float, typer.Option("--limit", min=0.1, max=86400, help="The time limit of one answer in seconds.")
    ] = 30.0,
    json: Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Write the results as JSON.")] = None,
    html: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", help="Write the results as an HTML page.")
    ] = None,
    document: Annotated[
        Path | None, typer.Option("--document", metavar="FILE", help="Write the results as Markdown.")
    ] = None,
    strict: Annotated[
        Path | None,
        typer.Option("--strict", metavar="FILE", help="Exit 1 unless the failures are those of this file."),
    ] = None,
    write_known: Annotated[
        Path | None, typer.Option("--write-known", metavar="FILE", help="Write the failures as a file for --strict.")
    ] = None,
    export: Annotated[
        Path | None, typer.Option("--export", metavar="FOLDER", help="Write the cases as test vectors; run nothing.")
    ] = None,
    resume: Annotated[
        Path | None, typer.Option("--resume", metavar="FILE", help="Continue from the results of an interrupted run.")
    ] = None,
) -> None:
    """Test runtimes on every operator version, compare the results bit for bit, and explain what differs."""
    if quick and thorough:
        raise AttributeValueError("--quick and --thorough exclude each other", allowed="one of them, or none")
    extent: Extent = "quick" if quick else "thorough" if thorough else "usual"
    _check_outputs([path for path in (json, html, document, write_known) if path is not None])
    selection = _selection(runtime, op, type_, broadcast, path)
    if export is not None:
        _export(export, selection, extent, seed)
        return
    from eltwise.conformance.expected_failures import read_expected, surprises
    from eltwise.conformance.results import read_results
    from eltwise.conformance.run import Settings, run_tests

    known = None if resume is None else read_results(resume)
    expected = None if strict is None else read_expected(strict)  # An unreadable file is reported before a long run.
    with progress_of_many() as on_progress:
        outcome = run_tests(selection, Settings(extent, seed, limit), on_progress, known)
    _write(outcome.results, json, html, document, write_known)
    _show(outcome.results)
    for reason in outcome.not_started.values():
        printing.note(reason)
    found = [] if expected is None else surprises(outcome.results.tests, expected)
    for surprise in found:
        printing.note(surprise.text)
    raise typer.Exit(_exit_code(outcome, is_surprised=bool(found), is_named=bool(runtime)))


def _check_outputs(outputs: Sequence[Path]) -> None:
    """Refuse what cannot be written, before a long run and not after it."""
    for number, written in enumerate(outputs):
        files.check_writable(written)
        if any(written.resolve() == other.resolve() for other in outputs[:number]):
            raise AttributeValueError("two outputs have one name", got=str(written), hint="give each its own")


def _selection(
    runtime: list[str] | None,
    op: list[str] | None,
    type_: list[str] | None,
    broadcast: list[str] | None,
    path: list[str] | None,
) -> Selection:
    """The tests that are selected; an unknown name is refused with the nearest known one."""
    from eltwise import runtimes
    from eltwise.conformance.cases import SOURCE_NAMES
    from eltwise.conformance.run import Selection
    from eltwise.core.dtypes import by_name
    from eltwise.ops import registry
    from eltwise.runtimes.registry import RULES

    chosen = tuple(map(runtimes.find, dict.fromkeys(runtime))) if runtime else runtimes.installed()
    selection = Selection(
        chosen,
        tuple(str(registry.find(name)) for name in op or ()),
        tuple(by_name(name).name for name in type_ or ()),
        tuple(_known("broadcast rule", name, RULES) for name in broadcast or ()),
        tuple(_known("path", name, SOURCE_NAMES) for name in path or ()),
    )
    if not any(job.sources for job in selection.jobs()):
        raise AttributeValueError(
            "no test matches the selection", hint="`eltwise ops` lists the types and broadcast rules of each operator"
        )
    return selection


def _known(kind: str, name: str, known: Sequence[str]) -> str:
    if name not in known:
        raise unknown_name(kind, name, known)
    return name


def _export(folder: Path, selection: Selection, extent: Extent, seed: int) -> None:
    from eltwise.conformance import test_vectors
    from eltwise.conformance.cases import SOURCES

    check_new_folder(folder)
    variants = dict.fromkeys(job.variant for job in selection.jobs())
    sources = [source for source in SOURCES if source in (selection.sources or SOURCES)]
    with progress_of_many() as on_progress:
        count = test_vectors.export(folder, list(variants), sources, extent, seed, on_progress)
    printing.line(f"{folder}: {count} cases")


def _write(results: Results, json: Path | None, html: Path | None, document: Path | None, known: Path | None) -> None:
    from eltwise.conformance.expected_failures import write_expected
    from eltwise.conformance.results import write_results
    from eltwise.report.document import write_document
    from eltwise.report.page import write_page

    source = "results.json" if json is None else str(json)
    if json is not None:
        write_results(results, json)
    if html is not None:
        write_page(results, html, source)
    if document is not None:
        write_document(results, document, source)
    if known is not None:
        write_expected(results, known)
    for written in filter(None, (json, html, document, known)):
        printing.note(f"written to {written}")


def _show(results: Results) -> None:
    """Print a line for each runtime and operator version: how many tests have which outcome, and the faults."""
    from eltwise.conformance.results import OUTCOMES
    from eltwise.core.errors import counted

    groups: dict[tuple[str, str], list[int]] = {}
    for number, test in enumerate(results.tests):
        groups.setdefault((test.runtime, test.op), []).append(number)
    columns = OUTCOMES if printing.is_wide() else ("cells",)
    table = printing.table("runtime", "operator", *columns, "what differs", folding="what differs")
    for (runtime, op), numbers in groups.items():
        tests = [results.tests[number] for number in numbers]
        counts = [sum(test.outcome == outcome for test in tests) for outcome in OUTCOMES]
        found: dict[str, dict[str, None]] = {}
        for test in tests:
            for name in test.faults:
                found.setdefault(name, {})[test.dtype] = None
        said = "; ".join(f"{name} ({_few(list(types))})" for name, types in found.items())
        if printing.is_wide():
            table.add_row(runtime, op, *(str(count) if count else "" for count in counts), said)
            continue
        named = (f"{count} {outcome}" for count, outcome in zip(counts, OUTCOMES, strict=True) if count)
        table.add_row(runtime, op, "\n".join(named), said)
    printing.show(table)
    ended = ", interrupted" if results.interrupted else ""
    printing.line(f"{counted(len(results.tests), 'cell')}, {results.extent}, seed {results.seed}{ended}")


def _few(types: Sequence[str]) -> str:
    return ", ".join(types) if len(types) <= 3 else f"{len(types)} types"


def _exit_code(outcome: Outcome, *, is_surprised: bool, is_named: bool) -> int:
    if outcome.results.interrupted:
        return 130
    if outcome.not_started and is_named:
        return 2
    return int(is_surprised)
