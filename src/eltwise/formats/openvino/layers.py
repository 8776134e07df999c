"""Layers of IR that compute: read and written in pairs, attributes converted by the kind that the row gives them.

Sources: OpenVINO's operation sets 1 to 16; what a file may leave out or write otherwise was measured with
OpenVINO 2026.4.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from eltwise.core.dtypes import BY_IR_NAME, TYPES, ElementType, not_run
from eltwise.core.errors import AttributeValueError, ElementTypeError, UnsupportedError, unknown_name
from eltwise.formats.openvino.document import Layer, PortRecord
from eltwise.formats.openvino.xml import parse_integer, shown
from eltwise.ir.graph import Node, TensorType
from eltwise.ops import registry
from eltwise.ops.schema import Attribute, AttributeKind, AttributeValue, ElementwiseSchema, OpSchema

NEWEST_OPSET = registry.NEWEST_OPSET["openvino"]
PDPD_AXIS = "auto_broadcast.auto_broadcast_axis"
"""What IR files call the catalog's ``axis``."""

_OPSET = re.compile(r"opset([1-9][0-9]?)", re.IGNORECASE | re.ASCII)
_BOOLEANS = {"true": True, "1": True, "false": False, "0": False}
_TYPES_WITHOUT_ROW = ("dynamic", "undefined")


def is_known(layer: Layer) -> bool:
    """Whether its operator is run here, in some operation set at least."""
    return registry.resolve("openvino", layer.type, NEWEST_OPSET) is not None


def opset_of(layer: Layer) -> int:
    """The number of the layer's operation set.

    Raises:
        UnsupportedError: for anything but opset1 to the newest.
    """
    found = _OPSET.fullmatch(layer.version)
    if not found or int(found.group(1)) > NEWEST_OPSET:
        raise UnsupportedError(
            "this operation set is not read here",
            operator=layer.type,
            operand="attribute version",
            got=repr(shown(layer.version)),
            allowed=f"opset1 to opset{NEWEST_OPSET}",
        )
    return int(found.group(1))


def row_of(layer: Layer) -> OpSchema:
    """The operator version that a layer of a known operator is.

    Raises:
        UnsupportedError: for an operation set that is not read here, or that does not have the operator yet.
    """
    schema = registry.resolve("openvino", layer.type, opset_of(layer))
    if schema is None:
        schemas = [schema for schema in registry.DATA_MOVEMENT if schema.domain == "openvino"]
        since = min(schema.version for schema in schemas if schema.name.casefold() == layer.folded_type)
        raise UnsupportedError(
            "this operation set does not have the operator yet",
            operator=layer.type,
            operand="attribute version",
            got=repr(layer.version),
            allowed=f"opset{since} to opset{NEWEST_OPSET}",
        )
    return schema


def read_node(layer: Layer, inputs: Sequence[str]) -> Node:
    """Make the node of a layer.

    Args:
        layer: a layer of a known operator.
        inputs: the values that its input ports get, in the file's order of the ports.

    Raises:
        EltwiseError: for an operation set, attribute or value that is not allowed.
    """
    schema = row_of(layer)
    operation = schema.bind(_read_attributes(schema, layer.data))
    return Node(layer.name, operation, tuple(inputs), (layer.name,))


def write_node(
    number: int, node: Node, inputs: Sequence[TensorType], output: TensorType, names: Sequence[str]
) -> Layer:
    """Make the layer of a node; the types are those of its values, ``names`` the tensor names of what it makes."""
    return Layer(
        id=number,
        name=node.outputs[0],
        type=node.schema.name,
        version=f"opset{node.schema.version}",
        data=_write_attributes(node),
        inputs=tuple(port_of(index, value_type) for index, value_type in enumerate(inputs)),
        outputs=(port_of(len(inputs), output, names),),
    )


def port_of(number: int, value_type: TensorType, names: Sequence[str] = ()) -> PortRecord:
    """Describe a value at a port."""
    element_type, dimensions = value_type.element_type, value_type.shape.dimensions
    return PortRecord(
        id=number,
        precision="dynamic" if element_type is None else element_type.ir_precision,
        dimensions=tuple(dimension.low if dimension.is_known else -1 for dimension in dimensions or ()),
        names=tuple(names),
    )


def _ir_name(schema: OpSchema, attribute: Attribute) -> str:
    return PDPD_AXIS if isinstance(schema, ElementwiseSchema) and attribute.name == "axis" else attribute.name


def _read_attributes(schema: OpSchema, data: Mapping[str, str]) -> dict[str, AttributeValue]:
    known = {_ir_name(schema, attribute): attribute for attribute in schema.attributes}
    ignored = ("axis",) if isinstance(schema, ElementwiseSchema) else ()
    check_attributes([name for name in data if name not in ignored], known, schema.versioned_name)
    takes_axis = data.get("auto_broadcast", "").casefold() == "pdpd"
    given = {
        attribute.name: _READ[attribute.kind](data[name], f"attribute {name}")
        for name, attribute in known.items()
        if name in data and (name != PDPD_AXIS or takes_axis)
    }
    return {"axis": 0, **given} if takes_axis else given


def check_attributes(given: Iterable[str], known: Iterable[str], operator: str) -> None:
    """Refuse attributes that an operator does not have.

    Raises:
        NameUnknownError: with the nearest name.
    """
    names = list(known)
    for name in given:
        if name not in names:
            raise unknown_name("attribute", shown(name), names, operator=operator)


def _write_attributes(node: Node) -> dict[str, str]:
    given = dict(node.operation.given)
    if isinstance(node.schema, ElementwiseSchema):
        if node.operation.value("auto_broadcast") == "pdpd":
            given.setdefault("axis", -1)
        else:
            given.pop("axis", None)
    return {
        _ir_name(node.schema, attribute): _write_value(given[attribute.name])
        for attribute in node.schema.attributes
        if attribute.name in given
    }


def _write_value(value: AttributeValue) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value.ir if isinstance(value, ElementType) else str(value)


def read_element_type(text: str, operand: str) -> ElementType:
    """Find an element type by the name that ``element_type`` and ``destination_type`` have.

    Raises:
        NameUnknownError: where there is no such type.
        ElementTypeError: where it is one that is not run here.
    """
    element_type = BY_IR_NAME.get(text)
    if element_type is None and text in _TYPES_WITHOUT_ROW:
        raise ElementTypeError(f"element type {text} is not run here", operand=operand)
    if element_type is None:
        names = [each.ir for each in TYPES if each.ir and each.runs]
        raise unknown_name("element type", shown(text), names, operand=operand)
    if not element_type.runs:
        raise not_run(element_type, operand=operand)
    return element_type


def _read_boolean(text: str, operand: str) -> bool:
    value = _BOOLEANS.get(text.casefold())
    if value is None:
        raise AttributeValueError(
            "this value is not allowed", operand=operand, got=repr(shown(text)), allowed=", ".join(_BOOLEANS)
        )
    return value


def _read_integer(text: str, operand: str) -> int:
    return parse_integer(text, operand, least=-(2**63))


def _read_text(text: str, _operand: str) -> str:
    return text


_READ: dict[AttributeKind, Callable[[str, str], AttributeValue]] = {
    "int": _read_integer,
    "string": _read_text,
    "boolean": _read_boolean,
    "element type": read_element_type,
}
