"""Real functions as formulas on vectors, in float32, float64 and pairs of float64. Pure.

In float64 the arguments are numbers of float32, and the relative error is below ``ERROR``. Special values come out as
IEEE 754 has them.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf, nan
from typing import Any

from eltwise.core.odd_rounding import ordered_sum, two_sum
from eltwise.kernels import coefficients, table_estimates
from eltwise.kernels.angle_estimates import acos, asin, atan, cos, sin, tan
from eltwise.kernels.pairs import Pair
from eltwise.kernels.polynomials import F, less, polynomial
from eltwise.kernels.precision import DOUBLE
from eltwise.kernels.vectors import F as N

ERROR = 2.0**-42
"""The relative error that no estimate reaches for an argument of float32; tests show that none has half of it."""

_FAR = 2.0**40
"""Beyond this number ``erfc`` is 0, and ``asinh`` and ``acosh`` are logarithms of the double."""

PAIR_ERROR = 2.0**-67
"""That of pairs, for arguments and results that are far from the least and the largest float64."""


def _at_least(x: F, limit: float) -> F:
    """The larger of each number and a limit; NaN stays."""
    return x.where("olt", limit, limit, x)


def _at_most(x: F, limit: float) -> F:
    """The lesser of each number and a limit; NaN stays."""
    return x.where("ogt", limit, limit, x)


def _exponential(x: N) -> tuple[N, N]:
    """``s``, a power of two, and ``p`` of exp(x) = s + s p; magnitudes above ``largest`` count as this number."""
    precision = x.precision
    rest: N = _at_most(_at_least(x, -precision.largest), precision.largest)
    whole, power = rest.split(1 / coefficients.LOG2[0])
    rest = less(rest, whole, precision.log2)
    return power, rest * polynomial(rest, "EXPM1")


def exp(x: F) -> F:
    """The exponential function."""
    if isinstance(x, Pair):
        power, part = table_estimates.exponential(x)
        total, lost = ordered_sum(power.constant(1.0), part.high)
        return Pair(*ordered_sum(total, lost + part.low)).scaled(power)
    power, part = _exponential(x)
    return power.fused(part, power)


def expm1(x: F) -> F:
    """The exponential function less 1."""
    if isinstance(x, Pair):
        power, part = table_estimates.exponential(x)
        return part.scaled(power) + Pair(*two_sum(power, power.constant(-1.0)))
    power, part = _exponential(x)
    return power.fused(part, power - 1.0)


def sigmoid(x: F) -> F:
    """``1 / (1 + exp(-x))``."""
    return 1.0 / (1.0 + exp(-x))


def tanh(x: F) -> F:
    """The hyperbolic tangent."""
    twice = expm1(abs(x) * -2.0)
    return (twice / (twice + 2.0)).signed_as(x)


def _log1p(u: F) -> F:
    """``log(1 + u)`` for ``u`` from 0 to 1."""
    if isinstance(u, Pair):
        return table_estimates.logarithm_beside_one(u)
    s = u / (u + 2.0)
    return s * polynomial(s * s, "LOG1P")


def softplus(x: F) -> F:
    """``log(1 + exp(x))``."""
    return _at_least(x, 0.0) + _log1p(exp(-abs(x)))


def elu(x: F, alpha: float) -> F:
    """``alpha * (exp(x) - 1)`` below 0."""
    return x.where("olt", 0.0, expm1(x) * alpha, x)


def celu(x: F, alpha: float) -> F:
    """``alpha * (exp(x / alpha) - 1)`` below 0."""
    return x.where("olt", 0.0, expm1(x / alpha) * alpha, x)


def selu(x: F, alpha: float, gamma: float) -> F:
    """``gamma`` times the elu."""
    return elu(x, alpha) * gamma  # The product of two numbers of 53 digits may be no float64.


def swish(x: F, alpha: float) -> F:
    """``x * sigmoid(alpha * x)``."""
    if not alpha:
        return x * 0.5
    return x.where("oeq", -inf if alpha > 0 else inf, -0.0, x / (1.0 + exp(x * -alpha)))


def mish(x: F) -> F:
    """``x * tanh(log(1 + exp(x)))``."""
    power = exp(_at_most(x, 40.0))
    square = power * (power + 2.0)
    return x.where("oeq", -inf, -0.0, x * (square / (square + 2.0)))


def log(x: F) -> F:
    """The natural logarithm of normal float64."""
    if isinstance(x, Pair):
        value = table_estimates.logarithm(x)
    else:
        mantissa, exponent, _scale = x.fraction()
        s = (mantissa - 1.0) / (mantissa + 1.0)
        value = exponent.fused(x.real(*coefficients.LOG2), s * polynomial(s * s, "LOG"))
    value = x.where("oeq", 0.0, -inf, x.where("oeq", inf, inf, value))
    return x.where("ult", 0.0, nan, value)


def _area(size: F, u: F) -> F:
    """``log(1 + u)`` for ``u`` from 0 on; of sizes whose squares are too large for it, the logarithm of the double."""
    scale = size.where("ogt", _FAR, size.real(*coefficients.LOG2), 0.0)
    if isinstance(u, Pair):
        return _log1p(size.where("ogt", _FAR, size - 1.0, u)) + scale
    value = log(size.where("ogt", _FAR, size, u + 1.0)) + scale
    return u.where("olt", 1.0, _log1p(u), value)


def asinh(x: F) -> F:
    """The inverse hyperbolic sine."""
    size, square = abs(x), x * x
    return _area(size, size + square / (1.0 + (square + 1.0).sqrt())).signed_as(x)


def acosh(x: F) -> F:
    """The inverse hyperbolic cosine."""
    above = x - 1.0
    return x.where("ult", 1.0, nan, _area(x, above + (above * (x + 1.0)).sqrt()))


def atanh(x: F) -> F:
    """The inverse hyperbolic tangent."""
    size = abs(x)
    ratio = (size + size) / (1.0 - size)
    value = _log1p(ratio)
    if not isinstance(x, Pair):
        value = ratio.where("olt", 1.0, value, log(ratio + 1.0))
    value = value * 0.5
    return size.where("ugt", 1.0, nan, value).signed_as(x)


def sinh(x: F) -> F:
    """The hyperbolic sine."""
    part = expm1(abs(x))
    return ((part + part / (part + 1.0)) * 0.5).signed_as(x)


def cosh(x: F) -> F:
    """The hyperbolic cosine."""
    power = exp(abs(x))
    return (power + 1.0 / power) * 0.5


def _scaled_erfc(t: F) -> F:
    """``exp(t * t) * erfc(t)`` for ``t`` from 0 to ``_FAR``."""
    one, other = t + 4.0, t + t + 1.0
    inverse = 1.0 / (one * other)
    return polynomial((t - 4.0) * other * inverse, "ERFC") * (one * inverse)


def erf(x: F) -> F:
    """The error function."""
    if isinstance(x, Pair):
        return table_estimates.error_function_in_pairs(abs(x.high)).signed_as(x)
    if x.precision is DOUBLE:
        return table_estimates.error_function(abs(x)).signed_as(x)
    size = _at_most(abs(x), 4.0)  # From here on it is 1.
    near, far = size * polynomial(size * size, "ERF"), polynomial(size - 2.5, "ERF_FAR")
    return size.where("olt", 1.0, near, far).signed_as(x)


def _tail(x: F) -> F:
    """The share of the normal distribution beyond a number's size."""
    power = exp(x * x * -0.5)
    if isinstance(x, Pair):
        return power * table_estimates.scaled_tail_in_pairs(abs(x.high))
    if x.precision is DOUBLE:
        return power * table_estimates.scaled_tail(abs(x))
    return power * _scaled_erfc(_at_most(abs(x) * coefficients.ROOT_HALF, _FAR)) * 0.5


