"""A model whose functions and branches are opened, so that their nodes are traced one by one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from eltwise.core.errors import EltwiseError
from eltwise.ir.graph import Graph
from eltwise.runtimes import Host
from eltwise.tracing.model import read_model
from eltwise.tracing.runner import Runner

_MOST_ROUNDS = 8
"""So deep branches are opened in others."""


@dataclass(frozen=True)
class Opened:
    """A model that is traced node by node.

    Attributes:
        graph: the model with the nodes of functions and branches in their places; itself if it has none.
        branches: how many Ifs were opened.
    """

    graph: Graph
    branches: int = 0


def opened(graph: Graph, host: Host, feeds: Mapping[str, np.ndarray]) -> Opened:
    """Open the functions of an ONNX model, and of each If the branch that the tested runtime takes on some inputs.

    What cannot be opened stays as it is, and is compared as a whole.
    """
    has_branches = any(node.schema.name == "If" for node in graph.nodes)
    if graph.origin.domain != "ai.onnx" or not (graph.functions or has_branches):
        return Opened(graph)
    from eltwise.formats.onnx.inlining import with_inlined

    count = 0
    try:
        graph = with_inlined(graph, {})
        for _round in range(_MOST_ROUNDS):
            chosen = _taken(Runner("", host, read_model(graph, feeds)), feeds)
            if not chosen:
                break
            graph, count = with_inlined(graph, chosen), count + len(chosen)
    except EltwiseError:
        pass
    return Opened(graph, count)


def _taken(runner: Runner, feeds: Mapping[str, np.ndarray]) -> dict[str, bool]:
    """The branches that are taken, by the first output of the If; those whose condition cannot be had are left out."""
    model = runner.model
    conditions = {node.outputs[0]: node.inputs[0] for node in model.nodes if node.schema.name == "If" and node.graphs}
    values = dict(feeds)
    names = [name for name in dict.fromkeys(conditions.values()) if name in model.producer]
    if names:
        outcome = runner.run(model.ancestors((model.producer[name] for name in names), ()), feeds, names)
        values |= outcome.values
    arrays = {output: model.array_of(name, values) for output, name in conditions.items()}
    return {output: bool(array.reshape(-1)[0]) for output, array in arrays.items() if array is not None and array.size}
