"""Float64 arithmetic rounded *to odd*: what is not exact gets a last digit of 1.

So it lies on the right side of every number with fewer digits, and a later rounding to such a type is the only one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

Doubles: TypeAlias = np.ndarray[Any, np.dtype[np.float64]]


N = TypeVar("N", bound=Any)
"""Float64 that Python's operators compute with: arrays, or values of LLVM."""


def double(array: ArrayLike) -> Doubles:
    """Numbers as float64, which must hold them."""
    return np.asarray(array, np.float64)


def odd(value: Doubles, lost: Doubles) -> Doubles:
    """Nearest float64 rounded to odd instead, given what their rounding lost, or a number of its sign."""
    is_even = (np.asarray(value).view(np.int64) & 1) == 0
    neighbour = np.nextafter(value, np.where(lost > 0, np.inf, -np.inf))
    return np.where(is_even & (lost != 0) & np.isfinite(value) & np.isfinite(lost), neighbour, value)


def two_product(a: N, b: N) -> tuple[N, N]:
    """The nearest float64 of products, and exactly what that loses (Dekker)."""
    product = a * b
    (c, d), (e, f) = _halves(a), _halves(b)
    return product, d * f - (((product - c * e) - d * e) - c * f)


def _halves(x: N) -> tuple[N, N]:
    """The upper and the lower digits."""
    shifted = x * (2.0**27 + 1)
    upper = shifted - (shifted - x)
    return upper, x - upper


def two_sum(a: N, b: N) -> tuple[N, N]:
    """The nearest float64 of sums, and exactly what that loses (Knuth)."""
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def ordered_sum(larger: N, smaller: N) -> tuple[N, N]:
    """The same where the first number has no smaller magnitude than the second (Dekker)."""
    total = larger + smaller
    return total, smaller - (total - larger)


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
