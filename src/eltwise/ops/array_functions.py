"""NumPy functions that NumPy itself does not have: division that truncates, and maxima that order zeros.

Like NumPy's own they take arrays that broadcast and write into ``out``, which may be one of the operands.
"""

from __future__ import annotations

from typing import Any

import numpy as np

Casting = Any


def truncated_quotient(
    a: np.ndarray, b: np.ndarray, out: np.ndarray | None = None, casting: Casting = "unsafe"
) -> np.ndarray:
    """Divide signed integers and round towards zero; the least value divided by -1 wraps.

    >>> truncated_quotient(np.int8([7, -7]), np.int8([-2, 2])).tolist()
    [-3, -3]
    """
    floor = np.floor_divide(a, b)
    is_below = (floor * b != a) & ((a < 0) != (b < 0))
    return np.asarray(np.add(floor, is_below.astype(floor.dtype), out=out, casting=casting))


def maximum(a: np.ndarray, b: np.ndarray, out: np.ndarray | None = None, casting: Casting = "unsafe") -> np.ndarray:
    """Give the larger float: NaN if either is one, and +0 of two zeros that differ.

    >>> maximum(np.float32([-0.0, 0.0]), np.float32([0.0, -0.0])).tolist()
    [0.0, 0.0]
    """
    return _with_zeros(np.maximum(a, b), a, b, a + b, out, casting)


def minimum(a: np.ndarray, b: np.ndarray, out: np.ndarray | None = None, casting: Casting = "unsafe") -> np.ndarray:
    """Give the smaller float: NaN if either is one, and -0 of two zeros that differ.

    >>> minimum(np.float32([-0.0, 0.0]), np.float32([0.0, -0.0])).tolist()
    [-0.0, -0.0]
    """
    return _with_zeros(np.minimum(a, b), a, b, -(-a - b), out, casting)


def _with_zeros(
    chosen: np.ndarray,
    a: np.ndarray,
    b: np.ndarray,
    zeros: np.ndarray,
    out: np.ndarray | None,
    casting: Casting,
) -> np.ndarray:
    """Replace what was chosen where both operands are zeros."""
    result = np.where((a == 0) & (b == 0), zeros, chosen)
    if out is None:
        return np.asarray(result)
    np.copyto(out, result, casting=casting)
    return out
