"""The types of all values of an ONNX model, found by onnx's shape inference on a copy that holds no weights.

Versions below 6 have no inference for the arithmetic operators, so the copy says opset 6 there: the result types of
those operators are the same in both. The few operators that are written otherwise in opset 6 are rewritten in the copy.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto
from onnx.shape_inference import InferenceError, infer_shapes

from eltwise.core.errors import EltwiseError
from eltwise.core.shapes import element_count
from eltwise.formats.onnx.header import default_domain
from eltwise.formats.onnx.nodes import bodies, nodes_in, subgraphs
from eltwise.formats.onnx.tensors import MessageSource, bring_in, keep_tensor, stored_tensor
from eltwise.formats.onnx.types import type_text, types_in, value_type
from eltwise.formats.onnx.writer import write_graph
from eltwise.ir.graph import Graph, Node, Tensor, computed_once
from eltwise.ir.types import TensorType
from eltwise.ir.verify import topological_order

FIRST_INFERRED = 6
"""The first opset that onnx infers the types of arithmetic in."""

HELD = "eltwise.held"
"""The domain of what stands in the place of the nodes of a body, of which onnx knows nothing."""

_LARGEST_KEPT = 1024
"""The most bytes of a tensor whose values inference may need: lists of axes and sizes, not weights."""

_LONGEST_LISTS = 1 << 19
"""How many elements all values of rank 1 may have for inference to follow their elements; each takes some 150 bytes."""

_MOST_ROUNDS = 8
"""So often inference goes on from ranks that it did not find itself."""

_NEED_TYPES = ("DictVectorizer", "EyeLike", "LabelEncoder", "RegexFullMatch", "TreeEnsemble")
"""The operators of which onnx's inference ends the process where the type of their operand is not known."""

_NAMES = frozenset(TensorProto.DataType.keys())
_LINE = re.compile(r"\(op_type:[^,()]*, node name: (\d+)\): ")
_FOLLOWS = ("expected to have type", "Inference error(s)", "parse data from external tensors")
"""What inference says of an operand whose type it could not infer, since a node before it has no inference; of a node
whose graph holds the one that is wrong, and of operators that it takes for functions, whose defaults it leaves out; and
of a list of sizes or axes of which the elements are not there."""


@computed_once
def infer_types(graph: Graph) -> dict[int, dict[str, TensorType]]:
    """Infer the types of the values of a model's graph and of those in its nodes, by the id of the graph.

    Functions are left out: the types in them depend on the call.
    """
    copy = without_weights(graph)
    _order(graph, copy.graph)
    try:
        typed = _inferred(copy)
        follows_lists = not _has_long_lists(typed)
        typed = _inferred(copy, data_prop=True) if follows_lists else typed
        for _round in range(_MOST_ROUNDS):
            ranks = list(_ranks_of_reshapes(typed.graph))
            if not ranks:
                break
            copy.graph.value_info.extend(ranks)
            typed = _inferred(copy, data_prop=follows_lists)
    except (InferenceError, ValueError, RuntimeError):
        # The model contradicts itself somewhere. What it declares still holds, and a node that needs more says so.
        typed = copy
    types: dict[int, dict[str, TensorType]] = {}
    _collect(graph, typed.graph, types)
    return types


def _inferred(copy: ModelProto, **options: bool) -> ModelProto:
    """Run onnx's inference, without the nodes that would end the process, and those on which it does not end."""
    nodes = [node for node, _is_known in _operands(copy.graph)]
    endless = {number for number, node in enumerate(nodes) if _is_endless(node)}
    held = {
        number: node.domain for number, node in enumerate(nodes) if node.op_type in _NEED_TYPES or number in endless
    }
    for number in held:
        nodes[number].domain = HELD
    try:
        while held:
            known = [is_known for _node, is_known in _operands(infer_shapes(copy).graph)]
            safe = [number for number in held if known[number] and number not in endless]
            if not safe:
                break
            for number in safe:
                nodes[number].domain = held.pop(number)
        return infer_shapes(copy, **options)
    finally:
        for number, domain in held.items():
            nodes[number].domain = domain


