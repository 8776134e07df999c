"""Hypotheses with a number that is taken from the data: B is A times, or plus, a constant.

Each pair of elements bounds the number, since B was rounded; all bounds together leave a short interval. The simplest
number in it, and its neighbours among float32 and float64 numbers, are then tried bit for bit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial

import numpy as np

from eltwise.comparison.hypotheses import Hypothesis, Problem, Sample, computed
from eltwise.comparison.numbers import is_float
from eltwise.core.dtypes import FLOAT64, ElementType
from eltwise.oracle.numbers import FLOAT_LAYOUTS

_LARGEST_FACTOR = 1 << 20
_MOST_PAIRS = 4096
_SLACK = 2.0**-50
_NOISE_BITS = 4
"""A factor or an offset that changes no more than so many of the last bits is not told from noise."""


def scaled(problem: Problem) -> Iterator[Hypothesis]:
    """B is A times a constant."""
    own = problem.element_type
    a, b = _pairs(problem)
    if not a.size:
        return
    for factor in _factors(a, b, own):
        for name, function in _products(factor, own):
            if not problem.sample.fits(function):
                continue
            is_power = abs(math.frexp(factor)[0]) == 0.5
            is_said_so = is_power and factor > 0 and is_float(own)
            said = f"2^{math.frexp(factor)[1] - 1}" if is_said_so else shown(factor)
            details: dict[str, object] = {"factor": factor, "power_of_two": is_power}
            details |= {"arithmetic": name} if name else {}
            yield computed("scaled", f"{{b}} is {{a}} times {said}", function, details, 1)
            return


def _factors(a: np.ndarray, b: np.ndarray, own: ElementType) -> Iterator[float]:
    """The factors that all pairs allow; 0, 1, -1 and what is not told from noise are none."""
    if is_float(own):
        nearly_one = 2.0 ** (_NOISE_BITS - own.digits)
        found = candidates(*factor_bounds(a, b, own), own)
        yield from (one for one in found if one and abs(abs(one) - 1) >= nearly_one)
        return
    index = int(np.argmax(np.abs(a)))
    factor = b[index] / a[index]
    if factor == int(factor) and 1 < abs(factor) <= _LARGEST_FACTOR:
        yield int(factor)


def shown(value: float) -> str:
    """A number with the digits that tell it from others, of float32 where it is one.

    >>> shown(float(np.float32(0.02))), shown(0.1), shown(3.0)
    ('0.02', '0.1', '3')
    """
    if isinstance(value, int):
        return str(value)
    single = np.float32(value)
    return (str(single) if float(single) == value else repr(float(value))).removesuffix(".0")


def _pairs(problem: Problem) -> tuple[np.ndarray, np.ndarray]:
    """The values of a sample where both are finite and no zeros."""
    own, sample = problem.element_type, problem.wide
    if own.numpy is None or own.kind == "boolean" or own.bits < 8:
        return np.zeros(0), np.zeros(0)
    a, b = sample.x[: sample.count], sample.y[: sample.count]
    used = np.isfinite(a) & np.isfinite(b) & (a != 0) & (b != 0)
    return a[used][:_MOST_PAIRS], b[used][:_MOST_PAIRS]


def half_ulps(b: np.ndarray, own: ElementType) -> np.ndarray:
    """Half the distance to the next number, of numbers that are no zeros."""
    layout = FLOAT_LAYOUTS[own]
    exponents = np.maximum(np.frexp(b)[1] - 1, layout.least_exponent)
    return np.asarray(np.ldexp(1.0, exponents - layout.mantissa_bits - 1))


def factor_bounds(a: np.ndarray, b: np.ndarray, own: ElementType) -> tuple[float, float]:
    """Between which numbers a factor lies that makes each ``b`` of each ``a``, after rounding."""
    with np.errstate(all="ignore"):
        half = half_ulps(b, own) * (1 + 2.0**-20)
        one, other = (b - half) / a, (b + half) / a
        low, high = float(np.minimum(one, other).max()), float(np.maximum(one, other).min())
    return low - abs(low) * _SLACK * 8, high + abs(high) * _SLACK * 8


def candidates(low: float, high: float, own: ElementType) -> Iterator[float]:
    """Numbers of an interval: simple ones, those of float32, and the middle."""
    if not (math.isfinite(low) and math.isfinite(high) and low <= high):
        return
    middle = (low + high) / 2
    nearest, simplest = np.float32(middle), _simplest(low, high)
    decimals = [float(f"{middle:.{digits}g}") for digits in range(1, 17)]
    found = [*([simplest] if simplest == int(simplest) else []), *decimals[:6]]
    with np.errstate(all="ignore"):
        found += [float(nearest), float(np.nextafter(nearest, np.float32(np.inf))), *decimals[6:], simplest, middle]
    if own is FLOAT64:
        found += [float(np.nextafter(middle, end)) for end in (-np.inf, np.inf)] + [low, high]
    yield from dict.fromkeys(one for one in found if low <= one <= high)


def _simplest(low: float, high: float) -> float:
    """The fraction with the least denominator in an interval."""
    if low <= 0 <= high:
        return 0.0
    sign, low, high = (-1, -high, -low) if high < 0 else (1, low, high)
    middle = Fraction((low + high) / 2)
    denominator = 1
    while denominator <= _LARGEST_FACTOR:
        found = middle.limit_denominator(denominator)
        if low <= found <= high:
            return float(sign * found)
        denominator *= 2
    return float(sign * middle)


Function = Callable[[np.ndarray], np.ndarray]


def _products(factor: float, own: ElementType) -> Iterator[tuple[str, Function]]:
    """The ways to multiply: in the type itself, in float64, as a division."""
    if not is_float(own):
        yield "", partial(_wrapping, number=int(factor), multiply=True)
    elif own is FLOAT64:
        yield "", lambda a: a * factor
        divisor = _simplest(*sorted((1 / factor * (1 - _SLACK), 1 / factor * (1 + _SLACK))))
        yield "division", lambda a: a / divisor
    else:
        yield "", lambda a: (a.astype(np.float32) * np.float32(factor)).astype(own.storage)
        yield "float64", lambda a: (a.astype(np.float64) * factor).astype(own.storage)
        yield "division", lambda a: (a.astype(np.float32) / np.float32(1 / factor)).astype(own.storage)


def _wrapping(values: np.ndarray, number: int, multiply: bool) -> np.ndarray:
    """Multiply or add in an integer type, where results wrap around."""
    own = values.dtype
    bits = np.dtype(f"u{own.itemsize}").type(number % (1 << (8 * own.itemsize)))
    unsigned = values.view(bits.dtype)
    return np.asarray(unsigned * bits if multiply else unsigned + bits).view(own)


def offset(problem: Problem) -> Iterator[Hypothesis]:
    """B is A plus a constant."""
    own, sample = problem.element_type, problem.sample
    for constant in _offsets(problem, own, sample):
        function = partial(_moved_by, constant=constant, own=own)
        if sample.fits(function):
            yield computed("offset", f"{{b}} is {{a}} plus {shown(constant)}", function, {"offset": constant}, 1)
            return


def _offsets(problem: Problem, own: ElementType, sample: Sample) -> Iterator[float]:
    if own.is_integer and own.bits >= 8 and sample.count and own.numpy is not None:
        yield int(sample.b[0]) - int(sample.a[0])
        return
    a, b = _pairs(problem) if is_float(own) else (np.zeros(0), np.zeros(0))
    if a.size:
        half = half_ulps(b, own)
        low, high = float((b - half - a).max()), float((b + half - a).min())
        slack, noise = float(np.abs(a).max()) * 2.0**-52, float(half.max()) * 2**_NOISE_BITS
        yield from (one for one in candidates(low - slack, high + slack, own) if abs(one) > noise)


def _moved_by(values: np.ndarray, constant: float, own: ElementType) -> np.ndarray:
    if not is_float(own):
        return _wrapping(values, int(constant), multiply=False)
    if own is FLOAT64:
        return np.asarray(values + constant)
    return np.asarray((values.astype(np.float32) + np.float32(constant)).astype(own.storage))
