"""Sets of inputs of a model in a folder: .npz files, or folders of tensor files such as ONNX's ``test_data_set_0``."""

from __future__ import annotations

import re
from pathlib import Path

from eltwise.core.errors import FileFormatError
from eltwise.formats import files
from eltwise.formats.tensor_files import TensorFile
from eltwise.formats.tensor_sets import open_tensors
from eltwise.ir.graph import Graph

_NUMBERED = re.compile(r"input_(\d+)")


def input_sets(graph: Graph, folder: Path) -> dict[str, dict[str, TensorFile]]:
    """The sets of a folder by their names, in the order of these, each with the file of every input.

    A set is an .npz file of inputs by their names, or a folder of .pb and .npy files, of which ``input_K`` is the input
    at the position K and another name is that of an input. A folder of such files is itself one set.

    Raises:
        FileFormatError: where there is no set.
        EltwiseError: for what is no input of the model.
    """
    try:
        entries = sorted(folder.iterdir(), key=lambda path: (len(path.name), path.name))  # 10 comes after 9.
    except OSError as error:
        raise files.unreadable(folder, error) from None
    sets = {path.name: _of_archive(graph, path) for path in entries if path.suffix.lower() == ".npz"}
    sets |= {path.name: _of_files(graph, path) for path in entries if path.is_dir()}
    sets[folder.name] = _of_files(graph, folder)
    sets = {name: one for name, one in sets.items() if one}
    if not sets:
        allowed = ".npz files, or folders with input_0.pb, input_1.pb, ..."
        raise FileFormatError("the folder has no sets of inputs", where=str(folder), allowed=allowed)
    return sets


def _of_archive(graph: Graph, path: Path) -> dict[str, TensorFile]:
    return {graph.find_input(name).name: TensorFile(path, name) for name in open_tensors(path)}


def _of_files(graph: Graph, folder: Path) -> dict[str, TensorFile]:
    """The files of inputs in a folder; those of expected outputs are not read."""
    sources: dict[str, TensorFile] = {}
    for path in sorted(folder.iterdir()):
        if path.suffix.lower() in (".pb", ".npy") and not path.stem.startswith("output_"):
            match = _NUMBERED.fullmatch(path.stem)
            port = graph.find_input(path.stem if match is None else match[1])
            sources[port.name] = TensorFile(path)
    return sources
