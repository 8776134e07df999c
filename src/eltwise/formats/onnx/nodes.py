"""Nodes of ONNX files and their attributes: NodeProto to Node and back.

Source: NodeProto and AttributeProto in onnx.proto.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import onnx
from onnx import AttributeProto, GraphProto, NodeProto

from eltwise.core.dtypes import BY_ONNX_NAME, BY_ONNX_NUMBER, ElementType
from eltwise.core.errors import AttributeValueError, EltwiseError, GraphError, UnsupportedError, raise_all
from eltwise.formats.onnx.external import ExternalData
from eltwise.formats.onnx.header import default_domain
from eltwise.formats.onnx.tensors import StoredTensor, TensorFiller, fill_tensor
from eltwise.ir.graph import Foreign, ForeignSchema, Graph, Node, Origin, Tensor
from eltwise.ops import registry
from eltwise.ops.schema import Attribute, AttributeKind, AttributeValue, Operation, OpSchema

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
_VALUE_FIELDS = ("f", "i", "s", "t", "g", "sparse_tensor", "tp")
_LIST_FIELDS = ("floats", "ints", "strings", "tensors", "graphs", "sparse_tensors", "type_protos")


def label_of(proto: NodeProto) -> str:
    """What to call a node in errors: its name, or the first value that it makes."""
    return proto.name or next(filter(None, proto.output), "")


def find_schema(proto: NodeProto, opset: int) -> OpSchema | None:
    """Select the row that a node is of; None where it is none that is run here."""
    if default_domain(proto.domain) or proto.overload:
        return None
    schema = registry.resolve("ai.onnx", proto.op_type, opset)
    if schema is None or opset <= registry.NEWEST_OPSET["ai.onnx"]:
        return schema
    published = onnx.defs.get_schema(proto.op_type, opset, "")
    return schema if published.since_version == schema.version and not published.deprecated else None


@dataclass(frozen=True)
class Original:
    """A node as its file has it: the message, and the attributes that were read from it."""

    proto: NodeProto
    given: tuple[tuple[str, AttributeValue], ...]


def read_node(
    proto: NodeProto, origin: Origin, folder: Path | ExternalData | None = None, reads_weights: bool = True
) -> Node:
    """Read a node.

    Args:
        proto: the node, of an operator that is run here.
        origin: the versions that the model is written in.
        folder: the model's folder, for tensors in attributes that are external data.
        reads_weights: whether the elements of tensors are read and checked.

    Raises:
        UnsupportedError: for an operator that is not run here.
        EltwiseError: naming the operator version, the node and the attribute; for several at once where several
            attributes are wrong.
    """
    schema = find_schema(proto, origin.opset)
    if schema is None:
        raise UnsupportedError("this operator is not run here", operator=proto.op_type, node=label_of(proto))
    place = {"operator": schema.versioned_name, "node": label_of(proto)}
    try:
        if "" in proto.output:
            raise GraphError("an output has no name", operand="its outputs")
        operation = _read_attributes(proto, schema, origin, folder, place)
        for tensor in (value for _name, value in operation.given if isinstance(value, Tensor) and reads_weights):
            tensor.array  # noqa: B018 - this reads and checks it
    except EltwiseError as error:
        raise error.located(**place) from None
    return _as_stored(proto, operation)


def foreign_node(proto: NodeProto, origin: Origin, read_graph: Callable[[GraphProto], Graph], called: bool) -> Node:
    """Read a node of an operator that is not run here.

    Args:
        proto: the node.
        origin: the versions that its graph is written in.
        read_graph: what reads a graph in its attributes.
        called: whether it calls a function of the model.
    """
    domain = default_domain(proto.domain)
    version = 0 if called or domain or proto.overload else since_version(proto.op_type, origin.opset)
    schema = ForeignSchema("ai.onnx", proto.op_type, version, domain, proto.overload)
    given = tuple((attribute.name, attribute) for attribute in proto.attribute)
    graphs = tuple((name, read_graph(graph)) for name, graph in subgraphs(proto))
    return _as_stored(proto, Foreign(schema, given, graphs))


def _as_stored(proto: NodeProto, operation: Operation) -> Node:
    message = Original(proto, operation.given)
    node = Node(proto.name, operation, tuple(proto.input), tuple(proto.output), message)
    object.__setattr__(node, "untouched", True)
    return node


def subgraphs(proto: NodeProto) -> Iterator[tuple[str, GraphProto]]:
    """The graphs in a node's attributes, each with the attribute's name."""
    for attribute in proto.attribute:
        if attribute.HasField("g"):
            yield attribute.name, attribute.g
        for graph in attribute.graphs:
            yield attribute.name, graph


@cache
def since_version(op_type: str, opset: int) -> int:
    """The version of ONNX's own operator that an opset has, 0 where the installed onnx package knows none."""
    if not 0 < opset < 2**31:
        return 0
    try:
        return int(onnx.defs.get_schema(op_type, opset, "").since_version)
    except onnx.defs.SchemaError:
        return 0


