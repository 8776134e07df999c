"""Sums of float64 without loss, and quotients that are certain or not, in vectors, as LLVM instructions. Pure."""

from __future__ import annotations

from typing import NamedTuple

from eltwise.kernels.instructions import Instructions, constant, of

_UPPER_BITS = -1 << 27
"""The bits of a float64 that leave 26 digits, so that products with numbers of as many are exact."""

_FRACTION = (1 << 52) - 1


class Divisor(NamedTuple):
    """The names of the float64 that describe how a sum becomes a result.

    Attributes:
        value: the number of elements for a mean, else 1.
        high: its bits above the lower 26.
        low: its lower 26 bits.
        slack: what the remainder of a division may lack, as a share of the quotient.
        share: what the second part of a sum may lack, as a share of the magnitudes that were added to it.
    """

    value: str
    high: str
    low: str
    slack: str
    share: str


def two_sum(code: Instructions, lanes: int, one: str, other: str) -> tuple[str, str]:
    """The sum of two float64, and exactly what its rounding lost (Knuth)."""
    wide = of(lanes, "double")
    total = code.let(f"fadd {wide} {one}, {other}")
    part = code.let(f"fsub {wide} {total}, {one}")
    first = code.let(f"fsub {wide} {one}, {code.let(f'fsub {wide} {total}, {part}')}")
    return total, code.let(f"fadd {wide} {first}, {code.let(f'fsub {wide} {other}, {part}')}")


def divided(code: Instructions, lanes: int, high: str, low: str, bound: str, divisor: Divisor) -> tuple[str, str]:
    """The bits of a sum over a divisor, rounded once, and whether they are certain.

    The quotient is computed as two floats. Where the lower and the upper bound of what they stand for are rounded to
    the same number, it is the result (Ziv's test); where nothing was lost, they stand for the exact quotient.

    Args:
        code: where instructions are written to.
        lanes: how many sums there are.
        high: their first parts.
        low: their second parts.
        bound: of what ``low`` lacks, before it is multiplied by the divisor's ``share``.
        divisor: the divisor.
    """
    wide, bits, flags = of(lanes, "double"), of(lanes, "i64"), of(lanes, "i1")

    def let(operation: str, one: str, other: str) -> str:
        return code.let(f"{operation} {wide} {one}, {other}")

    first, rest = two_sum(code, lanes, high, low)
    quotient = let("fdiv", first, divisor.value)
    product = let("fmul", quotient, divisor.value)
    upper_bits = code.let(f"and {bits} {bits_of(code, lanes, quotient)}, {constant(lanes, 'i64', _UPPER_BITS)}")
    upper = code.let(f"bitcast {bits} {upper_bits} to {wide}")
    lower = let("fsub", quotient, upper)
    lost = let("fsub", let("fmul", upper, divisor.high), product)  # Dekker's product: exact below 2^26.
    for one, other in ((upper, divisor.low), (lower, divisor.high), (lower, divisor.low)):
        lost = let("fadd", lost, let("fmul", one, other))
    remainder = let("fsub", let("fsub", first, product), lost)
    left, beyond = two_sum(code, lanes, remainder, rest)
    second = let("fdiv", left, divisor.value)
    zero = splat(lanes, "0.0")
    # A power of two times the divisor is exact: then nothing is lost where a quotient lies midway between two floats.
    fraction = code.let(f"and {bits} {bits_of(code, lanes, second)}, {constant(lanes, 'i64', _FRACTION)}")
    is_exact = code.let(f"icmp eq {bits} {fraction}, {constant(lanes, 'i64', 0)}")
    for one, other in (
        (let("fmul", second, divisor.value), left),
        (beyond, zero),
        (bound, zero),
        (divisor.slack, zero),
    ):
        is_exact = code.let(f"and {flags} {is_exact}, {code.let(f'fcmp oeq {wide} {one}, {other}')}")
    error = let("fdiv", let("fmul", bound, divisor.share), divisor.value)
    error = let("fadd", error, let("fmul", absolute(code, lanes, second), splat(lanes, "0x3CD0000000000000")))  # 2^-50
    error = let("fadd", error, let("fmul", absolute(code, lanes, quotient), divisor.slack))
    error = code.let(f"select {flags} {is_exact}, {wide} {zero}, {wide} {error}")
    above, below = (let("fadd", quotient, let(sign, second, error)) for sign in ("fadd", "fsub"))
    return bits_of(code, lanes, above), code.let(f"fcmp oeq {wide} {above}, {below}")


def bits_of(code: Instructions, lanes: int, value: str) -> str:
    """The bits of float64."""
    return code.let(f"bitcast {of(lanes, 'double')} {value} to {of(lanes, 'i64')}")


def absolute(code: Instructions, lanes: int, value: str) -> str:
    """The magnitudes of float64."""
    wide, suffix = of(lanes, "double"), "" if lanes == 1 else f"v{lanes}"
    return code.let(f"call {wide} @llvm.fabs.{suffix}f64({wide} {value})")


def splat(lanes: int, value: str) -> str:
    """A float64 in every lane."""
    return f"splat (double {value})" if lanes > 1 else value
