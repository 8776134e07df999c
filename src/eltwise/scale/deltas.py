"""Deltas of checkpoints: base and delta give every bit of the tuned checkpoint back."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from eltwise.core.errors import FileFormatError, counted
from eltwise.formats import files
from eltwise.formats.lazy_tensors import OpenFile
from eltwise.formats.safetensors_files import Checkpoint, StoredTensor, header_of, open_checkpoint, type_of
from eltwise.kernels.threads import num_threads
from eltwise.scale.byte_planes import from_planes, to_planes
from eltwise.scale.delta_file import (
    MAGIC,
    PIECE,
    Delta,
    DeltaTensor,
    Kind,
    checksum,
    open_delta,
    pieces_of,
    zstandard,
)
from eltwise.scale.in_order import in_order

Tell = Callable[[int, int, str], None]
"""Receives how many bytes are done, how many there are, and the name of the tensor."""


@dataclass(frozen=True)
class DeltaReport:
    """What a delta is.

    Attributes:
        delta: its header.
        tuned_bytes: how many bytes the tuned tensors have.
        delta_bytes: how many bytes the file has.
    """

    delta: Delta
    tuned_bytes: int
    delta_bytes: int

    def fields(self) -> dict[str, object]:
        """The numbers, for programs that read them."""
        return {**self.delta.counts(), "tuned_bytes": self.tuned_bytes, "delta_bytes": self.delta_bytes}

    def __str__(self) -> str:
        counts = ", ".join(f"{count} {kind}" for kind, count in self.delta.counts().items() if count)
        share = f" ({self.delta_bytes / self.tuned_bytes:.1%})" if self.tuned_bytes else ""
        tensors = counted(len(self.delta.tensors), "tensor")
        return f"{tensors}{': ' if counts else ''}{counts}; {self.delta_bytes} of {self.tuned_bytes} bytes{share}"


def delta(
    tuned: str | os.PathLike[str],
    base: str | os.PathLike[str],
    output: str | os.PathLike[str],
    level: int = 3,
    tell: Tell | None = None,
) -> DeltaReport:
    """Write the difference of two safetensors checkpoints, from which ``restore`` gives every bit back.

    Tensors are read piece by piece, so that memory does not depend on their sizes. A tensor that the base does not have
    in the same type and shape is stored whole.

    Args:
        tuned: a safetensors file, an index of shards, or a folder with one.
        base: the same.
        output: the file to write; it is written beside and renamed.
        level: of zstd's compression.
        tell: receives progress.

    Raises:
        EltwiseError: for checkpoints that cannot be read, and an output that cannot be written.
    """
    target = Path(output)
    compress = _Compressor(level)
    new, old = open_checkpoint(Path(tuned)), open_checkpoint(Path(base))
    _check_output(target, new, old)
    total = sum(tensor.size for tensor in new.tensors.values())
    tell = tell or (lambda _done, _count, _text: None)
    found: list[DeltaTensor] = []

    def chunks() -> Iterator[bytes]:
        offset = done = 0
        yield MAGIC
        offset += len(MAGIC)
        for name, stored in new.tensors.items():
            there = old.tensors.get(name)
            frames, crc, base_crc = [], 0, 0
            kind = _kind(stored, there)
            for frame, own, other in _frames(stored, there if kind == "difference" else None, compress):
                yield frame
                frames.append(len(frame))
                crc = checksum(own, crc)
                base_crc = base_crc if other is None else checksum(other, base_crc)
                done += own.size
                tell(done, total, name)
            place = (offset, tuple(frames), crc, base_crc if kind == "difference" else None)
            found.append(DeltaTensor(name, stored.dtype, stored.shape, stored.size, kind, _width(stored), *place))
            offset += sum(frames)
        yield _finished(new, old, found).encoded()

    files.write_atomically(target, chunks())
    return DeltaReport(_finished(new, old, found), total, target.stat().st_size)


def _finished(new: Checkpoint, old: Checkpoint, tensors: list[DeltaTensor]) -> Delta:
    dropped = tuple(name for name in old.tensors if name not in new.tensors)
    header = new.header
    if header is None:
        header = header_of([(each.name, each.dtype, each.shape, each.size) for each in tensors], new.metadata)
    return Delta(tuple(tensors), dropped, header)


def _check_output(target: Path, *inputs: Checkpoint) -> None:
    files.check_writable(target)
    read = {os.path.realpath(tensor.file.path) for each in inputs for tensor in each.tensors.values()}
    read |= {os.path.realpath(each.where) for each in inputs}
    if os.path.realpath(target) in read:
        raise FileFormatError(
            "the output would be written over an input", where=str(target), hint="choose another name"
        )


def _kind(stored: StoredTensor, there: StoredTensor | None) -> Kind:
    if there is None:
        return "added"
    is_alike = (there.dtype, there.shape, there.size) == (stored.dtype, stored.shape, stored.size)
    return "difference" if is_alike else "replaced"


def _width(stored: StoredTensor) -> int:
    """How many byte planes a tensor is split into: the bytes of an element, or of its real part."""
    return {16: 2, 32: 4, 64: 4 if stored.dtype == "C64" else 8}.get(type_of(stored.dtype).bits, 1)


def _frames(
    stored: StoredTensor, there: StoredTensor | None, compress: _Compressor
) -> Iterator[tuple[bytes, np.ndarray, np.ndarray | None]]:
    """The frames of a tensor, each with its bytes and those of the base."""
    width = _width(stored)

    def piece(start: int) -> tuple[bytes, np.ndarray, np.ndarray | None]:
        stop = min(start + PIECE, stored.size)
        own = stored.bytes_at(start, stop)
        other = None if there is None else there.bytes_at(start, stop)
        return compress(to_planes(own, other, width)), own, other

    yield from in_order((partial(piece, start) for start in range(0, stored.size, PIECE)), num_threads())


class _Compressor:
    """zstd on several threads, each with an object of its own."""

    def __init__(self, level: int) -> None:
        self._library, self._level, self._local = zstandard(), level, threading.local()

    def __call__(self, data: np.ndarray) -> bytes:
        if not hasattr(self._local, "compressor"):
            self._local.compressor = self._library.ZstdCompressor(level=self._level)
        frame: bytes = self._local.compressor.compress(data)
        return frame


def restore(
    base: str | os.PathLike[str],
    delta: str | os.PathLike[str],
    output: str | os.PathLike[str],
    tell: Tell | None = None,
) -> Delta:
    """Write the tuned checkpoint that a delta was made of, every bit of it.

    The checksums of the base's tensors and of the restored ones are compared with those in the delta before the output
    is renamed.

    Args:
        base: the checkpoint that the delta was made with.
        delta: the delta.
        output: the safetensors file to write; it is written beside and renamed.
        tell: receives progress.

    Raises:
        EltwiseError: for another base, a damaged delta, and an output that cannot be written.
    """
    target = Path(output)
    made, file = open_delta(Path(delta))
    old = open_checkpoint(Path(base))
    _check_output(target, old)
    if os.path.realpath(target) == os.path.realpath(delta):
        raise FileFormatError(
            "the output would be written over an input", where=str(target), hint="choose another name"
        )
    for tensor in made.tensors:
        there = old.tensors.get(tensor.name)
        if tensor.kind == "difference" and (
            there is None or (there.dtype, there.shape) != (tensor.dtype, tensor.shape)
        ):
            raise _other_base(tensor.name, old)
    files.write_atomically(target, _restored(made, file, old, tell or (lambda _done, _count, _text: None)))
    return made


def _other_base(name: str, base: Checkpoint) -> FileFormatError:
    words, hint = "this is not the base that the delta was made with", "give that one"
    return FileFormatError(words, where=base.where, operand=f"tensor {name!r}", hint=hint)


def _restored(made: Delta, file: OpenFile, old: Checkpoint, tell: Tell) -> Iterator[bytes | memoryview]:
    """The content of the restored file; what is wrong is found before it ends."""
    yield len(made.header).to_bytes(8, "little")
    yield made.header
    total, done = sum(tensor.size for tensor in made.tensors), 0
    for tensor in made.tensors:
        crc = base_crc = 0
        base = old.tensors[tensor.name] if tensor.kind == "difference" else None
        for own, other in _pieces(tensor, base, file):
            yield own.data
            crc = checksum(own, crc)
            base_crc = base_crc if other is None else checksum(other, base_crc)
            done += own.size
            tell(done, total, tensor.name)
        if base is not None and base_crc != tensor.base_checksum:
            raise _other_base(tensor.name, old)
        if crc != tensor.checksum:
            words = "the delta is damaged: the restored bytes have another checksum"
            raise FileFormatError(words, where=str(file.path), operand=f"tensor {tensor.name!r}")


def _pieces(
    tensor: DeltaTensor, base: StoredTensor | None, file: OpenFile
) -> Iterator[tuple[np.ndarray, np.ndarray | None]]:
    library = zstandard()

    def piece(number: int, offset: int) -> tuple[np.ndarray, np.ndarray | None]:
        start = number * PIECE
        stop = min(start + PIECE, tensor.size)
        planes = _unpacked(library, file.bytes_at(offset, tensor.frames[number]).tobytes(), stop - start, tensor, file)
        other = None if base is None else base.bytes_at(start, stop)
        return from_planes(planes, other, tensor.width), other

    def work() -> Iterator[Callable[[], tuple[np.ndarray, np.ndarray | None]]]:
        offset = tensor.offset
        for number in range(pieces_of(tensor.size)):
            yield partial(piece, number, offset)
            offset += tensor.frames[number]

    yield from in_order(work(), num_threads())


def _unpacked(library: object, frame: bytes, size: int, tensor: DeltaTensor, file: OpenFile) -> np.ndarray:
    """Unpack a frame, which must say that it has just this size."""
    place = {"where": str(file.path), "operand": f"tensor {tensor.name!r}"}
    try:
        if library.frame_content_size(frame) != size:  # type: ignore[attr-defined]
            raise FileFormatError("a frame of the delta has another size than its piece", **place)
        found = np.frombuffer(library.ZstdDecompressor().decompress(frame), np.uint8)  # type: ignore[attr-defined]
    except library.ZstdError as error:  # type: ignore[attr-defined]
        raise FileFormatError(f"a frame of the delta is damaged ({error})", **place) from None
    if found.size != size:
        raise FileFormatError("a frame of the delta has another size than its piece", **place)
    return found
