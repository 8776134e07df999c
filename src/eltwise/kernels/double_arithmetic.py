"""Quotients of sums of two float64 and a number, certain or not, in vectors of LLVM. Pure."""

from __future__ import annotations

from typing import NamedTuple

from eltwise.core.odd_rounding import two_sum
from eltwise.kernels.flags import Flags
from eltwise.kernels.instructions import constant, of
from eltwise.kernels.vectors import Vector

_UPPER_BITS = -1 << 27
"""The bits of a float64 that leave 26 digits, so that products with numbers of as many are exact."""

_FRACTION = (1 << 52) - 1


class Divisor(NamedTuple):
    """The float64 that describe how a sum becomes a result.

    Attributes:
        value: the number of elements for a mean, else 1.
        high: its bits above the lower 26.
        low: its lower 26 bits.
        slack: what the remainder of a division may lack, as a share of the quotient.
        share: what the second part of a sum may lack, as a share of the magnitudes that were added to it.
    """

    value: Vector
    high: Vector
    low: Vector
    slack: Vector
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
    product = quotient * divisor.value
    upper_bits = code.let(f"and {bits} {quotient.in_bits()}, {constant(lanes, 'i64', _UPPER_BITS)}")
    upper = quotient.of_bits(upper_bits)
    lower = quotient - upper
    lost = upper * divisor.high - product  # Dekker's product: exact below 2^26.
    lost = lost + upper * divisor.low + lower * divisor.high + lower * divisor.low
    left, beyond = two_sum(first - product - lost, rest)
    second = left / divisor.value
    # A power of two times the divisor is exact: then nothing is lost where a quotient lies midway between two floats.
    fraction = code.let(f"and {bits} {second.in_bits()}, {constant(lanes, 'i64', _FRACTION)}")
    is_exact = Flags(code, lanes, code.let(f"icmp eq {bits} {fraction}, {constant(lanes, 'i64', 0)}"))
    is_exact = is_exact & (second * divisor.value).flags("oeq", left)
    for each in (beyond, bound, divisor.slack):
        is_exact = is_exact & each.flags("oeq", 0.0)
    error = bound * divisor.share / divisor.value + abs(second) * 2.0**-50 + abs(quotient) * divisor.slack
    error = error.constant(0.0).chosen(is_exact, error)
    above, below = quotient + (second + error), quotient + (second - error)
    return above.in_bits(), above.flags("oeq", below)
