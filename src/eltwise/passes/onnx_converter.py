"""One node in another opset: as it is where it means the same, else by onnx's version converter.

The converter is given a model that holds nothing else, so it never sees the rest: what it would lose or refuse there
stays as it was, weights are never handed to it, and what it cannot do is said of the one node.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from onnx import GraphProto, ModelProto, NodeProto, helper, version_converter
from onnx.checker import ValidationError, check_node
from onnx.onnx_cpp2py_export.checker import CheckerContext

from eltwise.core.errors import UnsupportedError, shown
from eltwise.formats.onnx.inference import HELD, bare_node, holds_more, small_tensor
from eltwise.formats.onnx.nodes import same_value, write_node
from eltwise.formats.onnx.schemas import attribute_value, in_opset
from eltwise.formats.onnx.tensors import keep_tensor, stored_tensor
from eltwise.formats.onnx.types import declare
from eltwise.formats.onnx.writer import write_graph
from eltwise.ir.graph import Node
from eltwise.ir.scopes import Scope
from eltwise.passes.builder import GraphBuilder
from eltwise.passes.opset_changes import FIRST_NEGATIVE, count_axes, stays, steps_of, without_unneeded

ReadNode = Callable[[NodeProto, int], Node]
"""Reads a node as of an opset."""


def new_node(
    read: ReadNode, opset: int, operator: str, inputs: Sequence[str], outputs: Sequence[str], /, **attributes: Any
) -> Node:
    """A node of an opset that the source does not have."""
    return read(helper.make_node(operator, inputs, outputs, **attributes), opset)


def convert_node(builder: GraphBuilder, original: Node, read: ReadNode) -> tuple[list[Node], str]:
    """What a node becomes in the target's opset, and why; new constants are added to the graph that is built.

    Raises:
        EltwiseError: where it cannot be converted.
    """
    source, target = builder.source.origin.opset, builder.target.opset
    way = 1 if source < target else -1
    node, reasons, first = original, dict[str, None](), len(builder.nodes)
    for before, after in ((opset, opset + way) for opset in range(source, target, way)):
        if before == FIRST_NEGATIVE > after and (counted := count_axes(node, before, builder.scope)) is not node:
            node = counted
            reasons[f"its axes are counted from the start, as before opset {FIRST_NEGATIVE}"] = None
        if (shorter := without_unneeded(node, before, after, builder.scope)) is not node:
            node = shorter
            reasons[f"without attributes that change nothing here, which opset {after} does not know"] = None
        if stays(node, before, after, builder.scope):
            continue
        reasons["by onnx's converter"] = None
        nodes = _by_converter(builder, node, before, after, read)
        if len(nodes) > 1 and after != target:  # Only onnx's converter can go on with all of them.
            for later in range(after, target, way):
                stays(node, later, later + way, builder.scope)
            del builder.nodes[first:]
            nodes = _by_converter(builder, node, before, target, read)
        for name, text in (pair for step in steps_of(node.schema.name, before, after) for pair in step.writes):
            if attribute_value(nodes[-1], name) is None:
                nodes[-1] = in_opset(nodes[-1], after, attributes={name: text})
        if len(nodes) > 1:
            return nodes, "; ".join(reasons)
        node = nodes[0]
    return [node], "; ".join(reasons)


def _by_converter(builder: GraphBuilder, original: Node, source: int, opset: int, read: ReadNode) -> list[Node]:
    """Convert a node by onnx's converter.

    Raises:
        UnsupportedError: with the converter's own words where it cannot.
    """
    node = write_node(original, write_graph=write_graph)
    if any(attribute.ref_attr_name for attribute in node.attribute):
        raise UnsupportedError("onnx's converter does not take a node that reads a function's attributes")
    model, named = _model_of(node, source, builder.scope)
    try:
        converted = ModelProto.FromString(_converted(model.SerializeToString(), opset)).graph
    except (ValidationError, version_converter.ConvertError, RuntimeError, ValueError, TypeError) as error:
        message = " ".join(str(error).split()).rpartition("failed: ")[2]
        raise UnsupportedError("onnx's converter cannot convert it", got=shown(message, 300)) from None
    tensors = [(tensor.name, tensor.name, tensor) for tensor in converted.initializer]
    tensors += [(one.output[0], "constant", one.attribute[0].t) for one in converted.node if one.op_type == "Constant"]
    for name, role, tensor in tensors:
        if name not in named:
            named[name] = builder.constant(f"{node.output[0]}_{role}", stored_tensor(tensor, operand=role))
            tensor.ClearField("name")
    return [read(proto, opset) for proto in _with_names(node, converted, named, builder)]


@lru_cache(maxsize=1024)
def _converted(data: bytes, opset: int) -> bytes:
    """Convert a model, checked before and after; the same node often comes again, and each time takes milliseconds."""
    model = ModelProto.FromString(data)
    _check_nodes(model)
    converted = version_converter.convert_version(model, opset)
    _check_nodes(converted)
    result: bytes = converted.SerializeToString()
    return result


def _check_nodes(model: ModelProto) -> None:
    """Let onnx's checker see the nodes; not the values, whose types need not be known."""
    context = CheckerContext()
    context.ir_version = model.ir_version
    context.opset_imports = {entry.domain: entry.version for entry in model.opset_import}
    for node in model.graph.node:
        check_node(node, context)


