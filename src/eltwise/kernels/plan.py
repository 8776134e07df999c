"""The plan of a call: where each operand lies in the result. Pure, and the same for every kernel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import NamedTuple

import numpy as np

from eltwise.core.broadcasting import Broadcast
from eltwise.core.dtypes import ElementType
from eltwise.core.errors import ShapeError
from eltwise.core.shapes import Sizes, is_addressable
from eltwise.ops.expression import Expression

Axes = tuple[int, ...]
"""For each axis of an operand the axis of the result that it lies on."""


class Plan(NamedTuple):
    """Where the operands lie in the result.

    Attributes:
        shape: the sizes of the result.
        operands: the sizes of each operand with 1s around them: of the result's rank, so that they broadcast by
            NumPy's rule.
        axes: for each operand the axes of the result that its own lie on, in order.
    """

    shape: Sizes
    operands: tuple[Sizes, ...]
    axes: tuple[Axes, ...]

    def bytes_of(self, element_type: ElementType) -> int:
        """The size in bytes of an array of the result's shape."""
        return prod(self.shape) * element_type.storage.itemsize

    @property
    def aligns_ends(self) -> bool:
        """Whether the operands broadcast by NumPy's rule as they are."""
        return all(
            len(axes) == len(sizes) or tuple(sizes[axis] for axis in axes) == sizes[len(sizes) - len(axes) :]
            for sizes, axes in zip(self.operands, self.axes, strict=True)
        )


class TypedCall(NamedTuple):
    """A computation of operands of known types and shapes, which go together.

    Attributes:
        expression: the steps; operands of other types than T state theirs.
        element_type: the type T.
        plan: where the operands lie in the result.
    """

    expression: Expression
    element_type: ElementType
    plan: Plan

    @property
    def result_type(self) -> ElementType:
        """The type of the result."""
        return self.expression.result_type(self.element_type)

    @property
    def checks_divisor(self) -> bool:
        """Whether a divisor must hold no 0."""
        return self.element_type.is_integer and self.expression.divides and 0 not in self.plan.shape


class Divisors(NamedTuple):
    """The operands that integers are divided by: none may hold a 0.

    Attributes:
        operands: their numbers.
        check: raises where one of the operands, which it is given, holds a 0 where it must not.
    """

    operands: tuple[int, ...]
    check: Callable[[Sequence[np.ndarray]], None]


def make_plan(broadcast: Broadcast, operands: Sequence[Sizes], element_type: ElementType) -> Plan:
    """Make the plan of operands from what the broadcast rule gave for known shapes.

    Raises:
        ShapeError: where the result has more bytes than an address space.
    """
    sizes = broadcast.shape.sizes()
    if not is_addressable(sizes, element_type.storage.itemsize):
        raise ShapeError("the result is too large", got=f"shape ({broadcast.shape})")
    if all(each == sizes for each in operands):
        return aligned_plan(sizes, operands)
    starts = [start or 0 for start in broadcast.starts]
    axes = [tuple(range(start, start + len(each))) for start, each in zip(starts, operands, strict=True)]
    return Plan(sizes, tuple(_with_ones(*each, len(sizes)) for each in zip(operands, axes, strict=True)), tuple(axes))


def _with_ones(sizes: Sizes, axes: Axes, rank: int) -> Sizes:
    before = axes[0] if axes else rank
    return (1,) * before + sizes + (1,) * (rank - before - len(sizes))


def aligned_plan(shape: Sizes, operands: Sequence[Sizes]) -> Plan:
    """The plan of operands that have the rank of the result."""
    return Plan(shape, tuple(operands), (tuple(range(len(shape))),) * len(operands))
