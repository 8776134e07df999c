"""Arrays that lie in memory in every way: strided, reversed, transposed, byte-swapped, unaligned, overlapping."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from eltwise.core.dtypes import ElementType

Sizes = tuple[int, ...]


@dataclass(frozen=True)
class Layout:
    """How an array lies in memory.

    Attributes:
        order: the dimensions from the one with the largest strides to the one with the smallest.
        reversed: for each dimension, whether it runs backwards.
        gap: how many elements lie from one to the next in the innermost dimension.
        offset: how many bytes lie before it.
        swapped: whether its byte order is not the native one.
    """

    order: tuple[int, ...]
    reversed: tuple[bool, ...]
    gap: int
    offset: int
    swapped: bool


def plain(shape: Sizes) -> Layout:
    return Layout(tuple(range(len(shape))), (False,) * len(shape), 1, 0, False)


@st.composite
def layouts(draw: st.DrawFn, shape: Sizes, item_bytes: int) -> Layout:
    offset = draw(st.integers(0, 6)) * item_bytes + draw(st.sampled_from([0, 0, 0, 1, 3]))
    return Layout(
        order=tuple(draw(st.permutations(range(len(shape))))),
        reversed=tuple(draw(st.lists(st.booleans(), min_size=len(shape), max_size=len(shape)))),
        gap=draw(st.sampled_from([1, 1, 1, 2])),
        offset=offset,
        swapped=draw(st.sampled_from([False, False, True])),
    )


def view(memory: np.ndarray, element_type: ElementType, shape: Sizes, layout: Layout) -> np.ndarray:
    """An array of a shape in the bytes of ``memory``."""
    dtype = element_type.storage.newbyteorder("S") if layout.swapped else element_type.storage
    strides, step = [0] * len(shape), dtype.itemsize * layout.gap
    for dimension in reversed(layout.order):
        strides[dimension] = step
        step *= max(shape[dimension], 1)
    start = layout.offset
    for dimension, backwards in enumerate(layout.reversed):
        if backwards and 0 not in shape:
            start += strides[dimension] * (shape[dimension] - 1)
            strides[dimension] = -strides[dimension]
    return np.ndarray(shape, dtype, memory.data, start, strides)
