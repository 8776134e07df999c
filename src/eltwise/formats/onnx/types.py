"""Types of values in ONNX files: ValueInfoProto to TensorType and back.

Source: TypeProto and TensorShapeProto in onnx.proto.
"""

from __future__ import annotations

from onnx import TensorProto, TensorShapeProto, ValueInfoProto

from eltwise.core.errors import EltwiseError, ShapeError, UnsupportedError
from eltwise.core.shapes import LARGEST_RANK, UNKNOWN, UNKNOWN_RANK, Dimension, Shape, known
from eltwise.formats.onnx.tensors import read_element_type
from eltwise.ir.graph import TensorType


def read_type(proto: ValueInfoProto, operand: str, required: bool = False) -> TensorType:
    """Read the type of a value.

    Args:
        proto: the value.
        operand: what to call it in errors.
        required: whether the element type must be there.

    Raises:
        UnsupportedError: for a value that is no tensor.
        ElementTypeError: for an element type that is unknown, or missing where it must be there.
        ShapeError: for a shape that no tensor can have.
    """
    try:
        kind = proto.type.WhichOneof("value")
        if kind not in (None, "tensor_type"):
            name = kind.removesuffix("_type").replace("_", " ")
            raise UnsupportedError(f"a value of the type {name} is not run here", allowed="tensors")
        tensor = proto.type.tensor_type
        undeclared = tensor.elem_type == TensorProto.UNDEFINED and not required
        element_type = None if undeclared else read_element_type(tensor.elem_type)
        return TensorType(element_type, _read_shape(tensor.shape) if tensor.HasField("shape") else UNKNOWN_RANK)
    except EltwiseError as error:
        raise error.located(operand=operand) from None


def _read_shape(proto: TensorShapeProto) -> Shape:
    if len(proto.dim) > LARGEST_RANK:
        raise ShapeError("the rank is too large", got=str(len(proto.dim)), allowed=f"up to {LARGEST_RANK}")
    return Shape(tuple(_read_dimension(proto, axis) for axis in range(len(proto.dim))))


def _read_dimension(proto: TensorShapeProto, axis: int) -> Dimension:
    dimension = proto.dim[axis]
    if dimension.HasField("dim_value"):
        if dimension.dim_value < 0:
            raise ShapeError(
                f"dimension {axis} is negative",
                got=str(dimension.dim_value),
                allowed="0 or more, a symbol, or no value where it is unknown",
            )
        return known(dimension.dim_value)
    return UNKNOWN if dimension.dim_param in ("", "?") else Dimension(symbol=dimension.dim_param)


def write_type(name: str, value_type: TensorType) -> ValueInfoProto:
    """Write the name and type of a value; what is not known is left out.

    Raises:
        UnsupportedError: for an interval, which ONNX cannot state, or an element type that it does not have.
    """
    proto = ValueInfoProto(name=name)
    if value_type.element_type is not None:
        if not value_type.element_type.onnx:
            raise UnsupportedError(f"ONNX has no element type {value_type.element_type}", operand=repr(name))
        proto.type.tensor_type.elem_type = value_type.element_type.onnx_number
    if value_type.shape.dimensions is None:
        return proto
    shape = proto.type.tensor_type.shape
    shape.SetInParent()
    for dimension in value_type.shape.dimensions:
        if dimension.symbol:
            shape.dim.add(dim_param=dimension.symbol)
        elif dimension.is_known:
            shape.dim.add(dim_value=dimension.low)
        elif dimension == UNKNOWN:
            shape.dim.add()
        else:
            raise UnsupportedError(
                "ONNX cannot state an interval of sizes",
                operand=repr(name),
                got=str(value_type.shape),
                allowed="sizes, symbols and unknown dimensions",
            )
    return proto
