"""The measurement: contestants take turns in one process, the median of each counts, and only exact results do."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import ceil
from random import Random
from statistics import median

import numpy as np

from eltwise.bench.contestants import Peer, Ready, Refusal, own_contestants
from eltwise.bench.limit import limit_contestant
from eltwise.bench.results import LIMIT, Row
from eltwise.bench.tensors import Tensors, make_tensors, numpy_result, objection, oracle_objection
from eltwise.bench.workloads import Workload
from eltwise.core.machine import cache_bytes
from eltwise.kernels.threads import num_threads

SEED = 20261121
_LEAST_SAMPLE_SECONDS = 1e-3
_MOST_REPEATS = 2_000
_SETTLING_SECONDS = 2e-3
_SLOW = 5

MakeOwn = Callable[[Workload, Tensors], tuple[Ready, ...]]


@dataclass(frozen=True)
class Settings:
    """How long to measure.

    Attributes:
        rounds: how often every contestant has its turn, at least 3.
        seconds: after how long, and 3 rounds, a workload is done with fewer rounds.
    """

    rounds: int
    seconds: float


QUICK = Settings(rounds=15, seconds=0.8)
FULL = Settings(rounds=31, seconds=10.0)
_LEAST_ROUNDS = 3


def measure(workloads: Iterable[Workload], peers: Sequence[Peer], settings: Settings) -> Iterator[Row]:
    """Measure workloads one after the other and give each row when it is there."""
    for workload in workloads:
        yield measure_row(workload, peers, settings)


def measure_row(
    workload: Workload, peers: Sequence[Peer], settings: Settings, make_own: MakeOwn = own_contestants
) -> Row:
    """Measure one workload.

    Args:
        workload: what to measure.
        peers: whom to measure beside this project.
        settings: how long.
        make_own: gives this project's contestants, the one that the row is about first.

    Returns:
        The row; one that quotes nothing where a result of this project is not exact, before or after the rounds.
    """
    tensors = make_tensors(workload, SEED)
    expected = numpy_result(workload.formula, tensors.operands)
    wrong = oracle_objection(workload.formula, tensors.operands, expected, SEED)
    if wrong:
        return Row(workload, refusal=f"numpy, which this is compared with: {wrong}")
    own = make_own(workload, tensors)
    wrong = _first_objection(own, tensors, expected)
    if wrong:
        return Row(workload, refusal=wrong)
    ready, remarks = _ready_peers(workload, peers, tensors, expected)
    in_cache = workload.moved_bytes <= 2 * cache_bytes()
    limit = [] if in_cache else _limit(workload, tensors)
    samples = _rounds([*own, *ready, *limit], settings)
    wrong = _first_objection(own, tensors, expected)
    if wrong:
        return Row(workload, refusal=f"after the rounds: {wrong}")
    ratios = _ratios(samples, own[0].name)
    limits = samples.pop(LIMIT, None)
    medians = {name: median(times) for name, times in samples.items()}
    return Row(workload, medians, ratios, median(limits) if limits else None, in_cache, remarks)


def _ratios(samples: dict[str, list[float]], own: str) -> dict[str, float]:
    """For each other contestant the median of its time over our own in the same round; slow ones have fewer rounds."""
    return {
        name: median(theirs / ours for theirs, ours in zip(times, samples[own], strict=False))
        for name, times in samples.items()
        if name != own
    }


def _first_objection(own: Sequence[Ready], tensors: Tensors, expected: np.ndarray) -> str:
    for contestant in own:
        wrong = _objection(contestant, tensors, expected)
        if wrong:
            return f"{contestant.name}: {wrong}"
    return ""


def _objection(contestant: Ready, tensors: Tensors, expected: np.ndarray) -> str:
    """Run a contestant once, on a result that was spoiled before, and say what is wrong with what it gives."""
    tensors.spoil_out()
    return objection(contestant.fetch(contestant.run()), expected)


def _ready_peers(
    workload: Workload, peers: Sequence[Peer], tensors: Tensors, expected: np.ndarray
) -> tuple[list[Ready], dict[str, str]]:
    """The peers that take the workload and are right, and for each other one the reason that it is not quoted."""
    ready, remarks = [], {}
    for peer in peers:
        try:
            contestant = peer.prepare(workload, tensors, num_threads())
        except Refusal as refusal:
            remarks[peer.name] = f"refused: {refusal}"
            continue
        wrong = _objection(contestant, tensors, expected)
        if wrong:
            remarks[peer.name] = f"differs: {wrong}"
        else:
            ready.append(contestant)
    return ready, remarks


def _limit(workload: Workload, tensors: Tensors) -> list[Ready]:
    try:
        return [limit_contestant(workload, tensors, num_threads())]
    except ImportError:  # Without llvmlite nothing is compiled, and the shares of the limit stay empty.
        return []


def _rounds(contestants: Sequence[Ready], settings: Settings) -> dict[str, list[float]]:
    """Let all contestants take turns, in a new order each round; slow ones stay out after the first rounds.

    Returns:
        For each contestant by name the seconds of one run, a figure for each round.
    """
    once = {contestant.name: _once(contestant) for contestant in contestants}
    slow = _SLOW * min(once.values())
    samples: dict[str, list[float]] = {contestant.name: [] for contestant in contestants}
    order = Random(SEED)  # noqa: S311 - an order is no secret
    enabled = gc.isenabled()
    gc.disable()
    try:
        end = time.perf_counter() + settings.seconds
        for done in range(settings.rounds):
            if done >= _LEAST_ROUNDS and time.perf_counter() > end:
                break
            # Whoever comes after a long run of two threads finds a slower memory: nobody always comes after the same.
            for contestant in order.sample(contestants, len(contestants)):
                estimate = once[contestant.name]
                if done < _LEAST_ROUNDS or estimate < slow:
                    samples[contestant.name].append(_sample(contestant, estimate))
    finally:
        if enabled:
            gc.enable()
    return samples


def _once(contestant: Ready) -> float:
    """About how long one run takes."""
    seconds = _seconds(contestant.run, 1)
    return min(seconds, _seconds(contestant.run, 1)) if seconds < 10 * _LEAST_SAMPLE_SECONDS else seconds


def _sample(contestant: Ready, estimate: float) -> float:
    """Time a run: many of them where they are short, so that they are not drowned by the clock."""
    # The threads of the one before may still look for work, and would take a processor from this one.
    time.sleep(_SETTLING_SECONDS)
    count = max(1, min(_MOST_REPEATS, ceil(_LEAST_SAMPLE_SECONDS / max(estimate, 1e-7))))
    return _seconds(contestant.run, count) / count


def _seconds(run: Callable[[], object], count: int) -> float:
    begin = time.perf_counter()
    for _repeat in range(count):
        run()
    return time.perf_counter() - begin
