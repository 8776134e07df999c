"""Progress on stderr, shown only on a terminal; rich is loaded only there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from eltwise.cli import printing
from eltwise.core.progress import Progress, no_progress


def progress_of_many() -> AbstractContextManager[Progress]:
    """Show a bar with the remaining time."""
    return _bar("BarColumn", "MofNCompleteColumn", "TimeElapsedColumn", "TimeRemainingColumn")


def progress_of_bytes() -> AbstractContextManager[Progress]:
    """Show how many bytes are done, how fast, and what is next."""
    return _bar("BarColumn", "DownloadColumn", "TransferSpeedColumn", "TimeRemainingColumn")


@contextmanager
def _bar(*columns: str) -> Iterator[Progress]:
    if not printing.is_terminal():
        yield no_progress
        return
    with printing.progress(columns) as shown:
        yield shown


@contextmanager
def waiting(text: str) -> Iterator[Progress]:
    """Show a text while something runs whose length is not known."""
    if not printing.is_terminal():
        yield no_progress
        return
    with printing.progress(["SpinnerColumn"], text, is_visible=True):
        yield no_progress
