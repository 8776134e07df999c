"""The largest or smallest of elements, as the operators maximum and minimum say: NaN if one is, and +0 above -0."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from eltwise.core.dtypes import FLOAT32, FLOAT64, ElementType
from eltwise.kernels.float_mode import only_default_mode, quietly


@dataclass(frozen=True, eq=False)
class Extremes:
    """The extremes of several outputs.

    Attributes:
        reduction: ``min`` or ``max``.
        element_type: of the elements.
        count: how many elements each has; with none the values mean nothing.
        values: one for each output.
    """

    reduction: str
    element_type: ElementType
    count: int
    values: np.ndarray

    def __add__(self, other: Extremes) -> Extremes:
        """Merge the extremes of other elements of the same outputs."""
        if not self.count or not other.count:
            return self if self.count else other
        with only_default_mode():  # Dask merges in its own threads.
            both = self.of(self.reduction, self.element_type, np.stack([self.values, other.values]))
        return replace(both, count=self.count + other.count)

    @classmethod
    def of(cls, reduction: str, element_type: ElementType, block: np.ndarray) -> Extremes:
        """The extremes of a block, rows of outputs."""
        count = len(block)
        values = quietly(_extremes, reduction, element_type, block) if count else np.zeros(block.shape[1:], block.dtype)
        return cls(reduction, element_type, count, values)

    @staticmethod
    def joined(parts: Sequence[Extremes], shape: tuple[int, ...]) -> Extremes:
        """The extremes of all outputs from those of some at a time, which have the same count."""
        values = np.concatenate([part.values for part in parts]).reshape(shape)
        return replace(parts[0], values=values)


def _extremes(reduction: str, element_type: ElementType, block: np.ndarray) -> np.ndarray:
    """The extreme of each column."""
    reduce = np.maximum.reduce if reduction == "max" else np.minimum.reduce
    if element_type.kind != "float":
        if element_type.bits < 8 and element_type.is_integer:
            return np.asarray(reduce(block.astype(np.int8), axis=0)).astype(element_type.storage)
        return np.asarray(reduce(block, axis=0))
    wide = block if element_type in (FLOAT32, FLOAT64) else block.astype(np.float32)
    extremes = np.asarray(reduce(wide, axis=0))
    zero = extremes == 0
    if zero.any():  # NumPy does not tell the zeros apart.
        is_wanted = np.signbit(wide) == (reduction == "min")
        has_wanted = ((wide == 0) & is_wanted).any(axis=0)
        sign = np.where(has_wanted == (reduction == "min"), -1.0, 1.0)
        extremes = np.where(zero, np.copysign(extremes.dtype.type(0), sign), extremes).astype(extremes.dtype)
    return extremes.astype(element_type.storage)
