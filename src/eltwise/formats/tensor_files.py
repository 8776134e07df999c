"""Tensor files: the ending selects the format, for reading and writing.

``a.npy``; ``a.npz:key``, or ``a.npz`` where it holds one array; ``a.pb``, an ONNX TensorProto. Sets of inputs of a
model are .npz files in a folder, or folders of tensor files such as ONNX's ``test_data_set_0``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from eltwise.core.dtypes import ElementType, of_numpy
from eltwise.core.errors import ElementTypeError, FileFormatError, errors_located, unknown_name
from eltwise.formats import files, npy
from eltwise.formats.file_states import check_unchanged, states_of
from eltwise.formats.tensor_sets import open_tensors
from eltwise.ir.graph import Graph, Tensor

_NUMBERED = re.compile(r"input_(\d+)")


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

    Raises:
        FileFormatError: for another ending.

    >>> parse_tensor_file("values.npz:x").key
    'x'
    """
    ending = text.lower().find(".npz:")
    if ending >= 0:
        return TensorFile(Path(text[: ending + 4]), text[ending + 5 :])
    path = Path(text)
    if path.suffix.lower() not in (".npy", ".npz", ".pb"):
        raise files.unknown_ending(path, ".npy, .npz:KEY, .pb")
    return TensorFile(path)


def read_tensor_file(file: TensorFile, raw_type: ElementType | None = None) -> np.ndarray:
    """Read one tensor.

    Args:
        file: where it is.
        raw_type: the element type of raw void bytes in .npy files.

    Raises:
        EltwiseError: where there is no such tensor, or what the file holds is not one of an element type that runs.
    """
    files.check_regular(file.path)
    tensors = open_tensors(file.path, raw_type)
    names = [*tensors, *tensors.unreadable, *tensors.others]
    if not names and not file.key:
        raise FileFormatError("the file holds no array", where=tensors.where)
    if not file.key and len(names) > 1:
        allowed = ", ".join(f"{file.path.name}:{name}" for name in names)
        raise FileFormatError("the file holds several arrays", where=tensors.where, allowed=f"one of {allowed}")
    name = file.key or names[0]
    if name in tensors.unreadable:
        raise tensors.unreadable[name]
    if name in tensors.others:
        problem, operand = "unsupported element type", "" if tensors.is_one else f"tensor {name!r}"
        raise ElementTypeError(
            problem, where=tensors.where, operand=operand, got=tensors.others[name].type, allowed="numbers"
        )
    if name not in tensors:
        raise unknown_name("array", name, names, where=tensors.where)
    array = tensors[name].array
    check_unchanged(states_of([tensors]))
    return array


def check_tensor_files(
    targets: Mapping[str, TensorFile], sources: Iterable[TensorFile] = (), inputs: Iterable[Path] = ()
) -> None:
    """Refuse files that cannot be written, before anything is computed; see ``files.check_outputs``."""
    members = dict[tuple[str, str], Path]()
    for name, file in targets.items():
        member = os.path.abspath(file.path), file.key or name if file.ending == ".npz" else ""  # noqa: PTH100 - a link is replaced, not followed
        if member in members:
            raise FileFormatError("two outputs have one name", where=str(file.path), hint="give each its own")
        members[member] = file.path
    archives = {path: file for (path, _key), file in members.items()}
    files.check_outputs(list(archives.values()), [*(file.path for file in sources), *inputs])


def write_tensor_files(results: Mapping[str, np.ndarray], targets: Mapping[str, TensorFile]) -> None:
    """Write each named result to its file; results for one .npz file are written together."""
    archives: dict[Path, dict[str, np.ndarray]] = {}
    for name, file in targets.items():
        array = results[name]
        if file.ending == ".npz":
            archives.setdefault(files.unfollowed(file.path), {})[file.key or name] = array
        else:
            files.write_atomically(
                file.path, [npy.npy_bytes(array) if file.ending == ".npy" else pb_bytes(name, array)]
            )
    for path, arrays in archives.items():
        files.write_atomically(path, [npy.npz_bytes(arrays)])


def pb_bytes(name: str, array: np.ndarray) -> bytes:
    """The content of a .pb file, which holds a TensorProto."""
    from eltwise.formats.onnx.tensors import write_tensor

    return bytes(write_tensor(name, Tensor(array, of_numpy(array.dtype))).SerializeToString(deterministic=True))


def input_sets(graph: Graph, folder: Path) -> dict[str, dict[str, TensorFile]]:
    """The sets of a folder by their names, in the order of these, each with the file of every input.

    A set is an .npz file of inputs by their names, or a folder of .pb and .npy files, of which ``input_K`` is the input
    at the position K and another name is that of an input. A folder of such files is itself one set.

    Raises:
        FileFormatError: where there is no set, or an archive holds none.
        EltwiseError: for what is no input of the model, naming the file.
    """
    with files.reading_errors(folder):
        entries = sorted(folder.iterdir(), key=lambda path: (len(path.name), path.name))  # 10 comes after 9.
    sets = {path.name: _of_archive(graph, path) for path in entries if path.suffix.lower() == ".npz"}
    sets |= {path.name: _of_files(graph, path) for path in entries if path.is_dir()}
    sets[folder.name] = _of_files(graph, folder)
    sets = {name: one for name, one in sets.items() if one}
    if not sets:
        allowed = ".npz files, or folders with input_0.pb, input_1.pb, ..."
        raise FileFormatError("the folder has no sets of inputs", where=str(folder), allowed=allowed)
    return sets


def _of_archive(graph: Graph, path: Path) -> dict[str, TensorFile]:
    """The inputs in an archive, which would else count as a set that was run."""
    with errors_located(where=str(path)):
        if sources := {graph.find_input(name).name: TensorFile(path, name) for name in open_tensors(path)}:
            return sources
        raise FileFormatError("the archive has no arrays", allowed="the inputs of the model by their names")


def _of_files(graph: Graph, folder: Path) -> dict[str, TensorFile]:
    """The files of inputs in a folder; those of expected outputs are not read."""
    sources: dict[str, TensorFile] = {}
    for path in sorted(folder.iterdir()):
        if path.suffix.lower() in (".pb", ".npy") and not path.stem.startswith("output_"):
            match = _NUMBERED.fullmatch(path.stem)
            with errors_located(where=str(path)):
                port = graph.find_input(path.stem if match is None else match[1])
            sources[port.name] = TensorFile(path)
    return sources
