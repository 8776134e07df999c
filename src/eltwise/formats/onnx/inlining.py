"""An ONNX model with the nodes of functions, of branches that are taken and of rounds in place of what holds them."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from types import MappingProxyType

from onnx import GraphProto, ModelProto, NodeProto, helper
from onnx.inliner import inline_local_functions

from eltwise.formats.onnx.nodes import subgraphs
from eltwise.formats.onnx.reader import folder_of, read_model_proto
from eltwise.formats.onnx.rounds import REPEATED, Repeated, count_rounds, joined, renamed, repeated, slices_of
from eltwise.formats.onnx.writer import write_model_proto
from eltwise.ir.graph import Graph

_BRANCHES = {True: "then_branch", False: "else_branch"}


def with_counted_rounds(graph: Graph) -> tuple[Graph, dict[str, str]]:
    """The model in which each Loop and Scan gives out a value for each round, and the names of these outputs."""
    model = write_model_proto(graph)
    counters = count_rounds(model)
    return read_model_proto(model, folder_of(graph), "", reads_weights=False).graph, counters


def with_inlined(
    graph: Graph, branches: Mapping[str, bool], rounds: Mapping[str, int] = MappingProxyType({})
) -> tuple[Graph, tuple[str, ...]]:
    """Inline the model's own functions, a branch of some Ifs, and all rounds of some Loops and Scans.

    Args:
        graph: the model; for rounds of an opset from 13 on.
        branches: which branch is taken, by the first output of the If.
        rounds: how many rounds there are, at least one, by the first output of the Loop or Scan.

    Returns:
        The model, and the values that decide on what was inlined, which it gives out.
    """
    model = write_model_proto(graph)
    if model.functions:
        model = inline_local_functions(model)
    nodes, deciding = list[NodeProto](), list[str]()
    for node in model.graph.node:
        if node.op_type == "If" and node.output and node.output[0] in branches:
            name = _BRANCHES[branches[node.output[0]]]
            nodes += _nodes_of(node, dict(subgraphs(node))[name], model)
            deciding.append(node.input[0])
        elif node.op_type in REPEATED and node.output and node.output[0] in rounds:
            inlined, names = _rounds_of(repeated(node), rounds[node.output[0]], model)
            nodes += inlined
            deciding += names
        else:
            nodes.append(deepcopy(node))
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    produced = {name for node in nodes if node.op_type != "Constant" for name in node.output} - {
        value.name for value in model.graph.output
    }
    deciding = [name for name in dict.fromkeys(deciding) if name in produced]
    model.graph.output.extend(helper.make_empty_tensor_value_info(name) for name in deciding)
    return read_model_proto(model, folder_of(graph), "", reads_weights=False).graph, tuple(deciding)


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
    return [*renamed(body, prefix, names, model), *copies]


def _rounds_of(one: Repeated, count: int, model: ModelProto) -> tuple[list[NodeProto], list[str]]:
    """The nodes of every round, each of which reads the state that the one before left, and what ends the rounds."""
    is_loop = one.node.op_type == "Loop"
    nodes, states, rounds = list[NodeProto](), list(one.states), list[list[str]]()
    deciding = [name for name in one.node.input[:2] if name] if is_loop else []
    for number in range(count):
        parts, cut = slices_of(one, number, count, model)
        values = [*parts, *states] if is_loop else [*states, *parts]
        names = dict(zip((value.name for value in one.body.input), values, strict=True))
        produced = (name for inner in one.body.node for name in inner.output if name)
        start = f"{one.prefix}{number}/"
        names |= {name: start + name for name in (*produced, *(tensor.name for tensor in one.body.initializer))}
        nodes += [*cut, *renamed(one.body, start, names, model)]
        outputs = [names.get(value.name, value.name) for value in one.body.output]
        deciding += outputs[:is_loop]
        states, results = outputs[is_loop : is_loop + len(states)], outputs[is_loop + len(states) :]
        rounds.append(results)
    return [*nodes, *joined(one, states, rounds, model)], deciding
