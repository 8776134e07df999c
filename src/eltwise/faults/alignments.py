"""The faults that pair the wrong elements of operands: another dimension is broadcast than specified."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from eltwise.faults.families import WRONG_ALIGNMENT

Operands = tuple[np.ndarray, ...]
Starts = Callable[[Operands, int], Sequence[int]]
"""Gives for operands and the rank of the result the dimension on which each operand begins."""


@dataclass(frozen=True)
class Alignment:
    """A way to pair the elements of operands.

    Attributes:
        slug: its identifier.
        text: what happens, as a clause for users.
        starts: where operands begin in the result.
        change: what operands are changed to first.
        family: the slug of its family.
    """

    slug: str
    text: str
    starts: Starts
    change: Callable[[Operands], Operands] = tuple
    family: str = WRONG_ALIGNMENT

    def align(self, operands: Operands, shape: tuple[int, ...]) -> list[np.ndarray] | None:
        """Expand the operands to the shape of the result, flat; None if they cannot be paired so."""
        changed = self.change(operands)
        try:
            pairs = zip(changed, self.starts(operands, len(shape)), strict=True)
            return [placed(operand, shape, start).reshape(-1) for operand, start in pairs]
        except ValueError:
            return None


def placed(operand: np.ndarray, shape: tuple[int, ...], start: int) -> np.ndarray:
    """Expand an operand whose first dimension lies on the dimension ``start`` of a shape.

    Raises:
        ValueError: if it does not fit.
    """
    after = len(shape) - start - operand.ndim
    if start < 0 or after < 0:
        raise ValueError(f"{operand.shape} does not lie in {shape} from {start} on")
    return np.broadcast_to(operand.reshape((1,) * start + operand.shape + (1,) * after), shape)


def _at_the_ends(operands: Operands, rank: int) -> Sequence[int]:
    return [rank - operand.ndim for operand in operands]


def _first_of_b(operands: Operands) -> Operands:
    """A, and the first element of every other operand, if it has one."""
    return (operands[0], *map(_first, operands[1:]))


def _first(operand: np.ndarray) -> np.ndarray:
    return operand.reshape(-1)[:1].reshape((min(operand.size, 1),) * operand.ndim)


WRONG_ALIGNMENTS: tuple[Alignment, ...] = (
    Alignment("axis_ignored", "axis is ignored: the ends of the shapes are aligned", _at_the_ends),
    Alignment(
        "axis_taken_as_0",
        "axis is taken as 0: the starts of the shapes are aligned",
        lambda operands, _rank: [0] * len(operands),
    ),
    Alignment("first_element_of_b", "B's first element is used everywhere", _at_the_ends, _first_of_b),
)
"""Simplest first."""


def is_alignment(slug: str) -> bool:
    """Whether a fault pairs the wrong elements, so that the shapes show it and single elements do not."""
    return any(alignment.slug == slug for alignment in WRONG_ALIGNMENTS)