def _is_endless(node: NodeProto) -> bool:
    """Whether a node is an Einsum with other dots in a term than one ellipsis, which onnx's inference never passes."""
    equations = (one.s for one in node.attribute if node.op_type == "Einsum" and one.name == "equation")
    return any(b"." in term.replace(b"...", b"", 1) for each in equations for term in re.split(rb",|->", each))


def _operands(graph: GraphProto, outer: frozenset[str] = frozenset()) -> Iterator[tuple[NodeProto, bool]]:
    """The nodes of a graph and of those in it, each with whether the type of its first operand is known."""
    values = (*graph.input, *graph.value_info, *graph.output)
    known = {value.name for value in values if value.HasField("type")}.union(one.name for one in graph.initializer)
    seen = known | outer.difference(name for node in graph.node for name in node.output)
    for node in graph.node:
        yield node, node.input[:1] != [] and node.input[0] in seen
        for _name, inner in subgraphs(node):
            yield from _operands(inner, frozenset(seen))


def _collect(graph: Graph, typed: GraphProto, types_of: dict[int, dict[str, TensorType]]) -> None:
    values = (*typed.value_info, *typed.output, *typed.input)
    types = ((value.name, value_type(value.type)) for value in values)
    types_of[id(graph)] = {
        name: known for name, known in types if type_text(known) or known.shape.dimensions is not None
    }
    for node, twin in zip(_ordered_nodes(graph), typed.node, strict=True):
        for inner, inner_typed in bodies(node, twin):
            _collect(inner, inner_typed, types_of)


def _ordered_nodes(graph: Graph) -> list[Node]:
    """The nodes in topological order, which onnx's inference needs; those on cycles come last."""
    order = topological_order(graph.nodes)
    rest = set(range(len(graph.nodes))).difference(order)
    return [graph.nodes[number] for number in (*order, *sorted(rest))]


def _order(graph: Graph, copy: GraphProto) -> None:
    """Bring the nodes of a written graph, and those of the graphs in them, into topological order."""
    for node, twin in zip(graph.nodes, copy.node, strict=True):
        for inner, body in bodies(node, twin):
            _order(inner, body)
    ordered = _ordered_nodes(graph)
    if any(node is not other for node, other in zip(ordered, graph.nodes, strict=True)):
        twins = {id(node): twin for node, twin in zip(graph.nodes, copy.node, strict=True)}
        nodes = GraphProto(node=[twins[id(node)] for node in ordered]).node
        copy.ClearField("node")
        copy.node.extend(nodes)


def _ranks_of_reshapes(typed: GraphProto) -> Iterator[ValueInfoProto]:
    """The results of unknown rank that have as many dimensions as the list of their sizes has elements."""
    types = {value.name: value.type.tensor_type for value in (*typed.input, *typed.output, *typed.value_info)}
    lengths = {name: one.shape.dim[0].dim_value for name, one in types.items() if len(one.shape.dim) == 1}
    known = {value.name for value in typed.value_info}
    for node in typed.node:
        if node.op_type == "Reshape" and not default_domain(node.domain) and len(node.input) > 1:
            result, length = types.get(node.output[0]), lengths.get(node.input[1], 0)
            if node.output[0] in known and result is not None and length and not result.HasField("shape"):
                value = ValueInfoProto(name=node.output[0])
                value.type.tensor_type.elem_type = result.elem_type
                for _dimension in range(length):
                    value.type.tensor_type.shape.dim.add()
                yield value


def _has_long_lists(typed: ModelProto) -> bool:
    """Whether the values of rank 1, which onnx takes for lists of sizes and writes out one by one, are too long."""
    length, waiting = 0, [typed.graph]
    while waiting:
        graph = waiting.pop()
        length += sum(tensor.dims[0] for tensor in graph.initializer if len(tensor.dims) == 1)
        for value in (*graph.input, *graph.output, *graph.value_info):
            sizes = value.type.tensor_type.shape.dim
            length += sizes[0].dim_value if len(sizes) == 1 else 0
        waiting += [inner for node in graph.node for _name, inner in subgraphs(node)]
    return length > _LONGEST_LISTS


