"""Write ONNX models: to bytes, to a file, or to a file with the large tensors beside it.

Source: ModelProto and GraphProto in onnx.proto; ONNX's ExternalData page.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from google.protobuf.message import EncodeError
from onnx import FunctionProto, GraphProto, ModelProto, SparseTensorProto, TensorProto

from eltwise.core.errors import FileFormatError, UnsupportedError, errors_located
from eltwise.core.progress import Progress, no_progress
from eltwise.core.shapes import element_count
from eltwise.formats.files import LARGEST_PROTOBUF, check_writable, write_together
from eltwise.formats.onnx.external import ExternalData, ExternalWriter, move_data
from eltwise.formats.onnx.header import default_domain, read_origin, write_metadata, write_origin
from eltwise.formats.onnx.messages import walk
from eltwise.formats.onnx.nodes import write_node
from eltwise.formats.onnx.reader import OnnxFile, path_of
from eltwise.formats.onnx.tensors import MessageSource, bring_in, keep_tensor
from eltwise.formats.onnx.types import declare, value_type
from eltwise.ir.graph import Function, Graph, Port, Tensor, computed_once
from eltwise.ir.types import TensorType
from eltwise.ops import registry

if TYPE_CHECKING:
    from typing import TypeAlias

    from google.protobuf.internal.containers import RepeatedCompositeFieldContainer
    from onnx import ValueInfoProto

    RepeatedValues: TypeAlias = RepeatedCompositeFieldContainer[ValueInfoProto]

LARGEST_INSIDE = 2**30
"""How many bytes of constants go into the model file itself unless external data is asked for."""


def write_onnx(graph: Graph) -> bytes:
    """Write a model as the bytes of one file, with external data in it; those of its file where nothing changed."""
    if sum(map(_file_bytes, _tensors(graph))) > LARGEST_PROTOBUF:
        raise _too_large()
    data, model = kept_bytes(graph)
    outside = [one for one in _tensor_messages(model) if one.data_location == TensorProto.EXTERNAL]
    folder = ExternalData(path_of(graph))
    for tensor in outside:
        bring_in(tensor, folder)
    return _serialized(model) if outside else data


def kept_bytes(graph: Graph) -> tuple[bytes, ModelProto]:
    """Write a model as bytes and as a message, with external data where it is."""
    model = write_model_proto(graph)
    if graph.untouched and isinstance(graph.message, OnnxFile) and graph.message.data is not None:
        return graph.message.data, model
    return _serialized(model), model


def write_kept_file(graph: Graph, path: Path, progress: Progress = no_progress) -> bool:
    """Write a model to a file without reading its external data.

    Where the file is in another folder than the one that the model was read from, that data is copied into one file
    beside it, which is named after it.

    Args:
        graph: the model.
        path: the file; it is replaced as a whole or not at all.
        progress: receives how many bytes of the external data have been copied.

    Returns:
        Whether the external data has another name now.
    """
    data, model = kept_bytes(graph)
    check_writable(path)
    data_files, is_moved = move_data(model, path_of(graph), path, progress)
    write_together([*data_files, (path, [_serialized(model) if is_moved else data])])
    return is_moved


def write_onnx_file(graph: Graph, path: Path, external_data: bool = False) -> None:
    """Write a model to a file.

    Args:
        graph: the model.
        path: the file; it is replaced as a whole or not at all.
        external_data: whether tensors of 1 KiB or more go to ``<name>.data`` beside it.
            Where the constants inside the model exceed 1 GiB they always do.
    """
    with errors_located(where=str(path)):
        inside = (one for one in _tensors(graph) if not one.is_external)
        if not external_data and sum(map(_file_bytes, inside)) <= LARGEST_INSIDE:
            write_kept_file(graph, path)
            return
        model, folder, writer = write_model_proto(graph), ExternalData(path_of(graph)), ExternalWriter(path)
        for tensor in _tensor_messages(model):
            bring_in(tensor, folder)
            writer.take(tensor)
        write_together([*writer.files(), (path, [_serialized(model)])])


def write_model_proto(graph: Graph) -> ModelProto:
    """Write a model as a protobuf message: what its file says of it, with what was changed since.

    External data stays where it is.
    """
    if graph.origin.domain != "ai.onnx":
        raise UnsupportedError("an OpenVINO model cannot be written as ONNX", hint="convert it first: eltwise convert")
    model = ModelProto()
    file = graph.message if isinstance(graph.message, OnnxFile) else None
    if file is None:
        write_origin(graph.origin, model)
        write_metadata(graph.metadata, model)
        write_graph(graph, model.graph)
        return model
    model.CopyFrom(file.model)
    if graph.untouched:
        return model
    if graph.origin != read_origin(file.model):
        write_origin(graph.origin, model)
    write_graph(replace(graph, message=file.model.graph), model.graph)
    for function, proto in zip(graph.functions, model.functions, strict=True):
        if not function.body.untouched:
            _write_function(function, proto)
    return model


@computed_once
def outside_of_graph(graph: Graph) -> OnnxFile | None:
    """What the file of a model says beside its graph; None where it was read from none."""
    file = graph.message if isinstance(graph.message, OnnxFile) else None
    if file is None:
        return None
    shell = ModelProto(ir_version=file.model.ir_version)
    shell.opset_import.extend(file.model.opset_import)
    shell.functions.extend(file.model.functions)
    shell.graph.name = graph.name or "part"
    return OnnxFile(shell, None, file.path)


def write_graph(graph: Graph, proto: GraphProto) -> None:
    """Write a graph over the one of the file, or into an empty message, with external data where it is."""
    before = graph.message if isinstance(graph.message, GraphProto) else GraphProto()
    if proto.name != graph.name:
        proto.name = graph.name
    _write_nodes(graph, proto)
    _write_constants(graph, proto, before)
    ports = {port.name: port for port in (*graph.inputs, *graph.optional_inputs)}
    ordered = [ports.pop(name) for name in graph.input_order if name in ports]
    _write_ports(proto.input, [*ordered, *ports.values()])
    _write_ports(proto.output, graph.outputs)
    _write_values(proto.value_info, graph.declared)


def _write_function(function: Function, proto: FunctionProto) -> None:
    _write_nodes(function.body, proto)
    _write_values(proto.value_info, function.body.declared)
    for entry in proto.opset_import:
        if not default_domain(entry.domain):
            entry.version = function.body.origin.opset


def _write_nodes(graph: Graph, proto: GraphProto | FunctionProto) -> None:
    proto.ClearField("node")
    for node in graph.nodes:
        schema = registry.resolve("ai.onnx", node.schema.name, graph.origin.opset)
        if schema is not None and schema != node.schema and not node.is_foreign:
            raise UnsupportedError(  # Readers of the file would take it for that other version.
                f"a model of opset {graph.origin.opset} cannot hold this operator version",
                operator=node.schema.versioned_name,
                node=node.label,
                allowed=schema.versioned_name,
            )
        proto.node.append(write_node(node, write_graph))


def _write_constants(graph: Graph, proto: GraphProto, before: GraphProto) -> None:
    messages = [*before.initializer, *before.sparse_initializer]
    if len(messages) == len(graph.constants) and all(
        isinstance(tensor.source, MessageSource) and tensor.source.message is message
        for (_name, tensor), message in zip(graph.constants, messages, strict=True)
    ):
        return
    proto.ClearField("initializer")
    proto.ClearField("sparse_initializer")
    for name, tensor in graph.constants:
        source = tensor.source
        if isinstance(source, MessageSource) and isinstance(source.message, SparseTensorProto):
            proto.sparse_initializer.append(source.message)
        else:
            keep_tensor(proto.initializer.add(), name, tensor)


def _write_ports(protos: RepeatedValues, ports: Sequence[Port]) -> None:
    _write_values(protos, [(port.name, port.type) for port in ports])


def _write_values(protos: RepeatedValues, types: Sequence[tuple[str, TensorType]]) -> None:
    """Write the types of values; what a file says of a value whose type did not change stays as it was."""
    before: dict[str, ValueInfoProto] = {}
    for value in protos:
        before.setdefault(value.name, value)
    present = [(name, value_type(value.type)) for name, value in before.items() if name]
    if present == [(name, declared) for name, declared in types if name]:
        return
    written = GraphProto()
    for name, declared in types:
        old, new = before.get(name), written.input.add(name=name)
        if old is not None and value_type(old.type) == declared:
            new.CopyFrom(old)
        else:
            declare(new, declared)
    del protos[:]
    protos.extend(written.input)


def _file_bytes(tensor: Tensor) -> int:
    """How many bytes a tensor takes in a file."""
    element_type, shape = tensor.type.element_type, tensor.type.shape
    return element_type.file_bytes(element_count(shape.sizes())) if element_type and shape.is_known else 0


def _tensors(graph: Graph) -> Iterator[Tensor]:
    yield from (tensor for _name, tensor in graph.constants)
    for node in graph.nodes:
        yield from (value for _name, value in node.operation.attributes if isinstance(value, Tensor))


def _tensor_messages(model: ModelProto) -> Iterator[TensorProto]:
    """The tensors of a model, those in attributes and inner graphs too, but not the parts of sparse ones."""
    return (message for message in walk(model, whole=SparseTensorProto) if isinstance(message, TensorProto))


def _serialized(model: ModelProto) -> bytes:
    try:
        data: bytes = model.SerializeToString(deterministic=True)
    except EncodeError:
        raise _too_large() from None
    if len(data) > LARGEST_PROTOBUF:
        raise _too_large()
    return data


def _too_large() -> FileFormatError:
    return FileFormatError(
        "the model does not fit into one protobuf message",
        allowed=f"{LARGEST_PROTOBUF} bytes",
        hint="write it to a file with external data",
    )
