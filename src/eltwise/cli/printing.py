"""Output: lines, tables, arrays and JSON. Tables fit the terminal; in a pipe they are 180 columns wide."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from eltwise.core.errors import AttributeValueError, EltwiseError, ManyProblemsError

if TYPE_CHECKING:
    import numpy as np
    from rich.console import Console
    from rich.table import Table

    from eltwise.passes.report import Report
    from eltwise.report.written import Written
    from eltwise.scale.deltas import DeltaReport
    from eltwise.targets.report import TargetReport

_STDOUT = Path("-")
_FIRST_VALUES = 8
_WIDTH_IN_A_PIPE = 180
_WIDE = 140


def line(text: str) -> None:
    """Print one line."""
    click.echo(text)


def note(text: str) -> None:
    """Print one line to stderr."""
    click.echo(text, err=True)


def json_text(value: object) -> None:
    """Print a value as JSON."""
    import json

    click.echo(json.dumps(value, indent=2, ensure_ascii=False))


def report(found: Report | TargetReport | DeltaReport, as_json: bool) -> None:
    """Print a report, as text or all of it as JSON."""
    if as_json:
        json_text(found.fields())
    else:
        line(str(found))


def check_report(json: Path | None, html: Path | None, inputs: Sequence[Path]) -> None:
    """Refuse, before long work, the files of a report that cannot be written or would replace what is read."""
    from eltwise.formats.files import check_outputs

    if json == html == _STDOUT:
        raise AttributeValueError("the JSON and the page are both for stdout", hint="name a file for one of them")
    check_outputs([path for path in (json, html) if path is not None and path != _STDOUT], inputs)


def write_report(found: Written, json: Path | None, html: Path | None) -> bool:
    """Write a report to files; whether one was printed instead, since its file is ``-``."""
    for path, write in ((json, found.to_json), (html, found.to_html)):
        if path == _STDOUT:
            line(write())
        elif path is not None:
            write(path)
    return _STDOUT in (json, html)


def error_json(error: EltwiseError) -> None:
    """Print an error as JSON: an object whose ``error`` lists the fields of each problem."""
    problems = error.problems if isinstance(error, ManyProblemsError) else (error,)
    json_text({"error": [problem.located(where=error.where).fields() for problem in problems]})


def is_wide() -> bool:
    """Whether every column fits: in a pipe, or on a wide terminal."""
    return _console().width >= _WIDE


def table(*columns: str, folding: str) -> Table:
    """Make a table with these columns; one of them may wrap its text."""
    from rich import box
    from rich.table import Table

    made = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        made.add_column(column, overflow="fold", no_wrap=column != folding)
    return made


def pairs(lines: Iterable[tuple[str, str]]) -> None:
    """Print names and texts in two columns."""
    from rich.table import Table

    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for name, text in lines:
        grid.add_row(name, text)
    show(grid)


def show(made: Table) -> None:
    """Print a table."""
    _console().print(made)


def _console() -> Console:
    from rich.console import Console

    console = Console(markup=False, highlight=False)
    return console if console.is_terminal else Console(markup=False, highlight=False, width=_WIDTH_IN_A_PIPE)


def results(arrays: Mapping[str, np.ndarray], *, json: bool) -> None:
    """Print each array's name, type, shape and first values."""
    from eltwise.core.dtypes import of_numpy
    from eltwise.core.shapes import of_sizes

    if json:
        json_text({name: _fields(array) for name, array in arrays.items()})
        return
    for name, array in arrays.items():
        shown = ", ".join(map(str, array.reshape(-1)[:_FIRST_VALUES]))
        more = ", ..." if array.size > _FIRST_VALUES else ""
        line(f"{name}: {of_numpy(array.dtype)}({of_sizes(array.shape)}) [{shown}{more}]")


def _fields(array: np.ndarray) -> dict[str, object]:
    from eltwise.core.dtypes import of_numpy

    return {
        "type": of_numpy(array.dtype).name,
        "shape": list(array.shape),
        "first_values": [str(value) for value in array.reshape(-1)[:_FIRST_VALUES]],
        "elements": array.size,
    }
