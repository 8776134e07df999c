"""safetensors files: the header is checked by the safetensors library, the elements are read where they lie.

Source: the safetensors format, and the index of checkpoints in shards that Hugging Face's libraries write.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from eltwise.core.dtypes import ElementType, by_name
from eltwise.core.errors import ElementTypeError, FileFormatError
from eltwise.formats import files
from eltwise.formats.lazy_tensors import LazyTensor, OpenFile, of_file

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
_LARGEST_INDEX = 1 << 28


def read_header(file: OpenFile) -> Iterator[tuple[str, Callable[[], LazyTensor]]]:
    """Find the names of the tensors in a file, each with what opens it.

    Raises:
        FileFormatError: where the header is not what the file holds.
    """
    from safetensors import SafetensorError, safe_open

    where = str(file.path)
    try:
        with safe_open(where, "np"):  # It checks every size against the file.
            pass
    except (SafetensorError, OSError, ValueError) as error:
        raise FileFormatError(f"not a readable safetensors file ({error})", where=where) from None
    length = int.from_bytes(file.bytes_at(0, 8).tobytes(), "little")
    header: dict[str, Any] = json.loads(file.bytes_at(8, length).tobytes())
    for name, entry in header.items():
        if name != "__metadata__":
            yield name, _opener(name, entry, file, 8 + length)


def _opener(name: str, entry: dict[str, Any], file: OpenFile, begin: int) -> Callable[[], LazyTensor]:
    def opened() -> LazyTensor:
        element_type = _type_of(entry["dtype"])
        return of_file(name, element_type, tuple(entry["shape"]), file, begin + entry["data_offsets"][0])

    return opened


def _type_of(text: str) -> ElementType:
    if text not in _TYPES:
        raise ElementTypeError("unsupported element type", got=text, allowed=", ".join(_TYPES))
    return by_name(_TYPES[text])


def read_index(index: Path) -> list[tuple[str, str]]:
    """Read the names of the tensors of a checkpoint in shards, each with the name of its file.

    Raises:
        FileFormatError: where it is no index, or a name leads out of its folder.
    """
    try:
        content = json.loads(files.read_bytes(index, _LARGEST_INDEX))
    except (ValueError, RecursionError):
        raise FileFormatError("the index is not JSON", where=str(index)) from None
    found = content.get("weight_map") if isinstance(content, dict) else None
    if not isinstance(found, dict) or not all(isinstance(shard, str) for shard in found.values()):
        raise FileFormatError("the index has no weight_map of names to files", where=str(index))
    for shard in dict.fromkeys(found.values()):
        if not shard or Path(shard).name != shard or "\\" in shard or "\0" in shard:
            words, allowed = "the index names what is not a file in its folder", "a file name without folders"
            raise FileFormatError(words, where=str(index), got=repr(shard), allowed=allowed)
    return list(found.items())
