"""The same ONNX model with float64 in place of every other float type: constants, casts and declared types."""

from __future__ import annotations

import numpy as np
from onnx import AttributeProto, NodeProto, TensorProto, TypeProto

from eltwise.core.dtypes import BFLOAT16, BY_ONNX_NUMBER, FLOAT16, FLOAT32, FLOAT64
from eltwise.core.errors import UnsupportedError
from eltwise.formats.onnx.external import ExternalData
from eltwise.formats.onnx.messages import walk
from eltwise.formats.onnx.reader import folder_of, read_model_proto
from eltwise.formats.onnx.tensors import keep_tensor, read_tensor
from eltwise.formats.onnx.writer import write_model_proto
from eltwise.ir.graph import Graph, Tensor

_NARROW = {element_type.onnx_number for element_type in (FLOAT16, BFLOAT16, FLOAT32)}
_TYPE_ATTRIBUTES = ("to", "dtype", "output_dtype")


def in_float64(graph: Graph) -> Graph:
    """Make the model in which every float has 64 bits; values that other types hold are held exactly.

    Raises:
        UnsupportedError: for OpenVINO IR, whose runtime computes float64 in float32.
        EltwiseError: for constants that cannot be read.
    """
    if graph.origin.domain != "ai.onnx":
        hint = "trace the ONNX model, or convert it: eltwise convert"
        raise UnsupportedError("OpenVINO computes float64 in float32, so that an IR has no wider run", hint=hint)
    model = write_model_proto(graph)
    folder = ExternalData(folder_of(graph))
    for message in list(walk(model)):
        if isinstance(message, TensorProto) and message.data_type in _NARROW:
            _widen_tensor(message, folder)
        elif isinstance(message, TypeProto) and message.tensor_type.elem_type in _NARROW:
            message.tensor_type.elem_type = FLOAT64.onnx_number
        elif isinstance(message, NodeProto):
            _widen_attributes(message)
    return read_model_proto(model, folder_of(graph), "", reads_weights=False).graph


def _widen_tensor(proto: TensorProto, folder: ExternalData) -> None:
    name, array = proto.name, read_tensor(proto, folder, repr(proto.name)).array
    proto.Clear()
    keep_tensor(proto, name, Tensor(array.astype(np.float64), FLOAT64))


def _widen_attributes(node: NodeProto) -> None:
    """Change the types that a node names, and the floats of a Constant, which have 32 bits."""
    for attribute in node.attribute:
        if attribute.name in _TYPE_ATTRIBUTES and attribute.i in _NARROW and attribute.i in BY_ONNX_NUMBER:
            attribute.i = FLOAT64.onnx_number
        elif node.op_type == "Constant" and attribute.name in ("value_float", "value_floats"):
            values = np.array(attribute.f if attribute.name == "value_float" else attribute.floats, np.float64)
            attribute.Clear()
            attribute.name, attribute.type = "value", AttributeProto.TENSOR
            keep_tensor(attribute.t, "", Tensor(values, FLOAT64))
