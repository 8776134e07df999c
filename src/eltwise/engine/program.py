"""A graph made ready for arrays of certain types and shapes: a list of steps, kernels for whole groups of nodes.

What depends on values that only a run knows (a shape that is an input) is inferred by the run, a node at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from eltwise.core.casting import cast
from eltwise.core.dtypes import of_numpy
from eltwise.core.errors import EltwiseError
from eltwise.core.shapes import of_sizes
from eltwise.engine import call
from eltwise.engine.fusion import Group, grouped
from eltwise.ir.graph import Graph, Node, TensorType
from eltwise.ir.infer import cast_target, constant_tensor, located, node_result
from eltwise.ir.infer_graph import infer_graph
from eltwise.ops.schema import DataMovementSchema, ElementwiseSchema

Values = dict[str, np.ndarray]
Observe = Callable[[Group | Node, list[np.ndarray], np.ndarray], None]
"""Is told of each step when it is done: its operands, those that are there, and its result."""


@dataclass(frozen=True)
class Program:
    """The steps of a graph.

    Attributes:
        graph: the graph.
        steps: groups that one kernel computes, and single nodes.
        last_reads: for each step the values that nothing reads after it.
    """

    graph: Graph
    steps: tuple[Group | Node, ...]
    last_reads: tuple[tuple[str, ...], ...]

    def run(self, values: Values, observe: Observe | None = None) -> set[str]:
        """Run the steps.

        Args:
            values: the inputs and constants by value name; this adds the results, and takes away what is done with.
            observe: is told of each step.

        Returns:
            The names of the results whose memory is theirs alone.

        Raises:
            EltwiseError: for values that a node cannot take, naming the node.
        """
        fresh: set[str] = set()
        for step, last_read in zip(self.steps, self.last_reads, strict=True):
            if isinstance(step, Group):
                operands = [values[operand.value] for operand in step.operands]
                result, name, is_fresh = _compute(step, operands), step.result, True
            else:
                inputs = [values[value] if value else None for value in step.inputs]
                operands = [array for array in inputs if array is not None]
                result, name = run_node(step, inputs), step.outputs[0]
                is_fresh = isinstance(step.schema, ElementwiseSchema) or step.schema.behaviour == "cast"
            values[name] = result
            if is_fresh:
                fresh.add(name)
            if observe is not None:
                observe(step, operands, result)
            for name in last_read:
                del values[name]  # Its memory serves the steps to come.
        return fresh


def _compute(group: Group, operands: list[np.ndarray]) -> np.ndarray:
    try:
        out = call.allocated(group.shape, group.element_type)
    except EltwiseError as error:
        raise located(error, group.nodes[-1]) from None
    call.compute(group.expression, group.element_type, group.plan, operands, out)
    return out


def make_program(graph: Graph, types: Mapping[str, TensorType]) -> Program:
    """Make the program of a graph for inputs of known types and shapes.

    Args:
        graph: a graph without problems.
        types: of the inputs, by value name.
    """
    inference = infer_graph(with_inputs(graph, types))
    steps = grouped(graph, {} if inference.problems else inference.types)
    return Program(graph, steps, _last_reads(graph, steps))


def with_inputs(graph: Graph, types: Mapping[str, TensorType]) -> Graph:
    """The same graph with inputs that declare what the arrays are; replaced constants are inputs like others.

    Args:
        graph: the graph.
        types: of the arrays, by value name.
    """
    ports = [
        replace(port, type=types[port.value], inner_type=None)
        for port in (*graph.inputs, *graph.optional_inputs)
        if port.value in types
    ]
    constants = tuple((name, tensor) for name, tensor in graph.constants if name not in types)
    return replace(graph, inputs=tuple(ports), optional_inputs=(), constants=constants, outputs=())


def _last_reads(graph: Graph, steps: tuple[Group | Node, ...]) -> tuple[tuple[str, ...], ...]:
    """For each step, the values that no later step and no output reads."""
    kept = {port.value for port in graph.outputs}
    found: list[tuple[str, ...]] = []
    for step in reversed(steps):
        if isinstance(step, Group):
            named = (*(operand.value for operand in step.operands), step.result)
        else:
            named = (*step.inputs, *step.outputs)
        values = dict.fromkeys(value for value in named if value and value not in kept)
        kept.update(values)
        found.append(tuple(values))
    return tuple(reversed(found))


def run_node(node: Node, inputs: list[np.ndarray | None]) -> np.ndarray:
    """Run one node; its types and shapes are inferred from the arrays.

    Raises:
        EltwiseError: for values that it cannot take, naming the node.
    """
    schema = node.schema
    if isinstance(schema, ElementwiseSchema):
        try:
            return call.apply(node.operation, inputs[0], inputs[1])
        except EltwiseError as error:
            raise located(error, node) from None
    assert isinstance(schema, DataMovementSchema)
    types = [None if array is None else TensorType(of_numpy(array.dtype), of_sizes(array.shape)) for array in inputs]
    indices = inputs[1] if schema.index_types and len(inputs) > 1 else None
    result = node_result(node, types, indices).type
    if schema.behaviour == "constant":
        return constant_tensor(node.operation).array
    data = inputs[0]
    assert data is not None
    if schema.behaviour == "cast":
        return _cast_node(node, data)
    return data.reshape(result.shape.sizes())


def _cast_node(node: Node, data: np.ndarray) -> np.ndarray:
    saturate = node.operation.value("saturate") == 1
    try:
        return cast(data, of_numpy(data.dtype), cast_target(node.operation), saturate)
    except EltwiseError as error:
        raise located(error, node) from None
