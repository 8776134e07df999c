"""An ONNX model with the nodes of functions, of branches that are taken and of rounds in place of what holds them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeVar

import numpy as np
from onnx import GraphProto, ModelProto, NodeProto, helper, numpy_helper
from onnx.inliner import inline_local_functions, inline_selected_functions

from eltwise.core.errors import UnsupportedError
from eltwise.core.foreign import reason_of
from eltwise.formats.onnx.header import default_domain
from eltwise.formats.onnx.nodes import nodes_in, shadowing_functions, subgraphs
from eltwise.formats.onnx.reader import path_of, read_model_proto
from eltwise.formats.onnx.schemas import changes_between
from eltwise.formats.onnx.writer import write_model_proto
from eltwise.ir.graph import Graph
from eltwise.ir.scopes import Names

REPEATED = ("Loop", "Scan")
BRANCHES = {True: "then_branch", False: "else_branch"}
"""The branch of an If that is taken, by whether its condition holds."""

OneT = TypeVar("OneT")
OtherT = TypeVar("OtherT")


def with_counted_rounds(graph: Graph) -> tuple[Graph, dict[str, str]]:
    """The model in which each Loop and Scan gives out a value for each round, and the names of these outputs."""
    model = write_model_proto(graph)
    counters = _count_rounds(model, _Free(graph))
    return read_model_proto(model, path_of(graph), reads_weights=False).graph, counters


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
        model = _without_functions(model, graph.origin.opset)
        graph = read_model_proto(model, path_of(graph), reads_weights=False).graph
    free = _Free(graph)
    nodes, deciding = list[NodeProto](), list[str]()
    for node in model.graph.node:
        if node.op_type == "If" and node.output and node.output[0] in branches:
            name = BRANCHES[branches[node.output[0]]]
            nodes += _nodes_of(node, dict(subgraphs(node))[name], model, free)
            deciding.append(node.input[0])
        elif node.op_type in REPEATED and node.output and node.output[0] in rounds:
            inlined, names = _rounds_of(_repeated(node), rounds[node.output[0]], model, free)
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
    return read_model_proto(model, path_of(graph), reads_weights=False).graph, tuple(deciding)


def _without_functions(model: ModelProto, opset: int) -> ModelProto:
    """The model with all calls of its functions inlined, the outermost first, so that each call states its attributes.

    Onnx's inliner loses the defaults of those that a call leaves out, or passes on where it was given none.

    Raises:
        UnsupportedError: where a function imports another opset than the model, and one of its operators differs; and
            where one has the name of an operator, which runtimes call in its place.
    """
    for name in shadowing_functions(model, opset):
        raise UnsupportedError(f"the function {name!r} has the name of an operator of ONNX")
    _align_opsets(model, opset)
    while model.functions:
        functions = {(each.domain, each.name) for each in model.functions}
        inner = {(node.domain, node.op_type) for node in nodes_in(*model.functions)}
        outermost = functions - inner
        _state_defaults(model)
        remaining = [each for each in model.functions if (each.domain, each.name) not in outermost]
        try:
            # Of functions that call each other without an end, the inliner says so.
            inlined = (
                inline_selected_functions(model, sorted(outermost)) if outermost else inline_local_functions(model)
            )
        except RuntimeError as error:
            raise UnsupportedError(f"its functions cannot be inlined: {reason_of(error)}") from None
        if not outermost:
            return inlined
        model = inlined
        del model.functions[:]
        model.functions.extend(remaining)
    return model


def _align_opsets(model: ModelProto, opset: int) -> None:
    """Let functions import the model's opset of ONNX where their operators are the same there."""
    for function in model.functions:
        operators = {node.op_type for node in nodes_in(function) if not default_domain(node.domain)}
        for one in function.opset_import:
            if default_domain(one.domain) or one.version == opset:
                continue
            if changed := sorted(name for name in operators if changes_between(name, one.version, opset)):
                raise UnsupportedError(
                    f"the function {function.name!r} imports another opset, in which {changed[0]} differs",
                    got=str(one.version),
                    allowed=f"{opset}, as the model",
                )
            one.version = opset


def _state_defaults(model: ModelProto) -> None:
    """Let each call in the graph state the attributes that it leaves out."""
    functions = {(default_domain(each.domain), each.name, each.overload): each for each in model.functions}
    for node in nodes_in(model.graph):
        function = functions.get((default_domain(node.domain), node.op_type, node.overload))
        stated = {each.name for each in node.attribute}
        if function is not None:
            node.attribute.extend(each for each in function.attribute_proto if each.name not in stated)


class _Free:
    """The names in a model, which new ones are not: those of values, and those of the nodes of its graph."""

    def __init__(self, graph: Graph) -> None:
        self.values, self.nodes = Names(graph), Names()
        self.nodes.take(node.name for node in graph.nodes)


def _nodes_of(node: NodeProto, body: GraphProto, model: ModelProto, free: _Free) -> list[NodeProto]:
    """The nodes of a branch with free names, whose outputs are those of the If; constants go to the model."""
    prefix = f"{node.name or node.output[0]}/"
    produced, names, copied = _produced(body), dict[str, str](), list[tuple[str, str]]()
    for value, output in _paired(node, body.output, node.output):
        if value.name in produced and value.name not in names:
            names[value.name] = output
        else:
            copied.append((value.name, output))
    names = _free_names(body, prefix, free) | names
    copies = [helper.make_node("Identity", [names.get(name, name)], [output], output) for name, output in copied]
    return [*_renamed(body, prefix, names, model, free), *copies]


