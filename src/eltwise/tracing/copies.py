"""Nodes that give back what they read, perhaps in another float type."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from eltwise.core.dtypes import ElementType
from eltwise.ir.graph import Node
from eltwise.ir.types import UNKNOWN_TYPE, TensorType


def gives_back(node: Node, types: Mapping[str, TensorType]) -> bool:
    """Whether a node is an Identity, or a Cast between two float types that are run."""
    if len(node.inputs) != 1 or node.schema.name not in ("Identity", "Cast", "Convert"):
        return False
    element_types = [_element_type(value, types) for value in (*node.inputs, *node.outputs)]
    is_float = (one is not None and one.kind == "float" and one.runs for one in element_types)
    return node.schema.name == "Identity" or all(is_float)


def sources_of(nodes: Iterable[Node], types: Mapping[str, TensorType]) -> dict[str, str]:
    """What each copy is one of, through other copies; nodes are in topological order.

    A Cast makes none behind one that loses what its source and its result both have, as one to float16 and back.
    """
    sources: dict[str, str] = {}
    passed: dict[str, tuple[ElementType, ...]] = {}
    for node in nodes:
        if not gives_back(node, types):
            continue
        value, copy = node.inputs[0], node.outputs[0]
        source, between = sources.get(value, value), passed.get(value, ())
        result = _element_type(copy, types)
        ends = _element_type(source, types), result
        if all(any(end is None or one.holds(end) for end in ends) for one in between):
            sources[copy] = source
            passed[copy] = between if result is None else (*between, result)
    return sources


def _element_type(value: str, types: Mapping[str, TensorType]) -> ElementType | None:
    return types.get(value, UNKNOWN_TYPE).element_type
