"""The types of every value of a model, found by onnx's shape inference on a copy that holds no weights.

Versions below 6 have no inference for the arithmetic operators, so the copy says opset 6 there: the result types of
those operators are the same in both. The few operators that are written otherwise in opset 6 are rewritten in the copy.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress

from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto
from onnx.shape_inference import InferenceError, infer_shapes

from eltwise.core.errors import AttributeValueError
from eltwise.passes.onnx_versions.names import all_graphs
from eltwise.passes.onnx_versions.schemas import is_own
from eltwise.passes.onnx_versions.written_otherwise import in_new_words

LARGEST_CARRIED = 1024
"""The most bytes of a tensor whose values inference may need: lists of axes and sizes, not weights."""

LONGEST_LISTS = 1 << 19
"""How many elements all values of rank 1 may have for inference to follow their elements; each takes some 150 bytes."""

FIRST_INFERRED = 6
"""The first opset that onnx infers the types of arithmetic in."""


def with_types(model: ModelProto, opset: int) -> ModelProto:
    """Copy a model without its weights, with the types of its values as far as they can be inferred.

    Args:
        model: the model.
        opset: the opset of ONNX's own operators in it.

    Returns:
        A model whose graphs and nodes stand in the same order; its functions are left out.
    """
    copy = without_weights(model, opset)
    try:
        typed = infer_shapes(copy)
        return typed if _has_long_lists(typed) else infer_shapes(copy, data_prop=True)
    except (InferenceError, ValueError, RuntimeError):
        # The model contradicts itself somewhere. What it declares still holds, and a node that needs more says so.
        return copy


def _has_long_lists(typed: ModelProto) -> bool:
    """Whether the values of rank 1, which onnx takes for lists of sizes and writes out one by one, are too long."""
    length = 0
    for graph in all_graphs(typed):
        length += sum(tensor.dims[0] for tensor in graph.initializer if len(tensor.dims) == 1)
        for value in (*graph.input, *graph.output, *graph.value_info):
            sizes = value.type.tensor_type.shape.dim
            length += sizes[0].dim_value if len(sizes) == 1 else 0
    return length > LONGEST_LISTS


def without_weights(model: ModelProto, opset: int) -> ModelProto:
    """Copy a model without its functions and without what its tensors hold, but for a few small ones."""
    copy = ModelProto(ir_version=8)  # The first in which every initializer may stay out of the inputs is 4.
    for entry in model.opset_import:
        if entry.domain not in ("", "ai.onnx"):
            copy.opset_import.add(domain=entry.domain, version=entry.version)
    copy.opset_import.add(domain="", version=max(opset, FIRST_INFERRED))
    _copy_graph(model.graph, copy.graph, opset)
    return copy


def _copy_graph(graph: GraphProto, copy: GraphProto, opset: int) -> None:
    copy.name = graph.name or "graph"
    copy.input.extend(graph.input)
    copy.output.extend(graph.output)
    copy.value_info.extend(graph.value_info)
    for tensor in graph.initializer:
        _copy_tensor(tensor, copy.initializer.add())
    for sparse in graph.sparse_initializer:
        copy.initializer.add(name=sparse.values.name, data_type=sparse.values.data_type, dims=sparse.dims)
    for node in graph.node:
        twin = copy.node.add(name=node.name, op_type=node.op_type, domain=node.domain, overload=node.overload)
        twin.input.extend(node.input)
        twin.output.extend(node.output)
        for attribute in node.attribute:
            _copy_attribute(attribute, twin.attribute.add(), opset)
        if opset < FIRST_INFERRED and is_own(node):
            copy.initializer.extend(_written_as_in_opset_6(twin))


def _copy_attribute(attribute: AttributeProto, copy: AttributeProto, opset: int) -> None:
    if not (attribute.HasField("g") or attribute.HasField("t") or attribute.graphs):
        copy.CopyFrom(attribute)
        return
    copy.name, copy.type = attribute.name, attribute.type
    if attribute.HasField("g"):
        copy.g.SetInParent()
        _copy_graph(attribute.g, copy.g, opset)
    if attribute.HasField("t"):
        copy.t.SetInParent()
        _copy_tensor(attribute.t, copy.t)
    for graph in attribute.graphs:
        _copy_graph(graph, copy.graphs.add(), opset)


def _copy_tensor(tensor: TensorProto, copy: TensorProto) -> None:
    """Copy a tensor, without its values where they are many or in another file."""
    if is_small(tensor):
        copy.CopyFrom(tensor)
        return
    copy.name, copy.data_type = tensor.name, tensor.data_type
    copy.dims.extend(tensor.dims)


def is_small(tensor: TensorProto) -> bool:
    """Whether a tensor's values are in the model itself and few."""
    if tensor.data_location == TensorProto.EXTERNAL or math.prod(tensor.dims) > 8 * LARGEST_CARRIED:
        return False  # The size of a message is found by writing it out, weights and all.
    return bool(tensor.ByteSize() <= LARGEST_CARRIED)


def _written_as_in_opset_6(node: NodeProto) -> Iterator[TensorProto]:
    """Rewrite a node of opsets 1 to 5 in place; gives the tensors that it then needs."""
    attributes = {attribute.name: attribute for attribute in node.attribute}
    match node.op_type:
        case "Cast" | "Pad":
            with suppress(AttributeValueError):
                node.CopyFrom(in_new_words(node))
        case "Concat" if "axis" not in attributes:
            node.attribute.add(name="axis", type=AttributeProto.INT, i=1)
        case "Reshape" if "shape" in attributes and len(node.input) == 1 and node.output:
            sizes = list(attributes["shape"].ints)
            name = f"{node.output[0]}:shape"
            node.input.append(name)
            yield TensorProto(name=name, data_type=TensorProto.INT64, dims=[len(sizes)], int64_data=sizes)
