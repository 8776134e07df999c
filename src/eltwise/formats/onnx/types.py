"""Types of values in ONNX files: ValueInfoProto to TensorType and back.

Source: TypeProto and TensorShapeProto in onnx.proto.
"""

from __future__ import annotations

from collections.abc import Iterator

from onnx import TensorProto, TensorShapeProto, TypeProto, ValueInfoProto

from eltwise.core.dtypes import BY_ONNX_NUMBER
from eltwise.core.errors import EltwiseError, ShapeError, UnsupportedError
from eltwise.core.shapes import LARGEST_RANK, UNKNOWN, UNKNOWN_RANK, Dimension, Shape, known
from eltwise.formats.onnx.tensors import read_element_type
from eltwise.ir.graph import TensorType

_DEEPEST = 32
"""How deep sequences, optionals and maps may lie in each other; no operator has a type that is deeper than two."""


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


def value_type(proto: TypeProto) -> TensorType:
    """The type of a value as far as it is known, whatever it is; a size below zero is one that is not known."""
    tensor = proto.tensor_type
    if proto.WhichOneof("value") != "tensor_type":
        return TensorType(None, UNKNOWN_RANK, _text(proto))
    shape = UNKNOWN_RANK
    if tensor.HasField("shape") and len(tensor.shape.dim) <= LARGEST_RANK:
        sizes = (_read_dimension(tensor.shape, axis, lenient=True) for axis in range(len(tensor.shape.dim)))
        shape = Shape(tuple(sizes))
    element_type, text = BY_ONNX_NUMBER.get(tensor.elem_type), _element_text(tensor.elem_type)
    other = f"element type {tensor.elem_type}" if text == "?" else f"tensor({text})" if text else ""
    return TensorType(element_type, shape, "" if element_type else other)


def type_text(found: TensorType | None) -> str:
    """A type as ONNX's schemas write it: ``tensor(float)``; empty where it is not known."""
    if found is None:
        return ""
    return found.other or (f"tensor({found.element_type.onnx.lower()})" if found.element_type else "")


def _text(proto: TypeProto) -> str:
    """The type of a value that is no tensor; empty where a part of it is not known."""
    parts: list[str] = []
    while len(parts) < _DEEPEST:
        kind = proto.WhichOneof("value")
        match kind:
            case "tensor_type" | "sparse_tensor_type":
                inner = _element_text(getattr(proto, kind).elem_type)
                known = inner not in ("", "?")
                closed = ")" * (len(parts) + 1)
                return f"{''.join(parts)}{kind.removesuffix('_type')}({inner}{closed}" if known else ""
            case "sequence_type":
                parts.append("seq(")
                proto = proto.sequence_type.elem_type
            case "optional_type":
                parts.append("optional(")
                proto = proto.optional_type.elem_type
            case "map_type":
                parts.append(f"map({_element_text(proto.map_type.key_type)},")
                proto = proto.map_type.value_type
            case _:
                return ""
    return f"a type nested more than {_DEEPEST} deep"


def _element_text(number: int) -> str:
    """The name of an element type; empty where it is not declared, ``?`` where ONNX does not know the number."""
    if number == TensorProto.UNDEFINED:
        return ""
    return str(TensorProto.DataType.Name(number)).lower() if number in TensorProto.DataType.values() else "?"


def types_in(proto: TypeProto) -> Iterator[TypeProto]:
    """A type and, one after another, those in it."""
    while True:
        yield proto
        match proto.WhichOneof("value"):
            case "sequence_type":
                proto = proto.sequence_type.elem_type
            case "optional_type":
                proto = proto.optional_type.elem_type
            case "map_type":
                proto = proto.map_type.value_type
            case _:
                return


def declare(value: ValueInfoProto, found: TensorType | None) -> None:
    """Give a value its type as far as it is known."""
    if found is None:
        return
    if not found.other:
        value.CopyFrom(write_type(value.name, found))
        return
    proto, rest = value.type, found.other
    while rest and not rest.startswith(("tensor(", "sparse_tensor(")):
        kind, _bracket, rest = rest.partition("(")
        if kind == "map":
            key, _comma, rest = rest.partition(",")
            proto.map_type.key_type = TensorProto.DataType.Value(key.upper())
            proto = proto.map_type.value_type
        elif kind in ("seq", "optional"):
            proto = (proto.sequence_type if kind == "seq" else proto.optional_type).elem_type
        else:
            return  # An element type of a number that is not known.
    kind, _bracket, element = rest.partition("(")
    getattr(proto, f"{kind}_type").elem_type = TensorProto.DataType.Value(element.rstrip(")").upper())


def _read_shape(proto: TensorShapeProto) -> Shape:
    if len(proto.dim) > LARGEST_RANK:
        raise ShapeError("the rank is too large", got=str(len(proto.dim)), allowed=f"up to {LARGEST_RANK}")
    return Shape(tuple(_read_dimension(proto, axis) for axis in range(len(proto.dim))))


def _read_dimension(proto: TensorShapeProto, axis: int, lenient: bool = False) -> Dimension:
    dimension = proto.dim[axis]
    if dimension.HasField("dim_value"):
        if dimension.dim_value < 0 and lenient:
            return UNKNOWN
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
