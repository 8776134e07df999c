"""Nodes of ONNX files and their attributes: NodeProto to Node and back.

Source: NodeProto and AttributeProto in onnx.proto.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

import onnx
from onnx import AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto, helper

from eltwise.core.dtypes import BY_ONNX_NAME, BY_ONNX_NUMBER, ElementType
from eltwise.core.errors import AttributeValueError, EltwiseError, GraphError, UnsupportedError, raise_all, shown
from eltwise.formats.onnx.external import ExternalData
from eltwise.formats.onnx.header import default_domain
from eltwise.formats.onnx.tensors import stored_tensor, write_tensor
from eltwise.ir.graph import Foreign, ForeignSchema, Graph, Node, Origin, Tensor, stored
from eltwise.ops import registry
from eltwise.ops.attribute import Attribute, AttributeKind, AttributeValue
from eltwise.ops.schema import Operation, OpSchema

_TYPE_OF_KIND: dict[AttributeKind, AttributeProto.AttributeType] = {
    "int": AttributeProto.INT,
    "ints": AttributeProto.INTS,
    "float": AttributeProto.FLOAT,
    "floats": AttributeProto.FLOATS,
    "string": AttributeProto.STRING,
    "element type": AttributeProto.INT,
    "tensor": AttributeProto.TENSOR,
}
_FIELD_OF_TYPE: dict[AttributeProto.AttributeType, str] = {
    AttributeProto.FLOAT: "f",
    AttributeProto.INT: "i",
    AttributeProto.STRING: "s",
    AttributeProto.TENSOR: "t",
    AttributeProto.FLOATS: "floats",
    AttributeProto.INTS: "ints",
}
_OF_EACH_AXIS = {"dilations": 1, "pads": 0, "strides": 1}
"""What the elements of lists are that a node leaves out, which have no default in a schema as their lengths vary."""

_VALUE_FIELDS = ("f", "i", "s", "t", "g", "sparse_tensor", "tp")
_LIST_FIELDS = ("floats", "ints", "strings", "tensors", "graphs", "sparse_tensors", "type_protos")


def called_functions(model: Graph | ModelProto) -> frozenset[tuple[str, str]]:
    """The domains and names of a model's functions."""
    return frozenset((default_domain(function.domain), function.name) for function in model.functions)


def shadowing_functions(model: Graph | ModelProto, opset: int) -> list[str]:
    """The names of a model's functions that operators of ONNX have: which of both a node calls, a runtime decides."""
    return [name for domain, name in sorted(called_functions(model)) if not domain and published_schema(name, opset)]


def find_schema(proto: NodeProto, opset: int) -> OpSchema | None:
    """Find the operator version that a node is of; None where eltwise does not run it."""
    return None if default_domain(proto.domain) or proto.overload else known_schema(proto.op_type, opset)


def known_schema(op_type: str, opset: int) -> OpSchema | None:
    """Find the version of ONNX's own operator that an opset has; None where eltwise does not run it."""
    if not 0 < opset < 2**31:
        return None
    schema = registry.resolve("ai.onnx", op_type, opset)
    if schema is None or opset <= registry.NEWEST_OPSET["ai.onnx"]:
        return schema
    published = published_schema(op_type, opset)
    return schema if published and published.since_version == schema.version and not published.deprecated else None


@dataclass(frozen=True)
class Original:
    """A node as its file has it: the message, and the operation that was read from it."""

    proto: NodeProto
    operation: Operation | Foreign


def read_node(proto: NodeProto, origin: Origin, folder: ExternalData | None = None, reads_weights: bool = True) -> Node:
    """Read a node of an operator that eltwise runs.

    Args:
        proto: the node.
        origin: the versions that the model is written in.
        folder: the files beside the model, for tensors in attributes that are external data.
        reads_weights: whether the elements of tensors are read and checked.
    """
    schema = find_schema(proto, origin.opset)
    label = proto.name or next(filter(None, proto.output), "")
    if schema is None:
        raise UnsupportedError("this operator is unsupported", operator=proto.op_type, node=label)
    location = {"operator": schema.versioned_name, "node": label}
    try:
        if "" in proto.output:
            raise GraphError("an output has no name", operand="its outputs")
        operation = _read_attributes(proto, schema, origin, folder, location)
        for _name, value in operation.attributes:
            if isinstance(value, Tensor) and reads_weights:
                value.array  # noqa: B018 - this reads and checks it
    except EltwiseError as error:
        raise error.located(**location) from None
    return _as_stored(proto, operation)


