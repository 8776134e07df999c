"""What a reader of models gives: a graph, and why it cannot be run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from eltwise.core.errors import EltwiseError, UnsupportedError
from eltwise.ir.graph import Graph
from eltwise.ops import registry
from eltwise.ops.schema import Domain


@dataclass(frozen=True)
class Reading:
    """A model file's content: the graph, in which what could not be read is foreign, and why it cannot be run."""

    graph: Graph
    problems: tuple[EltwiseError, ...] = ()


def operator_names(domain: Domain, opset: int) -> list[str]:
    """The operators of an opset that eltwise runs."""
    every = (*registry.ELEMENTWISE, *registry.DATA_MOVEMENT)
    return sorted({schema.name for schema in every if schema.domain == domain and schema.version <= opset})


def unsupported_operators(operators: Sequence[tuple[str, str]], domain: Domain, opset: int) -> UnsupportedError:
    """Make the one error for all nodes whose operator is not supported.

    Args:
        operators: the operator's name (with its domain or opset) and the node's label, for each such node.
        domain: the domain of the operators that are allowed.
        opset: their opset.
    """
    nodes = ", ".join(f"{operator} node {label!r}" for operator, label in operators)
    count = "unsupported operator" if len(operators) == 1 else f"{len(operators)} unsupported operators"
    return UnsupportedError(f"{count}: {nodes}", allowed=", ".join(operator_names(domain, opset)))
