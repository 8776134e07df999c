"""Chosen nodes of an IR whose B lies somewhere in A, written so that its ends are aligned: sizes of 1 behind B."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from eltwise.core.dtypes import INT64
from eltwise.core.errors import EltwiseError, raise_all
from eltwise.ir.graph import Graph, Node, Tensor
from eltwise.ir.infer_graph import Inference, infer_graph
from eltwise.ir.verify import structure_problems
from eltwise.ops import registry
from eltwise.passes.alignment import Alignment, align
from eltwise.passes.building import described
from eltwise.passes.graph_places import graph_places
from eltwise.passes.places import Chosen
from eltwise.passes.report import Change, Report


def align_nodes(graph: Graph, chosen: Chosen) -> tuple[Graph, Report]:
    """Write chosen nodes that broadcast by ``pdpd`` so that they broadcast by ``numpy``, with the same bits.

    Args:
        graph: an IR's graph without problems.
        chosen: tells of a node whether it is meant; those of other rules are not.

    Returns:
        The new graph, the same one where no node was meant; and what was changed and assumed.

    Raises:
        EltwiseError: naming each node that was meant and whose ranks are not known.
    """
    inference = infer_graph(graph)
    raise_all([*structure_problems(graph), *inference.problems])
    places = dict(graph_places(graph, inference.types))
    meant = {number for number, place in places.items() if place.rule == "pdpd" and chosen(place)}
    stamp = described(graph.origin)
    if not meant:
        return graph, Report(stamp, stamp, unchanged=True)
    work = _Work(graph, inference)
    for number, node in enumerate(graph.nodes):
        if number in meant:
            work.align(node)
        else:
            work.nodes.append(node)
    raise_all(work.problems)
    made = replace(graph, nodes=tuple(work.nodes), constants=(*graph.constants, *work.constants.items()))
    raise_all([*structure_problems(made), *infer_graph(made).problems])
    return made, Report(stamp, stamp, tuple(work.changes), assumptions=tuple(work.assumptions))


class _Work:
    """The new nodes and constants, and what is to be said of them."""

    def __init__(self, graph: Graph, inference: Inference) -> None:
        self.nodes: list[Node] = []
        self.constants: dict[str, Tensor] = {}
        self.changes: list[Change] = []
        self.assumptions: list[str] = []
        self.problems: list[EltwiseError] = []
        self._graph = graph
        self._types = inference.types
        self._taken = {value for node in graph.nodes for value in (*node.inputs, *node.outputs)} | set(inference.types)
        self._made: dict[tuple[str, int], str] = {}

    def align(self, node: Node) -> None:
        a, b = (self._types[value].shape for value in node.inputs)
        place = f"{node.schema.versioned_name} node {node.label!r}"
        try:
            alignment = align(node.operation.rule, a, b, "numpy")
        except EltwiseError as error:
            self.problems.append(error.located(operator=node.schema.versioned_name, node=node.label))
            return
        before = len(self.nodes)
        operand = self._aligned(node.inputs[1], alignment)
        self.nodes.append(
            replace(node, operation=node.schema.bind({"auto_broadcast": "numpy"}), inputs=(node.inputs[0], operand))
        )
        after = tuple(made.schema.versioned_name for made in self.nodes[before:])
        reason = alignment.reason or "its ends are aligned already, as auto_broadcast='numpy' has it"
        self.changes.append(Change(node.label, node.schema.versioned_name, after, reason))
        self.assumptions += [f"{place}: {assumption}" for assumption in alignment.assumptions]

    def _aligned(self, value: str, alignment: Alignment) -> str:
        """B with its sizes of 1: a constant is reshaped, others get a node; once for all nodes that need the same."""
        trailing = alignment.trailing
        if not trailing:
            return value
        if (value, trailing) not in self._made:
            tensor = self._graph.constant.get(value)
            if tensor is not None:
                array = tensor.array.reshape(tensor.array.shape + (1,) * trailing)
                self._made[value, trailing] = self._constant(f"{value}/aligned", Tensor(array, tensor.element_type))
            else:
                self._made[value, trailing] = self._unsqueezed(value, trailing)
        return self._made[value, trailing]

    def _unsqueezed(self, value: str, trailing: int) -> str:
        rank = self._types[value].shape.rank
        schema = registry.resolve("openvino", "Unsqueeze", 1)
        assert rank is not None
        assert schema is not None
        axes = np.arange(rank, rank + trailing, dtype=np.int64)
        name = self._fresh(f"{value}/aligned")
        self.nodes.append(
            Node(name, schema.bind({}), (value, self._constant(f"{name}/axes", Tensor(axes, INT64))), (name,))
        )
        return name

    def _constant(self, wanted: str, tensor: Tensor) -> str:
        name = self._fresh(wanted)
        self.constants[name] = tensor
        return name

    def _fresh(self, wanted: str) -> str:
        name, number = wanted, 0
        while name in self._taken:
            number += 1
            name = f"{wanted}_{number}"
        self._taken.add(name)
        return name
