"""What no text forbids and a runtime refuses before it looks at a kernel.

Observed in onnxruntime 1.31.1 and OpenVINO 2026.4.1; what the one refuses the other takes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Set

from onnx import GraphProto, ModelProto

from eltwise.core.errors import EltwiseError, GraphError, UnsupportedError
from eltwise.formats.onnx.nodes import label_of, subgraphs
from eltwise.passes.onnx_versions.names import all_graphs

_FREE_INITIALIZERS = 4
"""From this ir_version on an initializer need not be an input."""


def onnxruntime_problems(model: ModelProto) -> list[EltwiseError]:
    """Find names that two nodes have, graphs in nodes that give out a value from around them, and needless data."""
    problems = list(_needless_initializers(model))
    for graph in all_graphs(model):
        for name, count in Counter(node.name for node in graph.node if node.name).items():
            if count > 1:
                words = f"{count} nodes of one graph have it"
                problems.append(
                    GraphError(words, operand=f"the node name {name!r}", hint="give each a name of its own")
                )
    return [*problems, *_given_through(model.graph, frozenset())]


def _needless_initializers(model: ModelProto) -> Iterator[EltwiseError]:
    """Initializers of old files that nothing reads and that are no inputs; those that are read it takes."""
    if model.ir_version >= _FREE_INITIALIZERS:
        return
    graphs = list(all_graphs(model))
    read = {name for graph in graphs for node in graph.node for name in node.input}
    read |= {value.name for graph in graphs for value in (*graph.input, *graph.output)}
    for tensor in model.graph.initializer:
        if tensor.name not in read:
            yield GraphError(
                f"onnxruntime refuses one that is neither read nor an input below ir_version {_FREE_INITIALIZERS}",
                operand=f"initializer {tensor.name!r}",
                got=f"ir_version {model.ir_version}",
                hint=f"leave it out, or write ir_version {_FREE_INITIALIZERS}",
            )


def _given_through(graph: GraphProto, outer: Set[str]) -> Iterator[EltwiseError]:
    known = outer | _made_in(graph)
    for node in graph.node:
        graphs = [inner for _name, inner in subgraphs(node)]
        given = (value.name for inner in graphs for value in inner.output if value.name in known - _made_in(inner))
        for name in dict.fromkeys(given):
            yield GraphError(
                f"onnxruntime refuses a graph that gives out {name!r}, which is made around it",
                operator=node.op_type,
                node=label_of(node),
                hint="let an Identity in the graph give it out",
            )
        for inner in graphs:
            yield from _given_through(inner, known)


def _made_in(graph: GraphProto) -> set[str]:
    constants = (*graph.initializer, *(sparse.values for sparse in graph.sparse_initializer))
    given = {part.name for part in (*graph.input, *constants)}
    return given.union(*(node.output for node in graph.node))


def openvino_problems(model: ModelProto) -> list[EltwiseError]:
    """Find sparse initializers, whose names OpenVINO does not know."""
    return [
        UnsupportedError("OpenVINO does not read sparse initializers", operand=f"initializer {sparse.values.name!r}")
        for graph in all_graphs(model)
        for sparse in graph.sparse_initializer
    ]
