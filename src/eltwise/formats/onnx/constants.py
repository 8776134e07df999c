"""The constants of an ONNX model as lazy tensors: initializers and the tensors of Constant nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from onnx import ModelProto, TensorProto

from eltwise.core.shapes import element_count
from eltwise.formats import files
from eltwise.formats.file_tensors import OpenFile, of_file
from eltwise.formats.lazy_tensors import LazyTensor, of_array
from eltwise.formats.onnx.external import ExternalData
from eltwise.formats.onnx.reader import OnnxFile, read_model_proto, read_onnx
from eltwise.formats.onnx.tensors import StoredTensor, check_tensor, read_element_type
from eltwise.ir.graph import Graph

Constants = Iterator[tuple[str, Callable[[], LazyTensor]]]


def read_constants(path: Path) -> Constants:
    """Find the constants of a model, each with what opens it; their elements are not read."""
    return _constants(read_onnx(files.read_message(path), path.parent, path.name, reads_weights=False).graph, str(path))


def constants_of(model: ModelProto, folder: Path | None, where: str) -> Constants:
    """Find the constants of a model in memory, of which external data is in a folder, if that is known."""
    return _constants(read_model_proto(model, folder, where, reads_weights=False).graph, where)


def _constants(graph: Graph, where: str) -> Constants:
    assert isinstance(graph.message, OnnxFile)
    folder, opened = ExternalData(graph.message.folder), dict[Path, OpenFile]()
    for name, tensor in graph.constants:
        if isinstance(tensor, StoredTensor):
            yield name, _opener(name, tensor, folder, opened, where)
    for node in graph.message.model.graph.node:
        values = [attribute.t for attribute in node.attribute if attribute.name == "value"]
        if node.op_type == "Constant" and values and node.output:
            name = node.output[0]
            yield name, _opener(name, StoredTensor(values[0], folder, f"constant {name!r}"), folder, opened, where)


def _opener(
    name: str, tensor: StoredTensor, folder: ExternalData, opened: dict[Path, OpenFile], where: str
) -> Callable[[], LazyTensor]:
    def read() -> LazyTensor:
        if tensor.is_sparse or not tensor.is_external:
            return of_array(name, tensor.array, where)
        proto: TensorProto = tensor.proto
        check_tensor(proto, folder)
        element_type, sizes = read_element_type(proto.data_type), tuple(proto.dims)
        file, offset = folder.place(proto.external_data, element_type.file_bytes(element_count(sizes)))
        if file not in opened:
            opened[file] = OpenFile(file)
        return of_file(name, element_type, sizes, opened[file], offset)

    return read