def gelu(x: F) -> F:
    """``x * (1 + erf(x / sqrt(2))) / 2``."""
    share = _tail(x)
    return x.where("oeq", -inf, -0.0, x * x.where("olt", 0.0, share, 1.0 - share))


def gelu_tanh(x: F) -> F:
    """``x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x**3))) / 2``."""
    factor, cube = x.real(*coefficients.GELU_FACTOR), x.real(*coefficients.GELU_CUBE)
    power = exp(x * (x * x).fused(cube, factor))
    return x.where("oeq", -inf, -0.0, x / (power + 1.0))


def hard_sigmoid(x: F, alpha: float, beta: float) -> F:
    """``alpha * x + beta`` between 0 and 1: where the terms cancel, their sum is exact."""
    return _at_most(_at_least(x.fused(alpha, beta), 0.0), 1.0)


def hard_swish(x: F) -> F:
    """``x`` times ``x / 6 + 0.5`` between 0 and 1."""
    return x.where("ole", -3.0, -0.0, x.where("olt", 3.0, x * (x + 3.0) * x.real(*coefficients.SIXTH), x))


def hsigmoid(x: F) -> F:
    """``x / 6 + 0.5`` between 0 and 1."""
    return _at_most(_at_least(x + 3.0, 0.0), 6.0) * x.real(*coefficients.SIXTH)


def leaky_relu(x: F, alpha: float) -> F:
    """``alpha * x`` below 0."""
    return x.where("olt", 0.0, x * alpha, x)


def softsign(x: F) -> F:
    """``x / (1 + abs(x))``."""
    size = abs(x)
    return size.where("oeq", inf, 1.0, size / (size + 1.0)).signed_as(x)


FORMULAS: dict[str, Callable[..., Any]] = {
    function.__name__: function
    for function in (
        *(acos, acosh, asin, asinh, atan, atanh, celu, cos, cosh, elu, erf, exp, gelu, gelu_tanh, hard_sigmoid),
        *(hard_swish, hsigmoid, leaky_relu, log, mish, selu, sigmoid, sin, sinh, softplus, softsign, swish),
        *(tan, tanh),
    )
}


EXACT_IN_SINGLE = ("hard_swish", "hsigmoid", "softsign")
EXACT_IN_DOUBLE = ("hard_swish", "hsigmoid", "leaky_relu")
TINY = 2.0**-23
"""Functions that need no more digits, in float32 for arguments of 16 bits and in float64 for those of float32.

Rounded to odd, and once more to the type, an estimate is the result, but for arguments below ``TINY`` other than 0.
"""


def is_hard_sigmoid_inexact(x: N, alpha: float, beta: float) -> Any:
    """Flags where ``alpha * x + beta`` may be no float64, which has so many digits that it may be rounded again."""
    product = x * alpha
    total = product + beta
    return (abs(total - beta - product) + abs(total - product - beta)).flags("one", 0.0)
