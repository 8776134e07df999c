"""What depends on the machine: its name, its processors and the size of its caches."""

from __future__ import annotations

import os
import platform
from functools import lru_cache
from pathlib import Path

_PROCESSORS = Path("/proc/cpuinfo")
_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
_COMMON_CACHE = 32 << 20


@lru_cache(maxsize=1)
def cache_bytes() -> int:
    """The size of the largest cache of this machine; a common one where the machine does not say."""
    sizes = [file.read_text().strip() for file in _CACHES.glob("index*/size") if file.is_file()]
    units = {"K": 1 << 10, "M": 1 << 20}
    found = [int(size[:-1]) * units[size[-1]] for size in sizes if size[:-1].isdigit() and size[-1] in units]
    return max(found, default=_COMMON_CACHE)


def machine_name() -> str:
    """The processor in its own words, with Python's version."""
    name = platform.processor() or platform.machine()
    if _PROCESSORS.is_file():
        for line in _PROCESSORS.read_text(errors="replace").splitlines():
            if line.startswith("model name"):
                name = line.partition(":")[2].strip()
                break
    return f"{name}, {platform.system()}, Python {platform.python_version()}"


def processors() -> int:
    """How many processors this process may use; macOS and Windows say how many there are."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
