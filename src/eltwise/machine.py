"""What the machine has, on every system."""

from __future__ import annotations

import os


def processors() -> int:
    """How many processors this process may use; macOS and Windows say how many there are."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
