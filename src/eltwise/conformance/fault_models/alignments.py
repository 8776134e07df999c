"""How operands are paired for broadcasting: as specified, and the ways in which runtimes get it wrong."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from eltwise.conformance.cases import Case

Sizes = tuple[int, ...]
Aligned = tuple[np.ndarray, ...]


@dataclass(frozen=True)
class Alignment:
    """A way to pair operands.

    Attributes:
        name: its name.
        text: what happens, as a clause for users.
        starts: the dimension of a result of some rank on which each operand begins; None if it does not apply.
        change: what operands are changed to first.
    """

    name: str
    text: str
    starts: Callable[[Case, int], Sequence[int] | None]
    change: Callable[[Aligned], Aligned] | None = None

    def align(self, case: Case, shape: Sizes) -> Aligned | None:
        """Expand the operands to the shape of the result; None if they cannot be paired so."""
        starts = self.starts(case, len(shape))
        if starts is None:
            return None
        try:
            operands = case.operands if self.change is None else self.change(case.operands)
            return tuple(_placed(operand, shape, start) for operand, start in zip(operands, starts, strict=True))
        except ValueError:
            return None


def _at_the_ends(case: Case, rank: int) -> Sequence[int]:
    return [rank - operand.ndim for operand in case.operands]


def _from_the_end(case: Case, rank: int) -> Sequence[int] | None:
    axis = dict(case.attributes).get("axis")
    return [0, rank - case.operands[1].ndim - axis] if isinstance(axis, int) and len(case.operands) == 2 else None


def _placed(operand: np.ndarray, shape: Sizes, start: int) -> np.ndarray:
    """Expand an operand whose first dimension lies on the dimension ``start`` of a shape."""
    after = len(shape) - start - operand.ndim
    if start < 0 or after < 0:
        raise ValueError(f"{operand.shape} does not lie in {shape} from {start} on")
    return np.broadcast_to(operand.reshape((1,) * start + operand.shape + (1,) * after), shape)


def _first_of_b(operands: Aligned) -> Aligned:
    return (operands[0], *(operand.reshape(-1)[:1].reshape((1,) * operand.ndim) for operand in operands[1:]))


def _transposed_b(operands: Aligned) -> Aligned:
    return (operands[0], *(operand.T for operand in operands[1:]))


SPECIFIED = Alignment("as specified", "operands are paired as specified", lambda case, _rank: case.starts())

WRONG_ALIGNMENTS: tuple[Alignment, ...] = (
    Alignment("axis ignored", "axis is ignored: the ends of the shapes are aligned", _at_the_ends),
    Alignment(
        "axis taken as 0",
        "axis is taken as 0: the starts of the shapes are aligned",
        lambda case, _rank: [0] * len(case.operands),
    ),
    Alignment("axis from the end", "axis is counted from the end", _from_the_end),
    Alignment("B transposed", "the dimensions of B are reversed", _at_the_ends, _transposed_b),
    Alignment("first element of B", "B's first element is used everywhere", _at_the_ends, _first_of_b),
)
"""Simplest first."""
