"""Contestants that take turns in one process: the speed of a shared machine drifts, within a round it hardly does."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from statistics import median

Run = Callable[[], object]


def seconds_of(run: Run, count: int = 1) -> float:
    """How long so many runs take together."""
    begin = time.perf_counter()
    for _repeat in range(count):
        run()
    return time.perf_counter() - begin


def in_turns(runs: Mapping[str, Run], rounds: int) -> dict[str, list[float]]:
    """The seconds of each contestant in each round; a round before these warms up."""
    samples: dict[str, list[float]] = {name: [] for name in runs}
    for number in range(rounds + 1):
        for name, run in runs.items():
            seconds = seconds_of(run)
            if number:
                samples[name].append(seconds)
    return samples


def ratio(times: list[float], base: list[float]) -> float:
    """The median of the ratios of times in the same round."""
    return median(one / other for one, other in zip(times, base, strict=True))


_SPIN = """
import time
while True:
    end = time.perf_counter() + {busy}
    while time.perf_counter() < end:
        pass
    time.sleep({idle})
"""
_PERIOD = 0.01


@contextmanager
def neighbour(percent: int) -> Iterator[None]:
    """Let another process use so much of one processor, in turns of a hundredth of a second; with 0 there is none."""
    if not percent:
        yield
        return
    busy = _PERIOD * percent / 100
    program = _SPIN.format(busy=busy, idle=_PERIOD - busy)
    process = subprocess.Popen([sys.executable, "-c", program])  # noqa: S603
    try:
        yield
    finally:
        process.kill()
        process.wait()
