"""Differences of bit patterns as byte planes: all lowest bytes first, then the next ones.

The patterns are subtracted as unsigned integers, which wrap around, so that adding the base gives every bit back. Half
of each byte's range is added (0x8080 for two bytes), so that a small difference of either sign changes the lowest bytes
only and all others are 0x80.
"""

from __future__ import annotations

import numpy as np

_BLOCK = 1 << 16
"""In bytes of a block; what is computed on it stays in the cache."""


def _unsigned(width: int) -> tuple[np.dtype[np.unsignedinteger], np.unsignedinteger]:
    """The integer type of a width, and half of each byte's range in it."""
    kind: np.dtype[np.unsignedinteger] = np.dtype(f"<u{width}")
    return kind, kind.type(int("80" * width, 16))


def to_planes(values: np.ndarray, base: np.ndarray | None, width: int) -> np.ndarray:
    """Make the planes of the difference of bytes and those of a base; without one, of the bytes themselves.

    Args:
        values: the bytes, a multiple of ``width``.
        base: as many bytes.
        width: of an element in bytes: 1, 2, 4 or 8.

    >>> to_planes(np.uint8([1, 2, 3, 4]), None, 2).tolist()
    [1, 3, 2, 4]
    """
    if width == 1 and base is None:
        return values
    kind, half = _unsigned(width)
    elements = values.view(kind)
    planes = np.empty((width, elements.size), np.uint8)
    step = _BLOCK // width * min(width, 2)
    room = np.empty(min(step, elements.size), kind)
    for start in range(0, elements.size, step):
        part = slice(start, min(start + step, elements.size))
        block = room[: part.stop - start]
        if base is None:
            np.copyto(block, elements[part])
        else:
            np.subtract(elements[part], base.view(kind)[part], out=block)
            np.add(block, half, out=block)
        np.copyto(planes[0, part], block, casting="unsafe")
        for plane in planes[1:]:
            np.right_shift(block, kind.type(8), out=block)
            np.copyto(plane[part], block, casting="unsafe")
    return planes.reshape(-1)


def from_planes(planes: np.ndarray, base: np.ndarray | None, width: int) -> np.ndarray:
    """Make the bytes of planes again.

    >>> from_planes(to_planes(np.uint8([1, 2, 3, 4]), np.uint8([9, 9, 9, 9]), 2), np.uint8([9, 9, 9, 9]), 2).tolist()
    [1, 2, 3, 4]
    """
    if width == 1 and base is None:
        return planes
    kind, half = _unsigned(width)
    by_plane = planes.reshape(width, -1)
    elements = np.empty(by_plane.shape[1], kind)
    step = _BLOCK // width * min(width, 2)
    for start in range(0, elements.size, step):
        part = slice(start, start + step)
        block = elements[part]
        np.copyto(block, by_plane[-1, part])
        for plane in by_plane[-2::-1]:
            np.left_shift(block, kind.type(8), out=block)
            np.bitwise_or(block, plane[part], out=block)
        if base is not None:
            np.subtract(block, half, out=block)
            np.add(block, base.view(kind)[part], out=block)
    return elements.view(np.uint8)