def foreign_node(proto: NodeProto, origin: Origin, read_graph: Callable[[GraphProto], Graph], called: bool) -> Node:
    """Read a node that eltwise does not run.

    Args:
        proto: the node.
        origin: the versions that its graph is written in.
        read_graph: what reads a graph in its attributes.
        called: whether it calls a function of the model.
    """
    domain = default_domain(proto.domain)
    known = None if called or domain or proto.overload else published_schema(proto.op_type, origin.opset)
    schema = ForeignSchema("ai.onnx", proto.op_type, known.since_version if known else 0, domain, proto.overload)
    attributes = tuple((attribute.name, attribute) for attribute in proto.attribute)
    graphs = tuple((name, read_graph(graph)) for name, graph in subgraphs(proto))
    return _as_stored(proto, Foreign(schema, attributes, graphs))


def _as_stored(proto: NodeProto, operation: Operation | Foreign) -> Node:
    message = Original(proto, operation)
    return stored(Node(proto.name, operation, tuple(proto.input), tuple(proto.output), message))


def subgraphs(proto: NodeProto) -> Iterator[tuple[str, GraphProto]]:
    """The graphs in a node's attributes, each with the attribute's name."""
    for attribute in proto.attribute:
        if attribute.HasField("g"):
            yield attribute.name, attribute.g
        for graph in attribute.graphs:
            yield attribute.name, graph


def nodes_in(*holders: GraphProto | FunctionProto) -> Iterator[NodeProto]:
    """The nodes of graphs or functions, and those of the graphs in them."""
    for holder in holders:
        for node in holder.node:
            yield node
            yield from nodes_in(*(graph for _name, graph in subgraphs(node)))


def bodies(node: Node, proto: NodeProto) -> list[tuple[Graph, GraphProto]]:
    """The graphs in a node, each with its message."""
    return [(graph, body) for (_name, graph), (_same, body) in zip(node.graphs, subgraphs(proto), strict=True)]


@cache
def published_schema(op_type: str, opset: int, domain: str = "") -> onnx.defs.OpSchema | None:
    """The version of an operator that an opset has, deprecated or not; None where onnx knows none."""
    if not 0 < opset < 2**31:
        return None
    try:
        schema: onnx.defs.OpSchema = onnx.defs.get_schema(op_type, opset, domain)
    except onnx.defs.SchemaError:
        return None
    return schema


@cache
def since_versions(op_type: str, newest: int = onnx.defs.onnx_opset_version()) -> tuple[int, ...]:
    """The opsets in which ONNX's own operator changed up to a newest one, in their order."""
    schema = published_schema(op_type, newest)
    return (*since_versions(op_type, schema.since_version - 1), schema.since_version) if schema else ()


def _read_attributes(
    proto: NodeProto, schema: OpSchema, origin: Origin, folder: ExternalData | None, location: dict[str, str]
) -> Operation:
    attributes = {attribute.name: attribute for attribute in schema.attributes}
    values: dict[str, object] = {}
    problems: list[EltwiseError] = []
    for message in proto.attribute:
        try:
            if message.name not in attributes:
                schema.bind({message.name: None})
            if message.name in values:
                raise AttributeValueError("the attribute is given twice")
            values[message.name] = None
            value = _read_attribute(message, attributes[message.name], schema, origin, folder)
            if value is None and attributes[message.name].kind == "element type":  # 0, as if it were absent.
                values.pop(message.name)
                continue
            values[message.name] = attributes[message.name].checked(value, schema.versioned_name)
        except EltwiseError as error:
            operand = f"attribute {message.name}" if message.name in attributes else ""
            error.hint = error.hint or ("" if operand else _version_with(schema, message.name))
            problems.append(error.located(operand=operand, **location))
    raise_all(problems)
    return schema.bind(values)


