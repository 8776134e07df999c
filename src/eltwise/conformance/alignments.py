"""How operands are paired for broadcasting: as specified, and the ways in which runtimes are known to get it wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from eltwise import oracle
from eltwise.conformance.cases import Case

Sizes = tuple[int, ...]
Pair = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Alignment:
    """A way to pair operands.

    Attributes:
        name: what it is called.
        text: what happens, as a clause for users.
        pair: gives both operands in the shape of the result; None where it can't.
    """

    name: str
    text: str
    pair: Callable[[Case, Sizes], Pair | None]


def _as_specified(case: Case, shape: Sizes) -> Pair | None:
    given = dict(case.attributes)
    axis = given.get("axis", -1)
    onto = case.schema.broadcasting == "legacy" or given.get("auto_broadcast") == "pdpd"
    if not onto or not isinstance(axis, int):
        return _ends_aligned(case, shape)
    rule: oracle.RuleName = "legacy" if case.schema.broadcasting == "legacy" else "pdpd"
    try:
        placement = oracle.place(rule, case.a.shape, case.b.shape, axis, given.get("broadcast", 0) == 1)
    except oracle.OracleRefusal:
        return None
    return _placed(case.a, shape, placement.a_start), _placed(case.b, shape, placement.b_start)


def _ends_aligned(case: Case, shape: Sizes) -> Pair | None:
    return _both(case.a, len(shape) - case.a.ndim, case.b, len(shape) - case.b.ndim, shape)


def _starts_aligned(case: Case, shape: Sizes) -> Pair | None:
    return _both(case.a, 0, case.b, 0, shape)


def _axis_from_the_end(case: Case, shape: Sizes) -> Pair | None:
    axis = dict(case.attributes).get("axis")
    if not isinstance(axis, int):
        return None
    return _both(case.a, 0, case.b, len(shape) - case.b.ndim - axis, shape)


def _in_memory_order(case: Case, shape: Sizes) -> Pair | None:
    size = int(np.prod(shape))
    if not case.a.size or not case.b.size:
        return None
    return np.resize(case.a, size), np.resize(case.b, size)


def _first_of_b(case: Case, shape: Sizes) -> Pair | None:
    if not case.b.size:
        return None
    first = case.b.reshape(-1)[:1].reshape(())
    return _both(case.a, len(shape) - case.a.ndim, first, len(shape), shape)


def _transposed_b(case: Case, shape: Sizes) -> Pair | None:
    return _both(case.a, len(shape) - case.a.ndim, case.b.T, len(shape) - case.b.ndim, shape)


def _both(a: np.ndarray, a_start: int, b: np.ndarray, b_start: int, shape: Sizes) -> Pair | None:
    try:
        return _placed(a, shape, a_start), _placed(b, shape, b_start)
    except ValueError:
        return None


def _placed(operand: np.ndarray, shape: Sizes, start: int) -> np.ndarray:
    """Expand an operand whose first dimension lies on the dimension ``start`` of a shape."""
    after = len(shape) - start - operand.ndim
    if start < 0 or after < 0:
        raise ValueError(f"{operand.shape} does not lie in {shape} from {start} on")
    return np.broadcast_to(operand.reshape((1,) * start + operand.shape + (1,) * after), shape)


SPECIFIED = Alignment("as specified", "operands are paired as specified", _as_specified)

WRONG_ALIGNMENTS: tuple[Alignment, ...] = (
    Alignment("axis ignored", "axis is ignored: the ends of the shapes are aligned", _ends_aligned),
    Alignment("axis taken as 0", "axis is taken as 0: the starts of the shapes are aligned", _starts_aligned),
    Alignment("axis from the end", "axis is counted from the end", _axis_from_the_end),
    Alignment("B transposed", "the dimensions of B are reversed", _transposed_b),
    Alignment("first element of B", "B's first element is used everywhere", _first_of_b),
    Alignment(
        "memory order",
        "operands are read in memory order, again from their start, without regard to shapes",
        _in_memory_order,
    ),
)
"""Simplest first."""