def _read_attributes(
    proto: NodeProto, schema: OpSchema, origin: Origin, folder: Path | ExternalData | None, place: dict[str, str]
) -> Operation:
    attributes = {attribute.name: attribute for attribute in schema.attributes}
    values: dict[str, object] = {}
    problems: list[EltwiseError] = []
    for given in proto.attribute:
        try:
            if given.name not in attributes:
                schema.bind({given.name: None})
            if given.name in values:
                raise AttributeValueError("the attribute is given twice")
            values[given.name] = None
            value = _read_attribute(given, attributes[given.name], schema, origin, folder)
            values[given.name] = attributes[given.name].checked(value, schema.versioned_name)
        except EltwiseError as error:
            operand = f"attribute {given.name}" if given.name in attributes else ""
            problems.append(error.located(operand=operand, **place))
    raise_all(problems)
    return schema.bind(values)


def _attribute_type(attribute: Attribute, schema: OpSchema) -> AttributeProto.AttributeType:
    """The type that an attribute has in files; Cast-1 alone names the element type in words."""
    if attribute.kind == "element type" and schema.version < 6:
        return AttributeProto.STRING
    return _TYPE_OF_KIND[attribute.kind]


def _read_attribute(
    proto: AttributeProto, attribute: Attribute, schema: OpSchema, origin: Origin, folder: Path | ExternalData | None
) -> object:
    """Read the value of an attribute; a number or text that is absent is zero or empty, as protobuf 3 writes those."""
    if proto.ref_attr_name:
        raise UnsupportedError(
            "a reference to an attribute of a function has no meaning in a graph", got=repr(proto.ref_attr_name)
        )
    if attribute.kind == "not run":
        return None
    wanted = _attribute_type(attribute, schema)
    _check_type(proto, wanted, origin)
    match wanted:
        case AttributeProto.TENSOR:
            if not proto.HasField("t"):
                raise AttributeValueError("the attribute's value is missing", allowed="a tensor")
            return StoredTensor(proto.t, folder, f"attribute {proto.name}")
        case AttributeProto.FLOAT:
            return _one_nan(proto.f)
        case AttributeProto.FLOATS:
            return tuple(map(_one_nan, proto.floats))
        case AttributeProto.INTS:
            return tuple(proto.ints)
        case AttributeProto.STRING:
            text = _text(proto.s)
            return _element_type(text) if attribute.kind == "element type" else text
        case _:
            return _element_type(proto.i) if attribute.kind == "element type" else proto.i


def _check_type(proto: AttributeProto, wanted: AttributeProto.AttributeType, origin: Origin) -> None:
    """Refuse an attribute of another type, without a type, or with a value in another type's field."""
    name = AttributeProto.AttributeType.Name
    untyped = not proto.HasField("type") or proto.type == AttributeProto.UNDEFINED
    if untyped and origin.file_version >= 2:
        raise AttributeValueError("the attribute has no type", allowed=name(wanted))
    if not untyped and proto.type != wanted:
        raise AttributeValueError("the attribute has the wrong type", got=name(proto.type), allowed=name(wanted))
    field = _FIELD_OF_TYPE[wanted]
    present = [other for other in _VALUE_FIELDS if proto.HasField(other)]
    present += [other for other in _LIST_FIELDS if len(getattr(proto, other))]
    if set(present) - {field}:
        raise AttributeValueError(
            "the attribute's value is in the wrong field", got=" and ".join(present), allowed=field
        )


