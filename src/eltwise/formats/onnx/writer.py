"""Write ONNX models: to bytes, to a file, or to a file with the large tensors beside it.

Source: ModelProto and GraphProto in onnx.proto; ONNX's ExternalData page.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from google.protobuf.message import EncodeError
from onnx import FunctionProto, GraphProto, ModelProto, SparseTensorProto

from eltwise.core.errors import EltwiseError, FileFormatError, UnsupportedError
from eltwise.core.shapes import element_count
from eltwise.formats.files import check_writable, write_atomically, write_together
from eltwise.formats.onnx.data_files import Progress, move_data
from eltwise.formats.onnx.external import ExternalWriter, location_beside
from eltwise.formats.onnx.header import default_domain, read_origin, restamp, write_metadata, write_origin
from eltwise.formats.onnx.nodes import Original, write_node
from eltwise.formats.onnx.reader import OnnxFile
from eltwise.formats.onnx.tensors import StoredTensor, TensorFiller, fill_tensor, fill_tensor_outside, keep_tensor
from eltwise.formats.onnx.types import declare, value_type, write_type
from eltwise.ir.graph import Function, Graph, Node, Port, Tensor, TensorType
from eltwise.ops import registry

if TYPE_CHECKING:
    from typing import TypeAlias

    from google.protobuf.internal.containers import RepeatedCompositeFieldContainer
    from onnx import ValueInfoProto

    RepeatedValues: TypeAlias = RepeatedCompositeFieldContainer[ValueInfoProto]

LARGEST_MESSAGE = 2**31 - 1
"""The largest protobuf message, in bytes."""

LARGEST_INSIDE = 2**30
"""How many bytes of constants go into the model file itself unless external data is asked for."""


def write_onnx(graph: Graph) -> bytes:
    """Write a model as the bytes of one file, the same bytes for the same graph; those of its file if it is untouched.

    Raises:
        UnsupportedError: for a graph that is not ONNX's, or that uses what ONNX cannot state.
        FileFormatError: where it does not fit into one protobuf message.
    """
    if _constant_bytes(graph) > LARGEST_MESSAGE:
        raise _too_large()
    has_data_beside = any(isinstance(tensor, StoredTensor) and tensor.is_external for tensor in _tensors(graph))
    return _serialized(write_model_proto(graph)) if has_data_beside else kept_bytes(graph)[0]


def kept_bytes(graph: Graph) -> tuple[bytes, ModelProto]:
    """Write a model as bytes and as a message, with external data where it is.

    Raises:
        UnsupportedError: for a graph that is not ONNX's, or that uses what ONNX cannot state.
        FileFormatError: where it does not fit into one protobuf message.
    """
    model = write_model_proto(graph, keep_tensor)
    if graph.untouched and isinstance(graph.message, OnnxFile) and graph.message.data is not None:
        return graph.message.data, model
    return _serialized(model), model


def write_kept_file(graph: Graph, path: Path, progress: Progress | None = None) -> bool:
    """Write a model to a file without reading its external data.

    Where the file is in another folder than the one that the model was read from, that data is copied into one file
    beside it, which is named after it.

    Args:
        graph: the model.
        path: the file; it is replaced as a whole or not at all.
        progress: told how many bytes of how many of the external data have been copied.

    Returns:
        Whether the external data has another name now.

    Raises:
        FileFormatError: where a file cannot be read or written.
    """
    data, model = kept_bytes(graph)
    check_writable(path)
    folder = graph.message.folder if isinstance(graph.message, OnnxFile) else None
    beside, is_moved = move_data(model, folder, path, progress)
    write_together([*beside, (path, [_serialized(model) if is_moved else data])])
    return is_moved


def write_onnx_file(graph: Graph, path: Path, external_data: bool = False) -> None:
    """Write a model to a file.

    Args:
        graph: the model.
        path: the file; it is replaced as a whole or not at all.
        external_data: whether tensors of 1 KiB or more go to ``<name>.data`` beside it.
            Where the constants exceed 1 GiB they always do.

    Raises:
        UnsupportedError: for a graph that is not ONNX's, or that uses what ONNX cannot state.
        FileFormatError: where a file cannot be written.
    """
    try:
        if any(node.is_foreign for node in graph.nodes):
            write_kept_file(graph, path)
            return
        if not external_data and _constant_bytes(graph) <= LARGEST_INSIDE:
            write_atomically(path, [write_onnx(graph)])
            return
        external = ExternalWriter(location_beside(path))
        data = _serialized(write_model_proto(graph, partial(fill_tensor_outside, external=external)))
        beside = [] if external.is_empty else [(path.with_name(location_beside(path)), external.chunks())]
        write_together([*beside, (path, [data])])
    except EltwiseError as error:
        raise error.located(where=str(path)) from None


def write_model_proto(graph: Graph, fill: TensorFiller = fill_tensor) -> ModelProto:
    """Write a model as a protobuf message: what its file says of it, with what was changed since.

    Args:
        graph: the model.
        fill: what writes a tensor into its place.

    Raises:
        UnsupportedError: for a graph that is not ONNX's, or that uses what ONNX cannot state.
    """
    if graph.origin.domain != "ai.onnx":
        raise UnsupportedError("an OpenVINO model cannot be written as ONNX", hint="convert it first: eltwise convert")
    model = ModelProto()
    file = graph.message if isinstance(graph.message, OnnxFile) else None
    if file is None:
        write_origin(graph.origin, model)
        write_metadata(graph.metadata, model)
        _Writer(fill).write_graph(graph, model.graph)
        return model
    model.CopyFrom(file.model)
    if graph.untouched and fill is keep_tensor:
        return model
    if graph.origin != read_origin(file.model):
        restamp(model, graph.origin)
    _Writer(fill).write_graph(replace(graph, message=file.model.graph), model.graph)
    for function, proto, before in zip(graph.functions, model.functions, file.model.functions, strict=True):
        if not function.body.untouched:
            _Writer(fill).write_function(function, proto, before)
    return model


def write_graph(graph: Graph, proto: GraphProto) -> None:
    """Write a graph over the one of the file, with external data where it is."""
    _Writer(keep_tensor).write_graph(graph, proto)


@dataclass(frozen=True)
class _Writer:
    """Writes graphs over what their file says of them."""

    fill: TensorFiller

    def write_graph(self, graph: Graph, proto: GraphProto) -> None:
        """Write a graph over the one of the file, or into an empty message."""
        before = graph.message if isinstance(graph.message, GraphProto) else GraphProto()
        if proto.name != graph.name:
            proto.name = graph.name
        self._write_nodes(graph, proto, before)
        self._write_constants(graph, proto, before)
        _write_values(proto.input, [(port.name, port.type) for port in _ordered_inputs(graph)])
        _write_values(proto.output, [(port.name, port.type) for port in graph.outputs])
        _write_values(proto.value_info, graph.declared)

    def write_function(self, function: Function, proto: FunctionProto, before: FunctionProto) -> None:
        """Write a function over the one of the file."""
        self._write_nodes(function.body, proto, before)
        _write_values(proto.value_info, function.body.declared)
        for entry in proto.opset_import:
            if not default_domain(entry.domain):
                entry.version = function.body.origin.opset

    def _write_nodes(self, graph: Graph, proto: GraphProto | FunctionProto, before: GraphProto | FunctionProto) -> None:
        if len(graph.nodes) == len(before.node) and all(
            node.untouched and isinstance(node.message, Original) and node.message.proto is old
            for node, old in zip(graph.nodes, before.node, strict=True)
        ):
            return
        proto.ClearField("node")
        for node in graph.nodes:
            _check_version(node, graph.origin.opset)
            proto.node.append(write_node(node, self.fill, self.write_graph))

    def _write_constants(self, graph: Graph, proto: GraphProto, before: GraphProto) -> None:
        messages = [*before.initializer, *before.sparse_initializer]
        if len(messages) == len(graph.constants) and all(
            isinstance(tensor, StoredTensor) and tensor.message is message and not _is_moved(tensor, self.fill)
            for (_name, tensor), message in zip(graph.constants, messages, strict=True)
        ):
            return
        proto.ClearField("initializer")
        proto.ClearField("sparse_initializer")
        for name, tensor in graph.constants:
            if isinstance(tensor, StoredTensor) and isinstance(tensor.message, SparseTensorProto):
                proto.sparse_initializer.append(tensor.message)
            else:
                self.fill(proto.initializer.add(), name, tensor)


def _is_moved(tensor: StoredTensor, fill: TensorFiller) -> bool:
    return fill is not keep_tensor and (fill is not fill_tensor or tensor.is_external)


def _write_values(protos: RepeatedValues, wanted: Sequence[tuple[str, TensorType]]) -> None:
    """Write the types of values; what a file says of a value whose type did not change stays as it was."""
    before: dict[str, ValueInfoProto] = {}
    for value in protos:
        before.setdefault(value.name, value)
    kept = [(name, value_type(value.type)) for name, value in before.items() if name]
    if kept == [(name, found) for name, found in wanted if name]:
        return
    made = GraphProto()
    for name, found in wanted:
        old = before.get(name)
        if old is not None and value_type(old.type) == found:
            made.input.add().CopyFrom(old)
        elif found.other:
            declare(made.input.add(name=name), found)
        else:
            made.input.append(write_type(name, found))
    del protos[:]
    protos.extend(made.input)


def _check_version(node: Node, opset: int) -> None:
    """Refuse a node whose version is not the one that readers of the file would take it for."""
    schema = registry.resolve("ai.onnx", node.schema.name, opset)
    if schema is not None and schema != node.schema and not node.is_foreign:
        raise UnsupportedError(
            f"a model of opset {opset} cannot hold this operator version",
            operator=node.schema.versioned_name,
            node=node.label,
            allowed=schema.versioned_name,
        )


def _ordered_inputs(graph: Graph) -> list[Port]:
    ports = {port.name: port for port in (*graph.inputs, *graph.optional_inputs)}
    ordered = [ports.pop(name) for name in graph.input_order if name in ports]
    return [*ordered, *ports.values()]


def _constant_bytes(graph: Graph) -> int:
    """How many bytes all tensors of a graph take in a file."""
    types = (tensor.type for tensor in _tensors(graph))
    return sum(
        found.element_type.file_bytes(element_count(found.shape.sizes()))
        for found in types
        if found.element_type is not None and found.shape.is_known
    )


def _tensors(graph: Graph) -> Iterator[Tensor]:
    yield from (tensor for _name, tensor in graph.constants)
    for node in graph.nodes:
        yield from (value for _name, value in node.operation.given if isinstance(value, Tensor))


def _serialized(model: ModelProto) -> bytes:
    try:
        data: bytes = model.SerializeToString(deterministic=True)
    except EncodeError:
        raise _too_large() from None
    if len(data) > LARGEST_MESSAGE:
        raise _too_large()
    return data


def _too_large() -> FileFormatError:
    return FileFormatError(
        "the model does not fit into one protobuf message",
        allowed=f"{LARGEST_MESSAGE} bytes",
        hint="write it to a file with external data",
    )
