"""What the reference gives for every value of a graph, node by node."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from eltwise import oracle
from eltwise.ir.graph import Graph, Node
from eltwise.ops.schema import ElementwiseSchema
from support.operands import expected

Arrays = dict[str, np.ndarray]


def values_of(graph: Graph, feeds: Mapping[str, np.ndarray]) -> Arrays:
    """The values of a graph that runs on these inputs, by name.

    Raises:
        oracle.OracleRefusal: where a node must refuse its operands.
    """
    values = {name: tensor.array for name, tensor in graph.constants} | {
        port.value: feeds[port.name] for port in graph.inputs
    }
    for node in graph.nodes:
        values[node.outputs[0]] = _result(node, [values[name] if name else None for name in node.inputs])
    return values


def outputs_of(graph: Graph, feeds: Mapping[str, np.ndarray]) -> Arrays | None:
    """The outputs by name; None where a node must refuse its operands."""
    try:
        values = values_of(graph, feeds)
    except oracle.OracleRefusal:
        return None
    return {port.name: values[port.value] for port in graph.outputs}


def without_unread(graph: Graph) -> Graph:
    """The graph without the nodes that no output is made of."""
    read, nodes = {port.value for port in graph.outputs}, list[Node]()
    for node in reversed(graph.nodes):
        if node.outputs[0] in read:
            read.update(node.inputs)
            nodes.append(node)
    return replace(graph, nodes=tuple(nodes[::-1]))


def _result(node: Node, operands: list[np.ndarray | None]) -> np.ndarray:
    if isinstance(node.schema, ElementwiseSchema):
        return expected(node.bound, operands)
    data = operands[0]
    assert data is not None
    if node.schema.behaviour == "identity":
        return data
    numbers = node.bound.value("axes" if node.schema.behaviour != "reshape" else "shape")
    if len(operands) > 1 and operands[1] is not None:
        numbers = tuple(operands[1].reshape(-1).tolist())
    assert isinstance(numbers, tuple)
    if node.schema.behaviour == "reshape":
        return data.reshape(_shape(node, data.shape, numbers))
    return (np.squeeze if node.schema.behaviour == "squeeze" else np.expand_dims)(data, numbers)


def _shape(node: Node, sizes: tuple[int, ...], target: tuple[int, ...]) -> tuple[int, ...]:
    """The shape that a target stands for: a 0 copies a size where it is no size itself."""
    is_size = node.bound.value("allowzero") == 1 or node.bound.value("special_zero") is False
    return tuple(sizes[index] if size == 0 and not is_size else size for index, size in enumerate(target))
