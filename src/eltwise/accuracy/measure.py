"""Runtimes compute functions of many numbers; the oracle says how far each result is from the real value."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt

from eltwise.accuracy.inputs import blocks, total
from eltwise.accuracy.programs import ORACLE_NAMES, program_of
from eltwise.accuracy.report import AccuracyReport
from eltwise.accuracy.results import BINS, BOUND, Example, FunctionAccuracy
from eltwise.core.dtypes import BFLOAT16, FLOAT16, FLOAT32, FLOAT64, ElementType
from eltwise.core.errors import UnsupportedError, unknown_name
from eltwise.core.foreign import library
from eltwise.core.machine import machine_name
from eltwise.core.progress import Progress, no_progress
from eltwise.oracle.nearest import unit_exponents
from eltwise.oracle.numbers import FLOAT_LAYOUTS
from eltwise.oracle.real_functions import Rounded, correctly_rounded
from eltwise.runtimes.host import Host
from eltwise.runtimes.registry import Runtime, find, installed

NUMBERS = 10_000_000
"""How many float32 numbers each function is asked for, by default."""


_TYPES = (FLOAT16, BFLOAT16, FLOAT32, FLOAT64)


def select(
    names: Sequence[str], functions: Sequence[str], types: Sequence[str]
) -> tuple[list[Runtime], list[str], list[ElementType]]:
    """Runtimes, functions and types by name; no names mean all that there are, but for this package's runtimes.

    Raises:
        NameUnknownError: for a name that is not known, with the nearest.
        UnsupportedError: where python-flint is not installed.
    """
    library("flint", "a measurement of functions", package="'eltwise[accuracy]'")
    for name in functions:
        if name not in ORACLE_NAMES:
            raise unknown_name("function", name, ORACLE_NAMES)
    by_name = {each.name: each for each in _TYPES}
    for name in types:
        if name not in by_name:
            raise unknown_name("float type", name, by_name)
    chosen = list(dict.fromkeys(functions)) or list(ORACLE_NAMES)
    others = (each for each in installed() if each.packages and _has_any(each, chosen))
    asked = list(map(find, dict.fromkeys(names))) or list(others)
    for runtime in asked:
        if not _has_any(runtime, chosen):
            allowed = "a runtime that loads models of it, or a library of array functions that has the function"
            raise UnsupportedError("this runtime has none of the functions", got=runtime.name, allowed=allowed)
    return asked, chosen, [by_name[name] for name in dict.fromkeys(types)] or list(_TYPES)


def _has_any(runtime: Runtime, functions: Sequence[str]) -> bool:
    return any(program_of(runtime, name, FLOAT32, 1) is not None for name in functions)


def measure(
    runtimes: Sequence[Runtime],
    functions: Sequence[str],
    types: Sequence[ElementType],
    *,
    numbers: int | None = NUMBERS,
    seed: int = 0,
    bound: float = BOUND,
    limit: float = 120.0,
    progress: Progress = no_progress,
) -> AccuracyReport:
    """Measure functions of types on runtimes.

    Args:
        runtimes: those that are asked.
        functions: names in ``ORACLE_NAMES``.
        types: float types.
        numbers: how many float32 numbers; of 16-bit types all are taken, of float64 fewer.
        seed: of what is drawn.
        bound: the error in units in the last place beyond which a result is wrong.
        limit: how many seconds one answer may take.
        progress: is told how many of all numbers are done.
    """
    results: list[FunctionAccuracy] = []
    versions: dict[str, str] = {}
    interrupted = False
    whole = len(functions) * sum(total(each, numbers) for each in types)
    done = 0
    with ExitStack() as stack:
        hosts = [stack.enter_context(Host(each, limit, shares_memory=True)) for each in runtimes]
        try:
            for host in hosts:
                versions[host.runtime.name] = host.version()
            for function, element_type in product(functions, types):
                measured = [_unmeasured(host, function, element_type) for host in hosts]
                for x in blocks(element_type, numbers, seed):
                    expected = correctly_rounded(ORACLE_NAMES[function], x)
                    pairs = zip(hosts, measured, strict=True)
                    measured = [_with_block(host, so_far, element_type, x, expected) for host, so_far in pairs]
                    done += x.size
                    progress(min(done, whole), whole, f"{function} {element_type.name}")
                results += measured
        except KeyboardInterrupt:
            interrupted = True
    return AccuracyReport(tuple(results), versions, machine_name(), numbers, seed, bound, interrupted=interrupted)


def _unmeasured(host: Host, function: str, element_type: ElementType) -> FunctionAccuracy:
    is_asked = program_of(host.runtime, function, element_type, 1) is not None
    message = "" if is_asked else "the library has no such function"
    return FunctionAccuracy(function, element_type.name, host.runtime.name, message=message)


def _with_block(
    host: Host, so_far: FunctionAccuracy, element_type: ElementType, x: npt.NDArray[Any], expected: Rounded
) -> FunctionAccuracy:
    """What was measured, with one block more; one that is refused ends the measurement of the function.

    What was measured before is kept. It failed where it crashed or hung, or where it ran before: else the runtime does
    not have the function of this type.
    """
    program = None if so_far.message else program_of(host.runtime, so_far.function, element_type, x.size)
    if program is None:
        return so_far
    answer = host.run(program, (x,), results=((element_type, x.shape),))
    actual = answer.arrays[0] if answer.kind == "result" and len(answer.arrays) == 1 else None
    if actual is None or actual.shape != x.shape or actual.dtype != x.dtype:
        message = answer.message or "it gave another type or shape"
        return replace(so_far, message=message, failed=answer.kind in ("crashed", "hung") or so_far.count > 0)
    return _joined(so_far, _errors_of_block(so_far, element_type, x, actual, expected))


def _joined(a: FunctionAccuracy, b: FunctionAccuracy) -> FunctionAccuracy:
    larger = a if a.largest_error >= b.largest_error and a.worst is not None else b
    return replace(
        a,
        count=a.count + b.count,
        nearest=a.nearest + b.nearest,
        largest_error=larger.largest_error,
        worst=larger.worst,
        flushed=a.flushed + b.flushed,
        special=a.special + b.special,
        first_special=a.first_special or b.first_special,
        profile=tuple(map(max, a.profile, b.profile)) if a.profile else b.profile,
    )


def _errors_of_block(
    named: FunctionAccuracy,
    element_type: ElementType,
    x: npt.NDArray[Any],
    actual: npt.NDArray[Any],
    expected: Rounded,
) -> FunctionAccuracy:
    """The figures of one block."""
    with np.errstate(all="ignore"):
        wide, value = actual.astype(np.float64), expected.values.astype(np.float64)
        is_same = (wide == value) | (np.isnan(wide) & np.isnan(value))
        is_special = ~is_same & ~(np.isfinite(wide) & np.isfinite(value))
        is_flushed = ~is_same & (wide == 0) & (np.abs(value) < element_type.least_normal)
        distances = (wide - value) / np.ldexp(1.0, unit_exponents(value, element_type))
        errors = np.abs(distances - expected.residues)
    errors[is_special | is_flushed | ~np.isfinite(value)] = 0

    def example(index: int) -> Example:
        return Example(float(x[index]), float(wide[index]), float(value[index]))

    worst = int(np.argmax(errors))
    profile = np.zeros(BINS)
    np.maximum.at(profile, _bins(x, element_type), errors)
    return replace(
        named,
        count=x.size,
        nearest=int(np.count_nonzero(is_same)),
        largest_error=float(errors[worst]),
        worst=example(worst),
        flushed=int(np.count_nonzero(is_flushed)),
        special=int(np.count_nonzero(is_special)),
        first_special=example(int(np.argmax(is_special))) if is_special.any() else None,
        profile=tuple(profile.tolist()),
    )


def _bins(x: npt.NDArray[Any], element_type: ElementType) -> npt.NDArray[np.int64]:
    """In which part of the line of numbers each argument lies."""
    layout = FLOAT_LAYOUTS[element_type]
    least, half = layout.least_exponent - layout.mantissa_bits, BINS // 2
    with np.errstate(all="ignore"):
        wide = x.astype(np.float64)
        _digits, exponents = np.frexp(np.where(np.isfinite(wide), wide, 0.0))
    steps = (np.maximum(exponents, least) - least) * half // (2 - layout.least_exponent - least)
    steps = np.clip(steps, 0, half - 1).astype(np.int64)
    return np.asarray(np.where(np.signbit(wide), half - 1 - steps, half + steps))
