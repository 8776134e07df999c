"""Progress on stderr, shown only on a terminal; rich is loaded only there."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from eltwise.cli import printing
from eltwise.core.progress import Progress, no_progress

_SECONDS = 5.0


def progress_of_many() -> AbstractContextManager[Progress]:
    """Show a bar with the remaining time."""
    return _bar("BarColumn", "MofNCompleteColumn", "TimeElapsedColumn", "TimeRemainingColumn")


def progress_of_bytes() -> AbstractContextManager[Progress]:
    """Show how many bytes are done, how fast, and what is next."""
    return _bar("BarColumn", "DownloadColumn", "TransferSpeedColumn", "TimeRemainingColumn")


@contextmanager
def _bar(*columns: str) -> Iterator[Progress]:
    if not printing.is_terminal():
        yield _logged() if printing.is_verbose() else no_progress
        return
    with printing.progress(columns) as shown:
        yield shown


def _logged() -> Progress:
    """Print a line for what is done, some seconds after the one before."""
    latest = time.monotonic() - _SECONDS

    def show(done: int, count: int, text: str, /) -> None:
        nonlocal latest
        if time.monotonic() - latest >= _SECONDS or done == count:
            latest = time.monotonic()
            printing.note(f"{done:,} of {count:,}{f': {text}' if text else ''}")

    return show


@contextmanager
def waiting(text: str) -> Iterator[Progress]:
    """Show a text while something runs whose length is not known."""
    if not printing.is_terminal():
        yield no_progress
        return
    with printing.progress(["SpinnerColumn"], text, is_visible=True):
        yield no_progress