def _one_nan(value: float) -> float:
    """Make every NaN the same object, so that what holds it is equal to itself when it is read again."""
    return math.nan if math.isnan(value) else value


def _text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise AttributeValueError("the attribute's value is not UTF-8 text", got=repr(value)[:80]) from None


def _element_type(given: int | str) -> ElementType:
    found = BY_ONNX_NAME.get(given) if isinstance(given, str) else BY_ONNX_NUMBER.get(given)
    if found is None:
        runs = [schema for schema in BY_ONNX_NAME.values() if schema.runs]
        names = (schema.onnx if isinstance(given, str) else f"{schema.onnx_number} ({schema.onnx})" for schema in runs)
        raise AttributeValueError("there is no such element type", got=repr(given)[:80], allowed=", ".join(names))
    return found


def write_node(
    node: Node, fill: TensorFiller = fill_tensor, write_graph: Callable[[Graph, GraphProto], None] | None = None
) -> NodeProto:
    """Write a node: what its file says of it, with what was changed since.

    Args:
        node: a node whose operator is ONNX's.
        fill: what writes a tensor into its place in an attribute.
        write_graph: what writes a graph over the one that an attribute had.

    Raises:
        UnsupportedError: for a node of another dialect.
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
    for field, text in {**texts, **({"domain": domain} if default_domain(proto.domain) != domain else {})}.items():
        if getattr(proto, field) != text:
            setattr(proto, field, text)
    proto.input[:] = node.inputs
    proto.output[:] = node.outputs
    if original is None or original.given != node.operation.given:
        _write_attributes(node, proto, fill)
    for (_name, graph), (_same, place) in zip(node.graphs, list(subgraphs(proto)), strict=True):
        if not graph.untouched and write_graph is not None:
            write_graph(graph, place)
    return proto


def _write_attributes(node: Node, proto: NodeProto, fill: TensorFiller) -> None:
    """Write attributes; one that was there and has the same value stays as it was, with its text."""
    given = node.operation.given
    if isinstance(node.operation, Foreign):
        wanted = [value for _name, value in given if isinstance(value, AttributeProto)]
    else:
        known = {attribute.name: attribute for attribute in node.schema.attributes}
        wanted = [_write_attribute(value, known[name], node.schema, fill) for name, value in given]
    before = {attribute.name: attribute for attribute in proto.attribute}
    made = NodeProto()
    for attribute in wanted:
        old = before.get(attribute.name)
        made.attribute.add().CopyFrom(old if old is not None and same_value(old, attribute) else attribute)
    proto.ClearField("attribute")
    proto.attribute.extend(made.attribute)


def same_value(one: AttributeProto, other: AttributeProto) -> bool:
    """Whether two attributes are the same but for their texts."""
    plain = []
    for attribute in (one, other):
        plain.append(AttributeProto())
        plain[-1].CopyFrom(attribute)
        plain[-1].ClearField("doc_string")
    return bool(plain[0] == plain[1])


def _write_attribute(
    value: AttributeValue, attribute: Attribute, schema: OpSchema, fill: TensorFiller
) -> AttributeProto:
    kind = _attribute_type(attribute, schema)
    proto = AttributeProto(name=attribute.name, type=kind)
    field = _FIELD_OF_TYPE[kind]
    if isinstance(value, Tensor):
        fill(proto.t, "", value)
    elif isinstance(value, ElementType):
        setattr(proto, field, value.onnx.encode() if kind == AttributeProto.STRING else value.onnx_number)
    elif isinstance(value, tuple):
        getattr(proto, field).extend(value)
    else:
        setattr(proto, field, value.encode() if isinstance(value, str) else value)
    return proto
