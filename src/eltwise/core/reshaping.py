"""The shape rules of the operators that only move values: Reshape, Squeeze and Unsqueeze.

Like the broadcast rules they are the same for known, symbolic, unknown and interval dimensions.
Sources: the texts of ONNX Reshape-1 to 25, Squeeze-1 to 25, Unsqueeze-1 to 25; OpenVINO Reshape-1, Squeeze-1 and 15,
Unsqueeze-1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from eltwise.core.errors import ShapeError
from eltwise.core.shapes import LARGEST_RANK, UNKNOWN, UNKNOWN_RANK, Dimension, Shape, known


def reshaped(data: Shape, target: Sequence[int], zero_copies: bool, empty_copies_cancel: bool = False) -> Shape:
    """Apply a target shape: -1 stands for what is left over; 0 copies the size there if ``zero_copies``.

    Beside a copied size of 0, -1 could be anything; with ``empty_copies_cancel`` it is what it would be beside a copied
    size of 1, as OpenVINO has it, and otherwise it is refused.

    Raises:
        ShapeError: where the target is ill-formed or has another number of elements.
    """
    if len(target) > LARGEST_RANK:
        raise ShapeError("the target rank is too large", got=str(len(target)), allowed=f"up to {LARGEST_RANK}")
    if min(target, default=0) < -1 or list(target).count(-1) > 1:
        raise ShapeError("the target shape is ill-formed", got=_list(target), allowed="sizes, and -1 at most once")
    copied = {index for index, size in enumerate(target) if size == 0 and zero_copies}
    dimensions = [
        _copied(data, index) if index in copied else UNKNOWN if size == -1 else known(size)
        for index, size in enumerate(target)
    ]
    copies = [dimensions[index] for index in copied]
    count = math.prod(size for index, size in enumerate(target) if size != -1 and index not in copied)
    elements = _elements_without(data, copied)
    if -1 in target:
        if count == 0 or (not empty_copies_cancel and any(dimension.high == 0 for dimension in copies)):
            raise ShapeError("-1 cannot be computed beside a size of 0", got=_list(target))
        if elements is not None and elements % count:
            raise ShapeError(
                f"shape ({data}) cannot become ({_list(target)}): {elements} elements do not divide by {count}"
            )
        dimensions[list(target).index(-1)] = UNKNOWN if elements is None else known(elements // count)
    elif elements not in (None, count) and not any(dimension.may_be(0) for dimension in copies):
        raise ShapeError(f"shape ({data}) cannot become ({_list(target)}): the numbers of elements differ")
    return Shape(tuple(dimensions))


def _copied(data: Shape, index: int) -> Dimension:
    if data.dimensions is None:
        return UNKNOWN
    if index >= len(data.dimensions):
        raise ShapeError(f"position {index} of the target shape is 0, but the data has rank {data.rank}")
    return data.dimensions[index]


def _elements_without(data: Shape, copied: set[int]) -> int | None:
    """The number of elements of the data but for the dimensions that are copied, None where it is not known."""
    if data.dimensions is None:
        return None
    rest = [dimension for index, dimension in enumerate(data.dimensions) if index not in copied]
    if any(dimension.high == 0 for dimension in rest):
        return 0
    return math.prod(dimension.low for dimension in rest) if all(dimension.is_known for dimension in rest) else None


def squeezed(data: Shape, axes: Sequence[int] | None, negative: bool = True, skip: bool = False) -> Shape:
    """Remove the dimensions ``axes``, or all of size 1 where it is None.

    ``negative`` allows axes that count from the end; ``skip`` leaves alone an axis whose size is not 1.

    Raises:
        ShapeError: where an axis is out of range or repeated, or its size cannot be 1.
    """
    if data.dimensions is None:
        return UNKNOWN_RANK
    chosen = range(len(data.dimensions)) if axes is None else normalized(axes, len(data.dimensions), negative)
    removed = []
    for axis in chosen:
        dimension = data.dimensions[axis]
        may_stay = axes is None or skip
        if dimension.is_one or (dimension.may_be(1) and not may_stay):
            removed.append(axis)
        elif dimension.may_be(1):
            return UNKNOWN_RANK
        elif not may_stay:
            raise ShapeError(f"dimension {axis} of ({data}) cannot be squeezed", got=str(dimension), allowed="1")
    return Shape(tuple(dimension for axis, dimension in enumerate(data.dimensions) if axis not in removed))


def unsqueezed(data: Shape, axes: Sequence[int], negative: bool = True) -> Shape:
    """Insert dimensions of size 1, so that they are the dimensions ``axes`` of the result.

    Raises:
        ShapeError: where an axis is out of range or repeated, or the rank gets too large.
    """
    if data.dimensions is None:
        return UNKNOWN_RANK
    rank = len(data.dimensions) + len(axes)
    if rank > LARGEST_RANK:
        raise ShapeError("the rank of the result is too large", got=str(rank), allowed=f"up to {LARGEST_RANK}")
    inserted = normalized(axes, rank, negative)
    rest = iter(data.dimensions)
    return Shape(tuple(known(1) if axis in inserted else next(rest) for axis in range(rank)))


def of_rank(rank: int | None) -> Shape:
    """A shape of which only the rank is known, or not even that.

    Raises:
        ShapeError: where the rank is larger than any array's.
    """
    if rank is None:
        return UNKNOWN_RANK
    if not 0 <= rank <= LARGEST_RANK:
        raise ShapeError("the rank is out of range", got=str(rank), allowed=f"0 to {LARGEST_RANK}")
    return Shape((UNKNOWN,) * rank)


def normalized(axes: Sequence[int], rank: int, negative: bool) -> list[int]:
    """Axes counted from the start.

    Raises:
        ShapeError: where one is out of range or repeated.
    """
    least = -rank if negative else 0
    for axis in axes:
        if not least <= axis < rank:
            raise ShapeError("an axis is out of range", got=str(axis), allowed=f"{least} to {rank - 1}")
    counted = [axis % rank for axis in axes]
    if len(set(counted)) != len(counted):
        raise ShapeError("an axis is repeated", got=_list(axes), allowed="each axis once")
    return counted


def _list(sizes: Sequence[int]) -> str:
    shown = ",".join(str(size) for size in sizes[:LARGEST_RANK])
    return shown if len(sizes) <= LARGEST_RANK else f"{shown},... ({len(sizes)} entries)"
