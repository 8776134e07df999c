"""Codecs of zarr that hold to limits and raise nothing: see ``guarded_store`` for where their errors go."""

from __future__ import annotations

import asyncio
import copy
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from zarr import Array
from zarr.abc.codec import (
    ArrayArrayCodec,
    ArrayBytesCodec,
    ArrayBytesCodecPartialDecodeMixin,
    BaseCodec,
    BytesBytesCodec,
)
from zarr.buffer.cpu import NDBuffer
from zarr.storage import StorePath

from eltwise.formats.chunk_limits import BYTES_OF_TEXT, SLACK, TEXTS, CodecLimits, TextLimits, longest_encoded
from eltwise.formats.guarded_store import FirstError, PartsOfShard

_RAW = ("bytes", "endian")


@dataclass(frozen=True)
class GuardedArray:
    """An array that is read within limits.

    Attributes:
        array: as zarr's own; reading it raises nothing, and after an error gives fill values.
        first: the error, if there was one.
        part: the shape of what is decoded at a time: a chunk, or one in a shard.
        texts: what checks texts in a read; None for others.
    """

    array: Any
    first: FirstError
    part: tuple[int, ...]
    texts: TextLimits | None


def bytes_of_element(element_type: np.dtype[Any]) -> int:
    """So many bytes an element of a chunk is counted as; a text of its own length has no size."""
    return BYTES_OF_TEXT if element_type.kind == "T" else element_type.itemsize


def guarded(array: Any) -> GuardedArray:
    """Guard an array of zarr that was opened in a guarded store.

    Raises:
        ValueError: for chunks and codecs whose memory cannot be limited.
    """
    outer, first = tuple(array.shards or array.chunks), FirstError()
    inner = copy.copy(array._async_array)  # zarr 3.0 has no other name for it.
    stored = np.dtype(array.dtype)
    texts = TextLimits() if stored.kind == "T" else None
    if texts and len(array.fill_value or "") > BYTES_OF_TEXT:
        raise ValueError(f"the fill value has {len(array.fill_value)} letters, expected up to {BYTES_OF_TEXT}")
    codecs, limit, part = _guarded_codecs(tuple(inner.codec_pipeline), outer, bytes_of_element(stored), first, texts)
    store = inner.store_path.store.limited(limit, first)
    object.__setattr__(inner, "codec_pipeline", type(inner.codec_pipeline).from_codecs(codecs))
    object.__setattr__(inner, "store_path", StorePath(store, inner.store_path.path))
    return GuardedArray(Array(inner), first, part, texts)


def _guarded_codecs(
    codecs: Sequence[Any], shape: tuple[int, ...], itemsize: int, first: FirstError, texts: TextLimits | None
) -> tuple[list[Any], int, tuple[int, ...]]:
    """Guard the codecs of chunks of a shape, in the order in which they encode.

    Returns:
        The guards, how many bytes an encoded chunk may have, and the shape of the smallest chunk.
    """
    most = math.prod(shape) * itemsize + SLACK
    size, guards, part = math.prod(shape) * itemsize, list[Any](), shape
    for codec in codecs:
        if hasattr(codec, "compressor"):  # The one codec that stands for all of an array of format 2.
            guard, size = _guarded_v2(codec, size, most, first, texts)
        elif hasattr(codec, "index_codecs"):
            inner, longest, part = _guarded_codecs(codec.codecs, tuple(codec.chunk_shape), itemsize, first, texts)
            count = math.prod(shape) // max(math.prod(codec.chunk_shape), 1)
            index = 16 * count + 4 * len(codec.index_codecs)
            if index > most:
                raise ValueError(f"a shard of {math.prod(shape) * itemsize} bytes holds {count} chunks, too many")
            size = min(count * longest + index, most)
            guard = _Shard(replace(codec, codecs=tuple(inner)), first, size)
        else:
            limits = _limits(*_named(codec.to_dict()), size, most, texts)
            is_whole = limits.codec in _RAW and not guards
            guard = _guard_of(codec)(codec, first, size if is_whole else limits)
            size = limits.encoded
        guards.append(guard)
    return guards, size, part


def _guarded_v2(codec: Any, size: int, most: int, first: FirstError, texts: TextLimits | None) -> tuple[Any, int]:
    stages = []
    for each in (*(codec.filters or ()), *([codec.compressor] if codec.compressor else [])):
        limits = _limits(each.codec_id, each.get_config(), size, most, texts)
        stages.append(_Numcodec(each, limits))
        size = limits.encoded
    filters, compressor = (stages[:-1], stages[-1]) if codec.compressor else (stages, None)
    whole = replace(codec, filters=tuple(filters), compressor=compressor)
    return _ArrayBytes(whole, first, None if stages else size), size


def _limits(codec: str, config: Any, size: int, most: int, texts: TextLimits | None) -> CodecLimits:
    if codec == TEXTS and texts is None:
        raise ValueError(f"the codec {codec!r} stores texts of their own length, and the array has others")
    return CodecLimits(codec, config, size, min(longest_encoded(codec, config, size), most), texts)


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

    def validate(self, **arguments: Any) -> None:
        self._inner.validate(**arguments)

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
    """Makes an array of bytes; its limit is a number where these are the elements themselves, and None in format 2."""

    async def _decoded(self, chunk: Any, spec: Any) -> Any:
        if isinstance(self._limits, int) and len(chunk) != self._limits:
            raise ValueError(f"a chunk is {len(chunk)} bytes, expected {self._limits}")
        if isinstance(self._limits, CodecLimits):
            self._limits.check(_bytes_in(chunk))
        decoded = await super()._decoded(chunk, spec)
        is_text = decoded.shape == () and decoded.dtype.kind == "T"
        return _Text(decoded.as_ndarray_like()) if is_text else decoded


class _Text(NDBuffer):
    """A text without axes: as an element it would lose zeros at its end, and be copied in a type of fixed length."""

    def __getitem__(self, key: Any) -> _Text:
        return self


class _Shard(_Guard, ArrayBytesCodec, ArrayBytesCodecPartialDecodeMixin):
    """Holds chunks with an index; its limit is what it may have read in all for one part of it."""

    async def decode_partial(self, batch_info: Iterable[tuple[Any, Any, Any]]) -> list[Any]:
        return [await self._first.guard(self._partial, *each) for each in batch_info]

    async def _partial(self, getter: Any, selection: Any, spec: Any) -> Any:
        (decoded,) = await self._inner.decode_partial([(PartsOfShard(getter, self._limits), selection, spec)])
        return decoded


class _BytesBytes(_Guard, BytesBytesCodec):
    """Compresses, or adds a checksum."""

    def __init__(self, inner: Any, first: FirstError, limits: CodecLimits) -> None:
        super().__init__(inner, first, limits)
        self._decoder = limits.decoder

    async def _decoded(self, chunk: Any, spec: Any) -> Any:
        data = _bytes_in(chunk)
        self._limits.check(data)
        if self._decoder is not None:
            return spec.prototype.buffer.from_bytes(await asyncio.to_thread(self._decoder, data))
        decoded = await super()._decoded(chunk, spec)
        self._limits.check_decoded(len(decoded))
        return decoded


def _bytes_in(chunk: Any) -> memoryview:
    return np.ascontiguousarray(chunk.as_numpy_array()).data.cast("B")


def _guard_of(codec: Any) -> type[_Guard]:
    kinds = {ArrayArrayCodec: _ArrayArray, ArrayBytesCodec: _ArrayBytes, BytesBytesCodec: _BytesBytes}
    return next(guard for kind, guard in kinds.items() if isinstance(codec, kind))
