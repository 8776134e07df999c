"""Tensor files: the ending of the name chooses the form, for reading as for writing.

``a.npy``; ``a.npz:key``, or ``a.npz`` where it holds one array; ``a.pb``, an ONNX TensorProto.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from eltwise.core.dtypes import ElementType, of_numpy
from eltwise.core.errors import FileFormatError
from eltwise.formats import files, npy_files

_ENDINGS = (".npy", ".npz", ".pb")


@dataclass(frozen=True)
class TensorFile:
    """A place for one tensor: a file, and in an .npz file the key."""

    path: Path
    key: str = ""

    @property
    def ending(self) -> str:
        """The ending that chooses the form."""
        return self.path.suffix.lower()


def parse_place(text: str) -> TensorFile:
    """Read a place as it is written at the shell.

    >>> parse_place("values.npz:x").key
    'x'

    Raises:
        FileFormatError: where the ending is none of the known ones.
    """
    ending = text.lower().find(".npz:")
    if ending >= 0:
        return TensorFile(Path(text[: ending + 4]), text[ending + 5 :])
    path = Path(text)
    if path.suffix.lower() not in _ENDINGS:
        raise FileFormatError(
            "the ending does not say what form this is",
            where=text,
            got=path.suffix or "none",
            allowed=".npy, .npz:KEY, .pb",
        )
    return TensorFile(path)


def read_tensor_file(place: TensorFile, wanted: ElementType | None = None) -> np.ndarray:
    """Read one tensor.

    Args:
        place: where it is.
        wanted: the element type that raw void bytes of .npy files stand for.

    Raises:
        EltwiseError: where there is none, or it is not what the ending says.
    """
    match place.ending:
        case ".npy":
            return npy_files.read_npy(place.path, wanted)
        case ".npz":
            return npy_files.read_npz(place.path, place.key, wanted)
        case _:
            from eltwise.formats.onnx.tensors import read_tensor_proto

            data = files.read_message(place.path)
            return read_tensor_proto(data, place.path.parent, str(place.path)).array


def check_places(places: Mapping[str, TensorFile]) -> None:
    """Refuse places that cannot be written, before anything is computed.

    Raises:
        FileFormatError: for a folder that does not exist, or two results in one place.
    """
    seen: dict[tuple[str, str], str] = {}
    for name, place in places.items():
        files.check_writable(place.path)
        target = (os.path.realpath(place.path), place.key or name if place.ending == ".npz" else "")
        if target in seen:
            raise FileFormatError(f"{seen[target]!r} and {name!r} would go to the same place", where=str(place.path))
        seen[target] = name


def write_tensor_files(results: Mapping[str, np.ndarray], places: Mapping[str, TensorFile]) -> None:
    """Write each named result to its place; results for one .npz file go there together.

    Raises:
        FileFormatError: where a file cannot be written.
    """
    archives: dict[str, dict[str, np.ndarray]] = {}
    for name, place in places.items():
        array = results[name]
        if place.ending == ".npz":
            archives.setdefault(os.path.realpath(place.path), {})[place.key or name] = array
        elif place.ending == ".npy":
            files.write_atomically(place.path, [npy_files.npy_bytes(array)])
        else:
            from eltwise.formats.onnx.tensors import write_tensor
            from eltwise.ir.graph import Tensor

            proto = write_tensor(name, Tensor(array, of_numpy(array.dtype)))
            files.write_atomically(place.path, [proto.SerializeToString()])
    for path, arrays in archives.items():
        files.write_atomically(Path(path), [npy_files.npz_bytes(arrays)])
