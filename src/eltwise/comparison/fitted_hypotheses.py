"""Hypotheses with numbers that are taken from the data: scaled, moved by a constant, quantized.

Each pair of elements bounds the number, since B was rounded; all bounds together leave a short interval. The simplest
number in it, and its neighbours among float32 and float64 numbers, are then tried bit for bit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import numpy as np

from eltwise.comparison.hypotheses import Elementwise, Function, Hypothesis, Problem, agrees
from eltwise.comparison.numbers import is_float, values_of
from eltwise.comparison.pairs import converted
from eltwise.core.dtypes import FLOAT64, ElementType
from eltwise.oracle.numbers import FLOAT_LAYOUTS

_LARGEST_FACTOR = 1 << 20
_MOST_LEVELS = 1 << 16
_SLACK = 2.0**-50
_NOISE_BITS = 4
"""A factor or an offset that changes no more than so many of the last bits is not told from noise."""


def scaled(problem: Problem) -> Iterator[Hypothesis]:
    """B is A times a constant."""
    own = problem.element_type
    if own.numpy is None or own.kind == "boolean":
        return
    a, b = _finite_pairs(problem)
    if not a.size:
        return
    if not is_float(own):
        yield from _scaled_integers(problem, a, b)
        return
    low, high = _factor_bounds(a, b, own)
    nearly_one = 2.0 ** (_NOISE_BITS - own.digits)
    for factor in candidates(low, high, own):
        for name, function in _products(factor, own):
            if factor in (0, 1, -1) or abs(abs(factor) - 1) < nearly_one or not _fits(problem, function):
                continue
            is_power = abs(math.frexp(factor)[0]) == 0.5
            said = f"2^{math.frexp(factor)[1] - 1}" if is_power and factor > 0 else f"{shown(factor)}"
            details: dict[str, object] = {"factor": factor, "power_of_two": is_power}
            details |= {"arithmetic": name} if name else {}
            yield Hypothesis("scaled", f"{{b}} is {{a}} times {said}", Elementwise(problem.pair, function), details, 1)
            return


def shown(value: float) -> str:
    """A number with the digits that tell it from others, of float32 where it is one.

    >>> shown(float(np.float32(0.02))), shown(0.1), shown(3.0)
    ('0.02', '0.1', '3')
    """
    single = np.float32(value)
    return (str(single) if float(single) == value else repr(float(value))).removesuffix(".0")


def _finite_pairs(problem: Problem) -> tuple[np.ndarray, np.ndarray]:
    """The values of a sample where both are finite and no zeros."""
    sample, own = problem.wide, problem.element_type
    a, b = (values_of(one, own).astype(np.float64)[sample.differs] for one in (sample.a, sample.b))
    used = np.isfinite(a) & np.isfinite(b) & (a != 0) & (b != 0)
    return a[used][:4096], b[used][:4096]


def _half_ulps(b: np.ndarray, own: ElementType) -> np.ndarray:
    """Half the distance to the next number, of numbers that are no zeros."""
    layout = FLOAT_LAYOUTS[own]
    exponents = np.maximum(np.frexp(b)[1] - 1, layout.least_exponent)
    return np.asarray(np.ldexp(1.0, exponents - layout.mantissa_bits - 1))


def _factor_bounds(a: np.ndarray, b: np.ndarray, own: ElementType) -> tuple[float, float]:
    with np.errstate(all="ignore"):
        half = _half_ulps(b, own) * (1 + 2.0**-20)
        ends = np.stack([(b - half) / a, (b + half) / a])
        low, high = float(ends.min(axis=0).max()), float(ends.max(axis=0).min())
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


def _products(factor: float, own: ElementType) -> Iterator[tuple[str, Function]]:
    """The ways to multiply: in the type itself, in float64, as a division."""
    storage = own.storage

    def rounded(values: np.ndarray) -> np.ndarray:
        return values.astype(storage)

    if own is not FLOAT64:
        yield "", lambda a: rounded(a.astype(np.float32) * np.float32(factor))
        yield "float64", lambda a: rounded(a.astype(np.float64) * factor)
        yield "division", lambda a: rounded(a.astype(np.float32) / np.float32(1 / factor))
    else:
        yield "", lambda a: a * factor
        yield (
            "division",
            lambda a: a / float(_simplest(*sorted((1 / factor * (1 - _SLACK), 1 / factor * (1 + _SLACK))))),
        )


def _fits(problem: Problem, function: Function) -> bool:
    """Whether a function predicts most of the sample, which then is looked at closely."""
    sample = problem.sample
    with np.errstate(all="ignore"):
        return bool(agrees(np.ascontiguousarray(function(sample.a)), sample.b, problem.element_type).mean() > 0.5)


def _scaled_integers(problem: Problem, a: np.ndarray, b: np.ndarray) -> Iterator[Hypothesis]:
    index = int(np.argmax(np.abs(a)))
    factor = b[index] / a[index]
    if factor != int(factor) or not 1 < abs(factor) <= _LARGEST_FACTOR:
        return
    whole = int(factor)
    function = lambda values: _wrapping(values, whole, multiply=True)  # noqa: E731
    if _fits(problem, function):
        is_power = abs(whole) & (abs(whole) - 1) == 0
        details: dict[str, object] = {"factor": whole, "power_of_two": is_power}
        yield Hypothesis("scaled", f"{{b}} is {{a}} times {whole}", Elementwise(problem.pair, function), details, 1)


def _wrapping(values: np.ndarray, number: int, multiply: bool) -> np.ndarray:
    """Multiply or add in an integer type, where results wrap around."""
    own = values.dtype
    bits = np.dtype(f"u{own.itemsize}").type(number % (1 << (8 * own.itemsize)))
    unsigned = values.view(bits.dtype)
    return np.asarray(unsigned * bits if multiply else unsigned + bits).view(own)


def offset(problem: Problem) -> Iterator[Hypothesis]:
    """B is A plus a constant."""
    own, sample = problem.element_type, problem.wide
    if own.numpy is None or own.kind == "boolean" or not sample.a.size or own.bits < 8:
        return
    if not is_float(own):
        first = int(np.argmax(sample.differs))
        whole = int(sample.b[first]) - int(sample.a[first])
        function: Function = partial(_wrapping, number=whole, multiply=False)
        if _fits(problem, function):
            text = f"{{b}} is {{a}} plus {whole}"
            yield Hypothesis("offset", text, Elementwise(problem.pair, function), {"offset": whole}, 1)
        return
    a, b = _finite_pairs(problem)
    if not a.size:
        return
    half = _half_ulps(b, own)
    low, high = float((b - half - a).max()), float((b + half - a).min())
    slack, noise = float(np.abs(a).max()) * 2.0**-52, float(half.max()) * 2**_NOISE_BITS
    for constant in candidates(low - slack, high + slack, own):
        function = partial(_moved_by, constant=constant, own=own)
        if abs(constant) > noise and _fits(problem, function):
            text = f"{{b}} is {{a}} plus {shown(constant)}"
            yield Hypothesis("offset", text, Elementwise(problem.pair, function), {"offset": constant}, 1)
            return


def _moved_by(values: np.ndarray, constant: float, own: ElementType) -> np.ndarray:
    if own is FLOAT64:
        return np.asarray(values + constant)
    return np.asarray((values.astype(np.float32) + np.float32(constant)).astype(own.storage))


def quantized(problem: Problem) -> Iterator[Hypothesis]:
    """B is on a grid of few levels: A quantized to integers, and either left there or multiplied by the scale again."""
    own = problem.element_type
    if not is_float(own) or own.numpy is None:
        return
    of_a, of_b = problem.pair.a.element_type, problem.pair.b.element_type
    if of_b.is_integer and not of_a.is_integer:
        yield from _to_integers(problem, of_b)
    elif of_a is of_b and own in FLOAT_LAYOUTS:
        yield from _on_a_grid(problem)


def grid_of(values: np.ndarray, own: ElementType) -> tuple[float, float, int, int] | None:
    """The bounds of the step of which all values are multiples, and the least and the greatest multiple; or none."""
    levels = np.unique(values[np.isfinite(values)])
    if not 3 <= levels.size <= _MOST_LEVELS:
        return None
    gaps = np.diff(levels)
    least = float(gaps[gaps > 0].min(initial=np.inf))
    for part in (1, 2, 3):
        multiples = np.rint(levels / (least / part))
        span = multiples.max() - multiples.min()
        if span > _MOST_LEVELS or levels.size < 3:
            return None
        used = multiples != 0
        if not used.any() or np.abs(levels[~used]).max(initial=0) > 0:
            continue
        half = _half_ulps(levels[used], own) * 1.01
        ends = np.stack([(levels[used] - half) / multiples[used], (levels[used] + half) / multiples[used]])
        low, high = float(ends.min(axis=0).max()), float(ends.max(axis=0).min())
        if 0 < low <= high:
            return low, high, int(multiples.min()), int(multiples.max())
    return None


def _on_a_grid(problem: Problem) -> Iterator[Hypothesis]:
    own, sample = problem.element_type, problem.wide
    found = grid_of(values_of(sample.b, own).astype(np.float64), own)
    if found is None:
        return
    low, high, least, most = found
    for scale in candidates(low, high, own):
        for rounding, function in _roundings(scale, least, most, own):
            if not _fits(problem, function):
                continue
            kind, zero_point = integer_type_of(least, most)
            details: dict[str, object] = {"scale": scale, "zero_point": zero_point, "type": kind, "rounding": rounding}
            details |= {"levels": [least, most]}
            text = f"{{b}} is {{a}} quantized to {kind} with scale {shown(scale)} and zero point {zero_point}, and back"
            yield Hypothesis("quantized", text, Elementwise(problem.pair, function), details, 2, least_bits=2.0)
            return


def integer_type_of(least: int, most: int) -> tuple[str, int]:
    """The integer type that multiples of a scale fit into, and the zero point.

    >>> integer_type_of(-127, 127), integer_type_of(-10, 245), integer_type_of(-8, 7)
    (('int8', 0), ('uint8', 10), ('int4', 0))
    """
    for bits in (4, 8, 16):
        half = 1 << (bits - 1)
        if -half <= least and most < half:
            return f"int{bits}", 0
        if most - least < 2 * half:
            return f"uint{bits}", max(-least, 0)
    return "int32", 0


@dataclass(frozen=True)
class Way:
    """A way to divide by a scale and round.

    Attributes:
        name: its name.
        round: gives the multiples of a scale, or of the scale of each element.
    """

    name: str
    round: Callable[[np.ndarray, np.ndarray], np.ndarray]


def _half(values: np.ndarray) -> np.ndarray:
    return np.asarray(0.5, values.dtype)


def _plain(values: np.ndarray) -> np.ndarray:
    """Zeros without a sign, as integers have."""
    return np.asarray(values + values.dtype.type(0))


WAYS = (
    Way("nearest even", lambda a, scale: _plain(np.rint(a / scale))),
    Way("nearest even, reciprocal", lambda a, scale: _plain(np.rint(a * (a.dtype.type(1) / scale)))),
    Way("nearest even, zeros keep their sign", lambda a, scale: np.rint(a / scale)),
    Way("half up", lambda a, scale: _plain(np.floor(a / scale + _half(a)))),
    Way("half away", lambda a, scale: _plain(np.copysign(np.floor(np.abs(a / scale) + _half(a)), a))),
    Way("toward zero", lambda a, scale: _plain(np.trunc(a / scale))),
    Way("down", lambda a, scale: _plain(np.floor(a / scale))),
)
"""How quotients by a scale become multiples of it."""


def _roundings(scale: float, least: int, most: int, own: ElementType) -> Iterator[tuple[str, Function]]:
    for way in WAYS:
        yield way.name, partial(_requantized, way=way, scale=scale, least=least, most=most, own=own)


def _requantized(
    a: np.ndarray,
    way: Way,
    scale: float,
    least: int,
    most: int,
    own: ElementType,
) -> np.ndarray:
    wide = a if own is FLOAT64 else a.astype(np.float32)
    multiples = np.clip(way.round(wide, np.asarray(scale, wide.dtype)), least, most)
    return np.asarray(multiples * wide.dtype.type(scale)).astype(own.storage)


def _to_integers(problem: Problem, whole: ElementType) -> Iterator[Hypothesis]:
    """B holds the quantized integers themselves."""
    own, sample = problem.element_type, problem.wide
    a, b = (values_of(one, own).astype(np.float64) for one in (sample.a, sample.b))
    low, high = whole.limits
    inside = (b > low) & (b < high) & np.isfinite(a)
    a, b = a[inside], b[inside]
    if a.size < 3 or b.min() == b.max():
        return
    first, last = int(np.argmin(a)), int(np.argmax(a))
    slope = (a[last] - a[first]) / (b[last] - b[first]) if b[last] != b[first] else 0.0
    if not slope:
        return
    middle = float(np.median(b - a / slope))
    for zero_point in dict.fromkeys((round(middle), round(middle) - 1, round(middle) + 1)):
        bounds = _scale_bounds(a, b - zero_point)
        for scale in candidates(*bounds, FLOAT64):
            for way in WAYS:
                function = partial(
                    _as_integers, way=way, scale=scale, zero_point=zero_point, low=low, high=high, own=own
                )
                if _fits(problem, function):
                    details: dict[str, object] = {"scale": scale, "zero_point": zero_point, "rounding": way.name}
                    details["type"] = whole.name
                    text = f"{{b}} is {{a}} quantized to {whole} with scale {shown(scale)} and zero point {zero_point}"
                    yield Hypothesis("quantized", text, Elementwise(problem.pair, function), details, 2, 2.0)
                    return


def _scale_bounds(a: np.ndarray, multiples: np.ndarray) -> tuple[float, float]:
    """The bounds of the scale where each quotient is within half of its multiple."""
    sign = np.where(a < 0, -1.0, 1.0)
    size, times = np.abs(a), multiples * sign
    used = times > 0.5
    if not used.any():
        return 1.0, 0.0
    slack = 1 + 2.0**-22
    low = float((size[used] / (times[used] + 0.5)).max()) / slack
    high = float((size[used] / (times[used] - 0.5)).min()) * slack
    return low, high


def _as_integers(
    a: np.ndarray,
    way: Way,
    scale: float,
    zero_point: int,
    low: int,
    high: int,
    own: ElementType,
) -> np.ndarray:
    wide = a if own is FLOAT64 else a.astype(np.float32)
    multiples = _plain(way.round(wide, np.asarray(scale, wide.dtype)))
    return converted(np.clip(multiples + wide.dtype.type(zero_point), low, high), own)


def dequantized(problem: Problem) -> Iterator[Hypothesis]:
    """B is ``(A - zero point) * scale`` of integers in A."""
    of_a, of_b, own = problem.pair.a.element_type, problem.pair.b.element_type, problem.element_type
    if not is_float(own) or own not in FLOAT_LAYOUTS or not of_a.is_integer or of_b.is_integer:
        return
    sample = problem.wide
    a, b = (values_of(one, own).astype(np.float64) for one in (sample.a, sample.b))
    zeros = np.unique(a[b == 0])
    if zeros.size > 1 or not np.isfinite(b).all() or np.unique(a).size < 3:
        return
    first, last = int(np.argmin(a)), int(np.argmax(a))
    slope = (b[last] - b[first]) / (a[last] - a[first])
    zero_point = int(zeros[0]) if zeros.size else round(a[first] - b[first] / slope) if slope else 0
    used = (a != zero_point) & (b != 0)
    for scale in candidates(*_factor_bounds(a[used] - zero_point, b[used], own), own) if used.any() else ():
        function = partial(_with_scale, zero_point=zero_point, scale=scale)
        if _fits(problem, function):
            details: dict[str, object] = {"scale": scale, "zero_point": zero_point, "type": of_a.name}
            text = f"{{b}} is {{a}} dequantized with scale {shown(scale)} and zero point {zero_point}"
            yield Hypothesis("quantized", text, Elementwise(problem.pair, function), details, 2, 2.0)
            return


def _with_scale(values: np.ndarray, zero_point: int, scale: float) -> np.ndarray:
    return np.asarray((values - values.dtype.type(zero_point)) * values.dtype.type(scale))
