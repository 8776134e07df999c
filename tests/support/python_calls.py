"""Which functions of Python are called, and how often: what a call costs on any machine, however busy."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def python_calls() -> Iterator[Counter[str]]:
    """Count the calls of each function of Python by its qualified name, for a while."""
    calls: Counter[str] = Counter()

    def count_call(frame: FrameType, event: str, _argument: object) -> None:
        if event == "call":
            calls[frame.f_code.co_qualname] += 1

    sys.setprofile(count_call)
    try:
        yield calls
    finally:
        sys.setprofile(None)
