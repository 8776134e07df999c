"""The arguments that functions are measured on: every number of 16-bit types, numbers spread over the others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from eltwise.core.dtypes import FLOAT32, FLOAT64, ElementType
from eltwise.oracle.hard_values import hard_values

_BLOCK = 1 << 20

_FLOAT64_SHARE = 500
"""So many times fewer numbers of float64 are drawn: each is decided by ball arithmetic."""

_USUAL_EXPONENTS = (-30, 12)
"""Half of the float64 numbers lie between these powers of two; beyond, most functions are constant or infinite."""


def blocks(element_type: ElementType, count: int | None, seed: int) -> Iterator[npt.NDArray[Any]]:
    """The arguments of one type, in blocks.

    Args:
        element_type: float16, bfloat16, float32 or float64.
        count: how many float32 numbers, about; None for all of them.
        seed: of what is drawn.
    """
    if element_type is FLOAT64:
        yield from _float64(total(FLOAT64, count), seed)
    elif element_type is FLOAT32:
        yield hard_values(FLOAT32)
        yield from _spread(count, seed)
    else:
        yield np.arange(1 << 16, dtype=np.uint16).view(element_type.storage)


def total(element_type: ElementType, count: int | None) -> int:
    """About how many numbers ``blocks`` gives."""
    if element_type is FLOAT64:
        return max((count or 2**32) // _FLOAT64_SHARE, 1)
    return (count or 2**32) if element_type is FLOAT32 else 1 << 16


def _spread(count: int | None, seed: int) -> Iterator[npt.NDArray[np.float32]]:
    """Numbers in the order of their patterns, one in each of equal ranges of these."""
    step = 1 if count is None else max(2**32 // count, 1)
    generator = np.random.default_rng(seed)
    ranges = 2**32 // step
    for first in range(0, ranges, _BLOCK):
        patterns = step * np.arange(first, min(first + _BLOCK, ranges), dtype=np.uint64)
        patterns += generator.integers(0, step, patterns.size, dtype=np.uint64)
        yield patterns.astype(np.uint32).view(np.float32)


def _float64(count: int, seed: int) -> Iterator[npt.NDArray[np.float64]]:
    generator = np.random.default_rng(seed)
    yield hard_values(FLOAT64)
    yield generator.integers(0, 2**64, count // 2 + 1, dtype=np.uint64).view(np.float64)
    signs = generator.choice([-1.0, 1.0], count // 2 + 1)
    yield signs * 2.0 ** generator.uniform(*_USUAL_EXPONENTS, count // 2 + 1)
