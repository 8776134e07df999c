"""What no text forbids and one runtime refuses before it looks at a kernel, found in the graph.

Observed in onnxruntime 1.31.1 and OpenVINO 2026.4.1; what the one refuses the other takes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Set

from eltwise.core.errors import EltwiseError, GraphError, UnsupportedError
from eltwise.ir.graph import Graph

_FREE_INITIALIZERS = 4
"""From this ir_version on an initializer need not be an input."""


def structure_problems_on(target: str, graph: Graph) -> list[EltwiseError]:
    """Find what a runtime alone refuses of an ONNX model."""
    return [problem for find in _FINDERS.get(target, ()) for problem in find(graph)]


def all_graphs(graph: Graph) -> Iterator[Graph]:
    """A graph and the graphs in its nodes, at any depth."""
    yield graph
    for node in graph.nodes:
        for _name, inner in node.graphs:
            yield from all_graphs(inner)


def _repeated_node_names(graph: Graph) -> Iterator[EltwiseError]:
    for one in all_graphs(graph):
        for name, count in Counter(node.name for node in one.nodes if node.name).items():
            if count > 1:
                hint = "give each a name of its own"
                yield GraphError(f"{count} nodes of one graph have it", operand=f"the node name {name!r}", hint=hint)


def _needless_initializers(graph: Graph) -> Iterator[EltwiseError]:
    """Initializers of old files that nothing reads and that are no inputs; those that are read it takes."""
    if graph.origin.file_version >= _FREE_INITIALIZERS:
        return
    graphs = list(all_graphs(graph))
    read = {value for one in graphs for node in one.nodes for value in node.inputs}
    read |= {port.value for one in graphs for port in (*one.inputs, *one.optional_inputs, *one.outputs)}
    for name, _tensor in graph.constants:
        if name not in read:
            yield GraphError(
                f"onnxruntime refuses one that is neither read nor an input below ir_version {_FREE_INITIALIZERS}",
                operand=f"initializer {name!r}",
                got=f"ir_version {graph.origin.file_version}",
                hint=f"leave it out, or write ir_version {_FREE_INITIALIZERS}",
            )


def _outer_values_given(graph: Graph) -> Iterator[EltwiseError]:
    yield from _given_through(graph, frozenset())


def _given_through(graph: Graph, outer: Set[str]) -> Iterator[EltwiseError]:
    known = outer | _made_in(graph)
    for node in graph.nodes:
        graphs = [inner for _name, inner in node.graphs]
        given = (port.value for inner in graphs for port in inner.outputs if port.value in known - _made_in(inner))
        for value in dict.fromkeys(given):
            yield GraphError(
                f"onnxruntime refuses a graph that gives out {value!r}, which is made around it",
                operator=node.schema.name,
                node=node.label,
                hint="let an Identity in the graph give it out",
            )
        for inner in graphs:
            yield from _given_through(inner, known)


def _made_in(graph: Graph) -> set[str]:
    made = {value for node in graph.nodes for value in node.outputs}
    return made | {port.value for port in (*graph.inputs, *graph.optional_inputs)} | set(graph.constant)


def _sparse_initializers(graph: Graph) -> Iterator[EltwiseError]:
    for one in all_graphs(graph):
        for name, tensor in one.constants:
            if getattr(tensor, "is_sparse", False):
                yield UnsupportedError("OpenVINO does not read sparse initializers", operand=f"initializer {name!r}")


_FINDERS: dict[str, tuple[Callable[[Graph], Iterator[EltwiseError]], ...]] = {
    "onnxruntime": (_needless_initializers, _repeated_node_names, _outer_values_given),
    "openvino": (_sparse_initializers,),
}
