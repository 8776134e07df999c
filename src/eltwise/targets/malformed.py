"""What a runtime refuses before it looks at any kernel: names that two nodes have, and wrong numbers of operands.

Observed in onnxruntime 1.31.1 and OpenVINO 2026.4.1: onnxruntime refuses both; OpenVINO takes the names, and leaves
operands too many out without a word, which no text allows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from eltwise import catalog
from eltwise.spec import ElementwiseRow
from eltwise.targets.report import Finding
from eltwise.targets.table import Target

if TYPE_CHECKING:
    from onnx import GraphProto, ModelProto, NodeProto  # noqa: TID251 - only the names, for the type checker


def malformed(model: ModelProto | None, opset: int, target: Target) -> Iterator[Finding]:
    """Find what is wrong with a model's graphs, those in its nodes too, so that a runtime refuses it.

    Args:
        model: the message of an ONNX model; nothing is found of an IR, which has none.
        opset: the opset of ONNX's own operators in it.
        target: the runtime.
    """
    from eltwise.formats.onnx_versions.names import subgraphs

    waiting = [] if model is None else [model.graph]
    while waiting:
        graph = waiting.pop(0)
        if target == "onnxruntime":
            yield from _names_given_twice(graph)
        for node in graph.node:
            yield from _wrong_numbers(node, opset)
            waiting += (inner for _name, inner in subgraphs(node))


def _names_given_twice(graph: GraphProto) -> Iterator[Finding]:
    for name, count in Counter(node.name for node in graph.node if node.name).items():
        if count > 1:
            words = f"{count} nodes of one graph have it"
            yield _refused(f"the node name {name!r}", words, "give each node a name of its own")


def _wrong_numbers(node: NodeProto, opset: int) -> Iterator[Finding]:
    from eltwise.formats.onnx_nodes import label_of
    from eltwise.formats.onnx_versions.schemas import is_own

    row = catalog.resolve("ai.onnx", node.op_type, opset) if is_own(node) else None
    if not isinstance(row, ElementwiseRow):
        return
    for thing, names, right in (("operand", node.input, 2), ("result", node.output, 1)):
        given = sum(1 for name in names if name)
        if len(names) != right or given != right:
            subject = f"{row.versioned_name} node {label_of(node)!r}"
            yield _refused(subject, f"it has {given} {thing}s, and {right} are needed", "the model itself is not valid")


def _refused(subject: str, words: str, helps: str) -> Finding:
    return Finding("", subject, "", "", "refused", (), words, helps, False)
