"""An ONNX model with the nodes of functions, and of branches that are taken, in place of what holds them."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy

from onnx import GraphProto, ModelProto, NodeProto, helper
from onnx.inliner import inline_local_functions

from eltwise.formats.onnx.nodes import subgraphs
from eltwise.formats.onnx.reader import folder_of, read_model_proto
from eltwise.formats.onnx.writer import write_model_proto
from eltwise.ir.graph import Graph

_BRANCHES = {True: "then_branch", False: "else_branch"}


def with_inlined(graph: Graph, branches: Mapping[str, bool]) -> Graph:
    """Inline the model's own functions, and a branch of some Ifs.

    Args:
        graph: the model.
        branches: which branch is taken, by the first output of the If.
    """
    model = write_model_proto(graph)
    if model.functions:
        model = inline_local_functions(model)
    nodes = list[NodeProto]()
    for node in model.graph.node:
        if node.op_type == "If" and node.output and node.output[0] in branches:
            name = _BRANCHES[branches[node.output[0]]]
            nodes += _nodes_of(node, dict(subgraphs(node))[name], model)
        else:
            nodes.append(deepcopy(node))
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    return read_model_proto(model, folder_of(graph), "", reads_weights=False).graph


def _nodes_of(node: NodeProto, body: GraphProto, model: ModelProto) -> list[NodeProto]:
    """The nodes of a branch with names of their own, whose outputs are those of the If; constants go to the model."""
    prefix = f"{node.name or node.output[0]}/"
    produced = {name for inner in body.node for name in inner.output if name}
    constants = [*body.initializer]
    names = {name: prefix + name for name in (*produced, *(tensor.name for tensor in constants))}
    copies = list[NodeProto]()
    for value, output in zip(body.output, node.output, strict=True):
        if value.name in produced and names[value.name] == prefix + value.name:
            names[value.name] = output
        else:
            copies.append(helper.make_node("Identity", [names.get(value.name, value.name)], [output], output))
    for tensor in constants:
        tensor = deepcopy(tensor)  # noqa: PLW2901 - the copy is the model's
        tensor.name = names[tensor.name]
        model.graph.initializer.append(tensor)
    inlined = [deepcopy(inner) for inner in body.node]
    for inner in inlined:
        inner.name = prefix + inner.name if inner.name else ""
        _rename(inner, names)
    return [*inlined, *copies]


def _rename(node: NodeProto, names: Mapping[str, str]) -> None:
    """Rename what a node reads and makes, and what the graphs in it read."""
    node.input[:] = [names.get(name, name) for name in node.input]
    node.output[:] = [names.get(name, name) for name in node.output]
    for _name, graph in subgraphs(node):
        inner = {value.name for value in graph.input} | {name for one in graph.node for name in one.output}
        outer = {name: new for name, new in names.items() if name not in inner}
        for one in graph.node:
            _rename(one, outer)
        for value in graph.output:
            value.name = outer.get(value.name, value.name)
