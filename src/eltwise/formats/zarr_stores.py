"""Arrays in zarr stores, read chunk by chunk with the zarr library, which is optional."""

from __future__ import annotations

import math
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np

from eltwise.core.dtypes import of_numpy
from eltwise.core.errors import FileFormatError, UnsupportedError
from eltwise.formats.blobs import check_sizes
from eltwise.formats.lazy_tensors import Box, LazyTensor, TensorSet, native, read_boxes

_MARKS = ("zarr.json", ".zarray", ".zgroup")
ERRORS = (
    *(OSError, ValueError, TypeError, RuntimeError, LookupError, AttributeError, ImportError),
    *(ArithmeticError, AssertionError, EOFError, BufferError, zlib.error),
)
"""What zarr, its codecs and fsspec raise for stores that cannot be opened."""

_LARGEST_CHUNK = 1 << 30
"""In bytes; zarr holds a whole chunk in memory."""


def is_store(path: Path) -> bool:
    """Whether a folder is a zarr array or group."""
    return any((path / mark).is_file() for mark in _MARKS)


def library(where: str) -> Any:
    """The package zarr.

    Raises:
        UnsupportedError: where it is not installed.
    """
    try:
        import zarr
    except ImportError:
        hint = "pip install 'eltwise[scale]'"
        raise UnsupportedError("a zarr store needs the package zarr", where=where, hint=hint) from None
    return zarr


def is_url(text: str) -> bool:
    """Whether a text names a store that fsspec opens."""
    return "://" in text


def open_store(path: Path | str) -> TensorSet:
    """Open a store; only the descriptions of its arrays are read.

    Raises:
        UnsupportedError: where zarr is not installed.
        FileFormatError: where zarr cannot open the store.
    """
    zarr = library(str(path))
    try:
        opened: Any = zarr.open(str(path), mode="r")
        is_one = isinstance(opened, zarr.Array)
        arrays = [(Path(path).stem, opened)] if is_one else sorted(opened.members(max_depth=None), key=itemgetter(0))
    except ERRORS as error:
        raise unreadable_store(path, error) from None
    found = TensorSet(str(path), is_one=is_one)
    for name, array in arrays:
        if isinstance(array, zarr.Array):
            found.add(name, _opened, name, array, path)
    return found


def _opened(name: str, array: Any, path: Path | str) -> LazyTensor:
    element_type = of_numpy(np.dtype(array.dtype))
    shape, chunk = tuple(map(int, array.shape)), tuple(map(int, array.shards or array.chunks))
    check_sizes(shape, element_type.storage.itemsize)
    if math.prod(chunk) * element_type.storage.itemsize > _LARGEST_CHUNK:
        raise FileFormatError("a chunk is too large", got=str(chunk), allowed=f"up to {_LARGEST_CHUNK} bytes")
    return LazyTensor(name, element_type, shape, ZarrArray(array, shape, chunk, path), str(path))


def unreadable_store(path: Path | str, error: BaseException) -> FileFormatError:
    """Make the error for a store that zarr cannot read."""
    text = " ".join(str(error).split()) or type(error).__name__
    return FileFormatError(f"the zarr store cannot be read ({text[:200]})", where=str(path))


def has_key(array: Any, key: str) -> bool:
    """Whether an array's store holds a key below the array's own."""
    from zarr.core.sync import sync

    return bool(sync((array.store_path / key).exists()))


def keys_of(array: Any) -> set[str]:
    """The keys of an array's store below the array's own."""
    from zarr.core.sync import sync

    place = array.store_path
    prefix = f"{place.path}/" if place.path else ""

    async def listed() -> set[str]:
        return {key.removeprefix(prefix) async for key in place.store.list_prefix(prefix)}

    found: set[str] = sync(listed())
    return found


@dataclass(frozen=True, eq=False)
class ZarrArray:
    """An array of a store."""

    array: Any
    shape: Sequence[int]
    chunk: Sequence[int]
    path: Path | str

    @property
    def grain(self) -> int:
        """So many rows as a chunk has, since each chunk is unpacked as a whole."""
        return max(self.chunk[0] * math.prod(self.shape[1:]), 1) if self.shape else 1

    def read(self, start: int, stop: int) -> np.ndarray:
        """Read part by part."""
        return np.ascontiguousarray(read_boxes(self, self.shape, start, stop))

    def box(self, box: Box) -> np.ndarray:
        """Read the chunks that a part touches."""
        try:
            return native(np.asarray(self.array[box]))
        except ERRORS as error:
            raise unreadable_store(self.path, error) from None

    def at(self, indices: np.ndarray) -> np.ndarray:
        """Read the chunks that the indices touch."""
        if not self.shape:
            return np.broadcast_to(self.box(()), indices.shape)
        try:
            return native(np.asarray(self.array.vindex[np.unravel_index(indices, tuple(self.shape))]))
        except ERRORS as error:
            raise unreadable_store(self.path, error) from None
