"""Layers of IR that compute, read as nodes: attributes are converted by the kind that the operator version states.

Sources: OpenVINO's operation sets 1 to 16; what a file may leave out or write otherwise was measured with
OpenVINO 2026.4.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from eltwise.core.dtypes import BY_IR_NAME, TYPES, ElementType, not_run
from eltwise.core.errors import AttributeValueError, ElementTypeError, UnsupportedError, unknown_name
from eltwise.formats.openvino.document import Layer
from eltwise.formats.openvino.xml import parse_integer, shown
from eltwise.ir.graph import Node
from eltwise.ops import registry
from eltwise.ops.schema import Attribute, AttributeKind, AttributeValue, ElementwiseSchema, OpSchema

NEWEST_OPSET = registry.NEWEST_OPSET["openvino"]
PDPD_AXIS = "auto_broadcast.auto_broadcast_axis"
"""What IR files call the attribute ``axis``."""

_OPSET = re.compile(r"opset([1-9][0-9]?)", re.IGNORECASE | re.ASCII)
_BOOLEANS = {"true": True, "1": True, "false": False, "0": False}
_OTHER_TYPES = ("dynamic", "undefined")


def is_known(layer: Layer) -> bool:
    """Whether its operator is supported, in some operation set at least."""
    return registry.resolve("openvino", layer.type, NEWEST_OPSET) is not None


def opset_of(layer: Layer) -> int:
    """The number of the layer's operation set.

    Raises:
        UnsupportedError: for anything but opset1 to the newest.
    """
    found = _OPSET.fullmatch(layer.version)
    if not found or int(found.group(1)) > NEWEST_OPSET:
        raise UnsupportedError(
            "unsupported operation set",
            operator=layer.type,
            operand="attribute version",
            got=repr(shown(layer.version)),
            allowed=f"opset1 to opset{NEWEST_OPSET}",
        )
    return int(found.group(1))


def schema_of(layer: Layer) -> OpSchema:
    """The operator version that a layer of a known operator is.

    Raises:
        UnsupportedError: for an operation set that is not supported, or that does not have the operator yet.
    """
    schema = registry.resolve("openvino", layer.type, opset_of(layer))
    if schema is None:
        every = (*registry.ELEMENTWISE, *registry.DATA_MOVEMENT)
        versions = [each for each in every if each.domain == "openvino" and each.name.casefold() == layer.folded_type]
        since = min(each.version for each in versions)
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
    schema = schema_of(layer)
    operation = schema.bind(_read_attributes(schema, layer.data))
    return Node(layer.name, operation, tuple(inputs), (layer.name,))


def ir_name(schema: OpSchema, attribute: Attribute) -> str:
    """What IR files call an attribute."""
    return PDPD_AXIS if isinstance(schema, ElementwiseSchema) and attribute.name == "axis" else attribute.name


def _read_attributes(schema: OpSchema, data: Mapping[str, str]) -> dict[str, AttributeValue]:
    known = {ir_name(schema, attribute): attribute for attribute in schema.attributes}
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


def read_element_type(text: str, operand: str) -> ElementType:
    """Find an element type by the name that ``element_type`` and ``destination_type`` have.

    Raises:
        NameUnknownError: where there is no such type.
        ElementTypeError: where it is unsupported.
    """
    element_type = BY_IR_NAME.get(text)
    if element_type is None and text in _OTHER_TYPES:
        raise ElementTypeError(f"unsupported element type {text}", operand=operand)
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
