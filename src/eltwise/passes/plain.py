"""Constants of plain numbers: those that fit where a runtime may keep constants before it runs a model.

A runtime may hold the constants of a model in another type than they are in, or prepare them for one: float32 without
subnormal numbers, the range of bfloat16, int32. Numbers that fit there are plain; most constants have no others.
"""

from __future__ import annotations

import numpy as np

from eltwise.core.dtypes import BFLOAT16, FLOAT32, FLOAT64, INT32, INT64, UINT32, UINT64, ElementType

LEAST = 2.0**-126
"""The least normal number of float32 and bfloat16."""

LARGEST = (2.0 - 2.0**-7) * 2.0**127
"""The largest finite number of bfloat16."""

_AT_A_TIME = 1 << 16
"""So many numbers are looked at together, so that large constants take no memory beside their own."""


def has_others(element_type: ElementType) -> bool:
    """Whether a type has numbers that are not plain."""
    return element_type in (BFLOAT16, FLOAT32, FLOAT64, INT64, UINT32, UINT64)


def plain_places(array: np.ndarray, element_type: ElementType) -> np.ndarray:
    """Where the numbers of an array are plain, as booleans.

    >>> plain_places(np.float32([0, 1, 1e-40, 3.4e38, np.inf]), FLOAT32).tolist()
    [True, True, False, False, True]
    """
    if not has_others(element_type):
        return np.ones(array.shape, bool)
    if element_type.is_integer:
        low, high = INT32.limits
        # A bound that the type does not have bounds nothing.
        return np.asarray((array <= high) & (array >= max(low, element_type.limits[0])))
    with np.errstate(invalid="ignore"):  # NaN may come as one that signals.
        magnitudes = np.abs(array.astype(np.float64))
        fits = (magnitudes >= LEAST) & (magnitudes <= LARGEST)
    return np.asarray(fits | (magnitudes == 0) | ~np.isfinite(magnitudes))


def is_plain_constant(array: np.ndarray, element_type: ElementType) -> bool:
    """Whether all numbers of a constant are plain, of a type that has others."""
    if not has_others(element_type):
        return False
    flat = array.reshape(-1)
    parts = (flat[start : start + _AT_A_TIME] for start in range(0, flat.size, _AT_A_TIME))
    return all(plain_places(part, element_type).all() for part in parts)
