"""safetensors files: the header is checked by the safetensors library, the elements are read where they lie.

Source: the safetensors format, and the index of checkpoints in shards that Hugging Face's libraries write.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from eltwise.core.border import stripped
from eltwise.core.dtypes import ElementType, by_name
from eltwise.core.errors import ElementTypeError, EltwiseError, FileFormatError, errors_located
from eltwise.core.fields import unique
from eltwise.formats import files
from eltwise.formats.file_tensors import FileRange, OpenFile, of_file
from eltwise.ir.tensors import Tensor
from eltwise.ir.values import Values

_TYPES = {
    "BOOL": "bool",
    "F16": "float16",
    "BF16": "bfloat16",
    "F32": "float32",
    "F64": "float64",
    **{f"{sign}{bits}": f"{kind}{bits}" for bits in (8, 16, 32, 64) for sign, kind in (("I", "int"), ("U", "uint"))},
    "F8_E4M3": "float8_e4m3fn",
    "F8_E5M2": "float8_e5m2",
    "F8_E4M3FNUZ": "float8_e4m3fnuz",
    "F8_E5M2FNUZ": "float8_e5m2fnuz",
    "F8_E8M0": "float8_e8m0fnu",
    "F4": "float4_e2m1fn",
    "C64": "complex64",
    "F6_E2M3": "float6_e2m3fn",
    "F6_E3M2": "float6_e3m2fn",
}
_COMPLEX = "C64"
INDEX = ".safetensors.index.json"
"""How the name of the index of a checkpoint in shards ends."""

_LARGEST_INDEX = 1 << 28

LARGEST_HEADER = 100_000_000
"""The most bytes of a header that the safetensors library reads."""

Entry = tuple[str, tuple[int, ...], int, int]
"""What a header says of a tensor: the name of its element type, its sizes, and where its bytes begin and end."""


class TensorBytes(NamedTuple):
    """Where the bytes of a tensor are, and its element type as the format calls it."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    file: OpenFile
    offset: int
    size: int

    def bytes_at(self, start: int, stop: int) -> np.ndarray:
        """Read a range of its bytes."""
        return self.file.bytes_at(self.offset + start, stop - start)

    def opened(self) -> Tensor | Values:
        """The tensor, or the complex numbers.

        Raises:
            ElementTypeError: where its type is none that can be read.
        """
        if self.dtype == _COMPLEX:
            source = FileRange(self.file, self.offset, self.shape, np.dtype("<c8"))
            return Values(source, self.name, str(self.file.path), _TYPES[_COMPLEX], source.stored.itemsize)
        return of_file(self.name, type_of(self.dtype), self.shape, self.file, self.offset)


@dataclass(frozen=True)
class Checkpoint:
    """The tensors of a safetensors file, or of all shards that an index names.

    Attributes:
        where: the file or index.
        tensors: by name, in the order of their bytes.
        metadata: the names and texts that the file holds beside them; of shards, those that are the same in all.
        header: the header as it is in the file, without its length; of shards None.
    """

    where: str
    tensors: dict[str, TensorBytes]
    metadata: dict[str, str]
    header: bytes | None = None


def open_checkpoint(path: Path, unreadable: dict[str, EltwiseError] | None = None) -> Checkpoint:
    """Open a safetensors file, an index, or a folder that holds one index; only headers are read.

    Args:
        path: what to open.
        unreadable: takes the tensors of shards that cannot be read, with the reason; by default that is an error.

    Raises:
        FileFormatError: where it is none of these, or a header is not what its file holds.
    """
    if files.is_folder(path):
        index = index_in(path)
        if index is not None:
            return _sharded(index, unreadable)
        problem, allowed = "this folder is no checkpoint in shards", f"one file *{INDEX} in it"
        got = f"{len(list(path.glob(f'*{INDEX}')))} such files"
        raise FileFormatError(problem, where=str(path), got=got, allowed=allowed)
    if path.name.endswith(INDEX):
        return _sharded(path, unreadable)
    if path.suffix.lower() != ".safetensors":
        raise files.unknown_ending(path, f".safetensors, {INDEX}")
    return _file(path)


