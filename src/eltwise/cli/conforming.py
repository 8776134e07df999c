"""``eltwise conform``: which runtime gets which subtraction wrong, and why."""

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
    from eltwise.conformance.referee import Outcome, Selection, Settings
    from eltwise.conformance.results import Extent, Results


def conform(  # noqa: PLR0917 - a command has as many parameters as options
    runtime: Annotated[
        list[str] | None,
        typer.Option("--runtime", metavar="NAME", help="A runtime, or FILE.py:FUNCTION; every installed one if none."),
    ] = None,
    op: Annotated[list[str] | None, typer.Option("--op", metavar="NAME", help="An operator version: Sub-14.")] = None,
    type_: Annotated[list[str] | None, typer.Option("--type", metavar="NAME", help="An element type: uint8.")] = None,
    broadcast: Annotated[
        list[str] | None, typer.Option("--broadcast", metavar="RULE", help="legacy, numpy, none or pdpd.")
    ] = None,
    path: Annotated[
        list[str] | None, typer.Option("--path", metavar="PATH", help="How operands reach the operator: a-constant.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Less: a minute or two for one runtime.")] = False,
    thorough: Annotated[bool, typer.Option("--thorough", help="Everything, each case in a model of its own.")] = False,
    seed: Annotated[int, typer.Option("--seed", min=0, help="What random values are drawn with.")] = 0,
    limit: Annotated[
        float, typer.Option("--limit", min=0.1, max=86400, help="Seconds that one answer may take.")
    ] = 30.0,
    json: Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Write the results.")] = None,
    html: Annotated[Path | None, typer.Option("--html", metavar="FILE", help="Write them as a page.")] = None,
    document: Annotated[Path | None, typer.Option("--document", metavar="FILE", help="Write them as Markdown.")] = None,
    strict: Annotated[
        Path | None,
        typer.Option("--strict", metavar="FILE", help="Exit 1 where this file of differences is not right."),
    ] = None,
    write_known: Annotated[
        Path | None, typer.Option("--write-known", metavar="FILE", help="Write a first file for --strict.")
    ] = None,
    export: Annotated[
        Path | None, typer.Option("--export", metavar="FOLDER", help="Ask nobody: write the cases as files.")
    ] = None,
    resume: Annotated[
        Path | None, typer.Option("--resume", metavar="FILE", help="Go on from the results of an interrupted run.")
    ] = None,
) -> None:
    """Ask every runtime about every subtraction, judge the answers bit for bit, and explain what differs."""
    if quick and thorough:
        raise AttributeValueError("--quick and --thorough exclude each other", allowed="one of them, or none")
    extent: Extent = "quick" if quick else "thorough" if thorough else "usual"
    _check_outputs([path for path in (json, html, document, write_known) if path is not None])
    selection = _selection(runtime, op, type_, broadcast, path)
    if export is not None:
        _export(export, selection, extent, seed)
        return
    from eltwise.conformance import strict as known_differences
    from eltwise.conformance.referee import Settings
    from eltwise.conformance.results_reader import read_results

    known = None if resume is None else read_results(resume)
    if strict is not None:
        known_differences.read_known(strict)  # A broken file is said before a long run, not after it.
    outcome = _judged(selection, Settings(extent, seed, limit), known)
    _write(outcome.results, json, html, document, write_known)
    _show(outcome.results)
    for reason in outcome.not_started.values():
        printing.note(reason)
    _leave(outcome, strict, asked_by_name=bool(runtime))


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
    """What is asked of whom; an unknown name is refused with the nearest known one."""
    from eltwise.conformance import paths, runtimes
    from eltwise.conformance.referee import Selection
    from eltwise.core.dtypes import by_name
    from eltwise.ops import registry

    chosen = tuple(map(runtimes.find, dict.fromkeys(runtime))) if runtime else runtimes.installed()
    selection = Selection(
        chosen,
        tuple(str(registry.find(name)) for name in op or ()),
        tuple(by_name(name).name for name in type_ or ()),
        tuple(_known("broadcast rule", name, runtimes.RULES) for name in broadcast or ()),
        tuple(_known("path", name, paths.PATHS) for name in path or ()),
    )
    if not any(job.paths for job in selection.jobs()):
        raise AttributeValueError(
            "nothing is left to ask", hint="`eltwise ops` says which types and broadcast rules each operator has"
        )
    return selection