def _model_of(node: NodeProto, opset: int, scope: Scope) -> tuple[ModelProto, dict[str, str]]:
    """Make a model of one node, whose values are only numbered; gives the numbers' own names too."""
    numbered = {"": ""}
    for name in (*node.input, *node.output):
        numbered.setdefault(name, f"value_{len(numbered)}")
    model = ModelProto(ir_version=8)
    model.opset_import.add(domain="", version=opset)
    model.opset_import.add(domain=HELD, version=1)
    graph = model.graph
    graph.name = "one_node"
    twin = bare_node(node)
    twin.name = ""
    twin.input[:] = [numbered[name] for name in node.input]
    twin.output[:] = [numbered[name] for name in node.output]
    graph.node.append(twin)
    for name in dict.fromkeys(filter(None, node.input)):
        tensor = scope.constant(name)
        if tensor is not None and (small := small_tensor(tensor)) is not None:
            keep_tensor(graph.initializer.add(), numbered[name], small)
        else:
            declare(graph.input.add(name=numbered[name]), scope.type_of(name))
    for name in filter(None, node.output):
        declare(graph.output.add(name=numbered[name]), scope.type_of(name))
    return model, {number: name for name, number in numbered.items()}


def _with_names(node: NodeProto, graph: GraphProto, named: dict[str, str], builder: GraphBuilder) -> list[NodeProto]:
    """Take the nodes of the converted graph, with new names for new values, and with all that was not to change."""
    nodes = [proto for proto in graph.node if proto.op_type != "Constant" or proto.output[0] == "value_1"]
    for proto in nodes:
        for name in proto.output:
            if name not in named:
                named[name] = builder.names.fresh(f"{node.output[0]}_{proto.op_type.lower()}")
        proto.input[:] = [named[name] for name in proto.input]
        proto.output[:] = [named[name] for name in proto.output]
        proto.ClearField("name")
    same = [proto for proto in nodes if proto.op_type == node.op_type] or nodes[-1:]
    if len(same) == 1:
        _keep_what_was_said(node, same[0])
    return nodes


def _keep_what_was_said(node: NodeProto, converted: NodeProto) -> None:
    """Give the node that stands for another one everything that the converter did not mean to change."""
    merged = NodeProto()
    merged.CopyFrom(node)
    merged.op_type = converted.op_type
    merged.input[:] = converted.input
    merged.output[:] = converted.output
    del merged.attribute[:]
    before = {attribute.name: attribute for attribute in node.attribute}
    after = {attribute.name: attribute for attribute in converted.attribute}
    for name in sorted(after, key=lambda name: list(before).index(name) if name in before else len(before)):
        old = before.get(name)
        is_kept = old is not None and (holds_more(old) or same_value(old, after[name]))
        merged.attribute.append(old if is_kept and old is not None else after[name])
    converted.CopyFrom(merged)
