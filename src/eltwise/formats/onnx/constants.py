"""The constants of an ONNX model as lazy tensors: initializers and the tensors of Constant nodes."""

from __future__ import annotations

from pathlib import Path

from onnx import ModelProto

from eltwise.core.shapes import element_count
from eltwise.formats import files
from eltwise.formats.file_tensors import OpenFile, of_file
from eltwise.formats.lazy_tensors import LazyTensor, TensorSet, of_array
from eltwise.formats.onnx.external import ExternalData
from eltwise.formats.onnx.reader import OnnxFile, read_model_proto, read_onnx
from eltwise.formats.onnx.tensors import StoredTensor, check_tensor, read_element_type
from eltwise.ir.graph import Graph


def read_constants(path: Path) -> TensorSet:
    """Find the constants of a model; their elements are not read."""
    return _constants(read_onnx(files.read_message(path), path.parent, path.name, reads_weights=False).graph, str(path))


def constants_of(model: ModelProto, folder: Path | None, where: str) -> TensorSet:
    """Find the constants of a model in memory, of which external data is in a folder, if that is known."""
    return _constants(read_model_proto(model, folder, where, reads_weights=False).graph, where)


def _constants(graph: Graph, where: str) -> TensorSet:
    assert isinstance(graph.message, OnnxFile)
    found, folder, opened = TensorSet(where), ExternalData(graph.message.folder), dict[Path, OpenFile]()
    for name, tensor in graph.constants:
        if isinstance(tensor, StoredTensor):
            found.add(name, _opened, name, tensor, folder, opened, where)
    for node in graph.message.model.graph.node:
        values = [attribute.t for attribute in node.attribute if attribute.name == "value"]
        if node.op_type == "Constant" and values and node.output:
            tensor = StoredTensor(values[0], folder, f"constant {node.output[0]!r}")
            found.add(node.output[0], _opened, node.output[0], tensor, folder, opened, where)
    return found


def _opened(
    name: str, tensor: StoredTensor, folder: ExternalData, opened: dict[Path, OpenFile], where: str
) -> LazyTensor:
    if tensor.is_sparse or not tensor.is_external:
        return of_array(name, tensor.array, where)
    check_tensor(tensor.proto, folder)
    element_type, sizes = read_element_type(tensor.proto.data_type), tuple(tensor.proto.dims)
    file, offset = folder.place(tensor.proto.external_data, element_type.file_bytes(element_count(sizes)))
    if file not in opened:
        opened[file] = OpenFile(file)
    return of_file(name, element_type, sizes, opened[file], offset)
