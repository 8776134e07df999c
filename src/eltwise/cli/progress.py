"""Progress on stderr, shown only on a terminal; rich is loaded only there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from eltwise.cli import printing
from eltwise.cli.printing import Tell


def progress_of_many() -> AbstractContextManager[Tell]:
    """Show a bar with the remaining time."""
    return _bar("BarColumn", "MofNCompleteColumn", "TimeElapsedColumn", "TimeRemainingColumn")


def progress_of_bytes() -> AbstractContextManager[Tell]:
    """Show how many bytes are done, how fast, and what is next."""
    return _bar("BarColumn", "DownloadColumn", "TransferSpeedColumn", "TimeRemainingColumn")


@contextmanager
def _bar(*columns: str) -> Iterator[Tell]:
    if not printing.is_terminal():
        yield lambda _done, _count, _text="", /: None
        return
    with printing.progress(columns) as tell:
        yield tell


@contextmanager
def waiting(text: str) -> Iterator[None]:
    """Show a text while something runs whose length is not known."""
    if not printing.is_terminal():
        yield
        return
    with printing.progress(["SpinnerColumn"], text, is_visible=True):
        yield
