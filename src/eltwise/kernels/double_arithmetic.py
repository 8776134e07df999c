"""Quotients of sums of two float64 and a number, certain or not, in vectors of LLVM. Pure."""

from __future__ import annotations

from typing import NamedTuple

from eltwise.core.odd_rounding import two_sum
from eltwise.kernels.flags import Flags
from eltwise.kernels.instructions import constant, of
from eltwise.kernels.vectors import Vector

_FRACTION = (1 << 52) - 1


class Divisor(NamedTuple):
    """The float64 that describe how a sum becomes a result.

    Attributes:
        value: the number of elements for a mean, else 1.
        share: what the second part of a sum may lack, as a share of the magnitudes that were added to it.
    """

    value: Vector
    share: Vector


def divided(high: Vector, low: Vector, bound: Vector, divisor: Divisor) -> tuple[str, Flags]:
    """The bits of a sum over a divisor, rounded once, and whether they are certain.

    The quotient is computed as two floats. Where the lower and the upper bound of what they stand for are rounded to
    the same number, it is the result (Ziv's test); where nothing was lost, they stand for the exact quotient.

    Args:
        high: the first parts of sums.
        low: their second parts.
        bound: of what ``low`` lacks, before it is multiplied by the divisor's ``share``.
        divisor: the divisor.
    """
    code, lanes, bits = high.code, high.lanes, of(high.lanes, "i64")
    first, rest = two_sum(high, low)
    quotient = first / divisor.value
    product, lost = quotient.product(divisor.value)
    left, beyond = two_sum(first - product - lost, rest)
    second = left / divisor.value
    # A power of two times the divisor is exact: then nothing is lost where a quotient lies midway between two floats.
    fraction = code.let(f"and {bits} {second.in_bits()}, {constant(lanes, 'i64', _FRACTION)}")
    is_exact = Flags(code, lanes, code.let(f"icmp eq {bits} {fraction}, {constant(lanes, 'i64', 0)}"))
    is_exact = is_exact & (second * divisor.value).flags("oeq", left)
    is_exact = is_exact & beyond.flags("oeq", 0.0) & bound.flags("oeq", 0.0)
    error = bound * divisor.share / divisor.value + abs(second) * 2.0**-50
    error = error.constant(0.0).chosen(is_exact, error)
    above, below = quotient + (second + error), quotient + (second - error)
    return above.in_bits(), above.flags("oeq", below)
