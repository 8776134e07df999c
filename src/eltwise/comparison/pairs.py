"""Two tensors of one shape that are read together, brought to a common element type without loss."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from eltwise.comparison.numbers import bits_of, is_float
from eltwise.core.dtypes import (
    FLOAT32,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    UINT8,
    UINT16,
    UINT32,
    UINT64,
    ElementType,
)
from eltwise.ir.tensors import InMemory, Tensor, storage_of
from eltwise.kernels.threads import run_together

_CHUNK_BYTES = 1 << 25
"""So much of each tensor is in memory at a time."""

_CHUNK_BYTES_IN_MEMORY = 1 << 28
_CONVERTED_ELEMENTS = 1 << 21
_LARGEST_GRAIN = 1 << 23
_WIDE = (UINT8, INT8, UINT16, INT16, UINT32, INT32, UINT64, INT64, FLOAT32, FLOAT64)


def common_type(a: ElementType, b: ElementType) -> ElementType | None:
    """The smallest type that holds every value of two types exactly; None where there is none."""
    if a is b:
        return a
    return next((one for one in _WIDE if one.holds(a) and one.holds(b)), None)


@dataclass(frozen=True, eq=False)
class Pair:
    """Two tensors of one shape.

    Attributes:
        a: the reference.
        b: what is compared with it.
        element_type: the type that both are read as.
    """

    a: Tensor
    b: Tensor
    element_type: ElementType

    @property
    def shape(self) -> tuple[int, ...]:
        """Their shape."""
        return self.a.shape

    @property
    def size(self) -> int:
        """How many elements each has."""
        return self.a.size

    @property
    def swapped(self) -> Pair:
        """The other way round."""
        return Pair(self.b, self.a, self.element_type)

    @property
    def digits_of_b(self) -> ElementType:
        """The type whose digits B has: of floats its own, which may keep less than the type that both are read as."""
        is_narrower = is_float(self.element_type) and is_float(self.b.element_type)
        return self.b.element_type if is_narrower else self.element_type

    def as_in_b(self, values: np.ndarray) -> np.ndarray:
        """Elements as B holds them."""
        if self.digits_of_b is self.element_type:
            return values
        return converted(values.astype(self.b.storage), self.element_type)

    def read_a(self, start: int, stop: int) -> np.ndarray:
        """Read a flat range of A."""
        return converted(self.a.read(start, stop), self.element_type)

    def read_b(self, start: int, stop: int) -> np.ndarray:
        """Read a flat range of B."""
        return converted(self.b.read(start, stop), self.element_type)

    def read(self, start: int, stop: int) -> tuple[np.ndarray, np.ndarray]:
        """Read a flat range of both at the same time."""
        arrays: dict[str, np.ndarray] = {}
        if isinstance(self.a.source, InMemory) and isinstance(self.b.source, InMemory):
            return self.read_a(start, stop), self.read_b(start, stop)

        def read_side(name: str) -> None:
            arrays[name] = (self.read_a if name == "a" else self.read_b)(start, stop)

        run_together([lambda: read_side("a"), lambda: read_side("b")])
        return arrays["a"], arrays["b"]

    def at(self, indices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Read single elements of both."""
        a, b = self.a.at(indices), self.b.at(indices)
        return converted(a, self.element_type), converted(b, self.element_type)

    def ranges(self, most: int | None = None) -> Iterator[tuple[int, int]]:
        """Cut all elements into flat ranges along the chunks of the files, of bounded or so many elements."""
        starts = self.starts(most)
        for start in starts:
            yield start, min(start + starts.step, starts.stop)

    def starts(self, most: int | None = None) -> range:
        """Where the flat ranges begin. A file may state more of them than a list can hold."""
        return range(0, self.b.size, self._whole_chunks(self._most_at_once if most is None else most))

    @property
    def _most_at_once(self) -> int:
        """How many elements are in memory at a time."""
        is_same = self.a.element_type is self.b.element_type is self.element_type
        is_held = isinstance(self.a.source, InMemory) and isinstance(self.b.source, InMemory)
        most = (_CHUNK_BYTES_IN_MEMORY if is_held else _CHUNK_BYTES) // storage_of(self.element_type).itemsize
        return most if is_same else min(most, _CONVERTED_ELEMENTS)

    def _whole_chunks(self, elements: int) -> int:
        """So many elements or fewer, as whole chunks of the files; one chunk where that is not too large."""
        grain = max(self.a.grain, self.b.grain)
        if grain <= elements:
            return elements // grain * grain
        return grain if grain <= _LARGEST_GRAIN else elements


def converted(array: np.ndarray, element_type: ElementType) -> np.ndarray:
    """Bring elements to a type that holds each of them; contiguous."""
    storage = storage_of(element_type)
    if array.dtype == storage:
        return np.ascontiguousarray(array)
    if array.dtype.kind not in "biuf":  # ml_dtypes convert to float32 and int8 without loss.
        array = array.astype(np.float32 if is_float(element_type) else np.int8)
    with np.errstate(invalid="ignore"):  # NumPy warns of signalling NaNs.
        return array.astype(storage)


def same_bits(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Where two contiguous arrays of one type have the same bits."""
    return np.asarray(bits_of(a) == bits_of(b))
