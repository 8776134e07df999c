"""Every way to put sizes for dimensions that are not known, to compare inference with what runs do."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from eltwise.core.shapes import Dimension, Shape

Sizes = tuple[int, ...]

LARGEST = 4
"""Up to it the sizes are tried: five sizes tell 0, 1, equal and two different ones apart."""

UNKNOWN_RANK_SIZES = [sizes for rank in range(3) for sizes in itertools.product(range(4), repeat=rank)]


def instances(*shapes: Shape) -> Iterator[tuple[dict[str, int], tuple[Sizes, ...]]]:
    """What the symbols are, the same in all shapes, and the sizes of each shape."""
    dimensions = [dimension for shape in shapes for dimension in shape.dimensions or ()]
    symbols = sorted({dimension.symbol for dimension in dimensions if dimension.symbol})
    for values in itertools.product(range(LARGEST + 1), repeat=len(symbols)):
        bound = dict(zip(symbols, values, strict=True))
        for sizes in itertools.product(*(_sizes_of(shape, bound) for shape in shapes)):
            yield bound, sizes


def _sizes_of(shape: Shape, bound: dict[str, int]) -> list[Sizes]:
    if shape.dimensions is None:
        return UNKNOWN_RANK_SIZES
    choices = [
        [size for size in range(LARGEST + 1) if dimension.may_be(size) and bound.get(dimension.symbol, size) == size]
        for dimension in shape.dimensions
    ]
    return list(itertools.product(*choices))


def holds(shape: Shape, bound: dict[str, int], sizes: Sizes) -> bool:
    """Whether sizes are of a shape, its symbols being what they are bound to."""

    def is_one_of(dimension: Dimension, size: int) -> bool:
        return dimension.may_be(size) and bound.get(dimension.symbol, size) == size

    return shape.dimensions is None or (
        len(shape.dimensions) == len(sizes) and all(map(is_one_of, shape.dimensions, sizes))
    )
