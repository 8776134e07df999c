"""An ONNX model with the nodes of functions, of branches that are taken and of rounds in place of what holds them."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from types import MappingProxyType

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, helper, numpy_helper
from onnx.inliner import inline_local_functions

from eltwise.formats.onnx.nodes import subgraphs
from eltwise.formats.onnx.reader import folder_of, read_model_proto
from eltwise.formats.onnx.writer import write_model_proto
from eltwise.ir.graph import Graph

_BRANCHES = {True: "then_branch", False: "else_branch"}


def with_inlined(graph: Graph, branches: Mapping[str, bool], loops: Mapping[str, int] = MappingProxyType({})) -> Graph:
    """Inline the model's own functions, a branch of some Ifs, and all rounds of some Loops, which need opset 13.

    Args:
        graph: the model.
        branches: which branch is taken, by the first output of the If.
        loops: how many rounds there are, at least one, by the first output of the Loop.
    """
    model = write_model_proto(graph)
    if model.functions:
        model = inline_local_functions(model)
    nodes = list[NodeProto]()
    for node in model.graph.node:
        if node.op_type == "If" and node.output and node.output[0] in branches:
            name = _BRANCHES[branches[node.output[0]]]
            nodes += _nodes_of(node, dict(subgraphs(node))[name], model)
        elif node.op_type == "Loop" and node.output[0] in loops:
            nodes += _rounds_of(node, dict(subgraphs(node))["body"], loops[node.output[0]], model)
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
    return [*_renamed(body, prefix, names, model), *copies]


def _rounds_of(node: NodeProto, body: GraphProto, count: int, model: ModelProto) -> list[NodeProto]:
    """The nodes of every round of a Loop, each of which reads the state that the one before left."""
    nodes, prefix = list[NodeProto](), f"{node.name or node.output[0]}/"
    states, scanned = list(node.input[2:]), [list[str]() for _output in body.output[len(node.input) - 1 :]]
    for number in range(count):
        start = f"{prefix}{number}/"
        values = {f"{start}number": np.array(number), f"{start}goes_on": np.array(True), f"{start}axis": np.array([0])}
        model.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in values.items())
        names = dict(zip((value.name for value in body.input), [*list(values)[:2], *states], strict=True))
        produced = (name for inner in body.node for name in inner.output if name)
        names |= {name: start + name for name in (*produced, *(tensor.name for tensor in body.initializer))}
        nodes += _renamed(body, start, names, model)
        outputs = [names.get(value.name, value.name) for value in body.output]
        states, rows = outputs[1 : 1 + len(states)], outputs[1 + len(states) :]
        for row, collected in zip(rows, scanned, strict=True):
            collected.append(f"{start}row{len(nodes)}")
            nodes.append(helper.make_node("Unsqueeze", [row, f"{start}axis"], collected[-1:], collected[-1]))
    finals = [*([state] for state in states), *scanned]
    for number, (inputs, output) in enumerate(zip(finals, node.output, strict=False)):
        if output and number < len(states):
            nodes.append(helper.make_node("Identity", inputs, [output], output))
        elif output:
            nodes.append(helper.make_node("Concat", inputs, [output], output, axis=0))
    return nodes


def _renamed(body: GraphProto, prefix: str, names: Mapping[str, str], model: ModelProto) -> list[NodeProto]:
    """Copies of the nodes of a body with other names, whose constants go to the model."""
    for tensor in body.initializer:
        model.graph.initializer.append(deepcopy(tensor))
        model.graph.initializer[-1].name = names[tensor.name]
    inlined = [deepcopy(inner) for inner in body.node]
    for inner in inlined:
        inner.name = prefix + inner.name if inner.name else ""
        _rename(inner, names)
    return inlined


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
