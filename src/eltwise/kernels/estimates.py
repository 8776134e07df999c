"""Real functions in float64, with a relative error below ``ERROR``: formulas on vectors. Pure.

Arguments are numbers of float32; results may lie beyond it. Special values come out as IEEE 754 has them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf, log, pi, sqrt

from eltwise.kernels import coefficients
from eltwise.kernels.doubles import Vector

ERROR = 2.0**-42
"""The relative error that no estimate reaches for an argument of float32; tests show that none has half of it."""

_LOG2 = log(2)
_LARGEST = 708.0
"""Up to here exponential functions are normal float64."""


def polynomial(x: Vector, numbers: Sequence[float]) -> Vector:
    """The value of a polynomial whose coefficients begin with the lowest."""
    result = x.fused(numbers[-1], numbers[-2])
    for number in reversed(numbers[:-2]):
        result = result.fused(x, number)
    return result


def _exponential(x: Vector) -> tuple[Vector, Vector]:
    """``s``, a power of two, and ``p`` of exp(x) = s + s p; magnitudes above ``_LARGEST`` count as this number."""
    x = x.at_least(-_LARGEST).at_most(_LARGEST)
    whole, power = x.split(1 / _LOG2)
    rest = whole.fused(-_LOG2, x)
    return power, rest * polynomial(rest, coefficients.EXPM1)


def exp(x: Vector) -> Vector:
    """The exponential function."""
    power, part = _exponential(x)
    return power.fused(part, power)


def expm1(x: Vector) -> Vector:
    """The exponential function less 1."""
    power, part = _exponential(x)
    return power.fused(part, power - 1.0)


def sigmoid(x: Vector) -> Vector:
    """``1 / (1 + exp(-x))``."""
    return 1.0 / (1.0 + exp(-x))


def tanh(x: Vector) -> Vector:
    """The hyperbolic tangent."""
    twice = expm1((x + x).at_least(-80.0).at_most(80.0))
    return (twice / (twice + 2.0)).signed_as(x)


def _atanh_log(u: Vector) -> Vector:
    """``log(1 + u)`` for ``u`` from 0 to 1."""
    s = u / (u + 2.0)
    return s * polynomial(s * s, coefficients.LOG1P)


def softplus(x: Vector) -> Vector:
    """``log(1 + exp(x))``."""
    return x.at_least(0.0) + _atanh_log(exp(-abs(x)))


def elu(x: Vector, alpha: float) -> Vector:
    """``alpha * (exp(x) - 1)`` below 0."""
    return x.where("olt", 0.0, expm1(x) * alpha, x)


def celu(x: Vector, alpha: float) -> Vector:
    """``alpha * (exp(x / alpha) - 1)`` below 0."""
    return x.where("olt", 0.0, expm1(x / alpha) * alpha, x)


def selu(x: Vector, alpha: float, gamma: float) -> Vector:
    """``gamma`` times the elu."""
    return x.where("olt", 0.0, expm1(x) * (alpha * gamma), x * gamma)


def swish(x: Vector, alpha: float) -> Vector:
    """``x * sigmoid(alpha * x)``."""
    if not alpha:
        return x * 0.5
    return x.where("oeq", -inf if alpha > 0 else inf, -0.0, x / (1.0 + exp(x * -alpha)))


def mish(x: Vector) -> Vector:
    """``x * tanh(log(1 + exp(x)))``."""
    power = exp(x.at_most(80.0))
    square = power * (power + 2.0)
    return x.where("oeq", -inf, -0.0, x * (square / (square + 2.0)))


FORMULAS: dict[str, Callable[..., Vector]] = {
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
