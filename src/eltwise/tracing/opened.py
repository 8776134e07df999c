"""A model whose functions, branches and loops are opened, so that their nodes are traced one by one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from eltwise.core.errors import EltwiseError
from eltwise.ir.graph import Graph, Node
from eltwise.runtimes import Host
from eltwise.tracing.model import TracedModel, read_model
from eltwise.tracing.runner import Runner

_MOST_ROUNDS = 8
"""So deep branches are opened in others."""

_MOST_TURNS, _FIRST_WITH_AXES = 16, 13
"""A Loop of more rounds is compared as a whole, and one before the opset in which axes are operands."""


@dataclass(frozen=True)
class Opened:
    """A model that is traced node by node.

    Attributes:
        graph: the model with the nodes of functions, branches and loops in their places; itself if it has none.
        branches: how many Ifs were opened.
        loops: how many Loops were.
    """

    graph: Graph
    branches: int = 0
    loops: int = 0


def opened(graph: Graph, host: Host, feeds: Mapping[str, np.ndarray]) -> Opened:
    """Open the functions of an ONNX model, of each If the branch that the tested runtime takes, and rounds of Loops.

    What cannot be opened stays as it is, and is compared as a whole.
    """
    has_branches = any(node.schema.name in ("If", "Loop") for node in graph.nodes)
    if graph.origin.domain != "ai.onnx" or not (graph.functions or has_branches):
        return Opened(graph)
    from eltwise.formats.onnx.inlining import with_inlined

    counts = [0, 0]
    try:
        graph = with_inlined(graph, {})
        for _round in range(_MOST_ROUNDS):
            runner = Runner("", host, read_model(graph, feeds))
            nodes = runner.model.nodes
            branches = _values_of(runner, {node.outputs[0]: node.inputs[0] for node in nodes if _is(node, "If")}, feeds)
            counted = {
                node.outputs[0]: node.inputs[0]
                for node in nodes
                if _is(node, "Loop") and _is_counted(runner.model, node)
            }
            rounds = _values_of(runner, counted, feeds) if graph.origin.opset >= _FIRST_WITH_AXES else {}
            loops = {name: number for name, number in rounds.items() if 0 < number <= _MOST_TURNS}
            if not branches and not loops:
                break
            graph = with_inlined(graph, {name: bool(one) for name, one in branches.items()}, loops)
            counts = [counts[0] + len(branches), counts[1] + len(loops)]
    except EltwiseError:
        pass
    return Opened(graph, *counts)


def _is(node: Node, operator: str) -> bool:
    return node.schema.name == operator and bool(node.graphs) and bool(node.outputs[0])


def _is_counted(model: TracedModel, node: Node) -> bool:
    """Whether nothing but its number of rounds ends a Loop: its condition is true, and given on as it is."""
    body, condition = dict(node.graphs)["body"], node.inputs[1] if len(node.inputs) > 1 else ""
    start = model.array_of(condition, {}) if condition else np.array(True)
    copies = {one.outputs[0]: one.inputs[0] for one in body.nodes if one.schema.name == "Identity"}
    last = body.outputs[0].value
    is_unchanged = copies.get(last, last) == body.inputs[1].value
    return bool(node.inputs[0]) and start is not None and bool(start.all()) and is_unchanged


def _values_of(runner: Runner, conditions: Mapping[str, str], feeds: Mapping[str, np.ndarray]) -> dict[str, int]:
    """The numbers that values have on some inputs, by the names of what reads them; what cannot be had is left out."""
    model, values = runner.model, dict(feeds)
    names = [name for name in dict.fromkeys(conditions.values()) if name in model.producer]
    if names:
        outcome = runner.run(model.ancestors((model.producer[name] for name in names), ()), feeds, names)
        values |= outcome.values
    arrays = {output: model.array_of(name, values) for output, name in conditions.items()}
    return {output: int(array.reshape(-1)[0]) for output, array in arrays.items() if array is not None and array.size}
