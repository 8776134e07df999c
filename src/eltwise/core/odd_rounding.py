"""Float64 arithmetic rounded *to odd*: what is not exact gets a last digit of 1.

So it lies on the right side of every number with fewer digits, and a later rounding to such a type is the only one.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Doubles = npt.NDArray[np.float64]

_SPLIT = 2.0**27 + 1


def double(array: npt.ArrayLike) -> Doubles:
    """Numbers as float64, which must hold them."""
    return np.asarray(array, np.float64)


def odd(value: Doubles, lost: Doubles) -> Doubles:
    """Nearest float64 rounded to odd instead, given what their rounding lost, or a number of its sign."""
    is_even = (np.asarray(value).view(np.int64) & 1) == 0
    neighbour = np.nextafter(value, np.where(lost > 0, np.inf, -np.inf))
    return np.where(is_even & (lost != 0) & np.isfinite(value) & np.isfinite(lost), neighbour, value)


def two_product(a: Doubles, b: Doubles) -> tuple[Doubles, Doubles]:
    """The nearest float64 of products, and exactly what that loses (Dekker)."""
    product = a * b
    (c, d), (e, f) = ((upper, each - upper) for each in (a, b) for upper in [_SPLIT * each - (_SPLIT * each - each)])
    return product, d * f - (((product - c * e) - d * e) - c * f)


def two_sum(a: Doubles, b: Doubles) -> tuple[Doubles, Doubles]:
    """The nearest float64 of sums, and exactly what that loses (Knuth)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def product(a: Doubles, b: Doubles) -> Doubles:
    """Products."""
    return odd(*two_product(a, b))


def total(a: Doubles, b: Doubles) -> Doubles:
    """Sums."""
    return odd(*two_sum(a, b))


def quotient(a: Doubles, b: Doubles) -> Doubles:
    """Quotients by numbers of at most 32 digits."""
    nearest = a / b
    back, lost = two_product(nearest, b)
    return odd(nearest, ((a - back) - lost) * np.sign(b))
