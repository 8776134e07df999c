"""Arrays of exact numbers: bit patterns to quotients of integers and back, wrapped, saturated or rounded once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from math import gcd
from typing import Any

import numpy as np
import numpy.typing as npt

from eltwise.core.dtypes import BOOL, FLOAT64, ElementType
from eltwise.oracle.elements import Elements
from eltwise.oracle.numbers import FLOAT_LAYOUTS, FloatLayout, Integers, rounded, steps_of

Flags = npt.NDArray[Any]
"""An array of booleans."""


@dataclass(frozen=True, eq=False)
class Numbers:
    """Exact numbers, or results that are not rounded to a type yet.

    Where a number is infinite or no number, its numerator and denominator say nothing.
    """

    numerators: Integers
    negative: Flags  # Whether the sign is minus, also that of a zero.
    infinite: Flags
    nan: Flags
    denominators: Integers | int = 1  # Positive; the number 1 for the numbers of integer types.

    @property
    def zero(self) -> Flags:
        """Which of them are zeros of either sign."""
        return np.equal(self.numerators, 0) & ~self.infinite

    @property
    def ranks(self) -> Flags:
        """-1 and 1 for infinities, 0 for all others."""
        return np.where(self.infinite, np.where(self.negative, -1, 1), 0)

    @property
    def are_integers(self) -> bool:
        """Whether they are of an integer type."""
        return isinstance(self.denominators, int) and self.denominators == 1


def decoded(elements: Elements) -> Numbers:
    """The numbers of some bit patterns."""
    element_type, bits = elements
    layout = FLOAT_LAYOUTS.get(element_type)
    if layout is None:
        if element_type is BOOL:
            return whole((bits != 0) * np.array(1, object))
        return whole(np.where(bits > element_type.limits[1], bits - (1 << element_type.bits), bits))
    patterns = bits.astype(np.uint64)
    negative, magnitudes = patterns >= layout.sign, patterns & (layout.sign - 1)
    infinite = (magnitudes == layout.largest_finite + 1) & layout.has_infinity
    steps = steps_of(layout, magnitudes)
    nan = (magnitudes > layout.largest_finite) & ~infinite
    return Numbers(np.where(negative, -steps, steps), negative, infinite, nan, layout.steps)


def whole(integers: Integers) -> Numbers:
    """Integers as exact numbers."""
    never = np.zeros(integers.shape, bool)
    return Numbers(integers, np.less(integers, 0), never, never)


def constant(value: float) -> Numbers:
    """A float as an exact number."""
    (pattern,) = np.array([value], np.float64).view(np.uint64).tolist()
    return decoded(Elements(FLOAT64, np.array([pattern], object)))


def aligned(a: Numbers, b: Numbers) -> tuple[Integers, Integers, Integers | int]:
    """The numerators of two over one denominator, and that."""
    if isinstance(a.denominators, int) and isinstance(b.denominators, int) and a.denominators == b.denominators:
        return a.numerators, b.numerators, a.denominators
    return a.numerators * b.denominators, b.numerators * a.denominators, a.denominators * b.denominators


def encoded(element_type: ElementType, numbers: Numbers, *, saturates: bool = False) -> Elements:
    """The bit patterns of numbers in a type.

    Args:
        element_type: an integer type, of which only integers are encoded, or a float type.
        numbers: what is encoded; floats are rounded once, to the nearest, ties to even.
        saturates: whether numbers beyond the limits become the limit; otherwise integers wrap, and floats become an
            infinity, or NaN in a type without.
    """
    layout = FLOAT_LAYOUTS.get(element_type)
    if layout is not None:
        return Elements(element_type, _float_bits(layout, numbers, saturates))
    integers = numbers.numerators
    if saturates:
        low, high = element_type.limits
        integers = np.where(numbers.infinite, np.where(numbers.negative, np.array(low, object), high), integers)
        integers = np.minimum(np.maximum(np.where(numbers.nan, 0, integers), low), high)
    return Elements(element_type, integers % (1 << element_type.bits))


def flags(values: Flags) -> Elements:
    """Booleans as elements."""
    return Elements(BOOL, np.where(values, 1, 0).astype(object))


def _float_bits(layout: FloatLayout, numbers: Numbers, saturates: bool) -> Integers:
    steps, denominators = layout.steps, numbers.denominators
    if isinstance(denominators, int):
        common = gcd(steps, denominators)
        steps, denominators = steps // common, denominators // common
    finite = np.frompyfunc(partial(rounded, layout), 2, 1)(np.abs(numbers.numerators) * steps, denominators)
    beyond = layout.largest_finite + 1
    magnitudes = np.where(numbers.infinite, beyond, finite)
    if saturates:
        magnitudes = np.minimum(magnitudes, layout.largest_finite)
    return np.where(numbers.nan, layout.nan, np.where(numbers.negative, magnitudes | layout.sign, magnitudes))
