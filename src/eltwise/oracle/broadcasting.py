"""The oracle's broadcast rules: shapes of results, and which elements of the operands lie where.

Sources: ONNX's Broadcasting page; OpenVINO's broadcast rules. What they leave open is decided in docs/semantics.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from eltwise.oracle.elements import OracleRefusal, Sizes

RuleName = Literal["none", "numpy", "pdpd", "legacy", "channel"]


def place(
    rule: RuleName, shapes: Sequence[Sizes], axis: int = -1, enabled: bool = True, base: int = 0
) -> tuple[Sizes, tuple[int, ...]]:
    """The shape of the result and the dimension that each operand starts at; errors are those of ``evaluate``.

    Args:
        rule: the broadcast rule; ``legacy`` is one of two operands.
        shapes: those of the operands.
        axis: the dimension of the base that other operands start at.
        enabled: as for ``evaluate``.
        base: which operand is A, where the rule broadcasts B onto A.

    >>> place("numpy", [(3,), (2, 1), ()]), place("legacy", [(2, 3, 4, 5), (3, 4)], axis=1)
    (((2, 3), (1, 0, 2)), ((2, 3, 4, 5), (0, 1)))
    """
    if rule not in get_args(RuleName):
        raise ValueError(f"there is no broadcast rule {rule!r}")
    if rule == "legacy" and len(shapes) != 2:
        raise ValueError(f"legacy broadcasts two operands, not {len(shapes)}")
    shape, starts = shapes[base], [0] * len(shapes)
    for index, other in enumerate(shapes):
        if index != base:
            shape, starts[index] = _joined(rule, shape, other, axis, enabled)
    if rule == "numpy":
        starts = [len(shape) - len(operand_shape) for operand_shape in shapes]
    return shape, tuple(starts)


def _joined(rule: RuleName, a: Sizes, b: Sizes, axis: int, enabled: bool) -> tuple[Sizes, int]:
    """The shape that A and B broadcast to, and the dimension of A that B starts at."""
    if rule == "numpy":
        return _numpy(a, b)
    if rule == "pdpd":
        return _pdpd(a, b, axis)
    if rule == "channel":
        return _channel(a, b)
    if rule == "legacy" and enabled:
        return _legacy(a, b, axis)
    if a != b:
        raise OracleRefusal(f"A has shape {a} and B {b}; without broadcasting they must be equal")
    return a, 0


def _numpy(a: Sizes, b: Sizes) -> tuple[Sizes, int]:
    rank = max(len(a), len(b))
    padded = [(1,) * (rank - len(each)) + each for each in (a, b)]
    return tuple(map(_joined_size, *padded)), rank - len(b)


def _pdpd(a: Sizes, b: Sizes, axis: int) -> tuple[Sizes, int]:
    start = _start_of_run(a, b, axis)
    shape = list(a)
    for dimension, size in enumerate(b, start):
        if size > a[dimension]:
            raise OracleRefusal(f"dimension {dimension}: B's {size} is larger than A's {a[dimension]}")
        shape[dimension] = _joined_size(a[dimension], size)
    return tuple(shape), start


def _channel(a: Sizes, b: Sizes) -> tuple[Sizes, int]:
    """A B of one dimension of the size of A's second one lies there; the result always has A's shape."""
    if len(b) == 1 and a[1:2] == b:
        return a, 1
    shape, start = _numpy(a, b)
    if shape != a:
        raise OracleRefusal(f"B's shape {b} does not broadcast onto A's {a}")
    return shape, start


def _legacy(a: Sizes, b: Sizes, axis: int) -> tuple[Sizes, int]:
    _refuse_larger_rank(a, b)
    if a == b or all(size == 1 for size in b):
        return a, len(a) - len(b)
    start = _start_of_run(a, b, axis)
    for position, size in enumerate(b):
        expected = a[start + position]
        if size == expected:
            continue
        if size != 1:
            raise OracleRefusal(f"dimension {start + position}: A has {expected} and B {size}")
        if any(before != 1 for before in b[:position]) and any(after != 1 for after in b[position:]):
            raise OracleRefusal(f"dimension {start + position}: a 1 between B's other dimensions does not expand")
    return a, start


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
