"""The plan of a call: where each operand lies in the result. Pure, and the same for every kernel."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod

from eltwise.core.broadcasting import Broadcast
from eltwise.core.dtypes import ElementType
from eltwise.core.errors import ShapeError
from eltwise.core.shapes import is_addressable

Sizes = tuple[int, ...]


@dataclass(frozen=True)
class Plan:
    """Where the operands lie in the result.

    Attributes:
        shape: the sizes of the result.
        operands: for each operand its sizes with 1s around them, so that it has the result's rank and broadcasts by
            NumPy's rule.
    """

    shape: Sizes
    operands: tuple[Sizes, ...]

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        """Computed once: a plan is part of the key of every large call."""
        return hash((self.shape, self.operands))

    def result_bytes(self, element_type: ElementType) -> int:
        """How many bytes the result has."""
        return prod(self.shape) * element_type.storage.itemsize


def make_plan(found: Broadcast, a: Sizes, b: Sizes, element_bytes: int) -> Plan:
    """Make the plan of two operands from what the broadcast rule found for known shapes.

    Raises:
        ShapeError: where the result has more bytes than an address space.
    """
    sizes = found.shape.sizes()
    if not is_addressable(sizes, element_bytes):
        raise ShapeError("the result is too large", got=f"shape ({found.shape})")
    padded = (_padded(a, found.a_start or 0, len(sizes)), _padded(b, found.b_start or 0, len(sizes)))
    return Plan(sizes, padded)


def _padded(sizes: Sizes, start: int, rank: int) -> Sizes:
    return (1,) * start + sizes + (1,) * (rank - start - len(sizes))