def index_in(folder: Path) -> Path | None:
    """The one index of shards in a folder; None where there is none, or there are several."""
    indices = list(folder.glob(f"*{INDEX}"))
    return indices[0] if len(indices) == 1 else None


def _file(path: Path) -> Checkpoint:
    from safetensors import SafetensorError, safe_open

    file, where = OpenFile(path), str(path)
    try:
        with safe_open(where, "np"):  # It checks every size against the file.
            pass
    except (SafetensorError, OSError, ValueError) as error:
        raise FileFormatError(f"not a readable safetensors file ({error})", where=where) from None
    length = int.from_bytes(file.bytes_at(0, 8).tobytes(), "little")
    text = file.bytes_at(8, length).tobytes()
    with errors_located(where=where):
        entries, metadata = parsed_header(text)
    tensors = {}
    for name, (dtype, shape, begin, end) in sorted(entries.items(), key=lambda pair: pair[1][2:]):
        tensors[name] = TensorBytes(name, dtype, shape, file, 8 + length + begin, end - begin)
    return Checkpoint(where, tensors, metadata, text)


def parsed_header(header: bytes) -> tuple[dict[str, Entry], dict[str, str]]:
    """Parse a header that the safetensors library accepts: what it says of each tensor, and the metadata.

    Raises:
        FileFormatError: for what that library accepts and only guesses: a name that is there twice, a tensor as a list.
    """
    try:
        fields = json.loads(header.decode(), object_pairs_hook=unique)
        metadata = fields.pop("__metadata__", None) or {}
        entries = {
            name: (entry["dtype"], tuple(entry["shape"]), *entry["data_offsets"]) for name, entry in fields.items()
        }
    except (ValueError, TypeError, RecursionError) as error:
        raise FileFormatError(f"the header is not that of a safetensors file ({error})") from None
    return entries, metadata


def checked_header(header: bytes, size: int) -> dict[str, Entry]:
    """Refuse a header, without its length, that is not clear or that the safetensors library does not accept.

    Returns:
        What it says of each tensor.

    Raises:
        FileFormatError: where it is refused, or cannot be checked.
    """
    from safetensors import SafetensorError, safe_open

    if len(header) > LARGEST_HEADER:
        problem = "the header is too large for a safetensors file"
        raise FileFormatError(problem, got=f"{len(header)} bytes", allowed=f"{LARGEST_HEADER}")
    try:
        with tempfile.TemporaryDirectory(prefix="eltwise-") as folder:
            path = Path(folder) / "header"
            with path.open("xb") as file:
                file.write(len(header).to_bytes(8, "little") + header)
                file.truncate(8 + len(header) + size)  # A hole: the tensors take no space.
            with safe_open(path, "np"):
                pass
    except (SafetensorError, ValueError) as error:
        raise FileFormatError(f"safetensors refuses the header ({error})") from None
    except OSError as error:
        problem = f"the header cannot be checked in a temporary file ({error.strerror or error})"
        raise FileFormatError(problem, hint="set TMPDIR to another folder") from None
    return parsed_header(header)[0]


def _sharded(index: Path, unreadable: dict[str, EltwiseError] | None) -> Checkpoint:
    """The tensors of all shards that an index names; each shard is a plain file beside the index.

    Those that the index does not name are among them: libraries that load whole shards use them.
    """
    tensors: dict[str, TensorBytes] = {}
    shards: dict[str, Checkpoint | EltwiseError] = {}
    refused = {} if unreadable is None else unreadable
    for name, shard in read_index(index):
        try:
            tensors[name] = _of_shard(name, shard, shards, index)
        except EltwiseError as error:
            refused[name] = stripped(error)
    if refused and not tensors:
        raise next(iter(refused.values()))
    opened = {name: shard for name, shard in shards.items() if isinstance(shard, Checkpoint)}
    for shard, stored in ((shard, stored) for shard, one in opened.items() for stored in one.tensors.values()):
        if stored.name not in refused and tensors.setdefault(stored.name, stored).file is not stored.file:
            problem = f"{shard!r} holds it, too, so that its value depends on what loads the shards"
            operand = f"tensor {stored.name!r}"
            refused[stored.name] = FileFormatError(problem, where=str(index), operand=operand)
            del tensors[stored.name]
    if refused and unreadable is None:
        raise next(iter(refused.values()))
    common = [shard.metadata.items() for shard in opened.values()]
    metadata = dict(common[0]) if common and all(each == common[0] for each in common) else {}
    return Checkpoint(str(index), tensors, metadata)


