"""Layers of IR: Parameter, Const with its bytes in the ``.bin``, and the operators that become nodes.

Sources: OpenVINO's IR format, versions 10 and 11, and its operation sets 1 to 16; what a file may leave out or write
otherwise was measured with OpenVINO 2026.4.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from lxml import etree

from eltwise.core.dtypes import BOOL, BY_IR_NAME, TYPES, ElementType, not_run
from eltwise.core.errors import (
    AttributeValueError,
    ElementTypeError,
    EltwiseError,
    FileFormatError,
    ShapeError,
    UnsupportedError,
    errors_located,
    shown,
    unknown_name,
)
from eltwise.core.escaping import shortened
from eltwise.core.shapes import (
    LARGEST_RANK,
    UNKNOWN,
    UNKNOWN_RANK,
    Dimension,
    Shape,
    Sizes,
    element_count,
    known,
    parse_dimension,
)
from eltwise.formats.file_tensors import MemoryFile, OpenFile, range_of
from eltwise.formats.openvino.document import Layer, parse_integer
from eltwise.ir.graph import Node, Tensor
from eltwise.ir.types import TensorType
from eltwise.ops import registry
from eltwise.ops.attribute import Attribute, AttributeValue
from eltwise.ops.schema import ElementwiseSchema, OpSchema

NEWEST_OPSET = registry.NEWEST_OPSET["openvino"]
DIMENSION_WORDS = "sizes, ? or -1, intervals (2..5, ..5, 2..), and ... alone for an unknown rank"

_PDPD_AXIS = "auto_broadcast.auto_broadcast_axis"
"""What IR files call the attribute ``axis``."""

_OPSET = re.compile(r"opset([1-9][0-9]?)", re.IGNORECASE | re.ASCII)
_BOOLEANS = {"true": True, "1": True, "false": False, "0": False}
_LONGEST_SHAPE = 8192
_BY_PRECISION = {each.ir_precision.casefold(): each for each in BY_IR_NAME.values()}


def read_parameter(layer: Layer) -> TensorType:
    """The type that a Parameter declares."""
    shape, element_type = _texts(layer, ("shape", "element_type"))
    return TensorType(_read_element_type(element_type, "attribute element_type"), read_shape(shape))


def read_port(port: etree._Element) -> TensorType:
    """The type that an output port states."""
    sizes = [str(dim.text or "").strip() for dim in port.iterfind("dim")]
    dimensions = tuple(known(int(size)) if size.isdigit() else Dimension() for size in sizes)
    return TensorType(_BY_PRECISION.get(str(port.get("precision", "")).casefold()), Shape(dimensions))


def read_constant(layer: Layer, weights: OpenFile | None) -> Tensor:
    """The tensor that a Const holds, unread, from the ``.bin``; None where there is none."""
    names = ("element_type", "shape", "offset", "size")
    type_text, shape_text, offset_text, size_text = _texts(layer, names)
    element_type, shape = _read_element_type(type_text, "attribute element_type"), read_shape(shape_text)
    if not shape.is_known:
        problem = "the shape of a constant must be known"
        raise ShapeError(problem, operand="attribute shape", got=shown(shape_text))
    sizes = shape.sizes()
    offset = parse_integer(offset_text, "attribute offset")
    size = parse_integer(size_text, "attribute size")
    expected = element_type.file_bytes(element_count(sizes))
    if size != (expected or min(size, 1)):  # OpenVINO writes a byte for no elements.
        problem = f"the constant is {size} bytes, expected {expected} for its type and shape"
        raise FileFormatError(problem, operand="attribute size")
    if weights is None and size + offset:
        problem, hint = "the constant is in the weights, and there are none", "expected a .bin beside the .xml"
        raise FileFormatError(problem, got=f"{size} bytes", hint=hint)
    try:
        source = range_of(element_type, sizes, weights or MemoryFile(b"", Path("no .bin")), offset)
    except EltwiseError as error:
        operands = "attributes offset and size" if isinstance(error, FileFormatError) else "attribute shape"
        raise error.located(operand=operands) from None
    if element_type is BOOL:  # Each byte but 0 is true in an IR.
        source = replace(source, clean=lambda data: np.asarray(data != 0).view(np.uint8))
    return Tensor(source, element_type)


def _texts(layer: Layer, names: tuple[str, ...]) -> list[str]:
    check_attributes(layer.data, names, layer.type)
    for name in names:
        if name not in layer.data:
            raise FileFormatError("a required attribute is missing", operand=f"attribute {name}")
    return [layer.data[name] for name in names]


def read_shape(text: str) -> Shape:
    """Read the shape of a Parameter.

    >>> str(read_shape("-1, ?,2..5,..3"))
    '?,?,2..5,..3'
    """
    with errors_located(operand="attribute shape"):
        if text.count(",") >= LARGEST_RANK or len(text) > _LONGEST_SHAPE:
            raise ShapeError("the rank is too large", allowed=f"up to {LARGEST_RANK}")
        if text.strip() == "...":
            return UNKNOWN_RANK
        return Shape(tuple(_read_dimension(part.strip()) for part in text.split(",")) if text.strip() else ())


def _read_dimension(text: str) -> Dimension:
    dimension = UNKNOWN if text == "-1" else parse_dimension(text)
    if dimension.symbol:
        raise ShapeError("not a dimension of IR", got=shown(text), allowed=DIMENSION_WORDS)
    return dimension


def is_known(layer: Layer) -> bool:
    """Whether its operator is supported, in some operation set at least."""
    return registry.resolve("openvino", layer.type, NEWEST_OPSET) is not None


def opset_of(layer: Layer) -> int:
    """The number of the layer's operation set."""
    match = _OPSET.fullmatch(layer.version)
    if not match or int(match.group(1)) > NEWEST_OPSET:
        raise _other_opset("unsupported operation set", layer, 1)
    return int(match.group(1))


