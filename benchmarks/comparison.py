"""Compare two arrays in memory: eltwise in one pass, NumPy's own expressions, and a loop that only reads.

``python -m benchmarks.run comparison`` prints a table. All take turns; a ratio is the median over the rounds.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from statistics import median

import numpy as np

from benchmarks.timing import in_turns, ratio
from eltwise.comparison.records import measure
from eltwise.comparison.tolerance import Tolerance
from eltwise.core.dtypes import FLOAT32
from eltwise.kernels.threads import num_threads

_TOLERANCE = Tolerance(rtol=1e-5, atol=1e-6)
_SIGN = 0x7FFFFFFF


def with_numpy(a: np.ndarray, b: np.ndarray) -> tuple[object, ...]:
    """The figures of one pass by NumPy's expressions."""
    with np.errstate(all="ignore"):
        gap = np.abs(a - b)
        ratio = gap / np.abs(a)
        figures = (np.nanmax(gap), np.nanmean(gap), np.nanmax(ratio), np.nanmean(ratio))
    x, y = a.view(np.int32), b.view(np.int32)
    far = np.abs(np.where(x < 0, -(x & _SIGN), x).astype(np.int64) - np.where(y < 0, -(y & _SIGN), y))
    return (
        *figures,
        far.max(),
        np.bincount(np.frexp(far.astype(np.float64))[1]),
        np.count_nonzero(x != y),
        np.count_nonzero(~np.isclose(b, a, rtol=1e-5, atol=1e-6)),
        np.count_nonzero(np.isnan(a) != np.isnan(b)),
        np.count_nonzero(np.isinf(a) != np.isinf(b)),
    )


def pairs(size: int) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Arrays that differ nowhere, here and there, and everywhere."""
    rng = np.random.default_rng(1)
    a = rng.standard_normal(size, np.float32)
    noisy = a + rng.standard_normal(size, np.float32) * np.float32(1e-5)
    return {
        "equal": (a, a.copy()),
        "1 % differ": (a, np.where(rng.random(size, np.float32) < 0.01, noisy, a)),
        "all differ": (a, noisy),
    }


def _reading(a: np.ndarray, b: np.ndarray, pool: ThreadPoolExecutor, threads: int) -> Callable[[], object]:
    parts = [part for array in (a, b) for part in np.array_split(array.view(np.uint64), 4 * threads)]
    return lambda: list(pool.map(np.bitwise_or.reduce, parts))


def main(arguments: Sequence[str]) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="benchmarks.run comparison", description=__doc__)
    parser.add_argument("--size", type=int, default=1 << 26, help="elements of each float32 array")
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args(arguments)
    threads = num_threads()
    print("| arrays | eltwise, GB/s | NumPy, GB/s | times NumPy | share of reading |\n|---|---|---|---|---|")
    with ThreadPoolExecutor(threads) as pool:
        for name, (a, b) in pairs(options.size).items():
            runs = {
                "eltwise": lambda a=a, b=b: measure(a, b, FLOAT32, _TOLERANCE),  # type: ignore[misc]
                "reading": _reading(a, b, pool, threads),
                "numpy": lambda a=a, b=b: with_numpy(a, b),  # type: ignore[misc]
            }
            samples = in_turns(runs, options.rounds)
            eltwise, numpy = ((a.nbytes + b.nbytes) / median(samples[key]) / 1e9 for key in ("eltwise", "numpy"))
            times, share = (ratio(samples[key], samples["eltwise"]) for key in ("numpy", "reading"))
            print(f"| {name} | {eltwise:.1f} | {numpy:.2f} | {times:.0f} | {share:.2f} |")
            sys.stdout.flush()