def without_weights(graph: Graph) -> ModelProto:
    """Write a model without its functions, of whose large tensors the elements are said to be in another file.

    Inference takes a tensor without elements for an error, and reads no other file.
    """
    constants = tuple((name, _without_elements(tensor)) for name, tensor in graph.constants)
    copy = ModelProto(ir_version=8)  # The first in which every initializer may stay out of the inputs is 4.
    write_graph(replace(graph, message=None, functions=(), metadata=(), constants=constants), copy.graph)
    others = ((domain, version) for domain, version in graph.origin.other_opsets if domain != HELD)
    for domain, version in (*others, ("", max(graph.origin.opset, FIRST_INFERRED)), (HELD, 1)):
        copy.opset_import.add(domain=domain, version=version)
    copy.graph.name = copy.graph.name or "graph"
    _strip(copy.graph, graph.origin.opset)
    return copy


def _without_elements(tensor: Tensor) -> Tensor:
    """A small tensor, or one of the same type that says its elements to be elsewhere."""
    source, element_type = tensor.source, tensor.type.element_type
    if isinstance(source, MessageSource):
        number = source.proto.data_type
    else:
        number = TensorProto.UNDEFINED if element_type is None else element_type.onnx_number
    proto = TensorProto(data_type=number, dims=tensor.shape, data_location=TensorProto.EXTERNAL)
    return small_tensor(tensor) or stored_tensor(proto)


def _strip(graph: GraphProto, opset: int) -> None:
    """Take the elements of large tensors out of nodes and of the graphs in them."""
    for node in graph.node:
        bodies = [inner for _name, inner in subgraphs(node)]
        tensors = [attribute.t for attribute in node.attribute if attribute.HasField("t")]
        for tensor in (*tensors, *(one for inner in bodies for one in inner.initializer)):
            light = _without_elements(stored_tensor(tensor))
            if light.is_external:
                keep_tensor(tensor, tensor.name, light)
        for inner in bodies:
            _strip(inner, opset)
        if opset < FIRST_INFERRED and not default_domain(node.domain):
            graph.initializer.extend(_written_as_in_opset_6(node))


def small_tensor(tensor: Tensor) -> Tensor | None:
    """A tensor of few elements, also where they are in another file; None for any other one, and where they are not."""
    if tensor.is_sparse or element_count(tensor.shape) > 8 * _LARGEST_KEPT:
        return None  # The size of a message is found by writing it out, weights and all.
    if not isinstance(tensor.source, MessageSource):
        return tensor if tensor.array.nbytes <= _LARGEST_KEPT else None
    if not tensor.is_external:
        return tensor if tensor.source.message.ByteSize() <= _LARGEST_KEPT else None
    element_type = tensor.type.element_type
    if element_type is None or element_type.file_bytes(element_count(tensor.shape)) > _LARGEST_KEPT:
        return None
    proto = TensorProto()
    proto.CopyFrom(tensor.source.proto)
    try:
        bring_in(proto, tensor.source.folder)
    except EltwiseError:
        return None
    return stored_tensor(proto, operand=tensor.source.operand)


def bare_node(node: NodeProto) -> NodeProto:
    """A node in the short name of ONNX's domain, as onnx's checker and converter need it: with small tensors only.

    Its graphs have their inputs and outputs, and hold one node of a domain that nobody knows.
    """
    twin = NodeProto(name=node.name, op_type=node.op_type, input=node.input, output=node.output)
    for attribute in node.attribute:
        if not holds_more(attribute):
            twin.attribute.append(attribute)
            continue
        copy = twin.attribute.add(name=attribute.name, type=attribute.type)
        for field in ("f", "i", "s"):  # Of another type's field the checker says that it is there.
            if attribute.HasField(field):
                setattr(copy, field, getattr(attribute, field))
        for field in ("floats", "ints", "strings"):
            getattr(copy, field).extend(getattr(attribute, field))
        if attribute.HasField("t"):
            copy.t.CopyFrom(TensorProto(data_type=attribute.t.data_type, dims=[0]))
        if attribute.HasField("g"):
            _hold(copy.g, attribute.g)
        for graph in attribute.graphs:
            _hold(copy.graphs.add(), graph)
    return twin