def _of_shard(name: str, shard: str, shards: dict[str, Checkpoint | EltwiseError], index: Path) -> TensorBytes:
    """A tensor of a shard, which is opened once."""
    if shard not in shards:
        try:
            shards[shard] = _file(index.parent / shard)
        except EltwiseError as error:
            shards[shard] = stripped(error)
    known = shards[shard]
    if isinstance(known, EltwiseError):
        raise known
    if name not in known.tensors:
        raise FileFormatError(f"the index says that {shard!r} holds {name!r}, and it does not", where=str(index))
    return known.tensors[name]


def type_of(dtype: str) -> ElementType:
    """The element type of a name of the format.

    Raises:
        ElementTypeError: for a name that is not known.
    """
    if dtype not in _TYPES:
        raise ElementTypeError("unsupported element type", got=dtype, allowed=", ".join(_TYPES))
    return by_name(_TYPES[dtype])


def dtype_of(element_type: ElementType) -> str:
    """The name that the format has for an element type.

    Raises:
        ElementTypeError: where it has none.
    """
    for dtype, name in _TYPES.items():
        if name == element_type.name:
            return dtype
    raise ElementTypeError("safetensors has no such element type", got=element_type.name)


def header_of(tensors: Iterable[tuple[str, str, tuple[int, ...], int]], metadata: dict[str, str]) -> bytes:
    """Make the header of a file, without its length.

    Args:
        tensors: the name, dtype, shape and size in bytes of each, in order.
        metadata: names and texts that the file holds beside them.

    Raises:
        FileFormatError: for a name or a text that UTF-8 cannot hold.
    """
    fields: dict[str, Any] = {"__metadata__": metadata} if metadata else {}
    end = 0
    for name, dtype, shape, size in tensors:
        fields[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [end, end + size]}
        end += size
    try:
        text = json.dumps(fields, separators=(",", ":"), ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        got = repr(error.object[max(error.start - 40, 0) : error.end])
        problem, hint = "safetensors holds names and texts in UTF-8", "choose another name"
        raise FileFormatError(problem, got=f"half a surrogate at the end of {got}", hint=hint) from None
    return text + b" " * (-len(text) % 8)


def read_index(index: Path) -> list[tuple[str, str]]:
    """Read the names of the tensors of a checkpoint in shards, each with the name of its file.

    Raises:
        FileFormatError: where it is no index, or a name leads out of its folder.
    """
    data = files.read_bytes(index, _LARGEST_INDEX)
    try:
        content = json.loads(data, object_pairs_hook=unique)
    except (ValueError, RecursionError) as error:
        raise FileFormatError(f"the index is not JSON ({error})", where=str(index)) from None
    shard_of = content.get("weight_map") if isinstance(content, dict) else None
    if not isinstance(shard_of, dict) or not all(isinstance(shard, str) for shard in shard_of.values()):
        raise FileFormatError("the index has no weight_map of names to files", where=str(index))
    for shard in dict.fromkeys(shard_of.values()):
        if not shard or Path(shard).name != shard or "\\" in shard or "\0" in shard:
            problem, allowed = "the index names what is not a file in its folder", "a file name without folders"
            raise FileFormatError(problem, where=str(index), got=repr(shard), allowed=allowed)
    return list(shard_of.items())
