"""The rounds of Loop and Scan: how many a run has, and their nodes, one round after another."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, helper, numpy_helper

from eltwise.formats.onnx.nodes import subgraphs

REPEATED = ("Loop", "Scan")


def count_rounds(model: ModelProto) -> dict[str, str]:
    """Let each Loop and Scan of a graph give out a value for each round.

    Returns:
        The names of these new outputs, of which each has as many elements as there are rounds, by the first output.
    """
    counters = dict[str, str]()
    for node in model.graph.node:
        if node.op_type not in REPEATED or node.domain or not node.output or not node.output[0]:
            continue
        body = dict(subgraphs(node))["body"]
        if len(node.output) != len(body.output) - (node.op_type == "Loop"):
            continue
        name = counters[node.output[0]] = f"{node.output[0]}/rounds"
        body.node.append(helper.make_node("Constant", [], [name], value=numpy_helper.from_array(np.array(1.0, "f4"))))
        body.output.append(helper.make_tensor_value_info(name, 1, []))
        for attribute in node.attribute:  # Of each output that the rounds make together.
            if attribute.name in ("scan_output_axes", "scan_output_directions"):
                attribute.ints.append(0)
        node.output.append(name)
        model.graph.output.append(helper.make_tensor_value_info(name, 1, [None]))
    return counters


@dataclass(frozen=True)
class Repeated:
    """A Loop or a Scan with what its body reads and makes.

    Attributes:
        node: the node.
        body: what is computed in each round.
        states: what the first round reads of the state.
        sliced: what each round reads a part of, with the axis, and whether backwards.
        rows: for each output that the rounds make together its name, the axis, and whether backwards.
    """

    node: NodeProto
    body: GraphProto
    states: tuple[str, ...]
    sliced: tuple[tuple[str, int, bool], ...]
    rows: tuple[tuple[str, int, bool], ...]

    @property
    def prefix(self) -> str:
        """How the names of what it makes begin."""
        return f"{self.node.name or self.node.output[0]}/"


def repeated(node: NodeProto) -> Repeated:
    """Read what a Loop or a Scan repeats; of Scan from version 9 on."""
    body, values = dict(subgraphs(node))["body"], {each.name: each for each in node.attribute}
    count = values["num_scan_inputs"].i if node.op_type == "Scan" else 0
    inputs = list(node.input) if node.op_type == "Scan" else list(node.input[2:])
    states = tuple(inputs[: len(inputs) - count])

    def along(names: list[str], kind: str) -> tuple[tuple[str, int, bool], ...]:
        axes, directions = (
            list(values[f"scan_{kind}_{what}"].ints) if f"scan_{kind}_{what}" in values else [0] * len(names)
            for what in ("axes", "directions")
        )
        return tuple((name, axis, bool(way)) for name, axis, way in zip(names, axes, directions, strict=True))

    sliced = along(inputs[len(states) :], "input")
    return Repeated(node, body, states, sliced, along(list(node.output[len(states) :]), "output"))


def slices_of(one: Repeated, number: int, count: int, model: ModelProto) -> tuple[list[str], list[NodeProto]]:
    """What the body of a round is given beside the state, and the nodes that cut it; constants go to the model."""
    start = f"{one.prefix}{number}/"
    if one.node.op_type == "Loop":
        constants = {f"{start}number": np.array(number), f"{start}goes_on": np.array(True)}
    else:
        constants = {f"{start}number": np.array(number), f"{start}last": np.array(count - 1 - number)}
    model.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in constants.items())
    if one.node.op_type == "Loop":
        return list(constants), []
    nodes = []
    for position, (name, axis, is_backward) in enumerate(one.sliced):
        index, part = list(constants)[is_backward], f"{start}slice{position}"
        nodes.append(helper.make_node("Gather", [name, index], [part], part, axis=axis))
    return [node.output[0] for node in nodes], nodes


def joined(one: Repeated, states: list[str], rounds: list[list[str]], model: ModelProto) -> list[NodeProto]:
    """The nodes that give the outputs: the last state, and what all rounds made together.

    Args:
        one: the node.
        states: the state that the last round left.
        rounds: what each round made beside it.
        model: where constants go to.
    """
    outputs = zip(states, one.node.output, strict=False)
    nodes = [helper.make_node("Identity", [state], [output], output) for state, output in outputs if output]
    for position, (output, axis, is_backward) in enumerate(one.rows):
        if not output:
            continue
        name, parts = f"{one.prefix}axis{position}", list[str]()
        model.graph.initializer.append(numpy_helper.from_array(np.array([axis]), name))
        for number, results in enumerate(rounds):
            parts.append(f"{one.prefix}{number}/row{position}")
            nodes.append(helper.make_node("Unsqueeze", [results[position], name], [parts[-1]], parts[-1]))
        parts = parts[::-1] if is_backward else parts
        nodes.append(helper.make_node("Concat", parts, [output], output, axis=axis))
    return nodes


def renamed(body: GraphProto, prefix: str, names: Mapping[str, str], model: ModelProto) -> list[NodeProto]:
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
