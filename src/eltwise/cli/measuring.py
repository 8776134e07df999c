"""``eltwise targets``: what is known of the runtimes that models are meant for, and how it is measured anew."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from eltwise.cli import printing
from eltwise.cli.progress import progress_of_many
from eltwise.core.errors import AttributeValueError
from eltwise.formats import files

if TYPE_CHECKING:
    from eltwise.conformance.runtimes import Runtime
    from eltwise.targets.circumstances import Request
    from eltwise.targets.table import Kind, Measurement, Table


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
    missing: Annotated[
        bool, typer.Option("--missing", help="With --refresh: ask only what the table does not have of this version.")
    ] = False,
    table: Annotated[
        Path | None, typer.Option("--table", metavar="FILE", help="Another table than the one of this package.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print what a program can read.")] = False,
) -> None:
    """Print what was measured of each runtime; or measure it anew and write the table."""
    from eltwise.targets.table import SHIPPED, Table
    from eltwise.targets.table_file import read_table

    path = table or SHIPPED
    if not refresh:
        if runtime or op or type_ or missing:
            raise AttributeValueError(
                "--runtime, --op, --type and --missing say what is measured", hint="add --refresh"
            )
        _show(read_table(path), json=json)
        return
    known = read_table(path) if path.exists() else Table(())
    files.check_writable(path)
    request = replace(_request(op, type_), is_for_missing=missing)
    for one in _runtimes(runtime, request):
        known = _refreshed(known, one, request, path)
    _show(known, json=json)


def _request(op: list[str] | None, type_: list[str] | None) -> Request:
    from eltwise.core.dtypes import by_name
    from eltwise.ops import registry
    from eltwise.targets.circumstances import Request

    ops = tuple(str(registry.find(name)) for name in op or ())
    return Request(ops, tuple(by_name(name).name for name in type_ or ()))


def _runtimes(names: list[str] | None, request: Request) -> list[Runtime]:
    """The runtimes that are meant and have something of what is asked."""
    from eltwise.conformance import runtimes
    from eltwise.core.errors import unknown_name
    from eltwise.targets.measuring import questions_of
    from eltwise.targets.table import RUNTIMES

    known = [runtime for dialects in RUNTIMES.values() for runtime in dialects.values()]
    for name in names or ():
        if name not in known:
            raise unknown_name("runtime", name, known)
    found = [runtimes.find(name) for name in names or known if questions_of(runtimes.BY_NAME[name], request)]
    if not found:
        raise AttributeValueError(
            "nothing is left to measure", hint="`eltwise ops` says which types each operator version has"
        )
    return found


def _refreshed(known: Table, runtime: Runtime, request: Request, path: Path) -> Table:
    """Measure a runtime and write what was found, also where Ctrl-C ended it before all was."""
    from eltwise.targets.measuring import measure
    from eltwise.targets.table_file import write_table

    outcome = None
    try:
        with progress_of_many() as tell:
            outcome = measure(runtime, request, tell, known)
    except KeyboardInterrupt:
        pass
    if outcome is None or not outcome.measurement.answers:
        printing.note(f"interrupted: nothing was measured of {runtime.name}, and {path} is as it was")
        raise typer.Exit(130)
    known = known.joined(outcome.measurement)
    write_table(known, path)
    if outcome.left:
        done = len(outcome.measurement.answers)
        printing.note(
            f"interrupted: of {runtime.name} {done} subjects were measured and are in {path}; {outcome.left} were not"
        )
        raise typer.Exit(130)
    return known


def _show(known: Table, *, json: bool) -> None:
    """Print of each measurement what it is of, and how many answers of each kind it has."""
    from eltwise.targets.table import KINDS

    if json:
        printing.json_text([_fields(measurement) for measurement in known.measurements])
        return
    counts = [_counts(measurement) for measurement in known.measurements]
    kinds = [kind for kind in KINDS if any(count[kind] for count in counts)]
    wide = ("file versions", *kinds, "machine") if printing.is_wide() else ("runs", "not")
    made = printing.table("runtime", "version", "opsets", *wide, folding=wide[-1])
    for measurement, count in zip(known.measurements, counts, strict=True):
        cells: dict[str, str] = {kind: str(count[kind] or "") for kind in KINDS}
        cells |= {"file versions": _span(measurement.file_versions), "machine": measurement.machine}
        cells["not"] = str(sum(count.values()) - count["runs"])
        made.add_row(
            measurement.runtime, measurement.number, _span(measurement.opsets), *(cells[name] for name in wide)
        )
    printing.show(made)


def _fields(measurement: Measurement) -> dict[str, object]:
    said = {name: getattr(measurement, name) for name in ("runtime", "version", "machine", "date", "seed", "extent")}
    stamps = {"opsets": list(measurement.opsets), "file_versions": list(measurement.file_versions)}
    return said | stamps | {"subjects": len(measurement.answers), "answers": _counts(measurement)}


def _counts(measurement: Measurement) -> dict[Kind, int]:
    from eltwise.targets.table import KINDS

    kinds = Counter(answer.kind for found in measurement.answers.values() for answer in found.values())
    return {kind: kinds[kind] for kind in KINDS}


def _span(numbers: tuple[int, ...]) -> str:
    """Numbers that follow each other as a span.

    >>> _span((1, 2, 3)), _span((1, 3)), _span(())
    ('1 to 3', '1, 3', '')
    """
    if len(numbers) > 2 and numbers == tuple(range(numbers[0], numbers[-1] + 1)):
        return f"{numbers[0]} to {numbers[-1]}"
    return ", ".join(map(str, numbers))
