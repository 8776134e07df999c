"""A plugin of pytest for mutants: it ends the process where a test takes too long, and writes down which test runs.

Processor time is what counts, so that a busy machine changes nothing; a test that waits for ever has a second limit.
Memory has one, too, so that a mutant cannot make the machine run out of it.
"""

from __future__ import annotations

import faulthandler
import os
import resource
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

PROCESSOR_SECONDS = 60
"""About thirty times what a fast test takes."""

SECONDS = 900
BYTES = 8 << 30


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Start the limits again for each test."""
    Path(os.environ["CURRENT_TEST"]).write_text(item.nodeid, encoding="utf-8")
    _start()
    return (yield)


def pytest_sessionfinish() -> None:
    """Let the process end in peace."""
    signal.setitimer(signal.ITIMER_PROF, 0)
    faulthandler.cancel_dump_traceback_later()


def _start() -> None:
    signal.setitimer(signal.ITIMER_PROF, PROCESSOR_SECONDS)
    faulthandler.dump_traceback_later(SECONDS, exit=True)


_start()
resource.setrlimit(resource.RLIMIT_DATA, (BYTES, BYTES))
