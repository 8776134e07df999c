"""What a reader hands on: the graph as far as it could be read, and every problem that it met."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from eltwise.core.errors import EltwiseError, UnsupportedError
from eltwise.ir.graph import Graph
from eltwise.ops import registry
from eltwise.ops.schema import Domain


@dataclass(frozen=True)
class Reading:
    """A model file's content.

    Attributes:
        graph: the graph. What could not be read of an ONNX model is in it too, of an IR it is missing.
        problems: why it cannot be run, node by node.
        unresolved: the values that could not be read.
    """

    graph: Graph
    problems: tuple[EltwiseError, ...] = ()
    unresolved: frozenset[str] = frozenset()


def unsupported_operators(found: Sequence[tuple[str, str]], domain: Domain) -> UnsupportedError:
    """Make the one error for all nodes whose operator is not run here.

    Args:
        found: the operator's name (with its domain or opset) and the node's label, for each such node.
        domain: the dialect, for the list of what is run.
    """
    names = sorted(
        {schema.name for schema in (*registry.ELEMENTWISE, *registry.DATA_MOVEMENT) if schema.domain == domain}
    )
    nodes = ", ".join(f"{operator} node {label!r}" for operator, label in found)
    count = "this operator is" if len(found) == 1 else f"these {len(found)} operators are"
    return UnsupportedError(f"{count} not run here: {nodes}", allowed=", ".join(names))
