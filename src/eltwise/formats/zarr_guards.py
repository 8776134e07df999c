"""The border to zarr: stores and codecs that hold to limits, and whose errors leave no task of zarr behind.

zarr reads chunks in many tasks of an event loop. An error in one of them would leave the others to be destroyed with
messages of their own, so a guard keeps the first error and takes all further chunks as missing; the reader asks for it.
"""

from __future__ import annotations

import asyncio
import copy
import math
import stat
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from zarr import Array
from zarr.abc.codec import (
    ArrayArrayCodec,
    ArrayBytesCodec,
    ArrayBytesCodecPartialDecodeMixin,
    BaseCodec,
    BytesBytesCodec,
)
from zarr.abc.store import RangeByteRequest, SuffixByteRequest
from zarr.core.sync import sync
from zarr.storage import FsspecStore, LocalStore, StorePath, WrapperStore

from eltwise.formats.chunk_limits import SLACK, CodecLimits, longest_encoded

_LARGEST_METADATA = 1 << 26
_RAW = ("bytes", "endian")
_WAITS = "waits for what zarr left behind"
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

    def abandon(self) -> None:
        """Let zarr end its tasks after an error that it raised; what they read is taken as missing."""
        self._first = FirstError()
        self._first.error = ValueError("abandoned")
        sync(_ended())

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
            data = await asyncio.to_thread(_read_file, self._store.root / key, self._limit, byte_range)
            return None if data is None else prototype.buffer.from_bytes(data)
        # A range, so that what is too long is not read as a whole.
        found = await self._store.get(key, prototype, byte_range or RangeByteRequest(0, self._limit + 1))
        if found is not None and len(found) > self._limit:
            raise _too_long(key, f"more than {self._limit}", self._limit)
        return found


def _read_file(path: Path, limit: int, byte_range: Any) -> bytes | None:
    try:
        status = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    if stat.S_ISDIR(status.st_mode):
        return None
    name = path.name
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


async def _ended() -> None:
    own = asyncio.current_task()
    if own is not None:
        own.set_name(_WAITS)
    others = [task for task in asyncio.all_tasks() if task.get_name() != _WAITS]
    if others:
        await asyncio.wait(others)


def _too_long(name: str, got: str, limit: int) -> ValueError:
    return ValueError(f"{name!r} is {got} bytes, expected up to {limit}")


def opened(text: str) -> GuardedStore:
    """The store at a path or URL, guarded, for zarr to open."""
    store = FsspecStore.from_url(text, read_only=True) if "://" in text else LocalStore(text, read_only=True)
    return GuardedStore(store)


@dataclass(frozen=True)
class GuardedArray:
    """An array that is read within limits.

    Attributes:
        array: as zarr's own; reading it raises nothing, and after an error gives fill values.
        first: the error, if there was one.
        part: the shape of what is decoded at a time: a chunk, or one in a shard.
    """

    array: Any
    first: FirstError
    part: tuple[int, ...]


def guarded(array: Any, itemsize: int) -> GuardedArray:
    """Guard an array that was opened in a guarded store.

    Args:
        array: an array of zarr.
        itemsize: the bytes of an element.

    Raises:
        ValueError: for chunks and codecs whose memory cannot be limited.
    """
    outer, first = tuple(array.shards or array.chunks), FirstError()
    inner = copy.copy(array._async_array)  # zarr 3.0 has no other name for it.
    codecs, limit, part = _guarded_codecs(tuple(inner.codec_pipeline), outer, itemsize, first)
    store = inner.store_path.store.limited(limit, first)
    object.__setattr__(inner, "codec_pipeline", type(inner.codec_pipeline).from_codecs(codecs))
    object.__setattr__(inner, "store_path", StorePath(store, inner.store_path.path))
    return GuardedArray(Array(inner), first, part)


def _guarded_codecs(
    codecs: Sequence[Any], shape: tuple[int, ...], itemsize: int, first: FirstError
) -> tuple[list[Any], int, tuple[int, ...]]:
    """Guard the codecs of chunks of a shape, in the order in which they encode.

    Returns:
        The guards, how many bytes an encoded chunk may have, and the shape of the smallest chunk.
    """
    most = math.prod(shape) * itemsize + SLACK
    size, found, part = math.prod(shape) * itemsize, list[Any](), shape
    for codec in codecs:
        if hasattr(codec, "compressor"):  # The one codec that stands for all of an array of format 2.
            guard, size = _guarded_v2(codec, size, most, first)
        elif hasattr(codec, "index_codecs"):
            inner, longest, part = _guarded_codecs(codec.codecs, tuple(codec.chunk_shape), itemsize, first)
            count = math.prod(shape) // max(math.prod(codec.chunk_shape), 1)
            index = 16 * count + 4 * len(codec.index_codecs)
            if index > most:
                raise ValueError(f"a shard of {math.prod(shape) * itemsize} bytes holds {count} chunks, too many")
            size = min(count * longest + index, most)
            guard = _Shard(replace(codec, codecs=tuple(inner)), first, size)
        else:
            limits = _limits(*_named(codec.to_dict()), size, most)
            is_whole = limits.codec in _RAW and not found
            guard = _guard_of(codec)(codec, first, size if is_whole else limits)
            size = limits.encoded
        found.append(guard)
    return found, size, part