def _hold(copy: GraphProto, graph: GraphProto) -> None:
    copy.name = graph.name or "body"
    copy.input.extend(graph.input)
    copy.output.extend(graph.output)
    copy.node.add(op_type="Body", domain=HELD, output=[value.name for value in graph.output])


def holds_more(attribute: AttributeProto) -> bool:
    """Whether ``bare_node`` leaves something of an attribute out."""
    has_graph = attribute.HasField("g") or bool(attribute.graphs)
    return has_graph or (attribute.HasField("t") and small_tensor(stored_tensor(attribute.t)) is None)


def _written_as_in_opset_6(node: NodeProto) -> Iterator[TensorProto]:
    """Rewrite a node of opsets 1 to 5 in place; gives the tensors that it then needs."""
    attributes = {attribute.name: attribute for attribute in node.attribute}
    match node.op_type:
        case "Cast" if attributes.get("to") and attributes["to"].s.decode(errors="replace").upper() in _NAMES:
            number = TensorProto.DataType.Value(attributes["to"].s.decode().upper())
            attributes["to"].CopyFrom(AttributeProto(name="to", type=AttributeProto.INT, i=number))
        case "Concat" if "axis" not in attributes:
            node.attribute.add(name="axis", type=AttributeProto.INT, i=1)
        case "Reshape" if "shape" in attributes and len(node.input) == 1 and node.output:
            sizes = list(attributes["shape"].ints)
            name = f"{node.output[0]}:shape"
            node.input.append(name)
            yield TensorProto(name=name, data_type=TensorProto.INT64, dims=[len(sizes)], int64_data=sizes)


def refused_by_inference(graph: Graph) -> Iterator[tuple[int, str]]:
    """Ask onnx's strict inference: the nodes that it refuses, by their id, and its words; nothing below opset 6.

    Declared shapes of results are not asked, since runtimes go by those that they infer; declared types are, as there.
    """
    if graph.origin.opset < FIRST_INFERRED:
        return
    copy = without_weights(graph)
    numbered: list[int] = []
    _prepare(graph, copy.graph, numbered)
    _order(graph, copy.graph)
    imported = {"ai.onnx", *(entry.domain for entry in copy.opset_import)}
    for domain in {node.domain for node in nodes_in(copy.graph)} - imported:
        copy.opset_import.add(domain=domain, version=1)
    try:
        _inferred(copy, strict_mode=True)
    except (InferenceError, ValueError, RuntimeError) as error:
        parts = _LINE.split(str(error))
        for number, message in zip(parts[1::2], parts[2::2], strict=True):
            if not any(part in message for part in _FOLLOWS):
                yield numbered[int(number)], message


def _prepare(graph: Graph, copy: GraphProto, numbered: list[int], is_outermost: bool = True) -> None:
    """Number the nodes, and leave out the shapes that a runtime does not go by."""
    for node, twin in zip(graph.nodes, copy.node, strict=True):
        twin.name = str(len(numbered))
        numbered.append(id(node))
        for inner, body in bodies(node, twin):
            _prepare(inner, body, numbered, is_outermost=False)
    constants = {name for name, _tensor in graph.constants}
    inputs = GraphProto(input=[value for value in copy.input if value.name not in constants]).input
    copy.ClearField("input")
    copy.input.extend(inputs)
    values = (value for value in copy.value_info if value.name not in constants)
    for value in (*copy.output, *values, *(() if is_outermost else copy.input)):
        for part in types_in(value.type):
            kind = part.WhichOneof("value")
            if kind in ("tensor_type", "sparse_tensor_type"):
                getattr(part, kind).ClearField("shape")
