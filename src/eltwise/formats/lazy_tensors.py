"""Tensors that stay in their files: name, element type and shape at once, elements in ranges when they are asked for.

A tensor is read as flat ranges in C order, as boxes, or at single positions. Memory is bounded by what is asked for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from eltwise.core.blocks import Box, boxes
from eltwise.core.dtypes import ElementType, not_run, of_numpy
from eltwise.core.errors import EltwiseError, FileFormatError

_OTHER_STORAGE = ("float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu", "float4_e2m1fn")
"""Types that are not run, of which ml_dtypes can still tell the values."""


class Source(Protocol):
    """Where the elements of a tensor are. Arrays that it gives have native byte order and must not be written."""

    @property
    def grain(self) -> int:
        """How many elements are best read at a time; ranges of other sizes are slower."""

    def read(self, start: int, stop: int) -> np.ndarray:
        """Read a range of elements in C order, flat."""

    def box(self, box: Box) -> np.ndarray:
        """Read a part of the tensor, with its rank; every slice has a start and a stop and no step."""

    def at(self, indices: np.ndarray) -> np.ndarray:
        """Read single elements by their flat indices."""


@dataclass(frozen=True, eq=False)
class LazyTensor:
    """A named tensor whose elements are read when they are asked for.

    Attributes:
        name: what it is called.
        element_type: the type of its elements.
        shape: its sizes.
        source: where its elements are.
        where: the file, for errors.
    """

    name: str
    element_type: ElementType
    shape: tuple[int, ...]
    source: Source
    where: str = ""

    @property
    def size(self) -> int:
        """How many elements it has."""
        return math.prod(self.shape)

    @property
    def storage(self) -> np.dtype[np.generic]:
        """The NumPy type of the arrays that are read."""
        return storage_of(self.element_type)

    @property
    def grain(self) -> int:
        """How many elements are best read at a time."""
        return self.source.grain

    def read(self, start: int = 0, stop: int | None = None) -> np.ndarray:
        """Read a range of elements in C order as a flat array; by default all.

        Raises:
            EltwiseError: where the file does not give them.
        """
        return self._located(self.source.read, start, self.size if stop is None else stop)

    def box(self, box: Box) -> np.ndarray:
        """Read a part, given by a slice for each axis, as an array of the same rank."""
        return self._located(self.source.box, box)

    def at(self, indices: np.ndarray) -> np.ndarray:
        """Read the elements at some flat indices."""
        return self._located(self.source.at, indices)

    def _located(self, read: Callable[..., np.ndarray], *arguments: object) -> np.ndarray:
        try:
            return read(*arguments)
        except EltwiseError as error:
            raise error.located(where=self.where, operand=f"tensor {self.name!r}") from None

    def array(self) -> np.ndarray:
        """Read all of it."""
        return self.read().reshape(self.shape)

    def renamed(self, name: str) -> LazyTensor:
        """The same tensor with another name."""
        return replace(self, name=name)

    def transposed(self, axes: Sequence[int]) -> LazyTensor:
        """The same elements with the axes in another order, still unread."""
        shape = tuple(self.shape[axis] for axis in axes)
        return LazyTensor(self.name, self.element_type, shape, Transposed(self.source, shape, tuple(axes)), self.where)


@dataclass(frozen=True)
class TensorSet(Mapping[str, LazyTensor]):
    """Named tensors in the order of their file.

    Attributes:
        where: the file or folder.
        tensors: the tensors by name.
        unreadable: the tensors, and in a folder the files, that cannot be read, with the reason.
        is_one: whether the format holds one tensor without a name.
        metadata: the names and texts that a checkpoint holds beside its tensors.
    """

    where: str
    tensors: dict[str, LazyTensor] = field(default_factory=dict)
    unreadable: dict[str, EltwiseError] = field(default_factory=dict)
    is_one: bool = False
    metadata: dict[str, str] = field(default_factory=dict)

    def __getitem__(self, name: str) -> LazyTensor:
        return self.tensors[name]

    def __contains__(self, name: object) -> bool:
        return name in self.tensors

    def __iter__(self) -> Iterator[str]:
        return iter(self.tensors)

    def __len__(self) -> int:
        return len(self.tensors)

    def add(self, name: str, make: Callable[..., LazyTensor], *arguments: Any) -> None:
        """Add the tensor that a function gives for some arguments, or the reason why it cannot be read."""
        if name in self.tensors or name in self.unreadable:
            raise FileFormatError(f"two tensors are called {name!r}", where=self.where)
        try:
            self.tensors[name] = make(*arguments)
        except EltwiseError as error:
            self.unreadable[name] = error.located(where=self.where, operand=f"tensor {name!r}")


def storage_of(element_type: ElementType) -> np.dtype[np.generic]:
    """The NumPy type that holds elements of a type, also of one that is not run.

    Raises:
        ElementTypeError: for a type whose values nothing here knows.
    """
    if element_type.numpy is not None:
        return element_type.numpy
    if element_type.name in _OTHER_STORAGE:
        import ml_dtypes  # Few files have these types.

        found: np.dtype[np.generic] = np.dtype(getattr(ml_dtypes, element_type.name))
        return found
    raise not_run(element_type)


def of_array(name: str, array: np.ndarray, where: str = "") -> LazyTensor:
    """A tensor that is in memory.

    Raises:
        ElementTypeError: where its type is none that is known.
    """
    element_type = of_numpy(array.dtype)
    return LazyTensor(name, element_type, array.shape, InMemory(array), where)


def read_boxes(source: Source, shape: Sequence[int], start: int, stop: int) -> np.ndarray:
    """Read a flat range part by part, from a source that has only parts."""
    parts = [source.box(box).reshape(-1) for box in boxes(shape, start, stop)]
    if not parts:
        return source.box(tuple(slice(0, 0) for _size in shape)).reshape(-1)[:0] if shape else source.box(())[:0]
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


@dataclass(frozen=True, eq=False)
class InMemory:
    """An array."""

    array: np.ndarray

    @property
    def grain(self) -> int:
        """Any size is as good as another."""
        return 1

    def read(self, start: int, stop: int) -> np.ndarray:
        """A view where the array is contiguous."""
        if self.array.flags.c_contiguous:
            return native(self.array.reshape(-1)[start:stop])
        return read_boxes(self, self.array.shape, start, stop)

    def box(self, box: Box) -> np.ndarray:
        """A view."""
        return native(self.array[box])

    def at(self, indices: np.ndarray) -> np.ndarray:
        """Gather elements."""
        if not self.array.ndim:
            return native(np.broadcast_to(self.array, indices.shape))
        return native(self.array[np.unravel_index(indices, self.array.shape)])


@dataclass(frozen=True, eq=False)
class Transposed:
    """Another source with its axes in another order; ``shape`` is the shape after that."""

    inner: Source
    shape: tuple[int, ...]
    axes: tuple[int, ...]

    @property
    def grain(self) -> int:
        """Whole rows."""
        return max(math.prod(self.shape[1:]), 1)

    def read(self, start: int, stop: int) -> np.ndarray:
        """Read part by part."""
        return np.ascontiguousarray(read_boxes(self, self.shape, start, stop))

    def box(self, box: Box) -> np.ndarray:
        """Read the inner part and turn it."""
        inner: list[slice] = [slice(0)] * len(box)
        for own, axis in zip(box, self.axes, strict=True):
            inner[axis] = own
        return self.inner.box(tuple(inner)).transpose(self.axes)

    def at(self, indices: np.ndarray) -> np.ndarray:
        """Gather elements by the inner indices."""
        coordinates = np.unravel_index(indices, self.shape)
        inner_shape, inner = [0] * len(self.axes), [indices] * len(self.axes)
        for place, axis in enumerate(self.axes):
            inner_shape[axis], inner[axis] = self.shape[place], coordinates[place]
        return self.inner.at(np.ravel_multi_index(tuple(inner), inner_shape))


def native(array: np.ndarray) -> np.ndarray:
    """The same values in the byte order of this machine."""
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))
