"""The plan of a call: where each operand lies in the result. Pure, and the same for every kernel."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import NamedTuple

from eltwise.core.broadcasting import Broadcast
from eltwise.core.dtypes import ElementType
from eltwise.core.errors import ShapeError
from eltwise.core.shapes import is_addressable

Sizes = tuple[int, ...]


class Plan(NamedTuple):
    """Where the operands lie in the result.

    Attributes:
        shape: the sizes of the result.
        operands: for each operand its sizes with 1s around them, so that it has the result's rank and broadcasts by
            NumPy's rule.
    """

    shape: Sizes
    operands: tuple[Sizes, ...]

    def bytes_of(self, element_type: ElementType) -> int:
        """How many bytes an array of the result's shape has."""
        return prod(self.shape) * element_type.storage.itemsize


def make_plan(found: Broadcast, operands: Sequence[Sizes], element_type: ElementType) -> Plan:
    """Make the plan of operands from what the broadcast rule found for known shapes.

    Raises:
        ShapeError: where the result has more bytes than an address space.
    """
    sizes = found.shape.sizes()
    if not is_addressable(sizes, element_type.storage.itemsize):
        raise ShapeError("the result is too large", got=f"shape ({found.shape})")
    return Plan(sizes, tuple(_padded(*each, len(sizes)) for each in zip(operands, found.starts, strict=True)))


def first_dimension(padded: Sizes, own: Sizes) -> int:
    """The dimension of the result that an operand's first one lies on; the last that is possible."""
    return max(start for start in range(len(padded) - len(own) + 1) if padded[start : start + len(own)] == own)


def _padded(sizes: Sizes, start: int | None, rank: int) -> Sizes:
    before = start or 0
    return (1,) * before + sizes + (1,) * (rank - before - len(sizes))
