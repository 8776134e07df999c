"""Checkpoints that other libraries read: PyTorch's files, GGUF, the Hugging Face Hub.

Each library is optional and imported when such a file is opened. Nothing here parses one of these formats.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from hashlib import blake2b
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from eltwise.core.blocks import Box
from eltwise.core.containers import CONTAINERS, dotted, form_of, leaves
from eltwise.core.dtypes import BFLOAT16, by_name, native, of_numpy
from eltwise.core.errors import FileFormatError, UnsupportedError
from eltwise.core.foreign import library
from eltwise.formats.file_tensors import FileRange, OpenFile
from eltwise.formats.files import reading_errors
from eltwise.ir.tensor_sets import TensorSet
from eltwise.ir.tensors import InMemory, Packing, Source, Tensor
from eltwise.ir.values import Values, is_element_type, of_python, type_of_values

_SAFE_TORCH = (2, 6)
"""Before this version ``weights_only=True`` did not keep a hostile file from running code (CVE-2025-32434)."""

_HUB_FILES = ("*.safetensors", "*.safetensors.index.json")
_GGUF_COUNTS = "GGUF."
"""How gguf names what it counts of a file, beside its fields."""

_GGUF_GENERAL, _GGUF_ARCHITECTURE = "general.", "general.architecture"
"""How the names of its fields begin that describe the model, such as who made it, and the one that says how it runs."""

_SWAPPED = "S"
"""What gguf calls the byte order that is not this machine's."""

_TILE = 1 << 16


