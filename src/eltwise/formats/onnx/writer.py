"""Write ONNX models: to bytes, to a file, or to a file with the large tensors beside it.

Source: ModelProto and GraphProto in onnx.proto; ONNX's ExternalData page.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from google.protobuf.message import EncodeError
from onnx import ModelProto

from eltwise.core.errors import EltwiseError, FileFormatError, UnsupportedError
from eltwise.formats.files import write_atomically, write_together
from eltwise.formats.onnx.external import ExternalWriter, location_beside
from eltwise.formats.onnx.header import write_metadata, write_origin
from eltwise.formats.onnx.nodes import write_node
from eltwise.formats.onnx.tensors import TensorFiller, fill_tensor, fill_tensor_outside
from eltwise.formats.onnx.types import write_type
from eltwise.ir.graph import Graph, Node, Port, Tensor
from eltwise.ops import registry

LARGEST_MESSAGE = 2**31 - 1
"""The largest protobuf message, in bytes."""

LARGEST_INSIDE = 2**30
"""How many bytes of constants go into the model file itself unless external data is asked for."""


def write_onnx(graph: Graph) -> bytes:
    """Write a model as the bytes of one file, the same bytes for the same graph.

    Raises:
        UnsupportedError: for a graph that is not ONNX's, or that uses what ONNX cannot state.
        FileFormatError: where it does not fit into one protobuf message.
    """
    if _constant_bytes(graph) > LARGEST_MESSAGE:
        raise _too_large()
    return _serialized(write_model_proto(graph))


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
    """Write a model as a protobuf message.

    Args:
        graph: the model.
        fill: what writes a tensor into its place.

    Raises:
        UnsupportedError: for a graph that is not ONNX's, or that uses what ONNX cannot state.
    """
    if graph.origin.domain != "ai.onnx":
        raise UnsupportedError(
            "an OpenVINO model cannot be written as ONNX: conversion between the formats is not built yet",
            hint="write it as .xml",
        )
    model = ModelProto()
    write_origin(graph.origin, model)
    model.graph.name = graph.name
    write_metadata(graph.metadata, model)
    for node in graph.nodes:
        _check_version(node, graph.origin.opset)
        model.graph.node.append(write_node(node, fill))
    for name, tensor in graph.constants:
        fill(model.graph.initializer.add(), name, tensor)
    model.graph.input.extend(write_type(port.name, port.type) for port in _ordered_inputs(graph))
    model.graph.output.extend(write_type(port.name, port.type) for port in graph.outputs)
    model.graph.value_info.extend(write_type(name, declared) for name, declared in graph.declared)
    return model


def _check_version(node: Node, opset: int) -> None:
    """Refuse a node whose version is not the one that readers of the file would take it for."""
    schema = registry.resolve("ai.onnx", node.schema.name, opset)
    if schema is not None and schema != node.schema:
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

    def tensors() -> Iterator[Tensor]:
        yield from (tensor for _name, tensor in graph.constants)
        for node in graph.nodes:
            yield from (value for _name, value in node.operation.given if isinstance(value, Tensor))

    return sum(tensor.element_type.file_bytes(tensor.array.size) for tensor in tensors())


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
