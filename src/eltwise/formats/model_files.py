"""The files that a model was read from."""

from __future__ import annotations

from pathlib import Path

from eltwise.ir.graph import Graph


def files_of(graph: Graph, path: Path) -> list[Path]:
    """The file of a model, and those of its weights: the .bin of an IR, the external data of an ONNX model."""
    if graph.origin.domain != "ai.onnx":
        return [path, path.with_suffix(".bin")]
    from eltwise.formats.onnx.external import data_files
    from eltwise.formats.onnx.reader import OnnxFile

    file = graph.message
    data = data_files(file.model, file.folder) if isinstance(file, OnnxFile) and file.folder is not None else ()
    return [path, *data]
