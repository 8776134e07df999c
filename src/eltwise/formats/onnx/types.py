"""Types of values in ONNX files: TypeProto to TensorType and back.

Source: TypeProto and TensorShapeProto in onnx.proto.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from onnx import TensorProto, TensorShapeProto, TypeProto, ValueInfoProto

from eltwise.core.dtypes import BY_ONNX_NUMBER
from eltwise.core.errors import ShapeError, UnsupportedError
from eltwise.core.shapes import LARGEST_RANK, UNKNOWN, UNKNOWN_RANK, Dimension, Shape, known
from eltwise.formats.onnx.tensors import read_element_type
from eltwise.ir.types import TensorType

_DEEPEST = 32
"""How deep sequences, optionals and maps may lie in each other; no operator has a type that is deeper than two."""

_INNER = {"sequence_type": ("seq", "elem_type"), "optional_type": ("optional", "elem_type")}
_INNER["map_type"] = ("map", "value_type")
"""The types that hold another one: their names in texts, and the field of the other one."""


def value_type(proto: TypeProto) -> TensorType:
    """The type of a value as far as it is known, whatever it is; a size below zero is one that is not known."""
    tensor = proto.tensor_type
    if proto.WhichOneof("value") != "tensor_type":
        return TensorType(None, UNKNOWN_RANK, _text(proto))
    shape = UNKNOWN_RANK
    if tensor.HasField("shape") and len(tensor.shape.dim) <= LARGEST_RANK:
        shape = Shape(tuple(map(_read_dimension, tensor.shape.dim)))
    element_type, text = BY_ONNX_NUMBER.get(tensor.elem_type), _element_text(tensor.elem_type)
    other = f"element type {tensor.elem_type}" if text == "?" else f"tensor({text})" if text else ""
    return TensorType(element_type, shape, "" if element_type else other)


def _read_dimension(proto: TensorShapeProto.Dimension) -> Dimension:
    if proto.HasField("dim_value"):
        return known(proto.dim_value) if proto.dim_value >= 0 else UNKNOWN
    return UNKNOWN if proto.dim_param in ("", "?") else Dimension(symbol=proto.dim_param)


def check_type(proto: TypeProto, required: bool = False) -> None:
    """Refuse the type of a value that eltwise cannot run."""
    kind, tensor = proto.WhichOneof("value"), proto.tensor_type
    if kind not in (None, "tensor_type"):
        name = kind.removesuffix("_type").replace("_", " ")
        raise UnsupportedError(f"a value of the type {name} is unsupported", allowed="tensors")
    if tensor.elem_type != TensorProto.UNDEFINED or required:
        read_element_type(tensor.elem_type)
    sizes = tensor.shape.dim
    if len(sizes) > LARGEST_RANK:
        raise ShapeError("the rank is too large", got=str(len(sizes)), allowed=f"up to {LARGEST_RANK}")
    for axis, size in enumerate(sizes):
        if size.dim_value < 0:
            allowed = "0 or more, a symbol, or no value where it is unknown"
            raise ShapeError(f"dimension {axis} is negative", got=str(size.dim_value), allowed=allowed)


def type_text(value_type: TensorType | None) -> str:
    """A type as ONNX's schemas write it: ``tensor(float)``; empty where it is not known."""
    if value_type is None:
        return ""
    return value_type.other or (f"tensor({value_type.element_type.onnx.lower()})" if value_type.element_type else "")


def _text(proto: TypeProto) -> str:
    """The type of a value that is no tensor; empty where a part of it is not known."""
    text = ""
    for depth, part in enumerate(types_in(proto)):
        kind = part.WhichOneof("value")
        if depth == _DEEPEST:
            return f"a type nested more than {_DEEPEST} deep"
        if kind in _INNER:
            key = f"{_element_text(part.map_type.key_type)}," if kind == "map_type" else ""
            text += f"{_INNER[kind][0]}({key}"
        elif kind in ("tensor_type", "sparse_tensor_type"):
            element = _element_text(getattr(part, kind).elem_type)
            closed = ")" * (depth + 1)
            return f"{text}{kind.removesuffix('_type')}({element}{closed}" if element not in ("", "?") else ""
    return ""


@lru_cache(maxsize=64)
def _element_text(number: int) -> str:
    """The name of an element type; empty where it is not declared, ``?`` where ONNX does not know the number."""
    if number == TensorProto.UNDEFINED:
        return ""
    return str(TensorProto.DataType.Name(number)).lower() if number in TensorProto.DataType.values() else "?"


def types_in(proto: TypeProto) -> Iterator[TypeProto]:
    """A type and, one after another, those in it."""
    yield proto
    while (kind := proto.WhichOneof("value")) in _INNER:
        proto = getattr(getattr(proto, kind), _INNER[kind][1])
        yield proto


def declare(value: ValueInfoProto, value_type: TensorType | None) -> None:
    """Give a value its type as far as it is known."""
    if value_type is not None and value_type.other:
        _write_text(value.type, value_type.other)
    elif value_type is not None:
        _write_tensor_type(value, value_type)


def _write_text(proto: TypeProto, text: str) -> None:
    """Write a type that ``value_type`` gave as a text; one of an element type that ONNX does not know is left out."""
    fields = {name: (field, inner) for field, (name, inner) in _INNER.items()}
    kind, _bracket, rest = text.partition("(")
    while kind in fields:
        if kind == "map":
            key, _comma, rest = rest.partition(",")
            proto.map_type.key_type = TensorProto.DataType.Value(key.upper())
        proto = getattr(getattr(proto, fields[kind][0]), fields[kind][1])
        kind, _bracket, rest = rest.partition("(")
    if kind in ("tensor", "sparse_tensor"):
        getattr(proto, f"{kind}_type").elem_type = TensorProto.DataType.Value(rest.rstrip(")").upper())


def _write_tensor_type(value: ValueInfoProto, value_type: TensorType) -> None:
    tensor = value.type.tensor_type
    if value_type.element_type is not None:
        if not value_type.element_type.onnx:
            raise UnsupportedError(f"ONNX has no element type {value_type.element_type}", operand=repr(value.name))
        tensor.elem_type = value_type.element_type.onnx_number
    if value_type.shape.dimensions is None:
        return
    tensor.shape.SetInParent()
    for dimension in value_type.shape.dimensions:
        if dimension.symbol:
            tensor.shape.dim.add(dim_param=dimension.symbol)
        elif dimension.is_known:
            tensor.shape.dim.add(dim_value=dimension.low)
        elif dimension == UNKNOWN:
            tensor.shape.dim.add()
        else:
            raise UnsupportedError(
                "ONNX cannot state an interval of sizes",
                operand=repr(value.name),
                got=str(value_type.shape),
                allowed="sizes, symbols and unknown dimensions",
            )
