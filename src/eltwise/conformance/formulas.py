"""The formulas of the catalog and those that are computed instead of them, each on arrays of values and in steps.

The ones of (a - b) * (a - b) are mostly those of a - b, squared.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from eltwise.conformance.number_arrays import Change, Values, largest_finite, rounded_digits
from eltwise.conformance.steps import Keep
from eltwise.core.dtypes import FLOAT64, ElementType
from eltwise.oracle.numbers import FLOAT_LAYOUTS

Compute = Callable[[Values, Values, Keep], Values]


def difference(a: Values, b: Values, keep: Keep) -> Values:
    """As specified."""
    return keep.difference(a, b)


def squared(inner: Compute) -> Compute:
    """The square of what another formula gives."""

    def compute(a: Values, b: Values, keep: Keep) -> Values:
        result = inner(a, b, keep)
        return keep.product(result, result)

    return compute


def changed(inner: Compute, change: Change) -> Compute:
    """What another formula gives, changed."""
    return lambda a, b, keep: change(inner(a, b, keep))


def swapped(a: Values, b: Values, keep: Keep) -> Values:
    """B - A."""
    return keep.difference(b, a)


def added(a: Values, b: Values, keep: Keep) -> Values:
    """A + B."""
    return keep.difference(a, -b)


def added_but_zero(a: Values, b: Values, keep: Keep) -> Values:
    """A + B, and A where B is a zero of either sign."""
    return np.where(b == 0, keep.of(a), added(a, b, keep))


def multiplied(a: Values, b: Values, keep: Keep) -> Values:
    """A * B."""
    return keep.product(a, b)


def first_negated(a: Values, b: Values, keep: Keep) -> Values:
    """A + (-B), where -B is kept like a result."""
    return keep.difference(a, -keep.of(-b))


def turned(a: Values, b: Values, keep: Keep) -> Values:
    """-(B - A), which gives -0 for equal floats."""
    return -keep.difference(b, a)


def operand_a(a: Values, b: Values, keep: Keep) -> Values:
    """A."""
    del b, keep
    return a


def operand_b(a: Values, b: Values, keep: Keep) -> Values:
    """B."""
    del a, keep
    return b


def absolute(a: Values, b: Values, keep: Keep) -> Values:
    """|A - B|."""
    return np.abs(keep.difference(a, b))


def zero_for_equal(a: Values, b: Values, keep: Keep) -> Values:
    """Zero where A == B, also for infinities, else the difference."""
    return np.where(a == b, 0.0, keep.difference(a, b))


def expanded(a: Values, b: Values, keep: Keep) -> Values:
    """A * A - 2 * A * B + B * B."""
    twice = keep.product(keep.product(a, b), np.full_like(a, 2))
    return keep.difference(keep.difference(keep.product(a, a), twice), -keep.product(b, b))


def difference_of_squares(a: Values, b: Values, keep: Keep) -> Values:
    """A * A - B * B."""
    return keep.difference(keep.product(a, a), keep.product(b, b))


def of_float_bits(a: Values, b: Values, keep: Keep) -> Values:
    """The square of the difference of two integers whose 32-bit patterns are taken for those of float32.

    A negative integer of few bits is then a NaN, which stays as it is; the others are subnormal, and their squares
    vanish. For integers of up to 16 bits.
    """
    del keep
    return np.where(a < 0, a, np.where(b < 0, b, 0))


def flushed_before_rounding(formula: str, element_type: ElementType) -> Compute:
    """A product, or the square of a difference, that is a zero where it is below all normal numbers before rounding.

    Processors that flush decide so: with the digits of the type, but as if its exponents had no end.
    """

    def product(a: Values, b: Values, keep: Keep) -> Values:
        result = keep.product(a, b)
        (a_digits, a_exponents), (b_digits, b_exponents) = np.frexp(a), np.frexp(b)
        with np.errstate(all="ignore"):
            digits, exponents = np.frexp(rounded_digits(Keep(FLOAT64).product(a_digits, b_digits), element_type))
            is_small = a_exponents + b_exponents + exponents <= FLOAT_LAYOUTS[element_type].least_exponent
        vanishes = is_small & np.isfinite(digits) & (digits != 0)
        return np.where(vanishes, np.copysign(0.0, digits), result)

    if formula == "multiply":
        return product

    def compute(a: Values, b: Values, keep: Keep) -> Values:
        result = keep.difference(a, b)
        return product(result, result, keep)

    return compute


def finite_stays_finite(inner: Compute, element_type: ElementType) -> Compute:
    """Let what overflows become the largest finite number; infinite operands stay infinite."""
    largest = largest_finite(element_type)

    def compute(a: Values, b: Values, keep: Keep) -> Values:
        result = inner(a, b, keep)
        with np.errstate(all="ignore"):
            sign_of = inner(a, b, Keep())
        overflown = ~np.isfinite(result) & np.isfinite(a) & np.isfinite(b)
        return np.where(overflown, np.copysign(largest, sign_of), result)

    return compute
