"""Trigonometric functions and their inverses as formulas on vectors, of the kinds of ``estimates``. Pure."""

from __future__ import annotations

from math import pi
from typing import Any

from eltwise.kernels import coefficients, table_estimates
from eltwise.kernels.pairs import Pair
from eltwise.kernels.polynomials import F, less, polynomial

FARTHEST_ANGLE = 2.0**20
"""Trigonometric functions are estimated up to here."""


def _reduced(x: F) -> tuple[F, Any]:
    """What is left of numbers up to ``FARTHEST_ANGLE`` beyond a multiple of pi / 2, and the multiple as a float64."""
    if isinstance(x, Pair):
        whole = x.high.split(2 / pi)[0]
        return x.less(whole, coefficients.PAIR_HALF_PI), whole
    whole = x.split(2 / pi)[0]
    return less(x, whole, x.precision.half_pi), whole


def _sine(rest: F, square: F) -> F:
    return rest * polynomial(square, "SINE")


def _is_odd(whole: Any) -> Any:
    """0 for even numbers, and 1 or -1 for odd ones."""
    return whole - (whole * 0.5).split(1.0)[0] * 2.0


def _circular(x: F, quarters: float) -> F:
    """The sine of ``x`` and so many quarters of a turn."""
    if isinstance(x, Pair):
        rest, whole = _reduced(x)
        whole = whole + quarters
        odd = _is_odd(whole)
        sign = _is_odd((whole - abs(odd)) * 0.5)
        pair = table_estimates.Turn(rest).either(odd)
        return (-pair).chosen(sign.flags("one", 0.0), pair)
    halves = x.fused(1 / pi, quarters / 2).split(1.0)[0]
    rest = less(x, halves + halves - quarters, x.precision.half_pi)
    value = _sine(rest, rest * rest)
    result: F = _is_odd(halves).where("oeq", 0.0, value, -value)
    return result


def sin(x: F) -> F:
    """The sine."""
    return x.where("oeq", 0.0, x, _circular(x, 0.0))


def cos(x: F) -> F:
    """The cosine."""
    return _circular(x, 1.0)


def tan(x: F) -> F:
    """The tangent."""
    rest, whole = _reduced(x)
    odd = _is_odd(whole)
    if isinstance(rest, Pair):
        turn, is_odd = table_estimates.Turn(rest), odd.flags("one", 0.0)
        sine, cosine = turn.sine(), turn.cosine()
        return x.where("oeq", 0.0, x, (-cosine).chosen(is_odd, sine) / sine.chosen(is_odd, cosine))
    square = rest * rest
    sine, cosine = _sine(rest, square), polynomial(square, "COSINE")
    top, bottom = odd.where("oeq", 0.0, sine, -cosine), odd.where("oeq", 0.0, cosine, sine)
    return x.where("oeq", 0.0, x, top / bottom)


def atan(x: F) -> F:
    """The inverse tangent."""
    size = abs(x)
    if isinstance(size, Pair):
        return table_estimates.arctangent(size, size.real(1.0, 0.0)).signed_as(x)
    near = size.where("ogt", 1.0, 1.0 / size, size)
    value = near * polynomial(near * near, "ARCTANGENT")
    return size.where("ogt", 1.0, x.real(*coefficients.HALF_PI) - value, value).signed_as(x)


def _arcsine(size: F) -> F:
    """``asin(size)`` for numbers up to 0.5, and ``asin(sqrt((1 - size) / 2))`` for those above."""
    half = (1.0 - size) * 0.5
    square = size.where("ogt", 0.5, half, size * size)
    return size.where("ogt", 0.5, half.sqrt(), size) * polynomial(square, "ARCSINE")


def _cosine_of(size: Pair[Any]) -> Pair[Any]:
    """The cosine of the angle of which a number up to 1 is the sine."""
    return ((1.0 - size) * (size + 1.0)).sqrt()


def asin(x: F) -> F:
    """The inverse sine."""
    size = abs(x)
    if isinstance(size, Pair):
        return table_estimates.arctangent(size, _cosine_of(size)).signed_as(x)
    value = _arcsine(size)
    return size.where("ogt", 0.5, x.real(*coefficients.HALF_PI) - (value + value), value).signed_as(x)


def acos(x: F) -> F:
    """The inverse cosine."""
    size = abs(x)
    if isinstance(size, Pair):
        value = table_estimates.arctangent(_cosine_of(size), size)
        return x.where("olt", 0.0, x.real(*coefficients.PI) - value, value)
    value = _arcsine(size)
    far = value + value
    near = x.real(*coefficients.HALF_PI) - value.signed_as(x)
    return size.where("ogt", 0.5, x.where("olt", 0.0, x.real(*coefficients.PI) - far, far), near)