class Rows(Source):
    """An array that another library reads, box by box.

    Attributes:
        shape: its sizes.
        paths: the files beside its own in which its elements lie.
    """

    def __init__(
        self, shape: tuple[int, ...], read_box: Callable[[Box], np.ndarray], where: str, paths: tuple[str, ...] = ()
    ) -> None:
        self.shape, self.paths, self._read_box, self._where = shape, paths, read_box, where

    @property
    def grain(self) -> int:
        """Whole rows of the first axis, as many as make a tile: libraries take long for each read."""
        row = max(math.prod(self.shape[1:]), 1)
        return max(_TILE // row, 1) * row

    def box(self, box: Box) -> np.ndarray:
        """Read a part."""
        with reading_errors(self._where, errors=Exception):
            return native(np.asarray(self._read_box(box)))

    def at(self, indices: np.ndarray) -> np.ndarray:
        """Read the tiles that the indices touch."""
        order = np.argsort(indices, kind="stable")
        sorted_indices = indices[order]
        starts = np.flatnonzero(np.diff(sorted_indices // _TILE, prepend=-1))
        parts = []
        for first, last in pairwise([*starts.tolist(), indices.size]):
            begin, end = int(sorted_indices[first]), int(sorted_indices[last - 1]) + 1
            parts.append(self.read(begin, end)[sorted_indices[first:last] - begin])
        gathered = np.concatenate(parts) if parts else self.read(0, 0)
        elements = np.empty_like(gathered)
        elements[order] = gathered
        return elements


def of_source(name: str, source: Source, dtype: np.dtype[Any], where: str) -> Tensor | Values:
    """Elements of a NumPy type as a tensor or as values."""
    values = "" if is_element_type(dtype) else type_of_values(dtype)
    if values:
        return Values(source, name, where, values, 0 if dtype.hasobject else dtype.itemsize)
    return Tensor(source, of_numpy(dtype), name, where)


def source_of_map(mapped: np.ndarray, file: OpenFile) -> Source:
    """What reads the elements of an array in a map of a file, which is the end of the process if the file is truncated.

    The elements lie one after another, or those of each index of the first axis do.
    """
    whole: Any = mapped
    while isinstance(whole.base, np.ndarray):
        whole = whole.base
    offset = mapped.__array_interface__["data"][0] - whole.__array_interface__["data"][0] if mapped.size else 0
    shape, dtype = mapped.shape, mapped.dtype
    if mapped.flags.c_contiguous or not mapped.size:
        return FileRange(file, offset, shape, dtype)
    step, length = mapped.strides[0], math.prod(shape[1:]) * dtype.itemsize

    def read_box(box: Box) -> np.ndarray:
        rows = file.runs_at(offset, np.arange(box[0].start, box[0].stop) * step, length)
        return rows.view(dtype).reshape(-1, *shape[1:])[(slice(None), *box[1:])]

    return Rows(shape, read_box, str(file.path))


def open_torch(path: Path) -> TensorSet:
    """The tensors of a file that ``torch.save`` wrote; those in dictionaries and lists are named by their keys.

    Raises:
        UnsupportedError: where torch is not installed, or so old that a file can run code in it.
        FileFormatError: where torch refuses the file: also where it holds other objects than tensors.
    """
    where = str(path)
    hint = "save its tensors where it was written: safetensors.torch.save_file(model.state_dict(), new_path)"
    torch = library("torch", "this pickle, of which only tensors are loaded,", where)
    if tuple(map(int, torch.__version__.split(".")[:2])) < _SAFE_TORCH:
        problem = "before torch 2.6 a hostile file can run code when it is loaded"
        raise UnsupportedError(problem, where=where, got=torch.__version__, hint="pip install 'torch>=2.6'")
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # noqa: BLE001 - torch raises what it likes
        raise FileFormatError(
            "torch does not load this file with weights_only=True, so it holds no plain tensors or is damaged",
            where=where,
            got=type(error).__name__,
            hint=hint,
        ) from None
    tensors = TensorSet(where, format="torch")
    by_keys = list(leaves(content, where))
    names = Counter(dotted(keys) for keys, _value in by_keys)
    for keys, value in by_keys:
        name = dotted(keys) or "tensor"
        name = name if names[dotted(keys)] == 1 else "".join(f"[{key!r}]" for key in keys)  # Keys may hold dots.
        tensors.add(name, _of_torch, name, value, torch, where)
    if form := form_of(content):
        tensors.parameters[CONTAINERS] = form
    return tensors


def _of_torch(name: str, value: Any, torch: Any, where: str) -> Tensor | Values:
    """A tensor of torch, of which views and sparse ones become arrays part by part: few bytes can have any shape."""
    if not isinstance(value, torch.Tensor):
        return of_python(name, value, where)
    type_name = str(value.dtype).removeprefix("torch.")
    element_type = None if value.is_complex() else by_name(type_name)
    same_width = None if element_type is None else getattr(torch, f"uint{8 * value.element_size()}")

    def array_of(part: Any) -> np.ndarray:
        resolved = part.detach().resolve_conj().resolve_neg()
        if element_type is None:
            return np.asarray(resolved.numpy())
        return np.asarray(resolved.view(same_width).numpy().view(element_type.storage))

    source: Source
    with reading_errors(where, errors=Exception):
        if value.layout is torch.strided and not (value.is_conj() or value.is_neg()):
            source = InMemory(array_of(value))
        else:
            whole = value if value.layout is torch.strided else value.to_sparse()
            array_of(_part_of(whole, (slice(0, 0),) * whole.ndim))  # It can be read.
            source = Rows(tuple(whole.shape), lambda box: array_of(_part_of(whole, box)), where)
    if element_type is None:
        return Values(source, name, where, type_name, value.element_size())
    return Tensor(source, element_type, name, where)


def _part_of(value: Any, box: Box) -> Any:
    """A part of a tensor of torch, dense."""
    if not value.is_sparse:
        return value[box]
    for axis, bounds in enumerate(box):
        value = value.narrow_copy(axis, bounds.start, bounds.stop - bounds.start)
    return value.to_dense()


def open_gguf(path: Path) -> TensorSet:
    """The tensors of a GGUF file; quantized ones are dequantized to float32 as they are read.

    Raises:
        UnsupportedError: where the library is not installed.
        FileFormatError: where it refuses the file.
    """
    where = str(path)
    gguf = library("gguf", "a GGUF file", where)
    file = OpenFile(path)
    with reading_errors(where, errors=Exception):
        stored = _reader_of(gguf)(path)
    tensors = TensorSet(where, format="gguf")
    for name, field in stored.fields.items():
        if not name.startswith(_GGUF_COUNTS):
            describes = name.startswith(_GGUF_GENERAL) and name != _GGUF_ARCHITECTURE
            texts = tensors.metadata if describes else tensors.parameters
            texts[name] = _shown_field(field)
    for one in stored.tensors:
        tensors.add(one.name, _of_gguf, one, gguf, file, stored.byte_order == _SWAPPED)
    return tensors


def _reader_of(gguf: Any) -> Any:
    """The library's reader, which reads on behind the end of a file for as long as a size says, and here does not."""

    class Reader(gguf.GGUFReader):  # type: ignore[misc]
        def _get(self, offset: int, dtype: Any, count: int = 1, *options: Any, **named: Any) -> Any:
            if int(offset) + int(count) * np.dtype(dtype).itemsize > len(self.data):
                raise EOFError("the file is too short for what its header states")
            return super()._get(offset, dtype, count, *options, **named)

    return Reader


def _shown_field(field: Any) -> str:
    """The value of a field of GGUF, or a digest of one of several values, in any byte order of the file."""
    if len(field.types) == 1 and len(field.data) == 1 and field.parts[field.data[0]].size == 1:
        return repr(field.parts[field.data[0]][0].item())
    return blake2b(b"".join(native(np.asarray(part)).tobytes() for part in field.parts)).hexdigest()


def _of_gguf(one: Any, gguf: Any, file: OpenFile, is_swapped: bool) -> Tensor:
    shape, where = tuple(map(int, reversed(one.shape))), str(file.path)
    kind = one.tensor_type.name
    if is_swapped and one.data.dtype.itemsize == 1 and kind != "I8":
        problem = "its bytes are of another byte order or of this machine's, by the program that wrote the file"
        raise FileFormatError(problem, got=kind, hint="write the file with this machine's byte order")
    data = np.asarray(one.data)
    if kind == "BF16":
        data = data.view(BFLOAT16.storage)
    if kind == "BF16" or (kind[0] in "FI" and kind[1:].isdigit()):
        return Tensor(source_of_map(data.reshape(shape), file), of_numpy(data.dtype), one.name, where)
    rows = data.reshape(*shape[:-1], -1)
    stored = source_of_map(rows, file)

    def read_box(box: Box) -> np.ndarray:
        packed = stored.box((*box[:-1], slice(0, rows.shape[-1])))
        return np.asarray(gguf.dequantize(packed, one.tensor_type)[..., box[-1]])

    source = Rows(shape, read_box, where)
    source.packing = _packing_of(gguf, one.tensor_type)
    return Tensor(source, by_name("float32"), one.name, where)


def _packing_of(gguf: Any, kind: Any) -> Packing | None:
    """How a type of GGUF packs numbers; None for those that its library unpacks only."""
    size = int(gguf.GGML_QUANT_SIZES[kind][0])

    def through(blocks: np.ndarray) -> np.ndarray:
        with np.errstate(all="ignore"):
            return np.asarray(gguf.dequantize(gguf.quantize(blocks, kind), kind))

    try:
        through(np.zeros((1, size), np.float32))
    except NotImplementedError:
        return None
    return Packing(kind.name, size, through)


def fetched(model: str) -> Path:
    """The folder or file with the safetensors of a model on the Hugging Face Hub, in the cache of its library.

    Args:
        model: ``ORGANISATION/MODEL`` or ``ORGANISATION/MODEL@REVISION``.

    Raises:
        UnsupportedError: where the library is not installed.
        FileFormatError: for what is no such name, and where the model cannot be had.
    """
    url, (repository, _at, revision) = f"hf://{model}", model.partition("@")
    if repository.count("/") != 1:
        raise FileFormatError("not a model on the Hub", where=url, allowed="hf://ORGANISATION/MODEL[@REVISION]")
    hub = library("huggingface_hub", "a model on the Hugging Face Hub", url)
    with reading_errors(url, errors=Exception):
        folder = hub.snapshot_download(repository, revision=revision or None, allow_patterns=list(_HUB_FILES))
    names = sorted(Path(folder).glob("*.safetensors"))
    if not names:
        raise FileFormatError("the model has no safetensors files", where=url)
    return names[0] if len(names) == 1 else Path(folder)
