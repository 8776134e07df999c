"""Values of real functions at near points, which estimates in pairs of float64 begin with: tables of float64. Pure.

They are computed as integers, multiples of ``2**-_DIGITS``, when the first kernel needs them. A table has a power of
two of rows; the row of a number is that modulo their count, and rows that no estimate asks for are 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from itertools import accumulate
from math import isqrt
from typing import TypeAlias

from eltwise.kernels.soft_floats import pi_digits

Row: TypeAlias = tuple[float, ...]
Table: TypeAlias = tuple[Row, ...]

POWERS = 256
"""Into how many parts an octave is divided for powers of two."""

LOGARITHMS = 256
"""How many points there are between 1 and 2 for logarithms."""

ANGLES = 128
"""How many points there are between 0 and 1 for sines, cosines and inverse tangents."""

ERRORS = 64
"""How many points there are between 0 and 1 for the error function."""

LAST_ERROR = 7
"""The error function is 1 from here on, to 70 digits."""

TAILS = 32
"""How many points there are in an octave for tails of the normal distribution, whose points are 1 before octaves'."""

LAST_TAIL = 40
"""Up to here there are tails."""

_DIGITS = 256
_ONE = 1 << _DIGITS


def _parts(number: int) -> tuple[float, float]:
    """A multiple of the unit as the sum of two float64; quotients of integers are rounded once."""
    high = number / _ONE
    numerator, denominator = high.as_integer_ratio()
    return high, (number - (numerator << _DIGITS) // denominator) / _ONE


def _table(count: int, rows: Mapping[int, Sequence[float]]) -> Table:
    by_number = {number % count: tuple(row) for number, row in rows.items()}
    empty = (0.0,) * len(by_number[0])
    return tuple(by_number.get(number, empty) for number in range(count))


def _product(a: int, b: int) -> int:
    return a * b >> _DIGITS


def _odd_series(numerator: int, denominator: int, sign: int) -> int:
    """``z + sign z**3 / 3 + z**5 / 5`` and so on for a quotient: its inverse hyperbolic tangent, or tangent."""
    power, total, n = _ONE * numerator // denominator, 0, 0
    while power:
        total += sign**n * power // (2 * n + 1)
        power = power * numerator**2 // denominator**2
        n += 1
    return total


@cache
def powers() -> Table:
    """The parts of ``2**(n / POWERS) - 1`` for ``n`` from 0 to ``POWERS - 1``."""
    argument, step, term, n = 2 * _odd_series(1, 3, 1) // POWERS, 0, _ONE, 0
    while term:
        step, n = step + term, n + 1
        term = _product(term, argument) // n
    values = accumulate([_ONE, *[step] * (POWERS - 1)], _product)
    return _table(POWERS, {number: _parts(value - _ONE) for number, value in enumerate(values)})


@cache
def logarithms() -> Table:
    """A float64 ``c`` next to ``LOGARITHMS / n``, from sqrt(1/2) to sqrt(2), the parts of ``-log(c)``, and 0."""
    first, last = int(LOGARITHMS * 0.707), int(LOGARITHMS * 1.415) + 1
    value = sum(-2 * _odd_series(1, 2 * number + 1, 1) for number in range(first, LOGARITHMS))
    rows = {}
    for number in range(first, last + 1):
        numerator, denominator = (LOGARITHMS / number).as_integer_ratio()
        error = numerator * number * _ONE // (denominator * LOGARITHMS) - _ONE
        square = _product(error, error)
        less = error - square // 2 + _product(square, error) // 3
        rows[number] = (LOGARITHMS / number, *_parts(value - less), 0.0)
        value += 2 * _odd_series(1, 2 * number + 1, 1)
    return _table(LOGARITHMS, rows)


@cache
def sines() -> Table:
    """The parts of the sine and of the cosine of ``n / ANGLES``, from -pi / 4 to pi / 4."""
    terms, n = [_ONE], 0
    while terms[-1]:
        n += 1
        terms.append(terms[-1] // (ANGLES * n))
    sine, cosine = (sum((-1) ** n * term for n, term in enumerate(terms[first::2])) for first in (1, 0))
    a, b, rows = 0, _ONE, {}
    for number in range(ANGLES):
        rows[number], rows[-number] = (*_parts(a), *_parts(b)), (*_parts(-a), *_parts(b))
        a, b = _product(a, cosine) + _product(b, sine), _product(b, cosine) - _product(a, sine)
    return _table(2 * ANGLES, rows)


@cache
def arctangents() -> Table:
    """The parts of the inverse tangent of ``n / ANGLES``, from 0 to 1, and ``2 * ANGLES`` rows later of the inverse."""
    angle, right, rows = 0, pi_digits(_DIGITS) // 2, {}
    for number in range(ANGLES + 1):
        rows[number], rows[number + 2 * ANGLES] = _parts(angle), _parts(right - angle)
        angle += _odd_series(ANGLES, ANGLES**2 + number * (number + 1), -1)
    return _table(4 * ANGLES, rows)


@cache
def errors() -> Table:
    """The 11 first coefficients of the error function's series about ``n / ERRORS``; then what the first three lack."""
    shift, value, rows = ERRORS.bit_length() - 1, 0, {}
    slope = isqrt((4 << 3 * _DIGITS) // pi_digits(_DIGITS))
    for number in range(ERRORS * LAST_ERROR + 1):
        series = [value, slope]
        for n in range(_DIGITS // shift):  # The second derivative is -2 x times the first one.
            first, second = (n + 1) * number * series[n + 1] // ERRORS, n * series[n]
            series.append(-2 * (first + second) // ((n + 1) * (n + 2)))
        rows[number] = _coefficients(series[:11])
        value = sum(each >> shift * n for n, each in enumerate(series))
        slope = sum(n * each >> shift * (n - 1) for n, each in enumerate(series[1:], 1))
    return _table(512, rows)


@cache
def tails() -> Table:
    """A point ``x`` and the 12 first coefficients of ``exp(x * x / 2)`` times the normal distribution's share beyond.

    Then there is what the first three coefficients lack. The rows are of ``x + 1`` by its exponent and first digits.
    """
    octave = (LAST_TAIL + 1).bit_length() - 1
    last = TAILS * octave + (LAST_TAIL + 1) * TAILS // 2**octave - TAILS
    factor = isqrt((1 << 3 * _DIGITS) // (2 * pi_digits(_DIGITS)))
    point, rows = _middle(last), {}
    value = point
    for n in range(200, 0, -1):
        value = point + n * _ONE * _ONE // value
    value = factor * _ONE // value
    for number in range(last, -1, -1):
        series = [value, _product(point, value) - factor]
        for n in range(1, 4 * LAST_TAIL):  # The derivative is x times the value, less a constant.
            series.append((_product(point, series[n]) + series[n - 1]) // (n + 1))
        rows[number] = (point / _ONE, *_coefficients(series[:12]))
        step, value = _middle(number - 1) - point, 0
        for each in reversed(series):
            value = _product(value, step) + each
        point += step
    return _table(256, rows)


def _coefficients(numbers: Sequence[int]) -> Row:
    return (*(number / _ONE for number in numbers), *(_parts(number)[1] for number in numbers[:3]))


def _middle(number: int) -> int:
    """The point of a row of tails; that of the first one is 0, so that no small number loses digits beside it."""
    octave, rest = divmod(number, TAILS)
    return ((2 * (TAILS + rest) + 1 << octave + _DIGITS) // (2 * TAILS)) - _ONE if number else 0
