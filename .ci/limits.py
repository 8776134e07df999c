"""A plugin of pytest for mutants: it runs tests in an order, within limits, and writes down which one runs.

Processor time is what counts, so that a busy machine changes nothing; a test that waits for ever has a second limit.
Memory has one, too, so that a mutant cannot make the machine run out of it. After ``TOTAL_SECONDS`` no test is begun.
"""

from __future__ import annotations

import faulthandler
import json
import os
import resource
import signal
from pathlib import Path

import pytest

PROCESSOR_SECONDS = 60
"""About thirty times what a fast test takes."""

SECONDS = 300
TOTAL_SECONDS = 100
BYTES = 8 << 30


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the tests of a list, in its order; those that it lacks are left out. Without any all are run."""
    names: list[str] = json.loads(Path(os.environ["ORDER_OF_TESTS"]).read_text(encoding="utf-8"))
    by_name = {item.nodeid: item for item in items}
    items[:] = [by_name[name] for name in names if name in by_name] if names else items


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> bool | None:
    """Start the limits again for each test."""
    if sum(os.times()[:4]) > TOTAL_SECONDS:
        return True
    Path(os.environ["CURRENT_TEST"]).write_text(item.nodeid, encoding="utf-8")
    _start()
    return None


def pytest_sessionfinish() -> None:
    """Let the process end in peace."""
    signal.setitimer(signal.ITIMER_PROF, 0)
    faulthandler.cancel_dump_traceback_later()


def _start() -> None:
    signal.setitimer(signal.ITIMER_PROF, PROCESSOR_SECONDS)
    faulthandler.dump_traceback_later(SECONDS, exit=True)


_start()
resource.setrlimit(resource.RLIMIT_DATA, (BYTES, BYTES))
