"""The one cache of what computes calls on arrays: of computations, of reductions and of whole models."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TypeVar

import numpy as np

PreparedT = TypeVar("PreparedT")

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


def types_and_ranks(operands: Sequence[np.ndarray]) -> Hashable:
    """What of a call does not depend on sizes."""
    return tuple([part for each in operands for part in (each.dtype, each.ndim)])
