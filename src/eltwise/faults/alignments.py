"""The faults that pair the wrong elements of operands: another dimension is broadcast than specified."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from eltwise.faults.families import WRONG_ALIGNMENT
from eltwise.faults.record import Align, Fault

Sizes = tuple[int, ...]
Start = Callable[[int, int], int]
"""Gives for the ranks of the result and an operand the dimension of the result on which the operand begins."""


def placed(operand: np.ndarray, shape: Sizes, start: int) -> np.ndarray:
    """Expand an operand whose first dimension lies on the dimension ``start`` of a shape.

    Raises:
        ValueError: if it does not fit.
    """
    after = len(shape) - start - operand.ndim
    if start < 0 or after < 0:
        raise ValueError(f"{operand.shape} does not lie in {shape} from {start} on")
    return np.broadcast_to(operand.reshape((1,) * start + operand.shape + (1,) * after), shape)


def aligned(operands: Iterable[np.ndarray], shape: Sizes, start: Start) -> list[np.ndarray] | None:
    """Expand operands to a shape, as views; None where they do not fit."""
    try:
        return [placed(operand, shape, start(len(shape), operand.ndim)) for operand in operands]
    except ValueError:
        return None


def _at_the_ends(rank: int, operand_rank: int) -> int:
    return rank - operand_rank


def _first(operand: np.ndarray) -> np.ndarray:
    """The first element of an operand, if it has one."""
    return operand.reshape(-1)[:1].reshape((min(operand.size, 1),) * operand.ndim)


def _wrong(slug: str, text: str, align: Align) -> Fault:
    return Fault(slug, WRONG_ALIGNMENT, text, align=align)


WRONG_ALIGNMENTS = (
    _wrong(
        "axis_ignored",
        "axis is ignored: the ends of the shapes are aligned",
        lambda operands, shape: aligned(operands, shape, _at_the_ends),
    ),
    _wrong(
        "axis_taken_as_0",
        "axis is taken as 0: the starts of the shapes are aligned",
        lambda operands, shape: aligned(operands, shape, lambda _rank, _operand_rank: 0),
    ),
    _wrong(
        "first_element_of_b",
        "B's first element is used everywhere",
        lambda operands, shape: aligned((operands[0], *map(_first, operands[1:])), shape, _at_the_ends),
    ),
)
"""Simplest first."""


def is_alignment(slug: str) -> bool:
    """Whether a fault pairs the wrong elements, so that the shapes show it and single elements do not."""
    return any(alignment.slug == slug for alignment in WRONG_ALIGNMENTS)
