"""The first call of a kernel, measured in new processes: with an empty disk cache, and with the kernel in it."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from statistics import median

from eltwise.bench.results import FirstCall

_PROGRAM = """
import time
import numpy
import eltwise
def first_call(name):
    a = numpy.ones(1 << 20, name)
    b, out = a.copy(), a.copy()
    def timed():
        begin = time.perf_counter()
        eltwise.subtract(a, b, out=out)
        return time.perf_counter() - begin
    first = timed()
    return first - min(timed() for _again in range(5))
print(first_call("float32"), first_call("int16"))
"""
_PROCESSES = 3


def measure_first_call() -> FirstCall | None:
    """Measure it, the median of some processes; None where a new process does not run."""
    cold, warm = [], []
    try:
        for _process in range(_PROCESSES):
            with tempfile.TemporaryDirectory() as folder:
                cold.append(_seconds(folder))
                warm.append(_seconds(folder))
    except (OSError, subprocess.SubprocessError, ValueError):
        return None
    return FirstCall(
        cold=median(second for _first, second in cold),
        warm=median(second for _first, second in warm),
        in_process=median(first for first, _second in warm),
    )


def _seconds(folder: str) -> tuple[float, float]:
    """The first call of a new process, which loads the compiler's library, and the first call of another kernel."""
    done = subprocess.run(  # noqa: S603 - this very Python, on the text above
        [sys.executable, "-c", _PROGRAM],
        env={**os.environ, "ELTWISE_CACHE": folder},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    first, second = map(float, done.stdout.split())
    return first, second
