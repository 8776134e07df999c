"""``eltwise targets``: what is known of the runtimes that models are meant for, and how it is measured anew."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from eltwise.cli import printing
from eltwise.cli.progress import progress_of_many
from eltwise.errors import AttributeValueError
from eltwise.formats import files

if TYPE_CHECKING:
    from eltwise.conformance.runtimes import Runtime
    from eltwise.targets.measuring import Outcome
    from eltwise.targets.table import Table


def targets(
    refresh: Annotated[
        bool, typer.Option("--refresh", help="Measure the installed runtimes, for many minutes.")
    ] = False,
    runtime: Annotated[
        list[str] | None, typer.Option("--runtime", metavar="NAME", help="With --refresh: onnxruntime, for example.")
    ] = None,
    op: Annotated[
        list[str] | None, typer.Option("--op", metavar="NAME", help="With --refresh: an operator version, Sub-14.")
    ] = None,
    type_: Annotated[
        list[str] | None, typer.Option("--type", metavar="NAME", help="With --refresh: an element type, uint8.")
    ] = None,
    table: Annotated[
        Path | None, typer.Option("--table", metavar="FILE", help="Another table than the one of this package.")
    ] = None,
) -> None:
    """Print what was measured of each runtime; or measure it anew and write the table."""
    from eltwise.targets.table import SHIPPED, Table
    from eltwise.targets.table_file import read_table

    path = table or SHIPPED
    known = read_table(path) if path.exists() else Table(())
    if not refresh:
        if runtime or op or type_:
            raise AttributeValueError("--runtime, --op and --type say what is measured", hint="add --refresh")
        _show(known)
        return
    files.check_writable(path)
    for one in _runtimes(runtime):
        known = _refreshed(known, one, path, op, type_)
    _show(known)


def _refreshed(known: Table, runtime: Runtime, path: Path, op: list[str] | None, type_: list[str] | None) -> Table:
    """Measure a runtime and write what was found, also where Ctrl-C ended it before all was."""
    from eltwise.targets.table_file import write_table

    try:
        outcome = _measured(runtime, op, type_)
    except KeyboardInterrupt:
        _say(f"interrupted: nothing was measured of {runtime.name}, and {path} is as it was")
        raise typer.Exit(130) from None
    done = len(outcome.measurement.answers)
    if not done and not outcome.left:
        raise AttributeValueError(
            f"nothing of {runtime.name} is left to measure", hint="`eltwise ops` says which types each operator has"
        )
    if done:
        known = known.joined(outcome.measurement)
        write_table(known, path)
    if outcome.left:
        _say(f"interrupted: of {runtime.name} {done} subjects were measured and are in {path}; {outcome.left} were not")
        raise typer.Exit(130)
    return known


def _runtimes(names: list[str] | None) -> list[Runtime]:
    from eltwise.conformance import runtimes
    from eltwise.errors import unknown_name
    from eltwise.targets.table import RUNTIMES

    known = [runtime for dialects in RUNTIMES.values() for runtime in dialects.values()]
    for name in names or ():
        if name not in known:
            raise unknown_name("runtime", name, known)
    return [runtimes.find(name) for name in names or known]


def _measured(runtime: Runtime, op: list[str] | None, type_: list[str] | None) -> Outcome:
    from eltwise import catalog
    from eltwise.dtypes import by_name
    from eltwise.targets.circumstances import Request
    from eltwise.targets.measuring import measure

    ops = tuple(str(catalog.row(name)) for name in op or ())
    request = Request(ops, tuple(by_name(name).name for name in type_ or ()))
    with progress_of_many() as tell:
        return measure(runtime, request, tell)


def _show(known: Table) -> None:
    from eltwise.targets.table import KINDS

    made = printing.table("runtime", "version", "opsets", "file versions", *KINDS, "machine", folding="machine")
    for measurement in known.measurements:
        kinds = [answer.kind for found in measurement.answers.values() for answer in found.values()]
        counts = [str(kinds.count(kind) or "") for kind in KINDS]
        spans = (_span(measurement.opsets), _span(measurement.file_versions))
        made.add_row(measurement.runtime, measurement.number, *spans, *counts, measurement.machine)
    printing.show(made)


def _span(numbers: tuple[int, ...]) -> str:
    """Numbers that follow each other as a span.

    >>> _span((1, 2, 3)), _span((1, 3)), _span(())
    ('1 to 3', '1, 3', '')
    """
    if len(numbers) > 2 and numbers == tuple(range(numbers[0], numbers[-1] + 1)):
        return f"{numbers[0]} to {numbers[-1]}"
    return ", ".join(map(str, numbers))


def _say(text: str) -> None:
    print(text, file=sys.stderr)  # noqa: T201