def _version_with(schema: OpSchema, attribute: str) -> str:
    """A hint at the next version of an operator that has an attribute, or the last one before; empty where none has."""
    versions = [
        version
        for version in since_versions(schema.name)
        if attribute in onnx.defs.get_schema(schema.name, version).attributes
    ]
    later = [version for version in versions if version > schema.version]
    return f"{schema.name}-{(later or versions[-1:])[0]} has it" if versions else ""


def _attribute_type(attribute: Attribute, schema: OpSchema) -> AttributeProto.AttributeType:
    """The type that an attribute has in files; Cast-1 alone names the element type in words."""
    if attribute.kind == "element type" and schema.version < 6:
        return AttributeProto.STRING
    return _TYPE_OF_KIND[attribute.kind]


def _read_attribute(
    proto: AttributeProto, attribute: Attribute, schema: OpSchema, origin: Origin, folder: ExternalData | None
) -> object:
    """Read the value of an attribute; a number or text that is absent is zero or empty, as protobuf 3 writes those."""
    if proto.ref_attr_name:
        problem = "a reference to an attribute of a function has no meaning in a graph"
        raise UnsupportedError(problem, got=repr(proto.ref_attr_name))
    if attribute.kind == "not run":
        return None
    expected = _attribute_type(attribute, schema)
    _check_type(proto, expected, origin)
    value = getattr(proto, _FIELD_OF_TYPE[expected])
    match expected:
        case AttributeProto.TENSOR:
            if not proto.HasField("t"):
                raise AttributeValueError("the attribute's value is missing", allowed="a tensor")
            return stored_tensor(value, folder, f"attribute {proto.name}")
        case AttributeProto.FLOAT:
            return _one_nan(value)
        case AttributeProto.FLOATS:
            return tuple(map(_one_nan, value))
        case AttributeProto.INTS:
            return tuple(value)
        case AttributeProto.STRING:
            value = _text(value)
    if attribute.kind != "element type":
        return value
    return None if value == 0 and not attribute.required else _element_type(value)


def _check_type(proto: AttributeProto, expected: AttributeProto.AttributeType, origin: Origin) -> None:
    """Refuse an attribute of another type, without a type, or with a value in another type's field."""
    name = AttributeProto.AttributeType.Name
    untyped = not proto.HasField("type") or proto.type == AttributeProto.UNDEFINED
    if untyped and origin.file_version >= 2:
        raise AttributeValueError("the attribute has no type", allowed=name(expected))
    if not untyped and proto.type != expected:
        raise AttributeValueError("the attribute has the wrong type", got=name(proto.type), allowed=name(expected))
    field = _FIELD_OF_TYPE[expected]
    present = [other for other in _VALUE_FIELDS if proto.HasField(other)]
    present += [other for other in _LIST_FIELDS if len(getattr(proto, other))]
    if set(present) - {field}:
        problem = "the attribute's value is in the wrong field"
        raise AttributeValueError(problem, got=" and ".join(present), allowed=field)


def _one_nan(value: float) -> float:
    """Make every NaN the same object, so that what holds it is equal to itself when it is read again."""
    return math.nan if math.isnan(value) else value


def _text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise AttributeValueError("the attribute's value is not UTF-8 text", got=shown(value)) from None


def _element_type(identifier: int | str) -> ElementType:
    element_type = BY_ONNX_NAME.get(identifier) if isinstance(identifier, str) else BY_ONNX_NUMBER.get(identifier)
    if element_type is None:
        runs = [schema for schema in BY_ONNX_NAME.values() if schema.runs]
        names = (
            schema.onnx if isinstance(identifier, str) else f"{schema.onnx_number} ({schema.onnx})" for schema in runs
        )
        raise AttributeValueError("there is no such element type", got=shown(identifier), allowed=", ".join(names))
    return element_type


