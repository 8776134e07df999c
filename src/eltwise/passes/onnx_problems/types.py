"""Types and shapes that contradict each other: what operators do not take, and what onnx's strict inference refuses.

Declared shapes of results are not asked, since runtimes go by those that they infer; declared types are, as there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from onnx import GraphProto, ModelProto, NodeProto, TensorProto, TypeProto, ValueInfoProto
from onnx.shape_inference import InferenceError, infer_shapes

from eltwise.core.broadcasting import Rule, broadcast
from eltwise.core.errors import ElementTypeError, EltwiseError, GraphError, ShapeError
from eltwise.core.shapes import Shape
from eltwise.formats.onnx.header import default_domain
from eltwise.formats.onnx.nodes import label_of
from eltwise.formats.onnx.tensors import read_element_type
from eltwise.passes.onnx_problems.wiring import constants_of, given_to, ordered
from eltwise.passes.onnx_versions.inferring import FIRST_INFERRED, without_weights
from eltwise.passes.onnx_versions.names import subgraphs
from eltwise.passes.onnx_versions.schemas import FIRST_NUMPY, LEGACY_OPERATORS
from eltwise.passes.onnx_versions.scopes import Scope
from eltwise.passes.onnx_versions.types_allowed import check_operands
from eltwise.passes.onnx_versions.upward import read_rule

_LINE = re.compile(r"\(op_type:[^,()]*, node name: (\d+)\): ")
_FOLLOWS = ("expected to have type", "Inference error(s)")
"""What inference says of an operand whose type it could not infer, since a node before it has no inference; of a node
whose graph holds the one that is wrong; and of operators that it takes for functions, whose defaults it leaves out."""


def check_node_types(node: NodeProto, opset: int, scope: Scope) -> None:
    """Refuse a node of ONNX's own domain whose operands have types that its version does not take.

    The shapes of the eleven operators with legacy broadcast are judged too, which onnx's inference does not do.

    Raises:
        EltwiseError: naming the operands.
    """
    check_operands(node, opset, scope)
    if node.op_type in LEGACY_OPERATORS and opset < FIRST_NUMPY:
        shapes = _shapes(node, scope)
        if shapes and not any(attribute.ref_attr_name for attribute in node.attribute):
            broadcast(read_rule(node), *shapes)


def _shapes(node: NodeProto, scope: Scope) -> tuple[Shape, Shape] | None:
    try:
        return scope.shape(node.input[0]), scope.shape(node.input[1])
    except EltwiseError:
        return None  # A declared size below 0; runtimes take it for one that is not known.


def input_problems(graph: GraphProto) -> Iterator[EltwiseError]:
    """Find inputs of the model without a type, and initializers that are not what the input of their name is."""
    constants = {tensor.name: tensor for tensor in graph.initializer}
    for value in graph.input:
        try:
            _check_input(value, constants.get(value.name))
        except EltwiseError as error:
            yield error.located(operand=f"input {value.name!r}")


def _check_input(value: ValueInfoProto, tensor: TensorProto | None) -> None:
    if value.type.WhichOneof("value") is None:
        raise ElementTypeError("the input has no type")
    if not value.type.HasField("tensor_type"):
        return
    declared = value.type.tensor_type
    if declared.elem_type not in TensorProto.DataType.values()[1:]:
        read_element_type(declared.elem_type)
    if tensor is None or tensor.data_type not in TensorProto.DataType.values():
        return  # An unknown type is a fault of the tensor itself.
    if declared.elem_type != tensor.data_type:
        got = " and ".join(map(TensorProto.DataType.Name, (tensor.data_type, declared.elem_type)))
        raise ElementTypeError("the initializer has another type than the input of its name", got=got)
    sizes = [size.dim_value for size in declared.shape.dim]  # 0 where it is a symbol.
    is_said = declared.HasField("shape")
    if is_said and (
        len(sizes) != len(tensor.dims) or any(0 < size != given for size, given in zip(sizes, tensor.dims, strict=True))
    ):
        got = f"({','.join(map(str, tensor.dims))}) and ({','.join(map(str, sizes))})"
        raise ShapeError("the initializer has another shape than the input of its name", got=got)


def inference_problems(model: ModelProto, opset: int) -> dict[int, tuple[NodeProto, str]]:
    """Ask onnx's strict inference.

    Returns:
        The nodes that it refuses and its words, by the numbers that ``number_nodes`` gives; nothing below opset 6,
        whose operators have no inference.
    """
    if opset < FIRST_INFERRED:
        return {}
    copy = without_weights(model, opset)
    imported = {default_domain(entry.domain) for entry in copy.opset_import}
    nodes = list(number_nodes(model.graph))
    for number, twin in enumerate(number_nodes(copy.graph)):
        twin.name = str(number)
        if default_domain(twin.domain) not in imported:
            imported.add(twin.domain)
            copy.opset_import.add(domain=twin.domain, version=1)
    _prepare(copy.graph, is_outermost=True)
    try:
        infer_shapes(copy, strict_mode=True)
    except (InferenceError, ValueError, RuntimeError) as error:
        found = _LINE.split(str(error))
        words = dict(zip(map(int, found[1::2]), found[2::2], strict=True))
        return {
            number: (nodes[number], text)
            for number, text in words.items()
            if not any(part in text for part in _FOLLOWS)
        }
    return {}


def number_nodes(graph: GraphProto) -> Iterator[NodeProto]:
    """Give the nodes of a graph and those in its nodes, always in the same order."""
    for node in graph.node:
        yield node
        for _name, inner in subgraphs(node):
            yield from number_nodes(inner)


def _prepare(graph: GraphProto, is_outermost: bool) -> None:
    """Order the nodes, and leave out the shapes that a runtime does not go by."""
    order = ordered(graph.node, given_to(graph)).order
    if order != sorted(order):
        nodes = [graph.node[number] for number in order]
        graph.ClearField("node")
        graph.node.extend(nodes)
    constants = {tensor.name for tensor in constants_of(graph)}
    kept = [value for value in graph.input if value.name not in constants]
    graph.ClearField("input")
    graph.input.extend(kept)
    for value in (*graph.output, *graph.value_info, *(() if is_outermost else graph.input)):
        _forget_shape(value.type)
    for node in graph.node:
        for _name, inner in subgraphs(node):
            _prepare(inner, is_outermost=False)


def _forget_shape(found: TypeProto) -> None:
    match found.WhichOneof("value"):
        case "tensor_type":
            found.tensor_type.ClearField("shape")
        case "sparse_tensor_type":
            found.sparse_tensor_type.ClearField("shape")
        case "sequence_type":
            _forget_shape(found.sequence_type.elem_type)
        case "optional_type":
            _forget_shape(found.optional_type.elem_type)
        case "map_type":
            _forget_shape(found.map_type.value_type)


def in_family(node: NodeProto, words: str, opset: int, scope: Scope) -> EltwiseError:
    """Make an error of what inference says; that of the eleven operators names the sizes."""
    if node.op_type in LEGACY_OPERATORS and opset >= FIRST_NUMPY and "dimension" in words:
        shapes = _shapes(node, scope)
        try:
            if shapes:
                broadcast(Rule("numpy"), *shapes)
        except ShapeError as error:
            return error.located(node=label_of(node))
    kind = ShapeError if words.startswith("[ShapeInferenceError]") else GraphError
    said = " ".join(words.partition("] ")[2].split()) or words
    return kind("onnx's inference refuses it", got=repr(said[:300]))
