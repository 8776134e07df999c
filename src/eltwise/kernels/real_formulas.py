"""Real functions to about 180 digits, for elements whose rounding an estimate does not decide. Pure.

The formulas are of ``Soft`` numbers, which round to odd: results keep to the side of a tie on which the exact value is.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import factorial, isqrt
from math import log as natural_log
from typing import Any

from eltwise.kernels.soft_code import R
from eltwise.kernels.soft_floats import DIGITS, ZERO, Soft, of_float, pi_digits, soft

_GUARD = 64
"""How many digits the integers that constants are computed in have beyond those of the results."""


def ratio(numerator: int, denominator: int = 1) -> Soft:
    """A rational number."""
    return soft(numerator) / soft(denominator)


@cache
def _log2() -> Soft:
    unit = 1 << DIGITS + _GUARD
    return soft(sum((unit >> n) // n for n in range(1, DIGITS + _GUARD)), -DIGITS - _GUARD)


@cache
def _pi() -> Soft:
    return soft(pi_digits(DIGITS + _GUARD), -DIGITS - _GUARD)


ONE, TWO, HALF = soft(1), soft(2), soft(1, -1)


@cache
def _inverse_factorials(first: int, step: int, count: int) -> tuple[Soft, ...]:
    """``1 / first!``, ``1 / (first + step)!`` and so on; the signs alternate for a negative step."""
    sign = -1 if step < 0 else 1
    return tuple(ratio(sign**n, factorial(first + abs(step) * n)) for n in range(count))


@cache
def _inverse_odds(step: int, count: int) -> tuple[Soft, ...]:
    """``1``, ``1 / (1 + step)`` and so on; the signs alternate for a negative step."""
    return tuple(ratio((-1 if step < 0 else 1) ** n, 1 + abs(step) * n) for n in range(count))


def _exponential(x: R) -> tuple[R, Any]:
    """``p`` and ``n`` of ``exp(x) = (1 + p) 2**n``."""
    power = x.nearest(natural_log(2))
    rest = x - x.whole(power) * x.constant(_log2())
    return rest * rest.polynomial(_inverse_factorials(1, 1, 36)), power


def exp(x: R) -> R:
    """The exponential function."""
    part, power = _exponential(x)
    return (part + x.constant(ONE)).scaled(power)


def expm1(x: R) -> R:
    """The exponential function less 1."""
    part, power = _exponential(x)
    return part.scaled(power) + (x.constant(ONE).scaled(power) - x.constant(ONE))


def sigmoid(x: R) -> R:
    """``1 / (1 + exp(-x))``."""
    return x.constant(ONE) / (x.constant(ONE) + exp(-x))


def tanh(x: R) -> R:
    """The hyperbolic tangent."""
    twice = expm1(x + x)
    return twice / (twice + x.constant(TWO))


def _log1p_small(u: R) -> R:
    """``log(1 + u)`` for ``u`` from 0 to 1: with ``s = u / (2 + u)`` the sum of ``2 s**(2 n + 1) / (2 n + 1)``."""
    s = u / (u + u.constant(TWO))
    return (s + s) * (s * s).polynomial(_inverse_odds(2, 62))


def softplus(x: R) -> R:
    """``log(1 + exp(x))``."""
    size = x.where_below(0.0, x, -x)
    zero = x - x
    return x.where_below(0.0, zero, x) + _log1p_small(exp(size))


def elu(x: R, alpha: float) -> R:
    """``alpha * (exp(x) - 1)`` below 0."""
    return x.where_below(0.0, expm1(x) * x.constant(of_float(alpha)), x)


def celu(x: R, alpha: float) -> R:
    """``alpha * (exp(x / alpha) - 1)`` below 0."""
    factor = x.constant(of_float(alpha))
    return x.where_below(0.0, expm1(x / factor) * factor, x)


def selu(x: R, alpha: float, gamma: float) -> R:
    """``gamma`` times the elu."""
    return elu(x, alpha) * x.constant(of_float(gamma))


def swish(x: R, alpha: float) -> R:
    """``x * sigmoid(alpha * x)``."""
    return x * sigmoid(x * x.constant(of_float(alpha)))


def mish(x: R) -> R:
    """``x * tanh(log(1 + exp(x)))``."""
    power = exp(x)
    square = power * (power + x.constant(TWO))
    return x * (square / (square + x.constant(TWO)))


def log(x: R) -> R:
    """The natural logarithm: of the estimate's error ``w`` the series."""
    mantissa, power = x.normalised()
    near = mantissa.approximately("log")
    error = mantissa * exp(-near) - x.constant(ONE)
    series = error * error.polynomial(tuple(ratio((-1) ** n, n + 1) for n in range(5)))
    return x.whole(power) * x.constant(_log2()) + (near + series)


