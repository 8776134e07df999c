"""Deltas of checkpoints: base and delta give every bit of the tuned checkpoint back."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

from eltwise.core.border import check_range, public
from eltwise.core.errors import FileFormatError, counted, errors_located
from eltwise.core.progress import Meter, Progress, no_progress
from eltwise.formats import files
from eltwise.formats.file_states import States, check_unchanged, state
from eltwise.formats.file_tensors import OpenFile
from eltwise.formats.safetensors_files import (
    Checkpoint,
    TensorBytes,
    checked_header,
    header_of,
    open_checkpoint,
    type_of,
)
from eltwise.kernels.threads import num_threads
from eltwise.scale.checksum import crc32c
from eltwise.scale.delta_file import (
    MAGIC,
    PIECE,
    Delta,
    DeltaTensor,
    Kind,
    Width,
    from_planes,
    open_delta,
    to_planes,
    zstandard,
)
from eltwise.scale.jobs import in_order

MOST_LEVEL = 19
"""The greatest level of zstd's compression."""


@dataclass(frozen=True, repr=False)
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

    def to_dict(self) -> dict[str, object]:
        """The numbers, for programs that read them."""
        return {**self.delta.counts(), "tuned_bytes": self.tuned_bytes, "delta_bytes": self.delta_bytes}

    def __repr__(self) -> str:
        return f"<DeltaReport: {self}>"

    def __str__(self) -> str:
        counts = ", ".join(f"{count} {kind}" for kind, count in self.delta.counts().items() if count)
        share = f" ({self.delta_bytes / self.tuned_bytes:.1%})" if self.tuned_bytes else ""
        tensors = counted(len(self.delta.tensors), "tensor")
        return f"{tensors}{': ' if counts else ''}{counts}; {self.delta_bytes} of {self.tuned_bytes} bytes{share}"


@public
def delta(
    tuned: str | os.PathLike[str],
    base: str | os.PathLike[str],
    output: str | os.PathLike[str],
    level: int = 3,
    progress: Progress = no_progress,
    force: bool = False,
) -> DeltaReport:
    """Write the difference of two safetensors checkpoints, from which ``restore`` gives every bit back.

    Tensors are read piece by piece, so that memory does not depend on their sizes. A tensor that the base does not have
    in the same type and shape is stored whole.

    Args:
        tuned: a safetensors file, an index of shards, or a folder with one.
        base: the same.
        output: the file to write; it is written beside and renamed.
        level: of zstd's compression.
        progress: receives how many bytes of tensors are done.
        force: replace a file that is no delta.

    Raises:
        EltwiseError: for checkpoints that cannot be read, and an output that cannot be written.

    >>> import tempfile
    >>> tuned, base = "examples/checkpoints/converted.safetensors", "examples/checkpoints/trained.safetensors"
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     delta(tuned, base, f"{folder}/tuned.delta").delta.counts()
    {'changed': 5, 'unchanged': 1, 'added': 1, 'replaced': 0, 'dropped': 1}
    """
    check_range("level", level, 1, MOST_LEVEL)
    target, _library = Path(output), zstandard()  # Where it is missing, nothing is read.
    new, old = open_checkpoint(Path(tuned)), open_checkpoint(Path(base))
    states = _states(new) | _states(old)
    _check_output(target, {*states}, force or _is_delta(target))
    header = _header(new)
    meter = Meter(sum(tensor.size for tensor in new.tensors.values()), progress)
    tensors: list[DeltaTensor] = []

    def chunks() -> Iterator[bytes]:
        yield MAGIC
        offset = len(MAGIC)
        for name, stored in new.tensors.items():
            tensors.append((yield from _written(stored, old.tensors.get(name), level, offset, meter)))
            offset += sum(tensors[-1].frames)
        check_unchanged(states)
        yield _finished(header, old, tensors).encoded()

    files.write_atomically(target, chunks())
    return DeltaReport(_finished(header, old, tensors), meter.total, target.stat().st_size)


