"""The structure of a model: its nodes, their attributes and how they are connected.

Names and the order of nodes do not count, nor whether a constant is an initializer or a node.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from hashlib import blake2b

from eltwise.ir.graph import Foreign, Graph, Node, Tensor
from eltwise.ir.structure import Structure

_CONSTANT = "constant"
_TENSORS_AND_GRAPHS = (4, 5, 9, 10)
"""The types of ONNX attributes that hold tensors, which are constants, or graphs, which are looked into."""


def structure_of(graph: Graph) -> Structure:
    """The structure of a model with its functions and the graphs in its nodes."""
    nodes = Counter[tuple[str, str]]()
    bodies = {each.name: _digests(each.body, {}, nodes) for each in graph.functions}
    outputs = (*_digests(graph, {}, nodes), _digest(sorted(bodies.items())))
    return Structure(graph.origin.domain, outputs, nodes)


def _digests(graph: Graph, outer: Mapping[str, str], nodes: Counter[tuple[str, str]]) -> tuple[str, ...]:
    """A digest of each output, and the nodes counted; ``outer`` has those of the values around a body."""
    values = dict(outer) | dict.fromkeys((name for name, _tensor in graph.constants), _CONSTANT) | {"": ""}
    ports = [*graph.inputs, *graph.optional_inputs]
    values |= {port.value: f"input {number}" for number, port in enumerate(ports)}
    for node in graph.nodes:
        if node.schema.behaviour == "constant" or node.operator == ("", "Constant"):
            values |= dict.fromkeys(node.outputs, _CONSTANT)
            continue
        operator, attributes = node.schema.name, _digest(sorted(_attributes(node)))
        nodes[operator, attributes] += 1
        bodies = [(name, _digests(body, values, nodes)) for name, body in node.graphs]
        digest = _digest([node.operator, attributes, bodies, [values.get(name, "") for name in node.inputs]])
        values |= {name: f"{digest} {number}" for number, name in enumerate(node.outputs)}
    return tuple(values.get(port.value, "") for port in graph.outputs)


def _attributes(node: Node) -> Iterator[tuple[str, str]]:
    """The attributes of a node but for tensors and graphs, as text."""
    for name, value in node.operation.attributes:
        if isinstance(node.operation, Foreign) and hasattr(value, "SerializeToString"):
            if value.type not in _TENSORS_AND_GRAPHS:  # type: ignore[attr-defined]
                yield name, value.SerializeToString(deterministic=True).hex()
        elif not isinstance(value, Tensor):
            yield name, repr(value)


def _digest(parts: object) -> str:
    return blake2b(repr(parts).encode(), digest_size=16).hexdigest()
