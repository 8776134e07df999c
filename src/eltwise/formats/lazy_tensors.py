"""Tensors that stay in their files: name, element type and shape at once, elements in ranges when they are asked for.

A tensor is read as flat ranges in C order, as boxes, or at single positions. Memory is bounded by what is asked for:
files are read with ``pread`` rather than mapped, so that a file that shrinks meanwhile is an error and not a crash, and
what was read does not stay in the process.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Lock
from typing import Protocol

import numpy as np

from eltwise.core.dtypes import BOOL, ElementType, not_run, of_numpy
from eltwise.core.errors import EltwiseError, FileFormatError, ShapeError
from eltwise.formats import files
from eltwise.formats.blobs import unpacked
from eltwise.kernels.pool import POOL

Box = tuple[slice, ...]
Clean = Callable[[np.ndarray], np.ndarray]
"""Checks the raw bytes of some elements and gives those of the values."""

_NEAR_BYTES = 1 << 14
"""What lies no farther apart is read at once; to read so much takes as long as to ask again."""

_MOST_READ = 1 << 24
"""So many bytes are read at once where elements are gathered."""

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
        try:
            return self.source.read(start, self.size if stop is None else stop)
        except EltwiseError as error:
            raise error.located(where=self.where, operand=f"tensor {self.name!r}") from None

    def box(self, box: Box) -> np.ndarray:
        """Read a part, given by a slice for each axis, as an array of the same rank."""
        try:
            return self.source.box(box)
        except EltwiseError as error:
            raise error.located(where=self.where, operand=f"tensor {self.name!r}") from None

    def at(self, indices: np.ndarray) -> np.ndarray:
        """Read the elements at some flat indices."""
        try:
            return self.source.at(indices)
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


def boxes(shape: Sequence[int], start: int, stop: int) -> Iterator[Box]:
    """The parts of a shape that make up a flat range, in C order.

    >>> [tuple((one.start, one.stop) for one in box) for box in boxes((3, 4), 2, 11)]
    [((0, 1), (2, 4)), ((1, 2), (0, 4)), ((2, 3), (0, 3))]
    """
    if start >= stop:
        return
    if not shape:
        yield ()
        return
    inner = math.prod(shape[1:])
    (first, before), (last, after) = divmod(start, inner), divmod(stop, inner)
    if first == last:
        yield from ((slice(first, first + 1), *box) for box in boxes(shape[1:], before, after))
        return
    if before:
        yield from ((slice(first, first + 1), *box) for box in boxes(shape[1:], before, inner))
        first += 1
    if first < last:
        yield (slice(first, last), *(slice(0, size) for size in shape[1:]))
    if after:
        yield from ((slice(last, last + 1), *box) for box in boxes(shape[1:], 0, after))


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
            return _native(self.array.reshape(-1)[start:stop])
        return read_boxes(self, self.array.shape, start, stop)

    def box(self, box: Box) -> np.ndarray:
        """A view."""
        return _native(self.array[box])

    def at(self, indices: np.ndarray) -> np.ndarray:
        """Gather elements."""
        if not self.array.ndim:
            return _native(np.broadcast_to(self.array, indices.shape))
        return _native(self.array[np.unravel_index(indices, self.array.shape)])


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


class OpenFile:
    """A file that stays open as long as something refers to it; a temporary one is removed after that."""

    def __init__(self, path: Path, is_temporary: bool = False) -> None:
        files.check_regular(path)
        try:
            self._descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
        except (OSError, ValueError) as error:
            raise files.unreadable(path, error) from None
        self._lock = Lock()
        self.path = path
        self._is_temporary = is_temporary
        self.size = os.fstat(self._descriptor).st_size

    def __del__(self) -> None:
        if hasattr(self, "_descriptor"):
            os.close(self._descriptor)
            if self._is_temporary:
                with suppress(OSError):
                    self.path.unlink()

    def bytes_at(self, offset: int, count: int) -> np.ndarray:
        """Read so many bytes.

        Raises:
            FileFormatError: where the file has become shorter or cannot be read.
        """
        found = POOL.empty((count,), np.dtype(np.uint8))  # Fresh memory for each chunk would take longer than the copy.
        view, done = found.data, 0
        try:
            while done < count:
                read = self._read_into(view[done:], offset + done)
                if not read:
                    raise FileFormatError("the file ended while it was read", where=str(self.path))
                done += read
        except OSError as error:
            raise files.unreadable(self.path, error) from None
        return found

    def _read_into(self, view: memoryview, offset: int) -> int:
        if hasattr(os, "preadv"):
            return os.preadv(self._descriptor, [view], offset)
        with self._lock:  # Windows has no read at an offset.
            os.lseek(self._descriptor, offset, os.SEEK_SET)
            data = os.read(self._descriptor, min(len(view), 1 << 24))
        view[: len(data)] = data
        return len(data)

    def runs_at(self, offset: int, starts: np.ndarray, count: int) -> np.ndarray:
        """Read runs of so many bytes each, at starts in ascending order, as the rows of an array.

        What lies near together is read at once. Nothing is mapped: a page that is touched can take 2 MiB of memory.
        """
        found = np.empty((starts.size, count), np.uint8)
        first = 0
        is_far = np.diff(starts) > count + _NEAR_BYTES
        ends = [*(np.flatnonzero(is_far) + 1).tolist(), starts.size] if starts.size else []
        for end in ends:
            while first < end:
                last = int(np.searchsorted(starts[first:end], starts[first] + max(_MOST_READ - count, 1))) + first
                begin = int(starts[first])
                data = self.bytes_at(offset + begin, int(starts[last - 1]) + count - begin)
                if last - first == 1:
                    found[first] = data
                else:
                    places = (starts[first:last] - begin)[:, None] + np.arange(count)
                    found[first:last] = data[places]
                first = last
        return found


@dataclass(frozen=True, eq=False)
class FileRange:
    """Elements that lie one after another in a file.

    Attributes:
        file: the file.
        offset: where they begin in it.
        shape: the sizes of the tensor.
        stored: the NumPy type in the file's byte order.
        is_packed: whether two elements of four bits share a byte.
        clean: what checks the bytes of elements.
    """

    file: OpenFile
    offset: int
    shape: tuple[int, ...]
    stored: np.dtype[np.generic]
    is_packed: bool = False
    clean: Clean | None = None

    def __post_init__(self) -> None:
        needed, present = self.file_bytes, self.file.size - self.offset
        if needed > present:
            raise FileFormatError(
                "the data lies beyond the end of the file",
                got=f"{needed} bytes at offset {self.offset}",
                allowed=f"up to byte {self.file.size}",
            )

    @property
    def file_bytes(self) -> int:
        """How many bytes of the file they take."""
        count = math.prod(self.shape)
        return (count + 1) // 2 if self.is_packed else count * self.stored.itemsize

    @property
    def grain(self) -> int:
        """Any even number of elements."""
        return 2 if self.is_packed else 1

    def read(self, start: int, stop: int) -> np.ndarray:
        """Read the bytes of a range."""
        if self.is_packed:
            pairs = self.file.bytes_at(self.offset + start // 2, (stop + 1) // 2 - start // 2)
            return self._values(unpacked(pairs, 2 * pairs.size)[start % 2 : start % 2 + stop - start])
        width = self.stored.itemsize
        return self._values(self.file.bytes_at(self.offset + start * width, (stop - start) * width))

    def box(self, box: Box) -> np.ndarray:
        """Read a part, run by run."""
        sizes = tuple(one.stop - one.start for one in box)
        if self.is_packed or not box:
            flat = np.ravel_multi_index(np.ogrid[box], self.shape) if self.shape else np.zeros((), np.int64)
            return self.at(np.asarray(flat).reshape(-1)).reshape(sizes)
        axis = next((axis for axis in reversed(range(len(box))) if sizes[axis] != self.shape[axis]), 0)
        step = math.prod(self.shape[axis + 1 :])
        starts = np.asarray(box[axis].start * step)
        for outer in range(axis):
            places = np.arange(box[outer].start, box[outer].stop) * math.prod(self.shape[outer + 1 :])
            starts = starts + places.reshape((-1,) + (1,) * (axis - 1 - outer))
        width = self.stored.itemsize
        runs = self.file.runs_at(self.offset, starts.reshape(-1) * width, sizes[axis] * step * width)
        return self._values(runs.reshape(-1)).reshape(sizes)

    def at(self, indices: np.ndarray) -> np.ndarray:
        """Gather elements."""
        width = self.stored.itemsize
        wanted = indices // 2 if self.is_packed else indices
        order = np.argsort(wanted, kind="stable")
        found = np.empty((indices.size, width), np.uint8)
        found[order] = self.file.runs_at(self.offset, wanted[order] * width, width)
        if self.is_packed:
            found = np.where(indices % 2 == 1, found[:, 0] >> np.uint8(4), found[:, 0] & np.uint8(15))
        return self._values(found.reshape(-1))

    def _values(self, data: np.ndarray) -> np.ndarray:
        clean = data if self.clean is None else self.clean(data)
        return _native(clean.view(self.stored))


def bytes_of_bool(data: np.ndarray) -> np.ndarray:
    """Refuse bytes that are no booleans."""
    if data.size and data.max() > 1:
        raise FileFormatError(f"the file holds bytes that are not {BOOL.name} values", got=str(data.max()))
    return data


def _native(array: np.ndarray) -> np.ndarray:
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def of_file(
    name: str, element_type: ElementType, shape: tuple[int, ...], file: OpenFile, offset: int, order: str = "<"
) -> LazyTensor:
    """A tensor whose elements lie one after another in a file, those of four bits two a byte.

    Raises:
        EltwiseError: where the file is too short, or the type is none that can be read.
    """
    where = str(file.path)
    try:
        if not 0 <= math.prod(size or 1 for size in shape) < 2**63 or min(shape, default=0) < 0:
            raise ShapeError("a tensor of these sizes is too large", got=str(shape))
        stored = storage_of(element_type).newbyteorder(order)  # type: ignore[arg-type]
        clean = bytes_of_bool if element_type is BOOL else None
        source = FileRange(file, offset, shape, stored, element_type.bits == 4, clean)
    except EltwiseError as error:
        raise error.located(where=where, operand=f"tensor {name!r}") from None
    return LazyTensor(name, element_type, shape, source, where)


@dataclass(frozen=True, eq=False)
class Spool:
    """Elements that must be read in order, such as compressed ones: copied once to a file without a name."""

    make: Callable[[], Source]
    _made: list[Source] = field(default_factory=list)

    @property
    def _source(self) -> Source:
        if not self._made:
            self._made.append(self.make())
        return self._made[0]

    @property
    def grain(self) -> int:
        """Any size is as good as another."""
        return 1

    def read(self, start: int, stop: int) -> np.ndarray:
        """Read from the copy."""
        return self._source.read(start, stop)

    def box(self, box: Box) -> np.ndarray:
        """Read from the copy."""
        return self._source.box(box)

    def at(self, indices: np.ndarray) -> np.ndarray:
        """Read from the copy."""
        return self._source.at(indices)
