"""Measure: libraries take turns in one process, the median counts, and only exact results are timed."""

from __future__ import annotations

import gc
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil
from random import Random
from statistics import median

import numpy as np

from benchmarks.limit import memory_limit
from benchmarks.peers import Contestant, Prepare, Refusal
from benchmarks.tensors import Tensors, expected_result, make_tensors, remark
from benchmarks.timing import seconds_of
from benchmarks.workloads import Workload
from eltwise.core.machine import cache_bytes

SEED = 20261121
LIMIT = "memory limit"
OWN = "eltwise"
_EXACT_SHARE, _ROUNDED_SHARE = 1e-12, 1e-2
"""By so much of it a sum may differ from NumPy's float64: an exact one, and one in the type of the elements."""

_SAMPLE_SECONDS = 1e-3
_MOST_REPEATS = 2_000
_FIRST_RUNS, _WARMING_RUNS = 3, 300
_SHORT_SECONDS = 0.002
_SETTLING_SECONDS = 5e-3
_MOST_SETTLING_SECONDS = 0.1
_LEAST_ROUNDS = 3
_SLOW = 5


@dataclass(frozen=True)
class Row:
    """What was measured of one workload.

    Attributes:
        workload: the workload.
        seconds: the median of each library, by name.
        ratios: for each other library, and for the memory limit, the median over the rounds of its time divided by
            eltwise's in the same round. The speed of memory drifts on a shared machine; within a round it hardly does.
        remarks: for each library that was not timed, why.
    """

    workload: Workload
    seconds: Mapping[str, float] = field(default_factory=dict)
    ratios: Mapping[str, float] = field(default_factory=dict)
    remarks: Mapping[str, str] = field(default_factory=dict)

    @property
    def best_peer(self) -> str:
        """The fastest other library; empty if there is none."""
        peers = {name: ratio for name, ratio in self.ratios.items() if name != LIMIT}
        return min(peers, key=peers.__getitem__, default="")

    def fields(self) -> dict[str, object]:
        """Everything as plain values, times in milliseconds."""
        return {
            "workload": str(self.workload),
            "group": self.workload.group,
            "expression": self.workload.written,
            "type": self.workload.element_type.name,
            "shapes": [list(shape) for shape in self.workload.shapes],
            "call": self.workload.call,
            "bytes": self.workload.bytes_moved,
            "milliseconds": {name: seconds * 1e3 for name, seconds in self.seconds.items()},
            "best_peer": self.best_peer or None,
            "ratios": dict(self.ratios),
            "not_timed": dict(self.remarks),
        }


def measure(workload: Workload, libraries: Mapping[str, Prepare], threads: int, rounds: int, seconds: float) -> Row:
    """Measure one workload, for so many rounds or, after three, so many seconds.

    Returns:
        The row. Where eltwise is not exact, before or after the rounds, it has no times.
    """
    tensors = make_tensors(workload, SEED)
    expected = expected_result(workload, tensors)
    contestants, remarks = _prepared(workload, libraries, tensors, expected, threads)
    if OWN in remarks:
        return Row(workload, remarks=remarks)
    if workload.has_limit and workload.bytes_moved > 2 * cache_bytes():
        contestants.append(Contestant(LIMIT, memory_limit(tensors, threads)))
    samples = samples_of(contestants, rounds, seconds)
    wrong = _check(workload, contestants[0], tensors, expected)
    if wrong:
        return Row(workload, remarks={OWN: f"after the rounds: {wrong}"})
    ratios = {
        name: median(theirs / ours for theirs, ours in zip(times, samples[OWN], strict=False))
        for name, times in samples.items()
        if name != OWN
    }
    return Row(workload, {name: median(times) for name, times in samples.items()}, ratios, remarks)


def _prepared(
    workload: Workload, libraries: Mapping[str, Prepare], tensors: Tensors, expected: np.ndarray, threads: int
) -> tuple[list[Contestant], dict[str, str]]:
    """The libraries that compute the workload exactly, and for each other one the reason why not."""
    ready: list[Contestant] = []
    remarks: dict[str, str] = {}
    for name, prepare in libraries.items():
        try:
            contestant = prepare(workload, tensors, threads)
        except Refusal as refusal:
            remarks[name] = f"refused: {refusal}"
            continue
        wrong = _check(workload, contestant, tensors, expected)
        if wrong:
            remarks[name] = f"differs: {wrong}"
        else:
            ready.append(contestant)
    return ready, remarks


def _check(workload: Workload, contestant: Contestant, tensors: Tensors, expected: np.ndarray) -> str:
    tensors.poison()
    share = _EXACT_SHARE if contestant.name == OWN else _ROUNDED_SHARE
    with np.errstate(all="ignore"):
        return remark(workload, contestant.fetch(contestant.run()), expected, share)


def samples_of(contestants: Sequence[Contestant], rounds: int, seconds: float) -> dict[str, list[float]]:
    """The seconds of runs: all take turns, in a new order each round, and the slow ones stop after the first rounds."""
    once = {contestant.name: _warm_seconds(contestant) for contestant in contestants}
    slow = _SLOW * min(once.values())
    samples: dict[str, list[float]] = {name: [] for name in once}
    order = Random(SEED)  # noqa: S311 - an order is no secret
    collects = gc.isenabled()
    gc.disable()
    try:
        end = time.perf_counter() + seconds
        for done in range(rounds):
            if done >= _LEAST_ROUNDS and time.perf_counter() > end:
                break
            for contestant in order.sample(contestants, len(contestants)):
                if done < _LEAST_ROUNDS or once[contestant.name] < slow:
                    samples[contestant.name].append(_sample(contestant, once[contestant.name]))
    finally:
        if collects:
            gc.enable()
    return samples


def _warm_seconds(contestant: Contestant) -> float:
    """Run often enough that what a library does for calls that are made often is done; then time a run."""
    if min(seconds_of(contestant.run, 1) for _run in range(_FIRST_RUNS)) < _SHORT_SECONDS:
        seconds_of(contestant.run, _WARMING_RUNS)
    return seconds_of(contestant.run, 1)


def _sample(contestant: Contestant, estimate: float) -> float:
    """Time a run, or many where one is short, which begin when the library's threads are awake."""
    _settle()
    count = max(1, min(_MOST_REPEATS, ceil(_SAMPLE_SECONDS / max(estimate, 1e-7))))
    if count > 1:
        seconds_of(contestant.run, ceil(count / 4))
    return seconds_of(contestant.run, count) / count


def _settle() -> None:
    """Wait until threads of the library before, which spin after its calls, no longer take a processor."""
    end = time.perf_counter() + _MOST_SETTLING_SECONDS
    used = time.process_time()
    while time.perf_counter() < end:
        time.sleep(_SETTLING_SECONDS)
        before, used = used, time.process_time()
        if used - before < _SETTLING_SECONDS / 4:
            return
