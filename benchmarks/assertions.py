"""Assert that two equal arrays are equal: eltwise.testing beside numpy.testing and torch.testing.

``python -m benchmarks.run assertions`` prints a table of the least times. All take turns.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib.util import find_spec

import numpy as np

from benchmarks.timing import Run, seconds_of
from eltwise.testing import assert_close, assert_same

SIZES = tuple(10**power for power in range(8))
_ELEMENTS = 10**6
"""So many elements are compared in a turn, at least."""


def runs(size: int) -> dict[str, Run]:
    """The assertions of two float32 arrays: equal ones, and neighbours for ``assert_close``."""
    a = np.random.default_rng(1).random(size, np.float32)
    b, near = a.copy(), np.nextafter(a, np.float32(2))
    named: dict[str, Run] = {
        "assert_same": lambda: assert_same(a, b),
        "assert_array_equal": lambda: np.testing.assert_array_equal(a, b),
        "assert_close": lambda: assert_close(a, near),
        "assert_allclose": lambda: np.testing.assert_allclose(a, near, rtol=1e-6),
    }
    if find_spec("torch"):
        import torch

        one, other = torch.from_numpy(a), torch.from_numpy(b)
        named["torch.testing"] = lambda: torch.testing.assert_close(one, other, rtol=0, atol=0)
    return named


def main(arguments: Sequence[str]) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="benchmarks.run assertions", description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--most", type=int, default=SIZES[-1], help="elements of the largest arrays")
    options = parser.parse_args(arguments)
    names = list(runs(1))
    print(f"| elements | {' | '.join(f'{name}, µs' for name in names)} |\n|{'---|' * (len(names) + 1)}")
    for size in (one for one in SIZES if one <= options.most):
        count = max(1, _ELEMENTS // max(size, 10**4))
        contestants, best = runs(size), dict.fromkeys(names, float("inf"))
        for _round in range(options.rounds):
            for name, run in contestants.items():
                best[name] = min(best[name], seconds_of(run, count) / count)
        print(f"| {size:,} | {' | '.join(f'{best[name] * 1e6:,.1f}' for name in names)} |")
        sys.stdout.flush()
