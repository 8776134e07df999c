"""The same ONNX model with one float type in place of all others: constants, casts and declared types."""

from __future__ import annotations

import numpy as np
from onnx import AttributeProto, NodeProto, TensorProto, TypeProto

from eltwise.core.dtypes import BFLOAT16, FLOAT16, FLOAT32, FLOAT64, ElementType
from eltwise.core.errors import EltwiseError, UnsupportedError
from eltwise.formats.onnx.external import ExternalData
from eltwise.formats.onnx.messages import walk
from eltwise.formats.onnx.reader import folder_of, read_model_proto
from eltwise.formats.onnx.tensors import keep_tensor, read_tensor
from eltwise.formats.onnx.writer import write_model_proto
from eltwise.ir.graph import Graph, Tensor

_FLOATS = {element_type.onnx_number for element_type in (FLOAT16, BFLOAT16, FLOAT32, FLOAT64)}
_TYPE_ATTRIBUTES = ("to", "dtype", "output_dtype")


def in_float_type(graph: Graph, element_type: ElementType) -> Graph:
    """Make the model in which every float has one type; constants are rounded to it, which float64 holds exactly.

    Raises:
        UnsupportedError: for OpenVINO IR, whose runtime computes float64 in float32.
        EltwiseError: for constants that cannot be read.
    """
    if graph.origin.domain != "ai.onnx":
        hint = "trace the ONNX model that it was made of"
        if not any(node.is_foreign for node in graph.nodes):
            hint += ", or convert it: eltwise convert"
        raise UnsupportedError("OpenVINO computes float64 in float32, so that an IR has no wider run", hint=hint)
    model = write_model_proto(graph)
    folder = ExternalData(folder_of(graph))
    for message in list(walk(model)):
        if isinstance(message, TensorProto) and message.data_type in _FLOATS:
            message.CopyFrom(rounded_tensor(message, folder, element_type, message.name))
        elif isinstance(message, TypeProto) and message.tensor_type.elem_type in _FLOATS:
            message.tensor_type.elem_type = element_type.onnx_number
        elif isinstance(message, NodeProto):
            set_attributes(message, element_type)
    return read_model_proto(model, folder_of(graph), "", reads_weights=False).graph


def any_float(attribute: object) -> object:
    """An attribute as it is in every float type: one that names a type, or holds numbers of it."""
    if not isinstance(attribute, AttributeProto):
        return attribute
    if attribute.name in _TYPE_ATTRIBUTES and attribute.i in _FLOATS:
        return "float"
    if attribute.type == AttributeProto.TENSOR and attribute.t.data_type in _FLOATS:
        try:
            array = read_tensor(attribute.t, ExternalData(None), repr(attribute.name)).array
        except EltwiseError:  # As of external data.
            return attribute
        return array.shape, array.astype(np.float64).tobytes()
    return attribute


def rounded_tensor(proto: TensorProto, folder: ExternalData, element_type: ElementType, name: str) -> TensorProto:
    """The same tensor in a float type, with a name."""
    array, result = read_tensor(proto, folder, repr(proto.name)).array, TensorProto()
    keep_tensor(result, name, Tensor(_rounded(array, element_type), element_type))
    return result


def _rounded(array: np.ndarray, element_type: ElementType) -> np.ndarray:
    with np.errstate(over="ignore"):
        return array.astype(element_type.storage)


def set_attributes(node: NodeProto, element_type: ElementType) -> None:
    """Change the types that a node names, and the floats of a Constant, which have 32 bits."""
    for attribute in node.attribute:
        if attribute.name in _TYPE_ATTRIBUTES and attribute.i in _FLOATS:
            attribute.i = element_type.onnx_number
        elif node.op_type == "Constant" and attribute.name in ("value_float", "value_floats"):
            values = np.array(attribute.f if attribute.name == "value_float" else attribute.floats, np.float64)
            attribute.Clear()
            attribute.name, attribute.type = "value", AttributeProto.TENSOR
            keep_tensor(attribute.t, "", Tensor(_rounded(values, element_type), element_type))
