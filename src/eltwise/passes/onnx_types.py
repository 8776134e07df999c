"""The types of all values of an ONNX model, found by onnx's shape inference on a copy that holds no weights.

Versions below 6 have no inference for the arithmetic operators, so the copy says opset 6 there: the result types of
those operators are the same in both. The few operators that are written otherwise in opset 6 are rewritten in the copy.
"""

from __future__ import annotations

from collections.abc import Iterator

from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto
from onnx.shape_inference import InferenceError, infer_shapes

from eltwise.core.shapes import element_count
from eltwise.formats.onnx.nodes import Original, subgraphs, write_node
from eltwise.formats.onnx.reader import OnnxFile
from eltwise.formats.onnx.tensors import StoredTensor, keep_tensor
from eltwise.formats.onnx.types import declare, type_text, value_type
from eltwise.ir.graph import Graph, Node, Tensor, TensorType
from eltwise.ops import registry

FIRST_INFERRED = 6
"""The first opset that onnx infers the types of arithmetic in."""

_LARGEST_KEPT = 1024
"""The most bytes of a tensor whose values inference may need: lists of axes and sizes, not weights."""

_LONGEST_LISTS = 1 << 19
"""How many elements all values of rank 1 may have for inference to follow their elements; each takes some 150 bytes."""


def infer_types(graph: Graph) -> dict[int, dict[str, TensorType]]:
    """Infer the types of the values of a model's graph and of those in its nodes, by the id of the graph.

    Functions are left out: the types in them depend on the call.
    """
    copy = without_weights(graph)
    try:
        typed = infer_shapes(copy)
        typed = typed if _has_long_lists(typed) else infer_shapes(copy, data_prop=True)
    except (InferenceError, ValueError, RuntimeError):
        # The model contradicts itself somewhere. What it declares still holds, and a node that needs more says so.
        typed = copy
    found: dict[int, dict[str, TensorType]] = {}
    _collect(graph, typed.graph, found)
    return found


def _collect(graph: Graph, typed: GraphProto, found: dict[int, dict[str, TensorType]]) -> None:
    values = (*typed.value_info, *typed.output, *typed.input)
    types = ((value.name, value_type(value.type)) for value in values)
    found[id(graph)] = {name: known for name, known in types if type_text(known) or known.shape.dimensions is not None}
    for node, twin in zip(graph.nodes, typed.node, strict=True):
        if node.graphs:
            for (_name, inner), (_same, inner_typed) in zip(node.graphs, subgraphs(twin), strict=True):
                _collect(inner, inner_typed, found)


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
    """Write a model without its functions and without what its tensors hold, but for a few small ones."""
    copy = ModelProto(ir_version=8)  # The first in which every initializer may stay out of the inputs is 4.
    for domain, version in graph.origin.other_opsets:
        copy.opset_import.add(domain=domain, version=version)
    copy.opset_import.add(domain="", version=max(graph.origin.opset, FIRST_INFERRED))
    _copy_graph(graph, copy.graph)
    return copy


def _copy_graph(graph: Graph, copy: GraphProto) -> None:
    message = graph.message.model.graph if isinstance(graph.message, OnnxFile) else graph.message
    copy.name = graph.name or "graph"
    if isinstance(message, GraphProto) and graph.untouched:
        copy.input.extend(message.input)
        copy.output.extend(message.output)
        copy.value_info.extend(message.value_info)
    else:
        for port in (*graph.inputs, *graph.optional_inputs):
            declare(copy.input.add(name=port.value), port.type)
        for port in graph.outputs:
            declare(copy.output.add(name=port.value), port.type)
        for value, known in graph.declared:
            declare(copy.value_info.add(name=value), known)
    for name, tensor in graph.constants:
        _copy_tensor(name, tensor, copy.initializer.add())
    for node in graph.nodes:
        _copy_node(node, graph.origin.opset, copy)


def _copy_node(node: Node, opset: int, copy: GraphProto) -> None:
    if opset < FIRST_INFERRED and not node.is_foreign and node.schema.behaviour == "cast":
        schema = registry.resolve("ai.onnx", "Cast", FIRST_INFERRED)
        assert schema is not None
        node = Node(node.name, schema.bind(dict(node.operation.given)), node.inputs, node.outputs)
    proto = node.message.proto if node.untouched and isinstance(node.message, Original) else write_node(node)
    twin = copy.node.add(name=proto.name, op_type=proto.op_type, domain=proto.domain, overload=proto.overload)
    twin.input.extend(proto.input)
    twin.output.extend(proto.output)
    graphs = iter([inner for _name, inner in node.graphs])
    for attribute in proto.attribute:
        _copy_attribute(attribute, twin.attribute.add(), graphs)
    if opset < FIRST_INFERRED and not proto.domain:
        copy.initializer.extend(_written_as_in_opset_6(twin))


def _copy_attribute(attribute: AttributeProto, copy: AttributeProto, graphs: Iterator[Graph]) -> None:
    if not (attribute.HasField("g") or attribute.HasField("t") or attribute.graphs):
        copy.CopyFrom(attribute)
        return
    copy.name, copy.type = attribute.name, attribute.type
    if attribute.HasField("g"):
        copy.g.SetInParent()
        _copy_graph(next(graphs), copy.g)
    if attribute.HasField("t"):
        _copy_tensor(attribute.t.name, StoredTensor(attribute.t, None, ""), copy.t)
    for _graph in attribute.graphs:
        _copy_graph(next(graphs), copy.graphs.add())


def _copy_tensor(name: str, tensor: Tensor, copy: TensorProto) -> None:
    """Copy a tensor, without its values where they are many or in another file."""
    if is_small(tensor):
        keep_tensor(copy, name, tensor)
        return
    if isinstance(tensor, StoredTensor):
        copy.name, copy.data_type = name, tensor.proto.data_type
        copy.dims.extend(tensor.message.dims)
        return
    copy.name, copy.data_type = name, tensor.element_type.onnx_number
    copy.dims.extend(tensor.array.shape)


def is_small(tensor: Tensor) -> bool:
    """Whether a tensor's values are in the model itself and few."""
    if not isinstance(tensor, StoredTensor):
        return tensor.array.nbytes <= _LARGEST_KEPT
    if tensor.is_external or tensor.is_sparse or element_count(tuple(tensor.message.dims)) > 8 * _LARGEST_KEPT:
        return False  # The size of a message is found by writing it out, weights and all.
    return bool(tensor.message.ByteSize() <= _LARGEST_KEPT)


def _written_as_in_opset_6(node: NodeProto) -> Iterator[TensorProto]:
    """Rewrite a node of opsets 1 to 5 in place; gives the tensors that it then needs."""
    attributes = {attribute.name: attribute for attribute in node.attribute}
    match node.op_type:
        case "Pad" if "paddings" in attributes:
            attributes["paddings"].name = "pads"
        case "Concat" if "axis" not in attributes:
            node.attribute.add(name="axis", type=AttributeProto.INT, i=1)
        case "Reshape" if "shape" in attributes and len(node.input) == 1 and node.output:
            sizes = list(attributes["shape"].ints)
            name = f"{node.output[0]}:shape"
            node.input.append(name)
            yield TensorProto(name=name, data_type=TensorProto.INT64, dims=[len(sizes)], int64_data=sizes)
