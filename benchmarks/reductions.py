"""The command ``python -m benchmarks.run reductions``: mean squared differences beside NumPy, Dask and reading.

All of 16 Mi or 256 Mi elements, and 16 Mi along columns and rows of several lengths.

Only eltwise's result is correctly rounded; the others are timed for what they take. All take turns in one process, and
ratios are of times in the same round.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from importlib.util import find_spec
from math import prod
from statistics import median

import numpy as np

import eltwise
from benchmarks.timing import in_turns, ratio
from eltwise.core.machine import machine_name
from eltwise.kernels.threads import num_threads

_MEBI = 1 << 20
_CASES: tuple[tuple[tuple[int, ...], int | None], ...] = (
    ((16 * _MEBI,), None),
    ((256 * _MEBI,), None),
    *(((16 * _MEBI // length, length), axis) for length in (4096, 64, 4) for axis in (0, 1)),
)
_SEED = 20261121


def main(arguments: Sequence[str]) -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(prog="benchmarks.run reductions", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="only all of 16 Mi elements")
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args(arguments)
    print(f"{machine_name()}, {num_threads()} threads, {datetime.now(UTC):%Y-%m-%d}")
    print(f"{'shape':>16} {'axis':>5} {'':24} {'ms':>8} {'its time over that of eltwise':>30}")
    for shape, axis in _CASES[:1] if options.quick else _CASES:
        generator = np.random.default_rng(_SEED)
        repeated = prod(shape) // _MEBI
        a, b = (np.tile(generator.standard_normal(_MEBI, np.float32), repeated).reshape(shape) for _operand in range(2))
        samples = in_turns(_contestants(a, b, axis), options.rounds)
        for name, times in samples.items():
            case = f"{'x'.join(map(str, shape)):>16} {axis!s:>5}"
            print(f"{case} {name:24} {median(times) * 1e3:8.1f} {ratio(times, samples['eltwise']):30.2f}")


def _contestants(a: np.ndarray, b: np.ndarray, axis: int | None) -> dict[str, Callable[[], object]]:
    found: dict[str, Callable[[], object]] = {
        "eltwise": lambda: eltwise.mean_squared_difference(a, b, axis),
        "np.mean((a - b) ** 2)": lambda: np.mean((a - b) ** 2, axis=axis),
    }
    if axis is None:
        found["reading a and b"] = lambda: _read(a, b)
    if axis is None and find_spec("dask") is not None:
        import dask.array as da

        x, y = (da.from_array(each, chunks=4 * _MEBI, name=False) for each in (a, b))
        found["eltwise on Dask"] = lambda: eltwise.mean_squared_difference(x, y).compute(scheduler="threads")
        found["Dask"] = lambda: ((x - y) ** 2).mean().compute(scheduler="threads")
    return found


def _read(a: np.ndarray, b: np.ndarray) -> None:
    """Read both arrays on all threads, as fast as NumPy can."""
    parts = [part for each in (a, b) for part in np.array_split(each.view(np.int64), num_threads())]
    with ThreadPoolExecutor(num_threads()) as pool:
        list(pool.map(np.bitwise_or.reduce, parts))
