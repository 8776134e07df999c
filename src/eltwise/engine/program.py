"""A graph made ready for arrays of certain types and shapes: a list of steps, kernels for whole groups of nodes.

What depends on values that only a run knows (a shape that is an input) is inferred by the run, a node at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any

import numpy as np

from eltwise.core.casting import cast
from eltwise.core.dtypes import of_numpy
from eltwise.core.errors import EltwiseError
from eltwise.core.shapes import of_sizes
from eltwise.engine.call import calls_of, check_divisor
from eltwise.engine.fusion import Group, grouped
from eltwise.engine.io_binding import Symbols, bound_output
from eltwise.ir.graph import Graph, Node, Port, TensorType
from eltwise.ir.infer import cast_target, constant_tensor, located, node_result
from eltwise.ir.infer_graph import infer_graph
from eltwise.kernels import dispatch
from eltwise.ops.schema import DataMovementSchema

Observe = Callable[[Group | Node, list[np.ndarray], np.ndarray], None]
"""Is called after each step with its operands, those that are there, and its result."""


@dataclass(frozen=True)
class Step:
    """One step of a program; values are numbered: inputs, constants, then the result of each step.

    Attributes:
        run: makes the result, given all values.
        reads: the numbers of the operands.
        last_reads: the values that nothing reads after it.
        source: what it computes.
        is_fresh: whether nothing else has a part in the result's memory.
    """

    run: Callable[[list[Any]], np.ndarray]
    reads: tuple[int, ...]
    last_reads: tuple[int, ...]
    source: Group | Node
    is_fresh: bool


@dataclass(frozen=True)
class Output:
    """An output of a program.

    Attributes:
        name: what the caller calls it.
        port: what the graph declares.
        value: its number.
        is_ready: whether every run makes an array of its own that is what the graph declares.
    """

    name: str
    port: Port
    value: int
    is_ready: bool


@dataclass(frozen=True)
class Program:
    """A graph made ready.

    Attributes:
        constants: the values that come after the inputs.
        steps: what is computed, in order.
        outputs: what the caller gets.
        symbols: the sizes of the symbols of declared shapes.
    """

    constants: tuple[np.ndarray, ...]
    steps: tuple[Step, ...]
    outputs: tuple[Output, ...]
    symbols: Symbols

    def run(self, inputs: Sequence[np.ndarray], observe: Observe | None = None) -> dict[str, np.ndarray]:
        """Run the steps.

        Args:
            inputs: arrays of the types and shapes that the program was made for.
            observe: is called after each step.

        Returns:
            New arrays by output name; none shares memory with an input or another output.

        Raises:
            EltwiseError: for values that a node cannot take, naming the node.
        """
        values: list[Any] = [*inputs, *self.constants]
        for step in self.steps:
            result = step.run(values)
            values.append(result)
            if observe is not None:
                observe(step.source, [values[value] for value in step.reads], result)
            for value in step.last_reads:
                values[value] = None  # Its memory serves the steps to come.
        return {
            output.name: values[output.value] if output.is_ready else self._finished(output, values)
            for output in self.outputs
        }

    def _finished(self, output: Output, values: list[Any]) -> np.ndarray:
        first = len(values) - len(self.steps)
        is_fresh = output.value >= first and self.steps[output.value - first].is_fresh
        is_shared = sum(other.value == output.value for other in self.outputs) > 1
        return bound_output(output.port, values[output.value], is_fresh and not is_shared, dict(self.symbols))


def make_program(graph: Graph, outputs: Sequence[Port], bound: Mapping[str, np.ndarray], symbols: Symbols) -> Program:
    """Make the program of a graph for inputs of known types and shapes.

    Args:
        graph: a graph without problems.
        outputs: its outputs, with their inferred types.
        bound: the inputs by value name; only their types and shapes are read.
        symbols: the sizes of the symbols of declared shapes.
    """
    types = {name: TensorType(of_numpy(array.dtype), of_sizes(array.shape)) for name, array in bound.items()}
    inference = infer_graph(with_inputs(graph, types))
    known = {} if inference.problems else inference.types
    sources = grouped(graph, known)
    constants = {name: tensor.array for name, tensor in graph.constants if name not in bound}
    swapped = {name: not array.dtype.isnative for name, array in bound.items()}
    numbers = {name: number for number, name in enumerate((*bound, *constants))}
    steps: list[Step] = []
    for source, last_reads in zip(sources, _last_reads(graph, sources), strict=True):
        read = [operand.value for operand in source.operands] if isinstance(source, Group) else list(source.inputs)
        reads = tuple(numbers[value] if value else _LEFT_OUT for value in read)
        numbers[source.result if isinstance(source, Group) else source.outputs[0]] = len(numbers)
        is_fresh = isinstance(source, Group) or source.schema.behaviour in ("elementwise", "cast")
        run = _group_run(source, reads, known, swapped) if isinstance(source, Group) else _node_run(source, reads)
        given = tuple(value for value in reads if value != _LEFT_OUT)
        steps.append(Step(run, given, tuple(numbers[value] for value in last_reads), source, is_fresh))
    made = [Output(port.name, port, numbers[port.value], _is_ready(port, outputs, sources)) for port in outputs]
    return Program(tuple(constants.values()), tuple(steps), tuple(made), symbols)


_LEFT_OUT = -1


def _node_run(node: Node, reads: tuple[int, ...]) -> Callable[[list[Any]], np.ndarray]:
    return lambda values: run_node(node, [None if value == _LEFT_OUT else values[value] for value in reads])


def _group_run(
    group: Group, reads: tuple[int, ...], types: Mapping[str, TensorType], swapped: Mapping[str, bool]
) -> Callable[[list[Any]], np.ndarray]:
    """What computes a group; its errors name the node."""
    names = [operand.value for operand in group.operands]
    sizes = [types[name].shape.sizes() for name in names]
    is_swapped = (False, *(swapped.get(name, False) for name in names))
    operands = itemgetter(*reads) if len(reads) > 1 else lambda values: (values[reads[0]],)
    function = dispatch.prepare(group.expression, group.element_type, group.plan, sizes, is_swapped)

    def run(values: list[Any]) -> np.ndarray:
        for number, node in group.divisors:
            try:
                name = f"operand {node.schema.operand_name(1)}"
                check_divisor(values[reads[number]], group.plan, number, name, node.schema.versioned_name)
            except EltwiseError as error:
                raise located(error, node) from None
        try:
            return function(*operands(values))
        except EltwiseError as error:
            raise located(error, group.nodes[-1]) from None

    return run


def _is_ready(port: Port, outputs: Sequence[Port], sources: Sequence[Group | Node]) -> bool:
    """Whether an output is the result of a group, its alone, and is of the type and shape that the graph declares."""
    group = next((each for each in sources if isinstance(each, Group) and each.result == port.value), None)
    if group is None or sum(other.value == port.value for other in outputs) > 1:
        return False
    made = group.expression.result_type(group.element_type)
    is_static = port.type.shape.is_known and port.type.shape.sizes() == group.shape
    return is_static and port.type.element_type in (None, made)


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


def _last_reads(graph: Graph, sources: tuple[Group | Node, ...]) -> tuple[tuple[str, ...], ...]:
    """For each step, the values that no later step and no output reads."""
    kept = {port.value for port in graph.outputs}
    found: list[tuple[str, ...]] = []
    for source in reversed(sources):
        if isinstance(source, Group):
            named = (*(operand.value for operand in source.operands), source.result)
        else:
            named = (*source.inputs, *source.outputs)
        values = dict.fromkeys(value for value in named if value and value not in kept)
        kept.update(values)
        found.append(tuple(values))
    return tuple(reversed(found))


def run_node(node: Node, inputs: Sequence[np.ndarray | None]) -> np.ndarray:
    """Run one node; its types and shapes are inferred from the arrays.

    Raises:
        EltwiseError: for values that it cannot take, naming the node.
    """
    schema = node.schema
    try:
        if schema.behaviour == "elementwise":
            return calls_of(node.operation).apply(inputs)
        if schema.behaviour == "constant":
            return constant_tensor(node.operation).array
    except EltwiseError as error:
        raise located(error, node) from None
    assert isinstance(schema, DataMovementSchema)
    types = [None if array is None else TensorType(of_numpy(array.dtype), of_sizes(array.shape)) for array in inputs]
    indices = inputs[1] if schema.index_types and len(inputs) > 1 else None
    result = node_result(node, types, indices).type
    data = inputs[0]
    assert data is not None
    return _cast_node(node, data) if schema.behaviour == "cast" else data.reshape(result.shape.sizes())


def _cast_node(node: Node, data: np.ndarray) -> np.ndarray:
    saturate = node.operation.value("saturate") == 1
    try:
        return cast(data, of_numpy(data.dtype), cast_target(node.operation), saturate)
    except EltwiseError as error:
        raise located(error, node) from None
