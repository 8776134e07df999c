"""The one cache of what computes calls on arrays: of computations, of reductions and of whole models."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar

import numpy as np

PreparedT = TypeVar("PreparedT")

OfAnySize = Callable[[Sequence[np.ndarray]], np.ndarray | None]
"""Computes operands of whatever sizes; None where they do not go together, or a prepared call is faster."""

MOST_CALLS = 4096
"""From so many sets of types and shapes on a cache starts anew: a program that makes more repeats few of them."""


class CallCache(dict[Hashable, PreparedT]):
    """What was prepared for calls, by the types and shapes of their arrays; see ``key_of``.

    These are all that the check of a call reads, so that a call that is found needs no check again. Strides and
    addresses are no part of it; the kernels look at them.
    """

    def add(self, key: Hashable, prepared: PreparedT) -> None:
        """Keep what was prepared for a call."""
        if len(self) >= MOST_CALLS:
            self.clear()
        if key is not None:
            self[key] = prepared


def key_of(operands: Sequence[object], out: object = None, names: tuple[str, ...] = ()) -> Hashable:
    """The key of a call.

    Args:
        operands: of any kind.
        out: the array for the result, or None.
        names: what else the call depends on.

    Returns:
        The key; None, under which nothing is kept, where something is not a plain array or is read-only.
    """
    parts: list[Hashable] = [*names]
    for array in operands:
        if type(array) is not np.ndarray:
            return None
        parts += (array.dtype, array.shape)
    if out is not None:
        if type(out) is not np.ndarray or not out.flags.writeable:
            return None
        parts += (out.dtype, out.shape, out.strides)
    return tuple(parts)


class SizelessCalls:
    """What computes operands of any sizes, by their types and ranks: a call is prepared when its sizes come back."""

    def __init__(self) -> None:
        self._by_types: dict[Hashable, OfAnySize] = {}
        self._met: set[Hashable] = set()

    def add(self, operands: Sequence[np.ndarray], compute: OfAnySize) -> OfAnySize:
        """Keep what computes operands like these, if there is none; give what is kept."""
        return self._by_types.setdefault(_types_and_ranks(operands), compute)

    def compute(self, key: Hashable, operands: Sequence[np.ndarray]) -> np.ndarray | None:
        """The result of a call, given its key; None where it was met before, or nothing computes it."""
        compute = None if key is None or key in self._met else self._by_types.get(_types_and_ranks(operands))
        if compute is None:
            return None
        if len(self._met) >= MOST_CALLS:
            self._met.clear()
        self._met.add(key)
        return compute(operands)


def _types_and_ranks(operands: Sequence[np.ndarray]) -> Hashable:
    return tuple([part for each in operands for part in (each.dtype, each.ndim)])
