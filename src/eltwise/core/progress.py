"""Progress of long work: what receives it, and a count that reports itself."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Receives how many bytes or things are done, how many there are, and what is done now."""

    def __call__(self, done: int, count: int, text: str, /) -> None: ...  # noqa: D102 - said by the class


def no_progress(_done: int, _count: int, _text: str, /) -> None:
    """Receive progress that nobody shows."""


class Meter:
    """Counts what is done of a total, and reports it with the text that is set."""

    def __init__(self, total: int, progress: Progress = no_progress, text: str = "") -> None:
        self.total, self.done, self.text, self._progress = total, 0, text, progress

    def add(self, count: int) -> None:
        """Count and report that so much more is done."""
        self.done += count
        self._progress(self.done, self.total, self.text)