_FAR = 2.0**400
"""From here on 1 beside a square has no digit, and the square may be beyond float64, of which roots are begun."""


def _log1p(u: R) -> R:
    """``log(1 + u)`` for ``u`` from 0 on."""
    return u.where_below(1.0, _log1p_small(u), log(u + u.constant(ONE)))


def _sqrt(x: R) -> R:
    """The square root, by two steps of Newton's method."""
    root = x.approximately("sqrt")
    for _step in range(2):
        root = root + (x - root * root) / (root + root)
    return root


def _size(x: R) -> R:
    return x.where_below(0.0, -x, x)


def _signed(value: R, x: R) -> R:
    """A value with the sign of ``x``."""
    return x.where_below(0.0, -value, value)


def asinh(x: R) -> R:
    """The inverse hyperbolic sine."""
    size, one = _size(x), x.constant(ONE)
    near = size.where_below(_FAR, size, one)
    square = near * near
    value = _log1p(near + square / (one + _sqrt(square + one)))
    return _signed(size.where_below(_FAR, value, log(size + size)), x)


def acosh(x: R) -> R:
    """The inverse hyperbolic cosine."""
    near = x.where_below(_FAR, x, x.constant(TWO))
    above = near - x.constant(ONE)
    value = _log1p(above + _sqrt(above * (near + x.constant(ONE))))
    return x.where_below(_FAR, value, log(x + x))


def atanh(x: R) -> R:
    """The inverse hyperbolic tangent."""
    size = _size(x)
    return _signed(_log1p((size + size) / (x.constant(ONE) - size)) * x.constant(HALF), x)


def sinh(x: R) -> R:
    """The hyperbolic sine."""
    part = expm1(_size(x))
    return _signed((part + part / (part + x.constant(ONE))) * x.constant(HALF), x)


def cosh(x: R) -> R:
    """The hyperbolic cosine."""
    power = exp(x)
    return (power + x.constant(ONE) / power) * x.constant(HALF)


_FAR = 5.0
"""From here on the error function is computed from a continued fraction of ``_FRACTIONS`` terms."""

_FRACTIONS = 120


@cache
def _erf_terms() -> tuple[Soft, ...]:
    """``2**n / (2 n + 1)!!`` as long as they count for arguments up to ``_FAR``."""
    terms, share = [ONE], ONE
    while not terms[1:] or float(share) > 2.0**-DIGITS:
        factor = ratio(2, 2 * len(terms) + 1)
        terms.append(terms[-1] * factor)
        share = share * factor * of_float(_FAR * _FAR)
    return tuple(terms)


@cache
def _inverse_root_pi() -> Soft:
    return ONE / soft(isqrt(pi_digits(2 * DIGITS)), -DIGITS)


def _erf_series(x: R, square: R) -> R:
    """The error function of a number and its square: a series of terms of one sign."""
    twice = (x + x) * x.constant(_inverse_root_pi())
    return twice * exp(-square) * square.polynomial(_erf_terms())


def _erfc(size: R, square: R) -> R:
    """What a large number's error function lacks of 1."""
    return exp(-square) * size.constant(_inverse_root_pi()) / size.continued(_FRACTIONS)


def erf(x: R) -> R:
    """The error function."""
    size, square = _size(x), x * x
    return size.either(
        _FAR,
        lambda: _erf_series(x, square),
        lambda: _signed(x.constant(ONE) - _erfc(size, square), x),
    )


@cache
def _root_half() -> Soft:
    return soft(isqrt(1 << 2 * DIGITS + 2 * _GUARD - 1), -DIGITS - _GUARD)