def _written(
    stored: TensorBytes, earlier: TensorBytes | None, level: int, offset: int, meter: Meter
) -> Generator[bytes, None, DeltaTensor]:
    """Give the frames of a tensor, and return what the header says of it."""
    kind, width = _kind(stored, earlier), _width(stored)
    meter.text = stored.name
    base = earlier if kind == "difference" else None
    frames, crc, base_crc = [], 0, 0

    def piece(start: int) -> tuple[bytes, np.ndarray, np.ndarray | None]:
        stop = min(start + PIECE, stored.size)
        data = stored.bytes_at(start, stop)
        other = None if base is None else base.bytes_at(start, stop)
        return zstandard().ZstdCompressor(level=level).compress(to_planes(data, other, width)), data, other

    for frame, data, other in in_order(
        (partial(piece, start) for start in range(0, stored.size, PIECE)), num_threads()
    ):
        yield frame
        frames.append(len(frame))
        crc = crc32c(data, crc)
        base_crc = base_crc if other is None else crc32c(other, base_crc)
        meter.add(data.size)
    return DeltaTensor(
        *(stored.name, stored.dtype, stored.shape, stored.size, kind, width, offset),
        *(tuple(frames), crc, None if base is None else base_crc),
    )


def _header(checkpoint: Checkpoint) -> bytes:
    """The safetensors header of a checkpoint as one file."""
    if checkpoint.header is not None:
        return checkpoint.header
    tensors = checkpoint.tensors.values()
    header = header_of([(each.name, each.dtype, each.shape, each.size) for each in tensors], checkpoint.metadata)
    with errors_located(where=checkpoint.where):
        checked_header(header, sum(tensor.size for tensor in tensors))
    return header


def _finished(header: bytes, old: Checkpoint, tensors: list[DeltaTensor]) -> Delta:
    names = {tensor.name for tensor in tensors}
    return Delta(tuple(tensors), tuple(name for name in old.tensors if name not in names), header)


def _states(checkpoint: Checkpoint) -> States:
    """The states of the files of a checkpoint as they were when they were opened, and of its index."""
    opened = {str(tensor.file.path): tensor.file.state for tensor in checkpoint.tensors.values()}
    return {checkpoint.where: state(checkpoint.where)} | opened


def _check_output(target: Path, inputs: set[str], is_replaced: bool) -> None:
    """Refuse an output that cannot be written, is read, or is there and may not be replaced."""
    files.check_outputs([target], map(Path, inputs))
    if target.exists() and not is_replaced:
        problem, hint = "this file exists", "name a new file, or replace it with force=True"
        raise FileFormatError(problem, where=str(target), hint=hint)


def _is_delta(path: Path) -> bool:
    if not path.is_file():
        return False
    file = OpenFile(path)
    return file.size >= len(MAGIC) and file.bytes_at(0, len(MAGIC)).tobytes() == MAGIC


def _kind(stored: TensorBytes, base: TensorBytes | None) -> Kind:
    if base is None:
        return "added"
    is_alike = (base.dtype, base.shape, base.size) == (stored.dtype, stored.shape, stored.size)
    return "difference" if is_alike else "replaced"


def _width(stored: TensorBytes) -> Width:
    """How many byte planes a tensor is split into: the bytes of an element, or of its real part."""
    widths: dict[int, Width] = {16: 2, 32: 4, 64: 4 if stored.dtype == "C64" else 8}
    return widths.get(type_of(stored.dtype).bits, 1)