def _known(kind: str, name: str, known: Sequence[str]) -> str:
    if name not in known:
        raise unknown_name(kind, name, known)
    return name


def _judged(selection: Selection, settings: Settings, known: Results | None) -> Outcome:
    from eltwise.conformance.referee import judge_all

    with progress_of_many() as tell:
        return judge_all(selection, settings, tell, known)


def _export(folder: Path, selection: Selection, extent: Extent, seed: int) -> None:
    from eltwise.conformance import kit
    from eltwise.conformance.paths import MODEL_PATHS

    check_new_folder(folder)
    subjects = dict.fromkeys(job.subject for job in selection.jobs())
    paths = [path for path in MODEL_PATHS if path in (selection.paths or MODEL_PATHS)]
    with progress_of_many() as tell:
        count = kit.export(folder, list(subjects), paths, extent, seed, tell)
    printing.line(f"{folder}: {count} cases")


def _write(results: Results, json: Path | None, html: Path | None, document: Path | None, known: Path | None) -> None:
    from eltwise.conformance.results import write_results

    source = "results.json" if json is None else str(json)
    if json is not None:
        write_results(results, json)
    if html is not None:
        from eltwise.report.page import write_page

        write_page(results, html, source)
    if document is not None:
        from eltwise.report.document import write_document

        write_document(results, document, source)
    if known is not None:
        from eltwise.conformance.known_file import write_known

        write_known(results, known)
    for written in filter(None, (json, html, document, known)):
        printing.note(f"written to {written}")


def _show(results: Results) -> None:
    """Print a line for each runtime and operator version: how many cells have which verdict, and what was found."""
    from eltwise.conformance.cells import VERDICTS
    from eltwise.core.errors import counted
    from eltwise.report.reasons import reasons

    groups: dict[tuple[str, str], list[int]] = {}
    for number, cell in enumerate(results.cells):
        groups.setdefault((cell.runtime, cell.op), []).append(number)
    columns = VERDICTS if printing.is_wide() else ("cells",)
    table = printing.table("runtime", "operator", *columns, "what differs", folding="what differs")
    for (runtime, op), numbers in groups.items():
        cells = [results.cells[number] for number in numbers]
        counts = [sum(cell.verdict == verdict for cell in cells) for verdict in VERDICTS]
        found: dict[str, dict[str, None]] = {}
        for cell in cells:
            for name in reasons(cell) if cell.explanation else ():
                found.setdefault(name, {})[cell.dtype] = None
        said = "; ".join(f"{name} ({_few(list(types))})" for name, types in found.items())
        if printing.is_wide():
            table.add_row(runtime, op, *(str(count) if count else "" for count in counts), said)
            continue
        named = (f"{count} {verdict}" for count, verdict in zip(counts, VERDICTS, strict=True) if count)
        table.add_row(runtime, op, "\n".join(named), said)
    printing.show(table)
    ended = ", interrupted" if results.interrupted else ""
    printing.line(f"{counted(len(results.cells), 'cell')}, {results.extent}, seed {results.seed}{ended}")


def _few(types: Sequence[str]) -> str:
    return ", ".join(types) if len(types) <= 3 else f"{len(types)} types"


def _leave(outcome: Outcome, strict: Path | None, *, asked_by_name: bool) -> None:
    """Exit with what the run means."""
    if outcome.results.interrupted:
        raise typer.Exit(130)
    if outcome.not_started and asked_by_name:
        raise typer.Exit(2)
    if strict is not None:
        from eltwise.conformance.strict import check

        surprises = check(outcome.results, strict)
        for surprise in surprises:
            printing.note(surprise.text)
        if surprises:
            raise typer.Exit(1)