def _paired(node: NodeProto, ones: Collection[OneT], others: Collection[OtherT]) -> Iterator[tuple[OneT, OtherT]]:
    """What belongs together of a node, its body and its attributes, in pairs.

    Raises:
        UnsupportedError: where these are not equally many, as in a model that is not valid.
    """
    if len(ones) != len(others):
        problem = f"{node.op_type} {node.output[0]!r} does not fit its body or its attributes"
        raise UnsupportedError(problem, got=str(len(ones)), allowed=str(len(others)))
    return zip(ones, others, strict=True)


def _produced(body: GraphProto) -> dict[str, None]:
    """What the nodes of a graph make, in their order."""
    return dict.fromkeys(name for inner in body.node for name in inner.output if name)


def _free_names(body: GraphProto, prefix: str, free: _Free) -> dict[str, str]:
    """New names of all that a graph makes and holds: two nodes may have one name, and two bodies the same inside."""
    names = (*_produced(body), *(each.name for each in body.initializer))
    return {name: free.values.fresh(prefix + name) for name in names}


def _rounds_of(one: _Repeated, count: int, model: ModelProto, free: _Free) -> tuple[list[NodeProto], list[str]]:
    """The nodes of every round, each of which reads the state that the one before left, and what ends the rounds."""
    is_loop = one.node.op_type == "Loop"
    nodes, states, rounds = list[NodeProto](), list(one.states), list[list[str]]()
    deciding = [name for name in one.node.input[:2] if name] if is_loop else []
    for number in range(count):
        parts, cut = _slices_of(one, number, count, model, free)
        values = [*parts, *states] if is_loop else [*states, *parts]
        names = dict(_paired(one.node, [value.name for value in one.body.input], values))
        start = f"{one.prefix}{number}/"
        names |= _free_names(one.body, start, free)
        nodes += [*cut, *_renamed(one.body, start, names, model, free)]
        outputs = [names.get(value.name, value.name) for value in one.body.output]
        deciding += outputs[:is_loop]
        states, results = outputs[is_loop : is_loop + len(states)], outputs[is_loop + len(states) :]
        rounds.append(results)
    return [*nodes, *_joined(one, states, rounds, model, free)], deciding


def _count_rounds(model: ModelProto, free: _Free) -> dict[str, str]:
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
        name = counters[node.output[0]] = free.values.fresh(f"{node.output[0]}/rounds")
        body.node.append(helper.make_node("Constant", [], [name], value=numpy_helper.from_array(np.array(1.0, "f4"))))
        body.output.append(helper.make_tensor_value_info(name, 1, []))
        for attribute in node.attribute:  # Of each output that the rounds make together.
            if attribute.name in ("scan_output_axes", "scan_output_directions"):
                attribute.ints.append(0)
        node.output.append(name)
        model.graph.output.append(helper.make_tensor_value_info(name, 1, [None]))
    return counters


@dataclass(frozen=True)
class _Repeated:
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


def _repeated(node: NodeProto) -> _Repeated:
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
        pairs = _paired(node, list(_paired(node, names, axes)), directions)
        return tuple((name, axis, bool(way)) for (name, axis), way in pairs)

    sliced = along(inputs[len(states) :], "input")
    return _Repeated(node, body, states, sliced, along(list(node.output[len(states) :]), "output"))


def _slices_of(
    one: _Repeated, number: int, count: int, model: ModelProto, free: _Free
) -> tuple[list[str], list[NodeProto]]:
    """What the body of a round is given beside the state, and the nodes that cut it; constants go to the model."""
    start = f"{one.prefix}{number}/"
    is_loop = one.node.op_type == "Loop"
    second = ("goes_on", np.array(True)) if is_loop else ("last", np.array(count - 1 - number))
    pairs = (("number", np.array(number)), second)
    constants = {free.values.fresh(start + name): array for name, array in pairs}
    model.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in constants.items())
    if is_loop:
        return list(constants), []
    nodes = []
    for position, (name, axis, is_backward) in enumerate(one.sliced):
        index, part = list(constants)[is_backward], free.values.fresh(f"{start}slice{position}")
        nodes.append(helper.make_node("Gather", [name, index], [part], part, axis=axis))
    return [node.output[0] for node in nodes], nodes


def _joined(
    one: _Repeated, states: list[str], rounds: list[list[str]], model: ModelProto, free: _Free
) -> list[NodeProto]:
    """The nodes that give the outputs: the last state, and what all rounds made together."""
    outputs = zip(states, one.node.output, strict=False)
    nodes = [helper.make_node("Identity", [state], [output], output) for state, output in outputs if output]
    for position, (output, axis, is_backward) in enumerate(one.rows):
        if not output:
            continue
        name, parts = free.values.fresh(f"{one.prefix}axis{position}"), list[str]()
        model.graph.initializer.append(numpy_helper.from_array(np.array([axis]), name))
        for number, results in enumerate(rounds):
            parts.append(free.values.fresh(f"{one.prefix}{number}/row{position}"))
            nodes.append(helper.make_node("Unsqueeze", [results[position], name], [parts[-1]], parts[-1]))
        parts = parts[::-1] if is_backward else parts
        nodes.append(helper.make_node("Concat", parts, [output], output, axis=axis))
    return nodes


def _renamed(
    body: GraphProto, prefix: str, names: Mapping[str, str], model: ModelProto, free: _Free
) -> list[NodeProto]:
    """Copies of the nodes of a body with other names, whose constants go to the model."""
    for tensor in body.initializer:
        model.graph.initializer.append(deepcopy(tensor))
        model.graph.initializer[-1].name = names[tensor.name]
    inlined = [deepcopy(inner) for inner in body.node]
    for inner in inlined:
        inner.name = free.nodes.fresh(prefix + inner.name) if inner.name else ""
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
