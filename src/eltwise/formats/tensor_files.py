"""Tensor files: the ending selects the format, for reading and writing.

``a.npy``; ``a.npz:key``, or ``a.npz`` where it holds one array; ``a.pb``, an ONNX TensorProto.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from eltwise.core.dtypes import ElementType, of_numpy
from eltwise.core.errors import FileFormatError
from eltwise.formats import files, npy
from eltwise.formats.registry import unknown_ending
from eltwise.ir.graph import Tensor


@dataclass(frozen=True)
class TensorFile:
    """Where one tensor is or goes: a file, and in an .npz file the key."""

    path: Path
    key: str = ""

    @property
    def ending(self) -> str:
        """The ending that selects the format."""
        return self.path.suffix.lower()


def parse_tensor_file(text: str) -> TensorFile:
    """Parse FILE or FILE.npz:KEY as it is written at the shell.

    >>> parse_tensor_file("values.npz:x").key
    'x'

    Raises:
        FileFormatError: for an unknown ending.
    """
    ending = text.lower().find(".npz:")
    if ending >= 0:
        return TensorFile(Path(text[: ending + 4]), text[ending + 5 :])
    path = Path(text)
    if path.suffix.lower() not in _FORMATS:
        raise unknown_ending(path, ".npy, .npz:KEY, .pb")
    return TensorFile(path)


def read_tensor_file(file: TensorFile, wanted: ElementType | None = None) -> np.ndarray:
    """Read one tensor.

    Args:
        file: where it is.
        wanted: the element type of raw void bytes in .npy files.

    Raises:
        EltwiseError: where there is none, or it does not match the ending.
    """
    return _FORMATS[file.ending].read(file, wanted)


def check_tensor_files(targets: Mapping[str, TensorFile]) -> None:
    """Refuse files that cannot be written, before anything is computed.

    Raises:
        FileFormatError: for a folder that does not exist, or two results in one file.
    """
    seen: dict[tuple[str, str], str] = {}
    for name, file in targets.items():
        files.check_writable(file.path)
        target = (os.path.realpath(file.path), file.key or name if file.ending == ".npz" else "")
        if target in seen:
            raise FileFormatError(
                f"{seen[target]!r} and {name!r} would be written to the same file", where=str(file.path)
            )
        seen[target] = name


def write_tensor_files(results: Mapping[str, np.ndarray], targets: Mapping[str, TensorFile]) -> None:
    """Write each named result to its file; results for one .npz file are written together.

    Raises:
        FileFormatError: where a file cannot be written.
    """
    archives: dict[str, dict[str, np.ndarray]] = {}
    for name, file in targets.items():
        array = results[name]
        if file.ending == ".npz":
            archives.setdefault(os.path.realpath(file.path), {})[file.key or name] = array
        else:
            files.write_atomically(file.path, [_FORMATS[file.ending].encode(name, array)])
    for path, arrays in archives.items():
        files.write_atomically(Path(path), [npy.npz_bytes(arrays)])


@dataclass(frozen=True)
class _Format:
    """What reads a tensor file, and the bytes of one that holds a named array."""

    read: Callable[[TensorFile, ElementType | None], np.ndarray]
    encode: Callable[[str, np.ndarray], bytes]


def _read_pb(file: TensorFile, _wanted: ElementType | None) -> np.ndarray:
    from eltwise.formats.onnx.tensors import read_tensor_proto

    data = files.read_message(file.path)
    return read_tensor_proto(data, file.path.parent, str(file.path)).array


def _pb_bytes(name: str, array: np.ndarray) -> bytes:
    from eltwise.formats.onnx.tensors import write_tensor

    proto = write_tensor(name, Tensor(array, of_numpy(array.dtype)))
    return bytes(proto.SerializeToString())


_FORMATS = {
    ".npy": _Format(lambda file, wanted: npy.read_npy(file.path, wanted), lambda _name, array: npy.npy_bytes(array)),
    ".npz": _Format(
        lambda file, wanted: npy.read_npz(file.path, file.key, wanted),
        lambda name, array: npy.npz_bytes({name: array}),
    ),
    ".pb": _Format(_read_pb, _pb_bytes),
}
