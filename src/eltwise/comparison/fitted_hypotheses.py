"""Hypotheses with a number taken from the data: B is A times or divided by one, plus one, or plus and then minus one.

Each pair of elements bounds the number, since B was rounded; all bounds together leave a short interval. The simplest
number in it, and its neighbours among float32 and float64 numbers, are then tried bit for bit.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import NamedTuple, TypeVar

import numpy as np

from eltwise.comparison.hypotheses import BITS_OF_A_NUMBER, MOST_OF, Hypothesis, Problem, Sample, agrees, computed
from eltwise.comparison.numbers import is_float, shown, values_of
from eltwise.comparison.pairs import Pair
from eltwise.core.dtypes import FLOAT64, ElementType

T = TypeVar("T")

_LARGEST_FACTOR = 1 << 20
_MOST_PAIRS = 4096
_SLACK = 2.0**-50
_NEIGHBOURS = 4
"""So many numbers on either side of the middle of an interval are tried: its ends are rounded."""

_LEAST_DIGITS, _MOST_CANCELLED, _STEP_BITS = 24, 0.9, 2.0
"""Of types of fewer digits the last one is a scale that is chosen, too; what fits less is no cancellation."""

_NOISE_BITS = 4
"""A factor or an offset that changes no more than so many of the last bits is not told from noise."""


class _Number(NamedTuple):
    """A number that is calculated with, and how."""

    value: float
    function: np.ufunc
    is_wide: bool = False
    """Whether floats are calculated with in float64, whatever their type."""

    def predict(self, values: np.ndarray, pair: Pair) -> np.ndarray:
        """Calculate with each element of A, as B holds the results."""
        wide = values.astype(np.float64) if self.is_wide else values_of(values, pair.element_type)
        return pair.as_in_b(_calculated(values, self.value, self.function, pair.element_type, wide))

    @property
    def text(self) -> str:
        """Where it is calculated, if it is not in the type of the elements."""
        return ", computed in float64" if self.is_wide else ""

    @property
    def details(self) -> dict[str, object]:
        """The same."""
        return {"computed_in": "float64"} if self.is_wide else {}


def scaled(problem: Problem) -> Iterator[Hypothesis]:
    """B is A times a constant."""
    predict = partial(_Number.predict, pair=problem.pair)
    best = best_fit(_factors(problem, *_pairs(problem)), lambda values, one: predict(one, values), problem.sample)
    if best is not None:
        number, is_division = best.value, best.function is np.divide
        factor = 1 / number if is_division else number
        is_power = abs(math.frexp(factor)[0]) == 0.5
        is_exact_power = is_power and factor > 0 and is_float(problem.element_type)
        factor_text = f"2^{math.frexp(factor)[1] - 1}" if is_exact_power else shown(factor)
        details: dict[str, object] = {"factor": factor, "power_of_two": is_power} | best.details
        text = f"{{b}} is {{a}} times {factor_text}"
        if is_division and not is_power:
            details |= {"arithmetic": "division", "divisor": number}
            text = f"{{b}} is {{a}} divided by {shown(number)}"
        text += best.text + _wrapping(problem, lambda a: a * factor)
        yield computed("scaled", text, partial(predict, best), details, BITS_OF_A_NUMBER)


def offset(problem: Problem) -> Iterator[Hypothesis]:
    """B is A plus a constant."""
    predict = partial(_Number.predict, pair=problem.pair)
    best = best_fit(_offsets(problem, *_pairs(problem)), lambda values, one: predict(one, values), problem.sample)
    if best is not None:
        text, details = f"{{b}} is {{a}} plus {shown(best.value)}{best.text}", {"offset": best.value} | best.details
        text += _wrapping(problem, lambda a: a + best.value)
        yield computed("offset", text, partial(predict, best), details, BITS_OF_A_NUMBER)


def _wrapping(problem: Problem, calculate: Callable[[np.ndarray], np.ndarray]) -> str:
    """Say of results of integers that they wrap around, if some are beyond the type."""
    element_type = problem.element_type
    if is_float(element_type):
        return ""
    (low, high), results = element_type.limits, calculate(problem.sample.a.astype(np.object_))
    return f", wrapping around in {element_type}" if ((results < low) | (results > high)).any() else ""


def best_fit(numbers: Iterable[T], predict: Callable[[np.ndarray, T], np.ndarray], sample: Sample) -> T | None:
    """The first of the numbers with which a function of A gives most of B; None where all give less than half of it.

    Those that rounding hardly tells apart are not alike: they lie on either side of a tie.
    """
    best: tuple[float, T] | None = None
    for number in numbers:
        share = float(agrees(predict(sample.a, number), sample.b, sample.element_type).mean())
        if best is None or share > best[0]:
            best = share, number
        if share == 1:
            break
    return best[1] if best is not None and best[0] > MOST_OF else None


def cancelled(problem: Problem) -> Iterator[Hypothesis]:
    """B is A plus a larger number, minus that number: below it the last digit is worth half as much as above it."""
    element_type, (x, y) = problem.element_type, _pairs(problem)
    types = {problem.pair.a.element_type, problem.pair.b.element_type}
    if not y.size or not is_float(element_type) or element_type.digits < _LEAST_DIGITS or types != {element_type}:
        return
    fractions, exponents = np.frexp(y)
    whole = np.ldexp(fractions, 53).astype(np.int64)
    step = float(np.ldexp((whole & -whole).astype(np.float64), exponents - 53).min())
    larger = [step * 2.0**element_type.digits]
    if step <= 2.0 ** (1 - element_type.digits):  # Larger steps of one size are those of a scale that was chosen.
        larger += [larger[0] / 2, larger[0] * 0.75]
    elif (y > 0).all() or (y < 0).all():
        return
    for number in sorted(larger, key=lambda one: abs(math.log2(one))):
        for first, second, signs in ((np.add, np.subtract, "+-"), (np.subtract, np.add, "-+")):
            predict = partial(_calculated_twice, number=number, functions=(first, second), element_type=element_type)
            right = agrees(predict(problem.sample.a), problem.sample.b, element_type)
            if right.mean() >= _MOST_CANCELLED and np.median(np.abs(x)) <= number / 2:
                text = f"{{b}} is ({{a}} {signs[0]} {shown(number)}) {signs[1]} {shown(number)}"
                text += f", as left where numbers near {shown(number)} cancel out"
                yield computed("cancellation", text, predict, {"scale": step}, BITS_OF_A_NUMBER, _STEP_BITS)
                return


def _pairs(problem: Problem) -> tuple[np.ndarray, np.ndarray]:
    """The values of a sample where both are finite and, of floats, no zeros."""
    element_type, sample = problem.element_type, problem.wide
    if element_type.numpy is None or element_type.kind == "boolean" or element_type.bits < 8:
        return np.zeros(0), np.zeros(0)
    a, b = sample.x[: sample.count], sample.y[: sample.count]
    used = np.isfinite(a) & np.isfinite(b) & (a != 0) & (b != 0)
    return a[used][:_MOST_PAIRS], b[used][:_MOST_PAIRS]


def _factors(problem: Problem, a: np.ndarray, b: np.ndarray) -> Iterator[_Number]:
    """The factors that all pairs allow, and the divisors; 0, 1, -1 and what is not told from noise are none."""
    if a.size and is_float(problem.element_type):
        element_type = problem.pair.digits_of_b
        low, high = factor_bounds(a, b, element_type)
        if not low <= high or low <= 0 <= high:
            return
        nearly_one = 1 + 2.0 ** (_NOISE_BITS - element_type.digits)
        for is_wide in _precisions(problem):
            for pair in itertools.zip_longest(candidates(low, high), candidates(1 / high, 1 / low)):
                for one, function in zip(pair, (np.multiply, np.divide), strict=True):
                    if one is not None and max(abs(one), 1 / abs(one)) >= nearly_one:
                        yield _Number(one, function, is_wide)
    elif a.size:
        for factor in (_quotient(a, b), *_modular_quotient(problem)):
            if 1 < abs(factor) <= _LARGEST_FACTOR and factor == int(factor):
                yield _Number(int(factor), np.multiply)


def _precisions(problem: Problem) -> tuple[bool, ...]:
    """Whether floats may be calculated with in float64: they are, and, of narrower types, or they are not."""
    return (False,) if problem.element_type is FLOAT64 else (False, True)


def _quotient(a: np.ndarray, b: np.ndarray) -> float:
    """The factor of the largest integer."""
    index = int(np.argmax(np.abs(a)))
    return float(b[index] / a[index])


def _modular_quotient(problem: Problem) -> Iterator[int]:
    """The factor of the first odd integer, modulo 2^n, which gives the same where results wrap around."""
    sample, bits = problem.wide, problem.element_type.bits
    odd = np.flatnonzero(sample.a[: sample.count] & 1)[:1]
    for x, y in zip(sample.a[odd].tolist(), sample.b[odd].tolist(), strict=True):
        yield _smallest(y * pow(x, -1, 1 << bits), bits)


def _smallest(number: int, bits: int) -> int:
    """The number of the smallest size that is the same modulo 2^n.

    >>> _smallest(-156, 8), _smallest(200, 8)
    (100, -56)
    """
    half = 1 << (bits - 1)
    return half - (half - number) % (2 * half)


def _offsets(problem: Problem, a: np.ndarray, b: np.ndarray) -> Iterator[_Number]:
    """The offsets that all pairs allow; what is not told from noise is none."""
    if a.size and is_float(problem.element_type):
        half = half_ulps(b, problem.pair.digits_of_b)
        step = b - a
        lost = step - b
        rest = (b - (step - lost)) - (a + lost)  # What float64 rounds off the difference, exactly.
        low, high = float((step + (rest - half)).max()), float((step + (rest + half)).min())
        slack, noise = float(np.spacing(max(abs(low), abs(high)))), float(half.max()) * 2**_NOISE_BITS
        for is_wide in _precisions(problem):
            numbers = (one for one in candidates(low - slack, high + slack) if abs(one) > noise)
            yield from (_Number(one, np.add, is_wide) for one in numbers)
    elif a.size:
        bits, wide = problem.element_type.bits, problem.wide
        yield _Number(_smallest(int(wide.b[0]) - int(wide.a[0]), bits), np.add)


def _calculated(
    values: np.ndarray, number: float, function: np.ufunc, element_type: ElementType, wide: np.ndarray
) -> np.ndarray:
    """Calculate with a number and values: of floats as ``wide`` has them, of integers in their type, which wraps."""
    if not is_float(element_type):
        bits = np.dtype(f"u{values.itemsize}").type(int(number) % (1 << (8 * values.itemsize)))
        return np.asarray(function(values.view(bits.dtype), bits)).view(values.dtype)
    return np.asarray(function(wide, wide.dtype.type(number))).astype(element_type.storage)


def _calculated_twice(
    values: np.ndarray, number: float, functions: tuple[np.ufunc, np.ufunc], element_type: ElementType
) -> np.ndarray:
    """Calculate with a number by one function, and by another with the result."""
    for function in functions:
        values = _calculated(values, number, function, element_type, values_of(values, element_type))
    return values


def half_ulps(b: np.ndarray, element_type: ElementType) -> np.ndarray:
    """Half the distance to the next number."""
    return np.asarray(np.ldexp(0.5, element_type.last_digits(b)))


def factor_bounds(a: np.ndarray, b: np.ndarray, element_type: ElementType) -> tuple[float, float]:
    """Between which numbers a factor lies that makes each ``b`` of each ``a``, after rounding."""
    with np.errstate(all="ignore"):
        half = half_ulps(b, element_type) * (1 + 2.0**-20)
        one, other = (b - half) / a, (b + half) / a
        low, high = float(np.minimum(one, other).max()), float(np.maximum(one, other).min())
    return low - abs(low) * _SLACK, high + abs(high) * _SLACK


def candidates(low: float, high: float) -> Iterator[float]:
    """Numbers of an interval but 0: of few decimals and their reciprocals, of float32, in the middle, and the ends."""
    if not (math.isfinite(low) and math.isfinite(high) and low <= high) or low <= 0 <= high:
        return
    middle = low + (high - low) / 2  # Half of the smallest number is 0.
    decimals = [float(f"{middle:.{digits}g}") for digits in range(1, 17)]
    reciprocals = [1 / float(f"{1 / middle:.{digits}g}") for digits in range(1, 17)]
    with np.errstate(all="ignore"):
        nearest = np.float32(middle)
        singles = [float(nearest), *(float(np.nextafter(nearest, np.float32(end))) for end in (np.inf, -np.inf))]
        steps = np.arange(-_NEIGHBOURS, _NEIGHBOURS + 1) * np.spacing(middle)
        doubles = [*(middle + step for step in sorted(steps.tolist(), key=abs)), low, high]
    ordered = (*decimals[:6], *reciprocals[:4], *singles, *decimals[6:], *reciprocals[4:], *doubles)
    yield from dict.fromkeys(one for one in ordered if low <= one <= high)
