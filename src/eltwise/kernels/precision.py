"""The float types that estimates are computed in. Pure."""

from __future__ import annotations

from struct import pack
from typing import NamedTuple

from eltwise.kernels import coefficients


class Precision(NamedTuple):
    """A float type that estimates are computed in.

    Attributes:
        scalar: its name in LLVM.
        integer: the LLVM type of its bits.
        digits: how many bits its fraction has.
        largest: up to here the exponential function of both signs is a normal number.
        polynomials: the coefficients that are used with it.
        log2: parts of log(2), of which all but the last one have so few digits that products with exponents are exact.
        half_pi: such parts of pi / 2.
    """

    scalar: str
    integer: str
    digits: int
    largest: float
    polynomials: dict[str, tuple[float, ...]]
    log2: tuple[float, ...]
    half_pi: tuple[float, ...]

    @property
    def shift(self) -> float:
        """What is added to a small number to round it to an integer, which then is in the lowest bits of the sum."""
        return 1.5 * 2.0**self.digits

    @property
    def bias(self) -> int:
        """The exponent field of 1."""
        return 1023 if self.digits == 52 else 127

    @property
    def least_normal(self) -> float:
        """The least normal number."""
        return 2.0 ** (1 - self.bias)

    def bits(self, value: float) -> int:
        """The bits of a number."""
        return int.from_bytes(pack(">d" if self.digits == 52 else ">f", value), "big")


SINGLE = Precision(
    *("float", "i32", 23, 87.0, coefficients.SINGLE, coefficients.SINGLE_LOG2, coefficients.SINGLE_HALF_PI)
)
DOUBLE = Precision(
    *("double", "i64", 52, 708.0, coefficients.DOUBLE, coefficients.DOUBLE_LOG2, coefficients.DOUBLE_HALF_PI)
)
PAIR = DOUBLE._replace(polynomials={})
"""Sums of two float64."""
