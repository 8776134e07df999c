"""Progress on stderr, shown only on a terminal; rich is loaded only there."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol


class Tell(Protocol):
    """Receives how many are done, how many there are, and the name of the next."""

    def __call__(self, done: int, count: int, text: str = "", /) -> None: ...  # noqa: D102 - said by the class


def progress_of_many() -> AbstractContextManager[Tell]:
    """Show a bar with the remaining time."""
    return _bar("MofNCompleteColumn", "TimeElapsedColumn", "TimeRemainingColumn")


def progress_of_bytes() -> AbstractContextManager[Tell]:
    """Show how many bytes are done, how fast, and what is next."""
    return _bar("DownloadColumn", "TransferSpeedColumn", "TimeRemainingColumn")


@contextmanager
def _bar(*columns: str) -> Iterator[Tell]:
    if not sys.stderr.isatty():
        yield lambda _done, _count, _text="", /: None
        return
    from rich import progress
    from rich.console import Console

    shown = [progress.BarColumn(bar_width=24), *(getattr(progress, column)() for column in columns)]
    described = progress.TextColumn("{task.description}", markup=False)
    with progress.Progress(*shown, described, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=None, visible=False)
        yield lambda done, count, text="", /: bar.update(
            task, completed=done, total=count, description=text, visible=True
        )


@contextmanager
def waiting(text: str) -> Iterator[None]:
    """Show a text while something runs whose length is not known."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(text):
        yield
