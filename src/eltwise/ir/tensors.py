"""Tensors, in memory or in files: type and shape at once, elements in ranges when they are asked for.

A tensor is read as flat ranges in C order, as boxes, or at single positions. Memory is bounded by what is asked for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from eltwise.core.blocks import Box, boxes
from eltwise.core.dtypes import ElementType, native, not_run, of_numpy
from eltwise.core.errors import ElementTypeError, EltwiseError
from eltwise.core.shapes import of_sizes
from eltwise.ir.types import TensorType

_OTHER_STORAGE = ("float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu", "float4_e2m1fn")
"""Types that are not run, of which ml_dtypes can still tell the values."""


@dataclass(frozen=True)
class Packing:
    """How a file stores elements in blocks that lose digits.

    Attributes:
        name: what the format calls it.
        size: how many elements, one after another, are a block.
        through: what rows of so many float32 numbers are once they are packed and unpacked again.
    """

    name: str
    size: int
    through: Callable[[np.ndarray], np.ndarray]


class Source:
    """Where the elements of a tensor are. Arrays that it gives have native byte order and must not be written.

    Attributes:
        shape: the sizes of the tensor.
        is_external: whether a model's file says that they are in another one.
        is_sparse: whether only the elements that are not zero are stored.
        packing: how the file packs them, where that loses digits and is known.
    """

    shape: tuple[int, ...]
    is_external = False
    is_sparse = False
    packing: Packing | None = None

    @property
    def grain(self) -> int:
        """How many elements are best read at a time; ranges of other sizes are slower."""
        return 1

    @property
    def array(self) -> np.ndarray:
        """All elements."""
        return self.read(0, math.prod(self.shape)).reshape(self.shape)

    def opened(self) -> Source:
        """A source of the same elements that retains nothing of what is read."""
        return self

    def read(self, start: int, stop: int) -> np.ndarray:
        """Read a range of elements in C order, flat: part by part, where a source has only parts."""
        parts = [self.box(box).reshape(-1) for box in boxes(self.shape, start, stop)]
        if not parts:
            return self.box(tuple(slice(0, 0) for _size in self.shape)).reshape(-1)[:0]
        return np.ascontiguousarray(parts[0]) if len(parts) == 1 else np.concatenate(parts)

    def box(self, box: Box) -> np.ndarray:
        """Read a part of the tensor, with its rank; every slice has a start and a stop and no step."""
        raise NotImplementedError

    def at(self, indices: np.ndarray) -> np.ndarray:
        """Read single elements by their flat indices."""
        raise NotImplementedError


class Tensor:
    """Elements of one type, in memory or in a file; equal to another tensor when type, shape and bits are equal.

    Attributes:
        source: where its elements are.
        shape: its sizes.
        name: what it is called, in errors and in sets of tensors; "" where whoever holds it knows its name.
        where: the file, for errors.
    """

    def __init__(
        self, elements: np.ndarray | Source, kind: ElementType | TensorType, name: str = "", where: str = ""
    ) -> None:
        """Hold an array, read-only and contiguous, or what a source gives."""
        if isinstance(elements, np.ndarray):
            if isinstance(kind, ElementType) and elements.dtype != kind.storage:
                raise TypeError(f"an array of {elements.dtype} is no {kind}")
            array = np.ascontiguousarray(elements).reshape(elements.shape).view()
            array.flags.writeable = False
            elements = InMemory(array)
        self.source: Source = elements
        self.shape = elements.shape
        self.name, self.where, self._kind = name, where, kind
        if isinstance(kind, ElementType):
            self.element_type = kind

    @property
    def type(self) -> TensorType:
        """Its element type and shape. What a file says of a tensor may be no type that one can have."""
        kind = self._kind
        return kind if isinstance(kind, TensorType) else TensorType(kind, of_sizes(self.shape))

    @cached_property
    def element_type(self) -> ElementType:
        """The type of its elements.

        Raises:
            ElementTypeError: where its file states none that is known.
        """
        if self.type.element_type is None:
            raise ElementTypeError("the element type is missing or unknown", got=self.type.other or "none")
        return self.type.element_type

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

    @property
    def is_sparse(self) -> bool:
        """Whether only the elements that are not zero are stored."""
        return self.source.is_sparse

    @property
    def is_external(self) -> bool:
        """Whether a model's file says that its elements are in another one."""
        return self.source.is_external

    @property
    def array(self) -> np.ndarray:
        """All elements; those that are in a file are read each time.

        Raises:
            EltwiseError: where the file does not give them.
        """
        return self._located(lambda: self.source.array)

    def read(self, start: int = 0, stop: int | None = None) -> np.ndarray:
        """Read a range of elements in C order as a flat array; by default all."""
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
            raise error.located(where=self.where, operand=f"tensor {self.name!r}" if self.name else "") from None

    def opened(self, name: str, where: str) -> Tensor:
        """The tensor under a name of a set; what is read of it is not retained."""
        return Tensor(self.source.opened(), self.element_type, name, where)

    def renamed(self, name: str) -> Tensor:
        """The same tensor with another name."""
        return Tensor(self.source, self._kind, name, self.where)

    def transposed(self, axes: Sequence[int]) -> Tensor:
        """The same elements with the axes in another order, still unread."""
        return Tensor(Transposed(self.source, tuple(axes)), self.element_type, self.name, self.where)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tensor):
            return NotImplemented
        if self.source == other.source:
            return True
        try:
            same_type = self.element_type is other.element_type and self.shape == other.shape
            return same_type and self.array.tobytes() == other.array.tobytes()
        except EltwiseError:
            return False  # One of them has no elements that can be read.

    def __hash__(self) -> int:
        return hash((self.element_type.name, self.shape, self.array.tobytes()))

    def __repr__(self) -> str:
        return f"Tensor({self.type})"


