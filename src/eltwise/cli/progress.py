"""Progress on stderr, shown only on a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import ProgressColumn

Tell = Callable[[int, int, str], None]
"""Receives how many are done, how many there are, and the name of the next."""


@contextmanager
def progress_of_many() -> Iterator[Tell]:
    """Show a bar with the remaining time."""
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with _bar(BarColumn(bar_width=24), *columns, TextColumn("{task.description}", markup=False)) as tell:
        yield tell


@contextmanager
def progress_of_data() -> Iterator[Callable[[int, int], None]]:
    """Show how many bytes of external data have been copied."""
    from rich.progress import BarColumn, DownloadColumn, TextColumn

    with _bar(TextColumn("copying weights"), BarColumn(), DownloadColumn()) as tell:
        yield lambda done, count: tell(done, count, "")


@contextmanager
def progress_of_tensors() -> Iterator[Tell]:
    """Show how many bytes have been compared, how fast, and which tensor is next."""
    from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    columns = (DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    with _bar(BarColumn(bar_width=24), *columns, TextColumn("{task.description}", markup=False)) as tell:
        yield tell


@contextmanager
def _bar(*columns: ProgressColumn) -> Iterator[Tell]:
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("", total=None, visible=False)
        yield lambda done, count, text: progress.update(
            task, completed=done, total=count, description=text, visible=True
        )


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
