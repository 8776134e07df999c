"""The one cache of what computes calls on arrays: of computations, of reductions and of whole models."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Generic, TypeVar

import numpy as np

PreparedT = TypeVar("PreparedT")

MOST_CALLS = 4096
"""From so many sets of types and shapes on a cache starts anew: a program that makes more repeats few of them."""


class CallCache(Generic[PreparedT]):
    """What was prepared for calls, by the types and shapes of their arrays.

    These are all that the check of a call reads, so that a call that is found needs no check again. Strides and
    addresses are no part of it; the kernels look at them.
    """

    def __init__(self) -> None:
        self._prepared: dict[Hashable, PreparedT] = {}

    def __len__(self) -> int:
        return len(self._prepared)

    def find(self, operands: Sequence[object], out: object = None, names: tuple[str, ...] = ()) -> PreparedT | None:
        """What was prepared for operands and results like these; None where nothing was.

        Args:
            operands: of any kind; only calls on NumPy arrays are ever found.
            out: the array for the result, or None.
            names: what else the call depends on.
        """
        return self._prepared.get(_key(operands, out, names))

    def add(
        self, operands: Sequence[object], prepared: PreparedT, out: object = None, names: tuple[str, ...] = ()
    ) -> None:
        """Keep what was prepared for calls like this one."""
        key = _key(operands, out, names)
        if len(self._prepared) >= MOST_CALLS:
            self._prepared.clear()
        if key is not None:
            self._prepared[key] = prepared


def _key(operands: Sequence[object], out: object, names: tuple[str, ...]) -> Hashable:
    """The key of a call; None, which is never a key, where something is not a plain array or is read-only."""
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
