"""Blocks of a shape: how arrays, files and work are divided. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise, product
from math import prod

import numpy as np

from eltwise.core.shapes import Sizes

Box = tuple[slice, ...]
"""A part of an array: for each axis a slice with a start and a stop, without a step."""


@dataclass(eq=False, repr=False)  # What these would be takes long to make at every start.
class Grid:
    """The blocks of a shape, numbered in C order; the last ones of an axis may be shorter.

    Attributes:
        shape: the shape that is divided.
        step: the sizes of a block.

    >>> grid = Grid((3, 5), (2, 5))
    >>> len(grid), grid.index(1), grid[1]
    (2, (1, 0), (slice(2, 3, None), slice(0, 5, None)))
    """

    shape: Sizes
    step: Sizes

    @cached_property
    def counts(self) -> Sizes:
        """The number of blocks along each axis."""
        return tuple(-(-size // step) for size, step in zip(self.shape, self.step, strict=True))

    def __len__(self) -> int:
        return prod(self.counts)

    def index(self, number: int) -> Sizes:
        """The coordinates of a block."""
        return tuple(int(each) for each in np.unravel_index(number, self.counts)) if self.counts else ()

    def name(self, number: int) -> str:
        """The name of a block in messages."""
        return f"chunk {list(self.index(number))}"

    def __getitem__(self, number: int) -> Box:
        axes = zip(self.index(number), self.step, self.shape, strict=True)
        return tuple(slice(index * step, min((index + 1) * step, size)) for index, step, size in axes)

    def __iter__(self) -> Iterator[Box]:
        axes = zip(self.shape, self.step, strict=True)
        return product(
            *([slice(begin, min(begin + step, size)) for begin in range(0, size, step)] for size, step in axes)
        )

    def starts(self) -> np.ndarray:
        """The index of the first element of each block: int64, of shape (blocks, rank)."""
        numbers = np.indices((*self.counts, 1))[:-1].reshape(len(self.shape), len(self)).T
        return numbers * np.array(self.step, np.int64)


@lru_cache(maxsize=1024)  # Checkpoints have many tensors of few shapes.
def flat_grid(shape: Sizes, elements: int) -> Grid:
    """Divide a shape into blocks of at most so many elements, each of which is one range in C order.

    >>> flat_grid((4, 6, 5), 10).step
    (1, 2, 5)
    """
    step: list[int] = []
    for size in reversed(shape):
        step.append(max(1, min(size, elements)))
        elements = elements // size if 0 < size <= elements else 1
    return Grid(shape, tuple(reversed(step)))


def ranges(size: int, most: int, multiple: int = 1) -> list[tuple[int, int]]:
    """Divide so many things into at most so many ranges of about the same length, none of them empty.

    Args:
        size: the number of things.
        most: the number of ranges at most.
        multiple: all ranges but the first begin at a multiple of it.

    >>> ranges(10, 4), ranges(10, 4, multiple=4), ranges(0, 4)
    ([(0, 2), (2, 5), (5, 7), (7, 10)], [(0, 4), (4, 10)], [])
    """
    ends = [*(size * part // most // multiple * multiple for part in range(most)), size]
    return [(first, last) for first, last in pairwise(ends) if first < last]


def spread(size: int, most: int) -> np.ndarray:
    """At most so many indices of a size, spread evenly: all of them, or, of more, neither the first nor the last.

    >>> spread(3, 4), spread(12, 3)
    (array([0, 1, 2]), array([ 2,  6, 10]))
    """
    return np.arange(size) if size <= most else (np.arange(most) * 2 + 1) * size // (2 * most)


def boxes(shape: Sequence[int], start: int, stop: int) -> Iterator[Box]:
    """The boxes that a flat range of a shape consists of, in C order.

    >>> [tuple((one.start, one.stop) for one in box) for box in boxes((3, 4), 2, 11)]
    [((0, 1), (2, 4)), ((1, 2), (0, 4)), ((2, 3), (0, 3))]
    """
    if start >= stop:
        return
    if not shape:
        yield ()
        return
    inner = prod(shape[1:])
    (first, before), (last, after) = divmod(start, inner), divmod(stop, inner)
    if first == last:
        yield from ((slice(first, first + 1), *box) for box in boxes(shape[1:], before, after))
        return
    if before:
        yield from ((slice(first, first + 1), *box) for box in boxes(shape[1:], before, inner))
        first += 1
    if first < last:
        yield (slice(first, last), *(slice(0, size) for size in shape[1:]))
    if after:
        yield from ((slice(last, last + 1), *box) for box in boxes(shape[1:], 0, after))