@public
def restore(
    base: str | os.PathLike[str],
    delta: str | os.PathLike[str],
    output: str | os.PathLike[str],
    progress: Progress = no_progress,
    force: bool = False,
) -> Delta:
    """Write the tuned checkpoint that a delta was made of, every bit of it.

    The checksums of the base's tensors and of the restored ones are compared with those in the delta before the output
    is renamed.

    Args:
        base: the checkpoint that the delta was made with.
        delta: the delta.
        output: the safetensors file to write; it is written beside and renamed.
        progress: receives how many bytes of tensors are done.
        force: replace a file.

    Raises:
        EltwiseError: for another base, a damaged delta, a delta of what is no safetensors file, and an output that
            cannot be written or is there.

    >>> import tempfile
    >>> tuned, base = "examples/checkpoints/converted.safetensors", "examples/checkpoints/trained.safetensors"
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _report = delta(tuned, base, f"{folder}/tuned.delta")
    ...     _header = restore(base, f"{folder}/tuned.delta", f"{folder}/restored.safetensors")
    ...     Path(f"{folder}/restored.safetensors").read_bytes() == Path(tuned).read_bytes()
    True
    """
    target = Path(output)
    header, file = open_delta(Path(delta))
    old = open_checkpoint(Path(base))
    _check_output(target, {str(delta), *_states(old)}, force)
    if target.suffix.lower() != ".safetensors":
        problem, got = "a checkpoint cannot be written to a file with this ending", target.suffix or "none"
        raise FileFormatError(problem, where=str(target), got=got, allowed=".safetensors")
    for tensor in header.tensors:
        present = old.tensors.get(tensor.name)
        if tensor.kind == "difference" and (
            present is None or (present.dtype, present.shape) != (tensor.dtype, tensor.shape)
        ):
            raise _other_base(tensor.name, old)
    meter = Meter(sum(tensor.size for tensor in header.tensors), progress)
    files.check_space(target, 8 + len(header.header) + meter.total)
    files.write_atomically(target, _restored(header, file, old, meter))
    return header


def _other_base(name: str, base: Checkpoint) -> FileFormatError:
    problem, hint = "this is not the base that the delta was made with", "give that one"
    return FileFormatError(problem, where=base.where, operand=f"tensor {name!r}", hint=hint)


def _restored(header: Delta, file: OpenFile, old: Checkpoint, meter: Meter) -> Iterator[bytes | memoryview]:
    """The content of the restored file; what is wrong is found before it ends."""
    yield len(header.header).to_bytes(8, "little")
    yield header.header
    for tensor in header.tensors:
        crc = base_crc = 0
        meter.text = tensor.name
        base = old.tensors[tensor.name] if tensor.kind == "difference" else None
        for data, other in _pieces(tensor, base, file):
            yield data.data
            crc = crc32c(data, crc)
            base_crc = base_crc if other is None else crc32c(other, base_crc)
            meter.add(data.size)
        if base is not None and base_crc != tensor.base_checksum:
            raise _other_base(tensor.name, old)
        if crc != tensor.checksum:
            problem = "the delta is damaged: the restored bytes have another checksum"
            raise FileFormatError(problem, where=str(file.path), operand=f"tensor {tensor.name!r}")


def _pieces(
    tensor: DeltaTensor, base: TensorBytes | None, file: OpenFile
) -> Iterator[tuple[np.ndarray, np.ndarray | None]]:
    library = zstandard()

    def piece(number: int, offset: int) -> tuple[np.ndarray, np.ndarray | None]:
        start = number * PIECE
        stop = min(start + PIECE, tensor.size)
        planes = _unpacked(library, file.bytes_at(offset, tensor.frames[number]).tobytes(), stop - start, tensor, file)
        other = None if base is None else base.bytes_at(start, stop)
        return from_planes(planes, other, tensor.width), other

    offsets = accumulate(tensor.frames, initial=tensor.offset)
    work = (partial(piece, number, offset) for number, offset in zip(range(len(tensor.frames)), offsets, strict=False))
    yield from in_order(work, num_threads())


def _unpacked(library: Any, frame: bytes, size: int, tensor: DeltaTensor, file: OpenFile) -> np.ndarray:
    """Unpack a frame, which must say that it has just this size."""
    location = {"where": str(file.path), "operand": f"tensor {tensor.name!r}"}
    try:
        if library.frame_content_size(frame) != size:
            raise FileFormatError("a frame of the delta has another size than its piece", **location)
        data = np.frombuffer(library.ZstdDecompressor().decompress(frame), np.uint8)
    except library.ZstdError as error:
        raise FileFormatError(f"a frame of the delta is damaged ({error})", **location) from None
    return data
