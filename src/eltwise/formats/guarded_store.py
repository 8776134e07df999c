"""Stores of zarr that are only read, within limits, and whose errors leave no task of zarr behind.

zarr reads chunks in many tasks of an event loop. An error in one of them would leave the others to be destroyed with
messages of their own, so the first error is kept, all further chunks are taken as missing, and the reader asks for it.
"""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

from zarr.abc.store import RangeByteRequest, SuffixByteRequest
from zarr.storage import FsspecStore, LocalStore, WrapperStore

from eltwise.formats.store_paths import is_store, is_url, opened_anew

_LARGEST_METADATA = 1 << 26
_T = TypeVar("_T")


class FirstError:
    """The first error while an array is read; once there is one, what was read is not to be used."""

    def __init__(self) -> None:
        self.error: Exception | None = None

    async def guard(self, work: Callable[..., Awaitable[_T]], *arguments: Any) -> _T | None:
        """Do some work; None where it fails, or where something failed before."""
        if self.error is not None:
            return None
        try:
            return await work(*arguments)
        except Exception as error:  # noqa: BLE001  # Codecs and file systems raise what they like.
            self.error = self.error or error
            return None


class GuardedStore(WrapperStore[Any]):
    """A store that is only read, whose values are regular files of a limited length.

    Args:
        store: what is read.
        limit: the bytes that a value may have.
        first: keeps the first error; None where errors are raised.
    """

    def __init__(self, store: Any, limit: int = _LARGEST_METADATA, first: FirstError | None = None) -> None:
        super().__init__(store)
        self._limit, self._first = limit, first

    def limited(self, limit: int, first: FirstError) -> GuardedStore:
        """The same store for the chunks of an array."""
        return GuardedStore(self._store, limit, first)

    async def get(self, key: str, prototype: Any, byte_range: Any = None) -> Any:
        """Read a value or a part of one; None where it is not there, and after an error."""
        if self._first is None:
            return await self._get(key, prototype, byte_range)
        return await self._first.guard(self._get, key, prototype, byte_range)

    async def get_partial_values(self, prototype: Any, key_ranges: Iterable[tuple[str, Any]]) -> list[Any]:
        """Read parts of values."""
        return [await self.get(key, prototype, part) for key, part in key_ranges]

    async def _get(self, key: str, prototype: Any, byte_range: Any) -> Any:
        if isinstance(self._store, LocalStore):
            data = await asyncio.to_thread(self._read_file, self._store.root, key, byte_range)
            return None if data is None else prototype.buffer.from_bytes(data)
        # A range, so that what is too long is not read as a whole.
        buffer = await self._store.get(key, prototype, byte_range or RangeByteRequest(0, self._limit + 1))
        if buffer is not None and len(buffer) > self._limit:
            raise _too_long(key, f"more than {self._limit}", self._limit)
        return buffer

    def _read_file(self, root: Path, key: str, byte_range: Any) -> bytes | None:
        path = root / key
        try:
            status = path.stat()
        except (FileNotFoundError, NotADirectoryError):
            _check_missing(root, key, is_chunk=self._first is not None)
            return None
        return _bytes_of(path, status, self._limit, byte_range)


def _bytes_of(path: Path, status: os.stat_result, limit: int, byte_range: Any) -> bytes:
    name = path.name
    if stat.S_ISDIR(status.st_mode):
        raise ValueError(f"{name!r} is a folder, not a file")
    if not stat.S_ISREG(status.st_mode):
        raise ValueError(f"{name!r} is a pipe or a device, not a file")
    size = status.st_size
    if size > limit:
        raise _too_long(name, str(size), limit)
    start, end = 0, size
    if isinstance(byte_range, RangeByteRequest):
        start, end = byte_range.start, byte_range.end
    elif isinstance(byte_range, SuffixByteRequest):
        start = max(size - byte_range.suffix, 0)
    elif byte_range is not None:
        start = byte_range.offset
    if not 0 <= start <= end <= size:
        raise ValueError(f"the bytes {start} to {end} of {name!r} are needed, and it has {size}")
    with path.open("rb", buffering=0) as file:  # Unbuffered, since each further call waits for other threads.
        if start:
            file.seek(start)
        data = file.read(end - start)
        while len(data) < end - start and (more := file.read(end - start - len(data))):
            data += more
        return data


def _check_missing(root: Path, key: str, *, is_chunk: bool) -> None:
    """Refuse to take a file as missing, whose elements are then the fill value, where it may only be out of sight.

    Args:
        root: the folder of the store.
        key: the path of the file in it.
        is_chunk: whether the store is known to have an array there.

    Raises:
        ValueError: for a link that leads nowhere on the way to the file; of a chunk also where something else is in the
            way, or the store is gone, as when a disk is not mounted any more.
    """
    path = root / key
    for each in (path, *path.parents):
        if each.is_symlink() and not each.exists():
            raise ValueError(f"{each.name!r} is a link to what is not there")
        if is_chunk and each != path and each.exists() and not each.is_dir():
            raise ValueError(f"{each.name!r} is a file, not a folder")
        if each == root or each.is_dir():
            break
    if is_chunk and not is_store(root):
        raise ValueError(f"the description of {root.name!r} is gone")


def _too_long(name: str, got: str, limit: int) -> ValueError:
    return ValueError(f"{name!r} is {got} bytes, expected up to {limit}")


def opened(text: str) -> GuardedStore:
    """The store at a path or URL, guarded, for zarr to open."""
    return GuardedStore(store_at(text, read_only=True))


def store_at(text: str, *, read_only: bool = False) -> FsspecStore | LocalStore:
    """The store at a path or URL: zarr takes a string for a URL and would cut a path before ``#``, ``?`` or ``;``."""
    if is_url(text):
        return FsspecStore.from_url(text, opened_anew(text), read_only=read_only)
    return LocalStore(text, read_only=read_only)


class PartsOfShard:
    """Reads parts of a shard, no more of them together than the shard may be long."""

    def __init__(self, inner: Any, limit: int) -> None:
        self._inner, self._left = inner, limit

    async def get(self, prototype: Any, byte_range: Any = None) -> Any:
        """Read a part; see ``zarr.abc.store.ByteGetter``."""
        if isinstance(byte_range, RangeByteRequest):
            self._left -= byte_range.end - byte_range.start
        elif isinstance(byte_range, SuffixByteRequest):
            self._left -= byte_range.suffix
        if self._left < 0:
            raise ValueError("the index of a shard names more bytes than the shard can have")
        data = await self._inner.get(prototype, byte_range)
        if data is not None and not len(data):  # zarr takes it as missing.
            raise ValueError("a shard, or a chunk in one, is empty")
        return data