def storage_of(element_type: ElementType) -> np.dtype[np.generic]:
    """The NumPy type that holds elements of a type, also of one that is not run.

    Raises:
        ElementTypeError: for a type whose values nothing here knows.
    """
    if element_type.numpy is not None:
        return element_type.numpy
    if element_type.name in _OTHER_STORAGE:
        import ml_dtypes  # Few files have these types.

        storage: np.dtype[np.generic] = np.dtype(getattr(ml_dtypes, element_type.name))
        return storage
    raise not_run(element_type)


def of_array(name: str, array: np.ndarray, where: str = "") -> Tensor:
    """A named tensor that is a view of an array, of any byte order and memory layout.

    Raises:
        ElementTypeError: where its type is none that is known.
    """
    return Tensor(InMemory(array), of_numpy(array.dtype), name, where)


class InMemory(Source):
    """An array."""

    def __init__(self, elements: np.ndarray) -> None:
        self.elements, self.shape = elements, elements.shape

    @property
    def array(self) -> np.ndarray:
        """The array."""
        return native(self.elements)

    def read(self, start: int, stop: int) -> np.ndarray:
        """A view where the array is contiguous."""
        if self.elements.flags.c_contiguous:
            return native(self.elements.reshape(-1)[start:stop])
        return super().read(start, stop)

    def box(self, box: Box) -> np.ndarray:
        """A view."""
        return native(self.elements[box])

    def at(self, indices: np.ndarray) -> np.ndarray:
        """Gather elements."""
        if not self.elements.ndim:
            return native(np.broadcast_to(self.elements, indices.shape))
        return native(self.elements[np.unravel_index(indices, self.elements.shape)])


class Transposed(Source):
    """Another source with its axes in another order."""

    def __init__(self, inner: Source, axes: tuple[int, ...]) -> None:
        self.inner, self.axes = inner, axes
        self.shape = tuple(inner.shape[axis] for axis in axes)

    @property
    def grain(self) -> int:
        """Whole rows."""
        return max(math.prod(self.shape[1:]), 1)

    def box(self, box: Box) -> np.ndarray:
        """Read the inner part and transpose it."""
        inner: list[slice] = [slice(0)] * len(box)
        for bounds, axis in zip(box, self.axes, strict=True):
            inner[axis] = bounds
        return self.inner.box(tuple(inner)).transpose(self.axes)

    def at(self, indices: np.ndarray) -> np.ndarray:
        """Gather elements by the inner indices."""
        inner = [indices] * len(self.axes)
        for coordinates, axis in zip(np.unravel_index(indices, self.shape), self.axes, strict=True):
            inner[axis] = coordinates
        return self.inner.at(np.ravel_multi_index(tuple(inner), self.inner.shape))