def gelu(x: R) -> R:
    """``x * (1 + erf(x / sqrt(2))) / 2``."""
    half, scaled, one = x * x.constant(HALF), x * x.constant(_root_half()), x.constant(ONE)
    size, square = _size(scaled), x * half

    def far() -> R:
        rest = _erfc(size, square)
        return x.where_below(0.0, rest, x.constant(TWO) - rest)

    return half * size.either(_FAR, lambda: one + _erf_series(scaled, square), far)


@cache
def _gelu_factor() -> Soft:
    """``-sqrt(8 / pi)``."""
    return soft(-isqrt(8 << 2 * (DIGITS + _GUARD))) * _inverse_root_pi() * soft(1, -DIGITS - _GUARD)


def gelu_tanh(x: R) -> R:
    """``x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x**3))) / 2``."""
    argument = x * (x.constant(ONE) + x * x * x.constant(ratio(44715, 1000000))) * x.constant(_gelu_factor())
    return x / (x.constant(ONE) + exp(argument))


def _series(x: R) -> tuple[R, R]:
    """The sine and the cosine of numbers up to pi / 2."""
    square = x * x
    return x * square.polynomial(_inverse_factorials(1, -2, 27)), square.polynomial(_inverse_factorials(0, -2, 27))


def _circular(x: R, quarters: int) -> R:
    """The sine of the size of ``x`` and so many quarters of a turn."""
    turn, quadrant = x.reduced()
    size = _size(x)
    sine, cosine = _series(size.where_below(0.5, size, turn * x.constant(_pi() * HALF)))
    return sine.by_quadrant(quadrant, quarters, cosine)


def sin(x: R) -> R:
    """The sine."""
    return _signed(_circular(x, 0), x)


def cos(x: R) -> R:
    """The cosine."""
    return _circular(x, 1)


def tan(x: R) -> R:
    """The tangent."""
    return _signed(_circular(x, 0) / _circular(x, 1), x)


def atan(x: R) -> R:
    """The inverse tangent: that of a near number, and the series of the rest."""
    near = x.approximately("atan")
    sine, cosine = _series(near)
    rest = (x * cosine - sine) / (cosine + x * sine)
    return near + rest * (rest * rest).polynomial(_inverse_odds(-2, 2))


def asin(x: R) -> R:
    """The inverse sine."""
    one = x.constant(ONE)
    return atan(x / (one + _sqrt((one - x) * (one + x)))) * x.constant(TWO)


def acos(x: R) -> R:
    """The inverse cosine."""
    one = x.constant(ONE)
    return atan(_sqrt((one - x) / (one + x))) * x.constant(TWO)


def _clamped(value: R) -> R:
    """What is between 0 and 1, and the nearer of both for the rest."""
    return value.where_below(0.0, value.constant(ZERO), value.where_below(1.0, value, value.constant(ONE)))


def hard_sigmoid(x: R, alpha: float, beta: float) -> R:
    """``alpha * x + beta`` between 0 and 1."""
    return _clamped(x * x.constant(of_float(alpha)) + x.constant(of_float(beta)))


def hsigmoid(x: R) -> R:
    """``x / 6 + 0.5`` between 0 and 1."""
    return _clamped((x + x.constant(soft(3))) / x.constant(soft(6)))


def hard_swish(x: R) -> R:
    """``x`` times ``x / 6 + 0.5`` between 0 and 1."""
    value = x * (x + x.constant(soft(3))) / x.constant(soft(6))
    return x.where_below(-3.0, x.constant(ZERO), x.where_below(3.0, value, x))


def leaky_relu(x: R, alpha: float) -> R:
    """``alpha * x`` below 0."""
    return x.where_below(0.0, x * x.constant(of_float(alpha)), x)


def softsign(x: R) -> R:
    """``x / (1 + abs(x))``."""
    return x / (x.constant(ONE) + _size(x))


FORMULAS: dict[str, Callable[..., Any]] = {
    function.__name__: function
    for function in (
        *(acos, acosh, asin, asinh, atan, atanh, celu, cos, cosh, elu, erf, exp, gelu, gelu_tanh, hard_sigmoid),
        *(hard_swish, hsigmoid, leaky_relu, log, mish, selu, sigmoid, sin, sinh, softplus, softsign, swish),
        *(tan, tanh),
    )
}
