"""Chosen nodes of a graph computed in a wider type: casts before them and one behind, with the same bits."""

from __future__ import annotations

from dataclasses import replace

from eltwise.core.dtypes import ElementType
from eltwise.core.errors import ElementTypeError, EltwiseError, raise_all
from eltwise.ir.graph import Graph, Node
from eltwise.ir.infer_graph import infer_graph
from eltwise.ir.verify import structure_problems
from eltwise.ops import registry
from eltwise.passes.building import described
from eltwise.passes.exactness import exact_wider
from eltwise.passes.graph_places import graph_places
from eltwise.passes.places import Chosen
from eltwise.passes.report import Change, Report

_CAST = {"ai.onnx": ("Cast", "to"), "openvino": ("Convert", "destination_type")}


def compute_wider(graph: Graph, chosen: Chosen) -> tuple[Graph, Report]:
    """Compute chosen nodes in the type that ``exact_wider`` gives for them.

    Args:
        graph: a graph without problems.
        chosen: tells of a node whether it is meant; one whose type is not known is not.

    Returns:
        The new graph, the same one where no node was meant; and what was changed.

    Raises:
        ElementTypeError: naming each node that was meant and has no wider type that is exact.
    """
    inference = infer_graph(graph)
    raise_all([*structure_problems(graph), *inference.problems])
    taken = {value for node in graph.nodes for value in (*node.inputs, *node.outputs)} | set(inference.types)
    nodes: list[Node] = []
    changes: list[Change] = []
    problems: list[EltwiseError] = []
    places = dict(graph_places(graph, inference.types))
    for number, node in enumerate(graph.nodes):
        place = places.get(number)
        element_type = place.element_type if place else None
        if place is None or element_type is None or not chosen(place):
            nodes.append(node)
            continue
        wider = exact_wider(place.schema.expression(), element_type)
        if wider is None:
            problems.append(_no_wider(node, element_type))
            continue
        made = _widened(graph, node, element_type, wider, taken)
        nodes += made
        reason = f"{element_type} is computed in {wider}, which gives the same bits"
        after = tuple(one.schema.versioned_name for one in made)
        changes.append(Change(node.label, node.schema.versioned_name, after, reason))
    raise_all(problems)
    if not changes:
        return graph, Report(described(graph.origin), described(graph.origin), unchanged=True)
    made_graph = replace(graph, nodes=tuple(nodes))
    raise_all([*structure_problems(made_graph), *infer_graph(made_graph).problems])
    return made_graph, Report(described(graph.origin), described(graph.origin), tuple(changes))


def _no_wider(node: Node, element_type: ElementType) -> ElementTypeError:
    return ElementTypeError(
        "no wider type gives the same bits",
        operator=node.schema.versioned_name,
        node=node.label,
        got=element_type.name,
    )


def _widened(graph: Graph, node: Node, narrow: ElementType, wide: ElementType, taken: set[str]) -> list[Node]:
    casts: list[Node] = []
    wide_of: dict[str, str] = {}
    for value in node.inputs:
        if value not in wide_of:
            wide_of[value] = _fresh(f"{value}/{wide}", taken)
            casts.append(_cast(graph, value, wide_of[value], wide))
    result = _fresh(f"{node.outputs[0]}/{wide}", taken)
    inputs = tuple(wide_of[value] for value in node.inputs)
    # In IR a layer is called by what it makes; what callers see keeps its name.
    name = node.name if graph.origin.domain == "ai.onnx" else result
    operation = replace(node, name=name, inputs=inputs, outputs=(result,))
    return [*casts, operation, _cast(graph, result, node.outputs[0], narrow)]


def _cast(graph: Graph, value: str, result: str, element_type: ElementType) -> Node:
    operator, attribute = _CAST[graph.origin.domain]
    schema = registry.resolve(graph.origin.domain, operator, graph.origin.opset or 1)
    assert schema is not None
    name = result if graph.origin.domain == "openvino" else ""
    return Node(name, schema.bind({attribute: element_type}), (value,), (result,))


def _fresh(wanted: str, taken: set[str]) -> str:
    name, number = wanted, 0
    while name in taken:
        number += 1
        name = f"{wanted}_{number}"
    taken.add(name)
    return name