def _other_opset(problem: str, layer: Layer, first: int) -> UnsupportedError:
    return UnsupportedError(
        problem,
        operator=layer.type,
        operand="attribute version",
        got=shown(layer.version),
        allowed=f"opset{first} to opset{NEWEST_OPSET}",
    )


def schema_of(layer: Layer) -> OpSchema:
    """The operator version of a layer of a known operator."""
    schema = registry.resolve("openvino", layer.type, opset_of(layer))
    if schema is None:
        every = (*registry.ELEMENTWISE, *registry.DATA_MOVEMENT)
        named = [each for each in every if each.domain == "openvino" and each.name.casefold() == layer.kind]
        first = min(each.version for each in named)
        raise _other_opset("this operation set does not have the operator yet", layer, first)
    return schema


def constants_of(schema: OpSchema) -> tuple[tuple[str, Sizes], ...]:
    """The attributes that files state as constants after the operands, and the shape of each."""
    return schema.constant_operands if isinstance(schema, ElementwiseSchema) else ()


def read_number(name: str, sizes: Sizes, tensor: Tensor | None) -> float:
    """The value of an attribute that a file states as a constant; None where it is none."""
    if tensor is None or tensor.shape not in (sizes, ()):
        problem = "only a constant of one number is supported"
        got = "a computed value" if tensor is None else f"shape ({tensor.type.shape})"
        raise UnsupportedError(problem, operand=f"operand {name}", got=got)
    return float(tensor.array.astype(np.float64).item())


def read_node(layer: Layer, inputs: Sequence[str], numbers: Mapping[str, float]) -> Node:
    """Make the node of a layer.

    Args:
        layer: a layer of a known operator.
        inputs: the values that its input ports get, in the file's order of the ports.
        numbers: the values of attributes that are constants in the file.
    """
    schema = schema_of(layer)
    operation = schema.bind({**_read_attributes(schema, layer.data), **numbers})
    return Node(layer.name, operation, tuple(inputs), (layer.name,))


def ir_name(schema: OpSchema, attribute: Attribute) -> str:
    """What IR files call an attribute."""
    return _PDPD_AXIS if isinstance(schema, ElementwiseSchema) and attribute.name == "axis" else attribute.name


def _read_attributes(schema: OpSchema, data: Mapping[str, str]) -> dict[str, AttributeValue]:
    as_constants = dict(constants_of(schema))
    known = {ir_name(schema, each): each for each in schema.attributes if each.name not in as_constants}
    ignored = ("axis",) if isinstance(schema, ElementwiseSchema) else ()
    check_attributes([name for name in data if name not in ignored], known, schema.versioned_name)
    takes_axis = data.get("auto_broadcast", "").casefold() == "pdpd"
    values = {
        attribute.name: _read_attribute(attribute, data[name], f"attribute {name}")
        for name, attribute in known.items()
        if name in data and (name != _PDPD_AXIS or takes_axis)
    }
    return {"axis": 0, **values} if takes_axis else values


def check_attributes(attributes: Iterable[str], known: Iterable[str], operator: str) -> None:
    """Refuse attributes that an operator does not have."""
    names = list(known)
    for name in attributes:
        if name not in names:
            raise unknown_name("attribute", shortened(name), names, operator=operator)


def _read_attribute(attribute: Attribute, text: str, operand: str) -> AttributeValue:
    match attribute.kind:
        case "int":
            return parse_integer(text, operand, least=-(2**63))
        case "float":
            try:
                return float(text)
            except ValueError:
                raise AttributeValueError(
                    "this value is not allowed", operand=operand, got=shown(text), allowed="a number"
                ) from None
        case "element type":
            return _read_element_type(text, operand)
        case "boolean":
            value = _BOOLEANS.get(text.casefold())
            if value is None:
                problem, allowed = "this value is not allowed", ", ".join(_BOOLEANS)
                raise AttributeValueError(problem, operand=operand, got=shown(text), allowed=allowed)
            return value
        case _:
            return text


def _read_element_type(text: str, operand: str) -> ElementType:
    """Find an element type by the name that ``element_type`` and ``destination_type`` have."""
    element_type = BY_IR_NAME.get(text)
    if text in ("dynamic", "undefined"):
        raise ElementTypeError(f"unsupported element type {text}", operand=operand)
    if element_type is None:
        names = [each.ir for each in TYPES if each.ir and each.runs]
        raise unknown_name("element type", shortened(text), names, operand=operand)
    if not element_type.runs:
        raise not_run(element_type, operand=operand)
    return element_type
