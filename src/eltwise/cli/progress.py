"""Progress bars on stderr, shown only on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Tell = Callable[[int, int, str], None]
"""Receives how many are done, how many there are, and the name of the next."""

TellBytes = Callable[[int, int], None]
"""Receives how many bytes are done, and how many there are."""


@contextmanager
def progress_of_many() -> Iterator[Tell]:
    """Show a bar with the remaining time."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    console = Console(stderr=True)
    columns = (
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.description}", markup=False),
    )
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("", total=None)

        def tell(done: int, count: int, text: str) -> None:
            progress.update(task, completed=done, total=count, description=text)

        yield tell


@contextmanager
def waiting(text: str) -> Iterator[None]:
    """Show a text while something runs whose length is not known."""
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        yield
        return
    with console.status(text):
        yield


@contextmanager
def progress_of_data() -> Iterator[TellBytes | None]:
    """Show how much external data has been copied."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn

    columns = (TextColumn("copying weights"), BarColumn(), DownloadColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", visible=False)
        yield lambda done, total: bar.update(task, completed=done, total=total, visible=True)