def _guarded_v2(codec: Any, size: int, most: int, first: FirstError) -> tuple[Any, int]:
    stages = []
    for each in (*(codec.filters or ()), *([codec.compressor] if codec.compressor else [])):
        limits = _limits(each.codec_id, each.get_config(), size, most)
        stages.append(_Numcodec(each, limits))
        size = limits.encoded
    filters, compressor = (stages[:-1], stages[-1]) if codec.compressor else (stages, None)
    whole = replace(codec, filters=tuple(filters), compressor=compressor)
    return _ArrayBytes(whole, first, None if stages else size), size


def _limits(codec: str, config: Any, size: int, most: int) -> CodecLimits:
    return CodecLimits(codec, config, size, min(longest_encoded(codec, config, size), most))


def _named(fields: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    return str(fields["name"]).removeprefix("numcodecs."), fields.get("configuration") or {}


class _Numcodec:
    """A codec of an array of format 2."""

    def __init__(self, inner: Any, limits: CodecLimits) -> None:
        self._inner, self._limits = inner, limits

    def decode(self, data: Any) -> Any:
        raw = np.frombuffer(data, np.uint8).data
        self._limits.check(raw)
        decoder = self._limits.decoder
        decoded = self._inner.decode(data) if decoder is None else decoder(raw)
        self._limits.check_decoded(memoryview(decoded).nbytes)
        return decoded


class _Guard:
    """A codec that is only decoded, gives None where that fails, and is otherwise its inner one."""

    def __init__(self, inner: Any, first: FirstError, limits: Any) -> None:
        self._inner, self._first, self._limits = inner, first, limits
        self.is_fixed_size = getattr(inner, "is_fixed_size", False)

    def to_dict(self) -> Any:
        return self._inner.to_dict()

    def compute_encoded_size(self, input_byte_length: int, chunk_spec: Any) -> int:
        return int(self._inner.compute_encoded_size(input_byte_length, chunk_spec))

    def resolve_metadata(self, chunk_spec: Any) -> Any:
        return self._inner.resolve_metadata(chunk_spec)

    def evolve_from_array_spec(self, array_spec: Any) -> Any:
        return type(self)(self._inner.evolve_from_array_spec(array_spec), self._first, self._limits)

    def validate(self, **place: Any) -> None:
        self._inner.validate(**place)

    async def decode(self, chunks_and_specs: Iterable[tuple[Any, Any]]) -> list[Any]:
        return [
            None if chunk is None else await self._first.guard(self._decoded, chunk, spec)
            for chunk, spec in chunks_and_specs
        ]

    async def _decoded(self, chunk: Any, spec: Any) -> Any:
        if type(self._inner).decode is BaseCodec.decode:  # It would make a task of each chunk.
            return await self._inner._decode_single(chunk, spec)
        (decoded,) = await self._inner.decode([(chunk, spec)])
        return decoded


class _ArrayArray(_Guard, ArrayArrayCodec):
    """Turns the axes, or changes the type."""


class _ArrayBytes(_Guard, ArrayBytesCodec):
    """Makes an array of bytes; its limit is a number where these are the elements themselves."""

    async def _decoded(self, chunk: Any, spec: Any) -> Any:
        if isinstance(self._limits, int) and len(chunk) != self._limits:
            raise ValueError(f"a chunk is {len(chunk)} bytes, expected {self._limits}")
        return await super()._decoded(chunk, spec)


class _Shard(_Guard, ArrayBytesCodec, ArrayBytesCodecPartialDecodeMixin):
    """Holds chunks with an index; its limit is what it may have read in all for one part of it."""

    async def decode_partial(self, batch_info: Iterable[tuple[Any, Any, Any]]) -> list[Any]:
        return [await self._first.guard(self._partial, *each) for each in batch_info]

    async def _partial(self, getter: Any, selection: Any, spec: Any) -> Any:
        (decoded,) = await self._inner.decode_partial([(_Getter(getter, self._limits), selection, spec)])
        return decoded


class _BytesBytes(_Guard, BytesBytesCodec):
    """Compresses, or adds a checksum."""

    def __init__(self, inner: Any, first: FirstError, limits: CodecLimits) -> None:
        super().__init__(inner, first, limits)
        self._decoder = limits.decoder

    async def _decoded(self, chunk: Any, spec: Any) -> Any:
        data = np.ascontiguousarray(chunk.as_numpy_array()).data.cast("B")
        self._limits.check(data)
        if self._decoder is not None:
            return spec.prototype.buffer.from_bytes(await asyncio.to_thread(self._decoder, data))
        decoded = await super()._decoded(chunk, spec)
        self._limits.check_decoded(len(decoded))
        return decoded


def _guard_of(codec: Any) -> type[_Guard]:
    kinds = {ArrayArrayCodec: _ArrayArray, ArrayBytesCodec: _ArrayBytes, BytesBytesCodec: _BytesBytes}
    return next(guard for kind, guard in kinds.items() if isinstance(codec, kind))


class _Getter:
    """Reads parts of a shard, no more of them together than the shard may be long."""

    def __init__(self, inner: Any, limit: int) -> None:
        self._inner, self._left = inner, limit

    async def get(self, prototype: Any, byte_range: Any = None) -> Any:
        if isinstance(byte_range, RangeByteRequest):
            self._left -= byte_range.end - byte_range.start
        elif isinstance(byte_range, SuffixByteRequest):
            self._left -= byte_range.suffix
        if self._left < 0:
            raise ValueError("the index of a shard names more bytes than the shard can have")
        return await self._inner.get(prototype, byte_range)
