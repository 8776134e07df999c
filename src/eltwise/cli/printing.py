"""Output: lines, tables, arrays, JSON and progress. Tables fit the terminal; in a pipe they are 180 columns wide.

No other module writes to stdout or stderr. What is not printable is escaped here: a name in a file never speaks to the
terminal. What libraries write to these streams is escaped, too, inside of ``escaping_streams``.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TextIO, cast

from eltwise.core.errors import AttributeValueError, EltwiseError, ManyProblemsError
from eltwise.core.escaping import as_lines, escape_lines, on_one_line
from eltwise.core.progress import Progress

if TYPE_CHECKING:
    import numpy as np
    from rich.console import Console

    from eltwise.formats.reports import BaseReport
    from eltwise.report.annotations import Annotated

STDOUT = Path("-")
"""The file of a report that is printed."""

Volume = Literal["", "quiet", "verbose"]
_volume: list[Volume] = [""]
_REPORTS = (".json", ".html", ".htm", ".sarif")
_FIRST_VALUES = 8
_WIDTH_IN_A_PIPE = 180
_WIDE = 140


class _Plain(io.TextIOBase):
    """A stream of which the rest is dropped once nobody reads it: a command then ends as it would otherwise."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        try:
            self.stream.write(text)
        except BrokenPipeError:
            drop_output(self.stream)
        return len(text)

    def flush(self) -> None:
        if self.stream.closed:  # This one is flushed when it is collected, which may be later.
            return
        try:
            self.stream.flush()
        except BrokenPipeError:
            drop_output(self.stream)

    def fileno(self) -> int:
        return self.stream.fileno()

    def isatty(self) -> bool:
        return self.stream.isatty()

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self.stream.encoding


class _Escaping(_Plain):
    """A stream in which everything but line feeds is escaped that is not printable."""

    def write(self, text: str) -> int:
        return super().write(escape_lines(text))


@contextmanager
def escaping_streams() -> Iterator[None]:
    """Escape what anything writes to stdout and stderr, such as a library's warning, and what their encoding lacks."""
    with redirect_stdout(_escaping(sys.stdout)), redirect_stderr(_escaping(sys.stderr)):
        yield


def _escaping(stream: TextIO | None) -> TextIO:
    if stream is None:  # Where the program was started with a closed stream.
        stream = open(os.devnull, "w")  # noqa: PTH123, SIM115 - it lives as long as the program
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="backslashreplace")
    return cast("TextIO", _Escaping(stream))


def set_volume(volume: Volume) -> None:
    """Choose what is printed: ``quiet`` prints errors only, ``verbose`` progress where there is no terminal, too.

    Raises:
        AttributeValueError: where both are chosen.
    """
    if volume and _volume[0] not in ("", volume):
        raise AttributeValueError("--quiet and --verbose exclude each other", allowed="one of them, or none")
    _volume[0] = volume


def is_verbose() -> bool:
    """Whether progress is printed where there is no terminal."""
    return _volume[0] == "verbose"


def line(text: str) -> None:
    """Print one line."""
    _print(on_one_line(text), sys.stdout)


def lines(text: str) -> None:
    """Print a text of lines, in which what is made of names is escaped already: its line feeds stay."""
    _print(escape_lines(text), sys.stdout)


def note(text: str) -> None:
    """Print one line to stderr."""
    if _volume[0] != "quiet":
        _print(on_one_line(text), sys.stderr)


def note_lines(text: str) -> None:
    """Print a text of lines to stderr, as ``lines`` does: an error, which is printed in any case."""
    _print(escape_lines(text), sys.stderr)


def _print(escaped: str, stream: TextIO) -> None:
    if stream is sys.stdout and _volume[0] == "quiet":
        return
    try:
        _plain(stream).write(f"{escaped}\n")
    except OSError:
        if stream is sys.stdout:
            raise
        drop_output(stream)  # The exit code still tells.


def _plain(stream: TextIO) -> TextIO:
    """The same stream, for what is escaped before."""
    return cast("TextIO", _Plain(stream.stream)) if isinstance(stream, _Escaping) else stream


def flush() -> None:
    """Write what is buffered for stdout; raises OSError where that cannot be written."""
    sys.stdout.flush()


