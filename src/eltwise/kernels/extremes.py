"""The largest or smallest of elements, as the operators maximum and minimum say: NaN if one is, and +0 above -0."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from eltwise.core.dtypes import FLOAT32, FLOAT64, ElementType
from eltwise.kernels.float_mode import quietly
from eltwise.ops import primitives

Extreme = Literal["maximum", "minimum"]


@dataclass(frozen=True, eq=False)
class Extremes:
    """The extremes of several outputs.

    Attributes:
        function: which of the two.
        element_type: of the elements.
        count: how many elements each has; with none the values mean nothing.
        values: one for each output.
    """

    function: Extreme
    element_type: ElementType
    count: int
    values: np.ndarray

    def __add__(self, other: Extremes) -> Extremes:
        """Merge the extremes of other elements of the same outputs."""
        if not self.count or not other.count:
            return self if self.count else other
        function = primitives.find(self.function).numpy_function(self.element_type)
        values = np.asarray(quietly(function, self.values, other.values))
        return Extremes(self.function, self.element_type, self.count + other.count, values)

    def reshaped(self, shape: tuple[int, ...]) -> Extremes:
        """The same with outputs of another shape."""
        return Extremes(self.function, self.element_type, self.count, self.values.reshape(shape))


class ExtremeBlocks:
    """Takes blocks of elements; one for each thread.

    Attributes:
        block: where the elements of a block are written: rows of outputs.
    """

    def __init__(self, function: Extreme, element_type: ElementType, rows: int, columns: int) -> None:
        self._function: Extreme = function
        self._type = element_type
        self.block = np.zeros((rows, columns), element_type.storage)
        self._none = self._found = Extremes(function, element_type, 0, self.block[:0].reshape(0))

    def add(self, rows: int) -> None:
        """Take in the first rows of the block."""
        values = quietly(_extremes, self._function, self._type, self.block[:rows])
        self._found += Extremes(self._function, self._type, rows, values)

    def partial(self) -> Extremes:
        """The extremes of what was taken in since the last partial."""
        found, self._found = self._found, self._none
        return found


def _extremes(function: Extreme, element_type: ElementType, block: np.ndarray) -> np.ndarray:
    """The extreme of each column."""
    reduce = np.maximum.reduce if function == "maximum" else np.minimum.reduce
    if element_type.kind != "float":
        if element_type.bits < 8 and element_type.is_integer:
            return np.asarray(reduce(block.astype(np.int8), axis=0)).astype(element_type.storage)
        return np.asarray(reduce(block, axis=0))
    wide = block if element_type in (FLOAT32, FLOAT64) else block.astype(np.float32)
    found = np.asarray(reduce(wide, axis=0))
    zero = found == 0
    if zero.any():  # NumPy does not tell the zeros apart.
        is_wanted = np.signbit(wide) == (function == "minimum")
        has_wanted = ((wide == 0) & is_wanted).any(axis=0)
        sign = np.where(has_wanted == (function == "minimum"), -1.0, 1.0)
        found = np.where(zero, np.copysign(found.dtype.type(0), sign), found).astype(found.dtype)
    return found.astype(element_type.storage)
