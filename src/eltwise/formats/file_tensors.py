"""Tensors whose elements lie one after another in a file, or that are unpacked into one.

Files are read with ``pread`` rather than mapped, so that a file that shrinks meanwhile is an error and not a crash, and
what was read does not stay in the process. Elements of 4 bits lie two in a byte, the first in the low half, as ONNX's
raw data and the ``.bin`` of OpenVINO IR have them.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, cached_property, partial
from pathlib import Path
from threading import Lock

import numpy as np

from eltwise.core.blocks import Box
from eltwise.core.dtypes import BOOL, ElementType, native
from eltwise.core.errors import EltwiseError, FileFormatError, ShapeError
from eltwise.core.shapes import LARGEST_RANK, is_addressable
from eltwise.formats import files
from eltwise.ir.tensors import Source, Tensor, storage_of
from eltwise.kernels.pool import POOL

Clean = Callable[[np.ndarray], np.ndarray]
"""Checks the raw bytes of some elements and gives those of the values."""

_NEAR_BYTES = 1 << 14
"""What lies no farther apart is read at once; to read so much takes as long as to ask again."""

_MOST_READ = 1 << 24
"""So many bytes are read at once where elements are gathered."""


_LARGEST_CHUNK = 1 << 30


class OpenFile:
    """A file that stays open as long as something refers to it; a temporary one is removed after that."""

    def __init__(self, path: Path, is_temporary: bool = False) -> None:
        files.check_regular(path)
        self.path, self._is_temporary, self._lock = path, is_temporary, Lock()
        with files.reading_errors(path):
            self._descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
            status = os.fstat(self._descriptor)
        self.size, self.state = status.st_size, files.state_of(status)

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
        data = POOL.empty((count,), np.dtype(np.uint8))  # Fresh memory for each chunk would take longer than the copy.
        view, done = data.data, 0
        try:
            while done < count:
                read = self._read_into(view[done:], offset + done)
                if not read:
                    raise FileFormatError("the file ended while it was read", where=str(self.path))
                done += read
        except OSError as error:  # Many files are read in small parts, of which a context would double the time.
            raise files.unreadable(self.path, error) from None
        return data

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
        rows = np.empty((starts.size, count), np.uint8)
        first = 0
        is_far = np.diff(starts) > count + _NEAR_BYTES
        ends = [*(np.flatnonzero(is_far) + 1).tolist(), starts.size] if starts.size else []
        for end in ends:
            while first < end:
                last = int(np.searchsorted(starts[first:end], starts[first] + max(_MOST_READ - count, 1))) + first
                begin = int(starts[first])
                data = self.bytes_at(offset + begin, int(starts[last - 1]) + count - begin)
                if last - first == 1:
                    rows[first] = data
                else:
                    places = (starts[first:last] - begin)[:, None] + np.arange(count)
                    rows[first:last] = data[places]
                first = last
        return rows


class MemoryFile(OpenFile):
    """The content of a file that is in memory; ``path`` is what errors call it."""

    def __init__(self, content: files.Buffer, path: Path) -> None:
        self.path, self.state = path, ""
        self._content = np.frombuffer(content, np.uint8)
        self.size = self._content.size

    def bytes_at(self, offset: int, count: int) -> np.ndarray:
        """A view of so many bytes."""
        return self._content[offset : offset + count]


class UnpackedFile(OpenFile):
    """A file that is made when it is first read, from bytes that must be read in order, such as compressed ones."""

    def __init__(self, packed: OpenFile, size: int, make: Callable[[], OpenFile]) -> None:
        self.path, self.state = packed.path, packed.state
        self.size = size
        self._make = make

    @cached_property
    def _made(self) -> OpenFile:
        return self._make()

    def bytes_at(self, offset: int, count: int) -> np.ndarray:
        """Read so many bytes of the file that was made."""
        return self._made.bytes_at(offset, count)


@dataclass(frozen=True, eq=False)
class FileRange(Source):
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
        if self.file_bytes > self.file.size - self.offset:
            raise FileFormatError(
                f"the data lies beyond the end of {self.file.path.name}",
                got=f"{self.file_bytes} bytes at offset {self.offset}",
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
        offsets = indices // 2 if self.is_packed else indices
        order = np.argsort(offsets, kind="stable")
        elements = np.empty((indices.size, width), np.uint8)
        elements[order] = self.file.runs_at(self.offset, offsets[order] * width, width)
        if self.is_packed:
            elements = np.where(indices % 2 == 1, elements[:, 0] >> np.uint8(4), elements[:, 0] & np.uint8(15))
        return self._values(elements.reshape(-1))

    def _values(self, data: np.ndarray) -> np.ndarray:
        clean = data if self.clean is None else self.clean(data)
        return native(clean.view(self.stored))


def _checked(element_type: ElementType, data: np.ndarray) -> np.ndarray:
    """Refuse bytes that are not values of the type; a 4-bit value fills the upper half with 0 or with its sign."""
    if element_type.bits < 8:
        clean = data & np.uint8(15)
        extended = data.view(np.int8) == (clean ^ np.uint8(8)).view(np.int8) - np.int8(8)
        valid = (data == clean) | (extended if element_type.kind == "signed" else False)
    else:
        clean, valid = data, data < 2
    if not np.all(valid):
        got = str(data[np.argmin(valid)])
        raise FileFormatError(f"the file holds bytes that are not {element_type.name} values", got=got)
    return clean


@cache
def _stored(element_type: ElementType, order: str) -> np.dtype[np.generic]:
    return storage_of(element_type).newbyteorder(order)  # type: ignore[arg-type]


def range_of(
    element_type: ElementType, shape: tuple[int, ...], file: OpenFile, offset: int, order: str = "<", packs: bool = True
) -> FileRange:
    """Elements that lie one after another in a file; where it ``packs`` them, two of four bits share a byte.

    Raises:
        EltwiseError: where the file is too short, or the type is none that can be read.
    """
    stored, is_packed = _stored(element_type, order), packs and element_type.bits == 4
    check_sizes(shape, stored.itemsize)
    needs_check = element_type is BOOL or (element_type.bits < 8 and not is_packed)
    return FileRange(file, offset, shape, stored, is_packed, partial(_checked, element_type) if needs_check else None)


def of_file(name: str, element_type: ElementType, shape: tuple[int, ...], file: OpenFile, offset: int) -> Tensor:
    """A named tensor whose elements lie in a file; see ``range_of``."""
    where = str(file.path)
    try:  # Checkpoints can have very many of these.
        source = range_of(element_type, shape, file, offset)
    except EltwiseError as error:
        raise error.located(where=where, operand=f"tensor {name!r}") from None
    return Tensor(source, element_type, name, where)


def check_sizes(sizes: Sequence[int], element_bytes: int) -> None:
    """Refuse sizes that no array of elements of so many bytes can have, before anything is allocated."""
    if len(sizes) > LARGEST_RANK:
        raise ShapeError("the rank is too large", got=str(len(sizes)), allowed=f"up to {LARGEST_RANK}")
    if not is_addressable(sizes, element_bytes):
        raise ShapeError("a tensor of these sizes is too large", got=",".join(map(str, sizes)))


def check_chunk(chunk: Sequence[int], element_bytes: int) -> None:
    """Refuse a chunk that is unpacked as a whole and takes too much memory, whatever its file says."""
    if math.prod(chunk) * element_bytes > _LARGEST_CHUNK:
        got, allowed = str(tuple(chunk)), f"up to {_LARGEST_CHUNK} bytes"
        raise FileFormatError("a chunk is too large", got=got, allowed=allowed)


def unpacked(pairs: np.ndarray, elements: int) -> np.ndarray:
    """Unpack elements of four bits; the first of a pair is the lower half of the byte."""
    halves = np.stack([pairs & np.uint8(15), pairs >> np.uint8(4)], axis=-1)
    return np.ascontiguousarray(halves.reshape(-1)[:elements])


def encode(tensor: Tensor) -> np.ndarray:
    """The bytes of a tensor as files hold them; they may share its memory."""
    flat = tensor.array.reshape(-1)
    carriers = flat.view(f"u{flat.itemsize}")
    if tensor.element_type.bits == 4:
        halves = np.zeros(2 * tensor.element_type.file_bytes(flat.size), np.uint8)
        halves[: flat.size] = carriers & np.uint8(15)
        return np.asarray(halves[0::2] | halves[1::2] << np.uint8(4))
    return carriers.astype(carriers.dtype.newbyteorder("<"), copy=False).view(np.uint8)