def write_node(node: Node, write_graph: Callable[[Graph, GraphProto], None] | None = None) -> NodeProto:
    """Write a node: what its file says of it, with what was changed since.

    Args:
        node: a node whose operator is ONNX's.
        write_graph: what writes a graph over the one that an attribute had.
    """
    schema = node.schema
    if schema.domain != "ai.onnx":
        raise UnsupportedError("this is no ONNX operator", operator=schema.versioned_name, node=node.label)
    proto = NodeProto()
    original = node.message if isinstance(node.message, Original) else None
    if original is not None:
        proto.CopyFrom(original.proto)
        if node.untouched:
            return proto
    domain, overload = (schema.of, schema.overload) if isinstance(schema, ForeignSchema) else ("", "")
    texts = {"name": node.name, "op_type": schema.name, "overload": overload}
    if default_domain(proto.domain) != domain:
        texts["domain"] = domain
    for field, text in texts.items():
        if getattr(proto, field) != text:
            setattr(proto, field, text)
    proto.input[:] = node.inputs
    proto.output[:] = node.outputs
    if original is None or _says(original.operation) != _says(node.operation):
        _write_attributes(node, proto)
    for graph, message in bodies(node, proto):
        if not graph.untouched and write_graph is not None:
            write_graph(graph, message)
    return proto


def _says(operation: Operation | Foreign) -> tuple[object, ...]:
    """The attributes with the types that they have in files, on which the message depends."""
    if isinstance(operation, Foreign):
        return (operation.attributes,)
    names = {name for name, _value in operation.attributes}
    attributes = (one for one in operation.schema.attributes if one.name in names)
    return operation.attributes, [_attribute_type(one, operation.schema) for one in attributes]


def _write_attributes(node: Node, proto: NodeProto) -> None:
    """Write attributes; one that was there and has the same value stays as it was, with its text."""
    written, operation = NodeProto(), node.operation
    if isinstance(operation, Foreign):
        written.attribute.extend(value for _name, value in operation.attributes if isinstance(value, AttributeProto))
    else:
        known = {attribute.name: attribute for attribute in operation.schema.attributes}
        written.attribute.extend(_written(value, known[name], operation.schema) for name, value in operation.attributes)
    before = {attribute.name: attribute for attribute in proto.attribute}
    for attribute in written.attribute:
        old = before.get(attribute.name)
        if old is not None and same_value(old, attribute):
            attribute.CopyFrom(old)
    proto.ClearField("attribute")
    proto.attribute.extend(written.attribute)


def same_value(one: AttributeProto, other: AttributeProto) -> bool:
    """Whether two attributes are the same but for their texts."""
    return bool(without_text(one) == without_text(other))


def without_text(attribute: AttributeProto) -> AttributeProto:
    """A copy of an attribute without its description."""
    copy = AttributeProto()
    copy.CopyFrom(attribute)
    copy.ClearField("doc_string")
    return copy


def has_default(node: Node, attribute: AttributeProto, name: str = "") -> bool:
    """Whether an attribute of a node of ONNX is what it would be if it were left out; it may have another name here."""
    schema = node.schema
    domain = schema.of if isinstance(schema, ForeignSchema) else ""
    published = published_schema(schema.name, schema.version, domain)
    known = published.attributes.get(name or attribute.name) if published else None
    if known is None or known.required:
        return False
    if known.name in _OF_EACH_AXIS and attribute.ints:
        return {*attribute.ints} == {_OF_EACH_AXIS[known.name]}
    default = without_text(known.default_value)
    default.name = attribute.name
    return same_value(attribute, default)


def is_stated(node: Node, value: object) -> bool:
    """Whether the value of a node's attribute is another one than that of an attribute which is left out."""
    if not isinstance(value, AttributeProto) or value.type in (AttributeProto.TENSOR, AttributeProto.GRAPH):
        return True
    return not has_default(node, value)


def _written(value: AttributeValue, attribute: Attribute, schema: OpSchema) -> AttributeProto:
    kind = _attribute_type(attribute, schema)
    if isinstance(value, Tensor):
        value = write_tensor("", value)
    elif isinstance(value, ElementType):
        value = value.onnx if kind == AttributeProto.STRING else value.onnx_number
    return helper.make_attribute(attribute.name, value, attr_type=kind)
