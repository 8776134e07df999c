"""What depends on the machine: its name, its clock, its processors, its memory and the size of its caches."""

from __future__ import annotations

import ctypes
import os
import platform
import sys
from functools import cache, lru_cache
from typing import Any

_PROCESSORS = "/proc/cpuinfo"
_CACHES = "/sys/devices/system/cpu/cpu0/cache/index{}/size"
_COMMON_CACHE = 32 << 20
_IDENTIFYING = {
    *("vendor_id", "cpu family", "model", "model name", "stepping", "flags"),  # of x86
    *("CPU implementer", "CPU architecture", "CPU variant", "CPU part", "Features"),  # of arm64
}


@lru_cache(maxsize=1)
def cache_bytes() -> int:
    """The size of the largest cache of this machine; a common one where the machine does not say."""
    sizes = [_text(_CACHES.format(level)).strip() for level in range(8)]
    units = {"K": 1 << 10, "M": 1 << 20}
    in_bytes = [int(size[:-1]) * units[size[-1]] for size in sizes if size[:-1].isdigit() and size[-1] in units]
    return max(in_bytes, default=_COMMON_CACHE)


def today() -> str:
    """The date in UTC, as ``2026-11-26``: that of results, which people in other places read."""
    from datetime import UTC, datetime  # It takes long to load.

    return datetime.now(UTC).date().isoformat()


def machine_name() -> str:
    """The processor in its own words, with Python's version."""
    name = platform.processor() or platform.machine()
    for line in _text(_PROCESSORS).splitlines():
        if line.startswith("model name"):
            name = line.partition(":")[2].strip()
            break
    return f"{name}, {platform.system()}, Python {platform.python_version()}"


@lru_cache(maxsize=1)
def processor_identity() -> str:
    """What decides which instructions the processor has, as Linux says it; empty where it is not known."""
    first, _end, _others = _text(_PROCESSORS).partition("\n\n")
    return "\n".join(line for line in first.splitlines() if line.partition(":")[0].strip() in _IDENTIFYING)


def _text(file: str) -> str:
    """What the system says in a file, empty where there is none; pathlib would double the time of this import."""
    try:
        with open(file, encoding="utf-8", errors="replace") as opened:  # noqa: PTH123
            return opened.read()
    except OSError:
        return ""


def processors() -> int:
    """How many processors this process may use; macOS and Windows say how many there are."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def affinity_functions() -> tuple[Any, ...]:
    """The C functions sched_getcpu, sched_getaffinity and sched_setaffinity; empty where the system lacks one."""
    names = ("sched_getcpu", "sched_getaffinity", "sched_setaffinity")
    if sys.platform != "linux" or not all(hasattr(ctypes.pythonapi, name) for name in names):
        return ()
    return tuple(getattr(ctypes.pythonapi, name) for name in names)


def memory_bytes() -> int | None:
    """The size of this machine's memory; None where it does not say."""
    if "SC_PHYS_PAGES" not in getattr(os, "sysconf_names", {}):
        return None
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def is_x86() -> bool:
    """Whether this is an x86 processor of 64 bits."""
    return platform.machine().lower() in ("x86_64", "amd64")


def is_arm64() -> bool:
    """Whether this is an arm processor of 64 bits."""
    return platform.machine().lower() in ("aarch64", "arm64")


@cache
def float_environment() -> Any:
    """The library whose fegetenv and fesetenv read and set a thread's floating-point mode; None where none is known."""
    if sys.platform != "linux" or platform.machine() not in ("x86_64", "aarch64"):
        return None
    try:
        library = ctypes.CDLL("libm.so.6")
        return library if library.fegetenv and library.fesetenv else None
    except (OSError, AttributeError):
        return None
