"""The oracle's broadcast rules: shapes of results, and which elements of the operands lie where.

Sources: ONNX's Broadcasting page; OpenVINO's broadcast rules. What they leave open is decided in docs/semantics.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from eltwise.oracle.elements import OracleRefusal, Sizes

RuleName = Literal["none", "numpy", "pdpd", "legacy", "channel"]


@dataclass(frozen=True)
class Placement:
    """Where the operands lie in the result.

    Attributes:
        shape: the shape of the result.
        a_start: the dimension of the result that A's first dimension lies on.
        b_start: the same for B.
    """

    shape: Sizes
    a_start: int
    b_start: int


def place_all(
    rule: RuleName, shapes: Sequence[Sizes], axis: int = -1, enabled: bool = True, base: int = 0
) -> tuple[Sizes, tuple[int, ...]]:
    """The shape of the result and the dimension that each operand starts at; the rest is as for ``place``.

    Args:
        rule: the broadcast rule; ``legacy`` is one of two operands.
        shapes: those of the operands.
        axis: the dimension of the base that other operands start at.
        enabled: as for ``place``.
        base: which operand is A, where the rule broadcasts B onto A.

    >>> place_all("numpy", [(3,), (2, 1), ()])
    ((2, 3), (1, 0, 2))
    """
    if rule not in get_args(RuleName):
        raise ValueError(f"there is no broadcast rule {rule!r}")
    if rule == "legacy" and len(shapes) != 2:
        raise ValueError(f"legacy broadcasts two operands, not {len(shapes)}")
    shape, starts = shapes[base], [0] * len(shapes)
    for index, other in enumerate(shapes):
        if index != base:
            placement = place(rule, shape, other, axis, enabled)
            shape, starts[index] = placement.shape, placement.b_start
    if rule == "numpy":
        starts = [len(shape) - len(operand_shape) for operand_shape in shapes]
    return shape, tuple(starts)


def place(rule: RuleName, a: Sizes, b: Sizes, axis: int = -1, enabled: bool = True) -> Placement:
    """Apply a broadcast rule to the shapes of A and B; the arguments and errors are those of ``evaluate``.

    >>> place("legacy", (2, 3, 4, 5), (3, 4), axis=1)
    Placement(shape=(2, 3, 4, 5), a_start=0, b_start=1)
    """
    if rule == "numpy":
        return _place_numpy(a, b)
    if rule == "pdpd":
        return _place_pdpd(a, b, axis)
    if rule == "channel":
        return _place_channel(a, b)
    if rule == "legacy" and enabled:
        return _place_legacy(a, b, axis)
    if a != b:
        raise OracleRefusal(f"A has shape {a} and B {b}; without broadcasting they must be equal")
    return Placement(a, 0, 0)


def _place_numpy(a: Sizes, b: Sizes) -> Placement:
    rank = max(len(a), len(b))
    a_start, b_start = rank - len(a), rank - len(b)
    padded_a, padded_b = (1,) * a_start + a, (1,) * b_start + b
    return Placement(tuple(map(_joined_size, padded_a, padded_b)), a_start, b_start)


def _place_pdpd(a: Sizes, b: Sizes, axis: int) -> Placement:
    start = _start_of_run(a, b, axis)
    shape = list(a)
    for dimension, size in enumerate(b, start):
        if size > a[dimension]:
            raise OracleRefusal(f"dimension {dimension}: B's {size} is larger than A's {a[dimension]}")
        shape[dimension] = _joined_size(a[dimension], size)
    return Placement(tuple(shape), 0, start)


def _place_channel(a: Sizes, b: Sizes) -> Placement:
    """A B of one dimension of the size of A's second one lies there; the result always has A's shape."""
    if len(b) == 1 and a[1:2] == b:
        return Placement(a, 0, 1)
    placement = _place_numpy(a, b)
    if placement.shape != a:
        raise OracleRefusal(f"B's shape {b} does not broadcast onto A's {a}")
    return placement


def _place_legacy(a: Sizes, b: Sizes, axis: int) -> Placement:
    _refuse_larger_rank(a, b)
    if a == b or all(size == 1 for size in b):
        return Placement(a, 0, len(a) - len(b))
    start = _start_of_run(a, b, axis)
    for position, size in enumerate(b):
        expected = a[start + position]
        if size == expected:
            continue
        if size != 1:
            raise OracleRefusal(f"dimension {start + position}: A has {expected} and B {size}")
        if any(before != 1 for before in b[:position]) and any(after != 1 for after in b[position:]):
            raise OracleRefusal(f"dimension {start + position}: a 1 between B's other dimensions does not expand")
    return Placement(a, 0, start)


def _start_of_run(a: Sizes, b: Sizes, axis: int) -> int:
    """The dimension of A that B starts at, where B lies wholly inside A."""
    _refuse_larger_rank(a, b)
    start = len(a) - len(b) if axis == -1 else axis
    if start < 0 or start + len(b) > len(a):
        raise OracleRefusal(f"axis {axis} is out of range for B of rank {len(b)} in A of rank {len(a)}")
    return start


def _refuse_larger_rank(a: Sizes, b: Sizes) -> None:
    if len(b) > len(a):
        raise OracleRefusal(f"B's rank {len(b)} is larger than A's rank {len(a)}")


def _joined_size(a: int, b: int) -> int:
    """The size that two sizes broadcast to when a 1 of either side expands."""
    if b in (a, 1):
        return a
    if a == 1:
        return b
    raise OracleRefusal(f"sizes {a} and {b} do not broadcast")


@lru_cache(1024)
def flat_positions(shape: Sizes, operand: Sizes, start: int) -> npt.NDArray[np.intp]:
    """Where the elements that an operand has for those of the result lie, both in C order; a size of 1 repeats."""
    positions = [0]
    for dimension, size in enumerate(shape):
        stored = operand[dimension - start] if start <= dimension < start + len(operand) else 1
        positions = [
            position * stored + (index if stored > 1 else 0) for position in positions for index in range(size)
        ]
    return np.array(positions, np.intp)
