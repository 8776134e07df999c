"""How far a long run is, on stderr where somebody watches; quiet in a pipe."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

Tell = Callable[[int, int, str], None]
"""Told how many are done, how many there are, and which it is."""


@contextmanager
def progress_of_many() -> Iterator[Tell]:
    """A bar with the time that is left."""
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
    """A word on what takes long, where nothing can be counted."""
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        yield
        return
    with console.status(text):
        yield
