"""Functions of real numbers beside the other libraries, whose results, other than eltwise's, are not rounded once.

``python -m benchmarks.run functions`` prints a table for each type and number of elements: nanoseconds an element, and
how many times faster eltwise is than the fastest other library. Arguments lie between -4 and 4, in the domain.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from math import exp, log
from statistics import median

import numpy as np

import eltwise
from benchmarks.measure import OWN, SEED, samples_of
from benchmarks.peers import Contestant, adapter_of, installed
from eltwise.accuracy.programs import ORACLE_NAMES, program_of
from eltwise.core.dtypes import BFLOAT16, FLOAT16, FLOAT32, FLOAT64, ElementType
from eltwise.formats.onnx.nodes import since_versions
from eltwise.kernels.threads import num_threads
from eltwise.oracle.real_functions import FUNCTIONS, correctly_rounded
from eltwise.runtimes import RUNTIMES, Model

_TYPES = {each.name: each for each in (FLOAT32, FLOAT16, BFLOAT16, FLOAT64)}
_SIZES = (1_000, 100_000, 10_000_000)
_FARTHEST = 4.0
_CHECKED = 200
_SAME_DIGITS = 8
"""So many of the last digits may differ: libraries that compute in a narrower type are left out."""

_ROUNDS, _SECONDS = 15, 1.5


def main(arguments: Sequence[str]) -> int:
    """Measure and print; 1 where a result of eltwise is not the nearest number."""
    parser = argparse.ArgumentParser(prog="benchmarks.run functions", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=ORACLE_NAMES, default=list(ORACLE_NAMES), metavar="FUNCTION")
    parser.add_argument("--type", nargs="+", choices=_TYPES, default=list(_TYPES))
    parser.add_argument("--elements", nargs="+", type=int, default=_SIZES)
    parser.add_argument("--threads", type=int, default=num_threads(), help="for all libraries")
    options = parser.parse_args(arguments)
    eltwise.set_num_threads(options.threads)
    wrong: list[str] = []
    for name in options.type:
        for count in options.elements:
            print(f"\n{name}, {count:,} elements, threads: {options.threads}\n")
            wrong += _table(_TYPES[name], count, options.only, options.threads)
    for line in wrong:
        print(line, file=sys.stderr)
    return int(bool(wrong))


def _table(element_type: ElementType, count: int, functions: Sequence[str], threads: int) -> Iterator[str]:
    """Print a line for each function; give a sentence for each that eltwise computes otherwise than the oracle."""
    print("| function | eltwise, ns | best other | its ns | ratio |\n|---|---|---|---|---|")
    ratios = []
    for function in functions:
        x = arguments_of(function, element_type, count)
        contestants = contestants_of(function, element_type, x, threads)
        yield from _wrong(function, element_type, x, contestants[0])
        samples = samples_of(contestants, _ROUNDS, _SECONDS)
        nanoseconds = {name: median(times) / count * 1e9 for name, times in samples.items()}
        own = nanoseconds.pop(OWN)
        best = min(nanoseconds, key=nanoseconds.__getitem__, default="")
        cells = (best, f"{nanoseconds[best]:.2f}", f"{nanoseconds[best] / own:.2f}") if best else ("", "", "")
        ratios += [nanoseconds[best] / own] if best else []
        print(f"| {function} | {own:.2f} | {' | '.join(cells)} |", flush=True)
    mean = exp(sum(map(log, ratios)) / max(len(ratios), 1))
    print(f"| geometric mean | | | | {mean:.2f} |", flush=True)


def arguments_of(function: str, element_type: ElementType, count: int) -> np.ndarray:
    """Numbers of the function's domain, the same for the same count."""
    low, high = FUNCTIONS[ORACLE_NAMES[function]].domain
    generator = np.random.default_rng(SEED)
    return generator.uniform(max(low, -_FARTHEST), min(high, _FARTHEST), count).astype(element_type.storage)


def contestants_of(function: str, element_type: ElementType, x: np.ndarray, threads: int) -> list[Contestant]:
    """eltwise, and the libraries that compute the function of these numbers; those that refuse it are left out."""
    name = function.removesuffix("(tanh)")
    version = f"{name}-5" if name == "HSigmoid" else f"{name}-{since_versions(name)[-1]}"
    operator = eltwise.operator(version, approximate="tanh") if name != function else eltwise.operator(version)
    ready = [Contestant(OWN, partial(operator, x))]
    same = 2.0 ** (_SAME_DIGITS - element_type.digits)
    expected = ready[0].run().astype(np.float64)
    for runtime in RUNTIMES:
        if runtime.name not in installed() or runtime.name == OWN:
            continue
        program = program_of(runtime, function, element_type, x.size)
        if program is None:
            continue
        adapter = adapter_of(runtime.name, threads)
        try:
            if isinstance(program, Model):
                loaded = adapter.load(program.data, program.weights)
            else:
                loaded = adapter.compile(program.op, program.steps, {})
            run = loaded.bind([x])
            result = np.asarray(loaded.arrays(run())[0]).astype(np.float64)
        except Exception:  # noqa: BLE001, S112 - a library refuses with errors of its own kinds
            continue
        if result.shape == expected.shape and np.allclose(result, expected, same, same):
            ready.append(Contestant(runtime.name, run))
    return ready


def _wrong(function: str, element_type: ElementType, x: np.ndarray, own: Contestant) -> Iterator[str]:
    few = x[:: max(1, x.size // _CHECKED)]
    nearest = correctly_rounded(ORACLE_NAMES[function], few).values
    result = own.run()[:: max(1, x.size // _CHECKED)]
    if not np.array_equal(result.astype(np.float64), np.asarray(nearest).astype(np.float64), equal_nan=True):
        yield f"{function} of {element_type}: eltwise's results are not the nearest numbers"
