"""Waiting for what other threads and processes do, however busy the machine is."""

from __future__ import annotations

import time
from collections.abc import Callable

SECONDS = 600
"""Far more than anything takes; only a fault makes a test wait so long."""


def wait_for(condition: Callable[[], bool], seconds: float = SECONDS) -> None:
    """Wait until a condition is true, and fail where it never is."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)