def drop_output(stream: TextIO | None = None) -> None:
    """Drop what is left for a stream, stdout by default, that cannot be written, or Python would fail on it again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), (stream or sys.stdout).fileno())


def json_text(kind: str, fields: Mapping[str, object]) -> None:
    """Print fields as JSON; the arguments are those of ``json_document``."""
    from eltwise.formats.reports import json_document

    lines(json_document(kind, fields))


def report(result: BaseReport[Any], *, as_json: bool, is_summary: bool = False) -> None:
    """Print a report: as text, in a line, or all of it as JSON."""
    lines(result.to_json() if as_json else on_one_line(result.summary) if is_summary else str(result))


def check_outputs(
    inputs: Sequence[Path], *reports: Path | None, texts: Sequence[Path | None] = (), is_printed: bool = False
) -> None:
    """Refuse, before long work, files that cannot be written, or would replace an input, each other or no report.

    Args:
        inputs: what is read.
        reports: files that hold nothing but a report; ``-`` is stdout.
        texts: files of text that are replaced or added to; ``-`` is stdout.
        is_printed: whether JSON is for stdout in any case.
    """
    from eltwise.core.errors import FileFormatError
    from eltwise.formats import files

    outputs = [path for path in (*reports, *texts) if path is not None]
    if outputs.count(STDOUT) + is_printed > 1:
        raise AttributeValueError("several outputs are for stdout", hint="name a file for all of them but one")
    files.check_outputs([path for path in outputs if path != STDOUT], inputs)
    for path in outputs:
        if path == STDOUT or not path.exists():
            continue
        if path in texts and b"\0" in files.read_bytes(path):
            raise FileFormatError("this file exists and is no text", where=str(path), hint="name a new file")
        is_report = path.suffix.lower() in _REPORTS and not path.name.endswith(".index.json")
        if path not in texts and not is_report:
            problem, hint = "this file exists and is no report", "name a new file, or one that ends in .json or .html"
            raise FileFormatError(problem, where=str(path), hint=hint)


def write_outputs(*outputs: tuple[Path | None, Callable[[], str]], added: Path | None = None) -> bool:
    """Write texts to files, of which one is ``added`` to; whether one was printed instead, since its file is ``-``."""
    from eltwise.formats.files import add_text, write_text

    for path, text in outputs:
        if path == STDOUT:
            lines(text().rstrip("\n"))
        elif path is not None:
            (add_text if path == added else write_text)(path, text().rstrip("\n") + "\n")
            note(f"written to {path}")
    return any(path == STDOUT for path, _text in outputs)


def ci_outputs(
    report: Annotated, model: Path, command: str, sarif: Path | None, markdown: Path | None
) -> list[tuple[Path | None, Callable[[], str]]]:
    """The findings as SARIF, and a summary in Markdown that is added to a file."""
    from eltwise.report import annotations

    return [
        (sarif, lambda: annotations.sarif(report, model, command)),
        (markdown, lambda: annotations.markdown(report, model, command)),
    ]


def error_json(error: EltwiseError) -> None:
    """Print an error as JSON: an object whose ``error`` lists the fields of each problem."""
    problems = error.problems if isinstance(error, ManyProblemsError) else (error,)
    json_text("error", {"error": [problem.located(where=error.where).to_dict() for problem in problems]})


def is_wide() -> bool:
    """Whether every column fits: in a pipe, or on a wide terminal."""
    return _console().width >= _WIDE


def table(columns: Sequence[str], rows: Iterable[Sequence[str | Sequence[str]]], *, folding: str) -> None:
    """Print a table; one of its columns may wrap its text. A cell is one line, or a sequence of them."""
    from rich import box
    from rich.table import Table

    empty = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        empty.add_column(column, overflow="fold", no_wrap=column != folding)
    for row in rows:
        empty.add_row(*(on_one_line(cell) if isinstance(cell, str) else as_lines(cell) for cell in row))
    _console().print(empty)


def pairs(rows: Iterable[tuple[str, str]]) -> None:
    """Print names and texts in two columns."""
    from rich.table import Table

    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for name, text in rows:
        grid.add_row(on_one_line(name), on_one_line(text))
    _console().print(grid)


def is_terminal() -> bool:
    """Whether stderr is a terminal, where progress can be shown."""
    return sys.stderr.isatty() and _volume[0] != "quiet"


@contextmanager
def progress(columns: Sequence[str], text: str = "", *, is_visible: bool = False) -> Iterator[Progress]:
    """Show progress on stderr, which is a terminal, until the block ends.

    Args:
        columns: the names of rich's columns before the text.
        text: what is shown before the first call.
        is_visible: whether something is shown before the first call.
    """
    from rich import progress as bars

    described = bars.TextColumn("{task.description}", markup=False)
    shown = [bars.BarColumn(bar_width=24) if name == "BarColumn" else getattr(bars, name)() for name in columns]
    console = _console(sys.stderr)
    # Not redirected: rich would print what others write meanwhile past the streams that escape.
    with bars.Progress(
        *shown, described, console=console, transient=True, redirect_stdout=False, redirect_stderr=False
    ) as bar:
        task = bar.add_task(on_one_line(text), total=None, visible=is_visible)

        def show(done: int, count: int, text: str, /) -> None:
            bar.update(task, completed=done, total=count, description=on_one_line(text), visible=True)

        yield show


def _console(stream: TextIO | None = None) -> Console:
    """A console of rich on the stream itself: all texts for it are escaped before, and its own sequences stay."""
    from rich.console import Console

    is_silent = stream is None and _volume[0] == "quiet"
    console = Console(file=_plain(stream or sys.stdout), quiet=is_silent, markup=False, highlight=False, emoji=False)
    if not console.is_terminal:
        console.width = _WIDTH_IN_A_PIPE
    return console


def results(arrays: Mapping[str, np.ndarray], *, json: bool) -> None:
    """Print each array's name, type, shape and first values."""
    from eltwise.core.dtypes import of_numpy
    from eltwise.core.shapes import of_sizes

    if json:
        fields = {
            name: {**array_fields(array, "first_values"), "elements": array.size} for name, array in arrays.items()
        }
        json_text("arrays", {"arrays": fields})
        return
    for name, array in arrays.items():
        shown = ", ".join(map(str, array.reshape(-1)[:_FIRST_VALUES]))
        more = ", ..." if array.size > _FIRST_VALUES else ""
        line(f"{name}: {of_numpy(array.dtype)}({of_sizes(array.shape)}) [{shown}{more}]")


def array_fields(array: np.ndarray, values: Literal["first_values", "values"]) -> dict[str, object]:
    """The element type and shape of an array, and its first or all values as texts that give the same numbers."""
    from eltwise.core.dtypes import of_numpy

    elements = array.reshape(-1)[: _FIRST_VALUES if values == "first_values" else None]
    return {"type": of_numpy(array.dtype).name, "shape": list(array.shape), values: list(map(str, elements))}
