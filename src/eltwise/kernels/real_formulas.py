"""Real functions to about 180 digits, for elements whose rounding an estimate does not decide. Pure.

The formulas are of ``Real`` numbers, which round to odd: results keep to the side of a tie on which the exact value is.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import factorial, log
from typing import TypeVar

from eltwise.kernels.soft_floats import DIGITS, Real, Soft, soft

R = TypeVar("R", bound=Real)

_GUARD = 64
"""How many digits the integers that constants are computed in have beyond those of the results."""


def ratio(numerator: int, denominator: int = 1) -> Soft:
    """A rational number."""
    return soft(numerator) / soft(denominator)


def of_float(value: float) -> Soft:
    """The number that a float is."""
    numerator, denominator = float(value).as_integer_ratio()
    return soft(numerator) / soft(denominator)


@cache
def _log2() -> Soft:
    unit = 1 << DIGITS + _GUARD
    return soft(sum((unit >> n) // n for n in range(1, DIGITS + _GUARD)), -DIGITS - _GUARD)


ONE, TWO = soft(1), soft(2)


@cache
def _inverse_factorials(first: int, step: int, count: int) -> tuple[Soft, ...]:
    """``1 / first!``, ``1 / (first + step)!`` and so on; the signs alternate for a negative step."""
    sign = -1 if step < 0 else 1
    return tuple(ratio(sign**n, factorial(first + abs(step) * n)) for n in range(count))


@cache
def _inverse_odds(step: int, count: int) -> tuple[Soft, ...]:
    """``1``, ``1 / (1 + step)`` and so on."""
    return tuple(ratio(1, 1 + step * n) for n in range(count))


def _exponential(x: R) -> tuple[R, object]:
    """``p`` and ``n`` of ``exp(x) = (1 + p) 2**n``."""
    power = x.nearest(log(2))
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


FORMULAS: dict[str, Callable[..., Soft]] = {
    "celu": celu,
    "elu": elu,
    "exp": exp,
    "mish": mish,
    "selu": selu,
    "sigmoid": sigmoid,
    "softplus": softplus,
    "swish": swish,
    "tanh": tanh,
}
