"""Models written for a runtime: the steps that keep every bit, one after the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from eltwise.core.errors import raise_all
from eltwise.ir.graph import Graph
from eltwise.ir.infer_graph import infer_graph
from eltwise.passes.align_broadcast import align_broadcast
from eltwise.passes.builder import Chosen
from eltwise.passes.graph_places import graph_places
from eltwise.passes.places import Place
from eltwise.passes.report import Change, Report
from eltwise.passes.upcast import upcast
from eltwise.targets.table import Way

if TYPE_CHECKING:
    from onnx import ModelProto

WayOf = Callable[[Place], Way]
"""In which way each node is to be written."""

FIRST_NUMPY = 7
"""The opset from which ONNX's arithmetic broadcasts as NumPy does."""


def rewrite_graph(graph: Graph, way_of: WayOf) -> tuple[Graph, Report]:
    """Write the nodes of an IR's graph otherwise.

    Raises:
        EltwiseError: naming each node that cannot be written so.
    """
    # A node that was aligned is another one to ``way_of``, so all is decided before.
    ways: dict[str, str] = {}

    def is_aligned(place: Place) -> bool:
        ways[place.node] = way_of(place)
        return "aligned" in ways[place.node]

    def is_wider(place: Place) -> bool:
        way = ways[place.node] if place.node in ways else way_of(place)
        return "wider" in way

    aligned, first = align_broadcast(graph, _nodes(graph, is_aligned))
    widened, second = upcast(aligned, _nodes(aligned, is_wider))
    return widened, joined(first, second)


def _nodes(graph: Graph, chosen: Callable[[Place], bool]) -> Chosen:
    """Select nodes by their places."""
    places = {graph.nodes[number].outputs: place for number, place in graph_places(graph, infer_graph(graph).types)}
    return lambda node: node.outputs in places and chosen(places[node.outputs])


def rewrite_proto(model: ModelProto, way_of: WayOf, opset: int = 0) -> Report:
    """Write the nodes of an ONNX model otherwise, in place; it is half written where that fails.

    Args:
        model: the model.
        way_of: in which way; what is to be newer is so by the opset alone.
        opset: the opset that the model is to have; 0 for its own.

    Raises:
        EltwiseError: naming each node that cannot be written so.
    """
    from eltwise.formats.onnx.reader import read_model_proto
    from eltwise.formats.onnx.tensors import keep_tensor
    from eltwise.formats.onnx.writer import write_model_proto
    from eltwise.passes.onnx_versions.wider_nodes import compute_wider_nodes
    from eltwise.passes.opset import convert_opset
    from eltwise.passes.validate import find_problems

    graph = read_model_proto(model, None, "", reads_weights=False).graph
    raise_all(find_problems(graph))
    made, first = convert_opset(graph, opset or graph.origin.opset)
    if not first.unchanged:
        model.CopyFrom(write_model_proto(made, keep_tensor))
    return joined(first, compute_wider_nodes(model, lambda place: "wider" in way_of(place)))


def joined(first: Report, second: Report) -> Report:
    """Two reports as one: a node that both changed is described by what it became in the end."""
    later = list(second.changes)
    changes: list[Change] = []
    for change in first.changes:
        other = next((one for one in later if one.node == change.node and one.before in change.after), None)
        if other is None:
            changes.append(change)
            continue
        later.remove(other)
        before = change.after[: change.after.index(other.before)]
        reason = "; ".join(part for part in (change.reason, other.reason) if part)
        changes.append(Change(change.node, change.before, (*before, *other.after), reason))
    return Report(
        first.before,
        second.after,
        (*changes, *later),
        (*first.dropped, *second.dropped),
        (*first.assumptions, *second.assumptions),
        first.unchanged and second.unchanged,
    )
