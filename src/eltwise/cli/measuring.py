"""``eltwise targets``: what is known of the runtimes that models are meant for, and how it is measured anew."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from eltwise.cli import printing
from eltwise.core.errors import UnsupportedError

if TYPE_CHECKING:
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
    from eltwise.targets.table import SHIPPED
    from eltwise.targets.table_file import read_table

    path = table or SHIPPED
    if refresh or runtime or op or type_ or missing:
        raise UnsupportedError("the table cannot be measured anew", hint="run `eltwise conform`")
    _show(read_table(path), json=json)


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
