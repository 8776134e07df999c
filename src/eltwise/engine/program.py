"""A graph made ready for arrays of certain types and shapes: a list of steps, with kernels for whole groups of nodes.

What depends on values that only a run knows (a shape that is an input) is inferred by the run, a node at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from eltwise.core.dtypes import of_numpy
from eltwise.core.errors import EltwiseError, ShapeError, UnsupportedError
from eltwise.core.shapes import of_sizes
from eltwise.engine.array_libraries import apply_operation
from eltwise.engine.call import check_divisor
from eltwise.engine.fusion import Group, grouped
from eltwise.engine.intake import kind_of
from eltwise.engine.io_binding import Symbols, bound_output, match
from eltwise.ir.graph import Graph, Node, Port
from eltwise.ir.infer import check_inference, constant_tensor, located, node_result
from eltwise.ir.infer_graph import infer_graph
from eltwise.ir.types import TensorType
from eltwise.kernels import dispatch
from eltwise.kernels.native import Records
from eltwise.kernels.plan import Divisors
from eltwise.ops.data_movement import DataMovementSchema

Compute = Callable[[Sequence[Any]], np.ndarray]
"""Makes the result of a step, given its operands; None for one that is left out."""

Observe = Callable[[Group | Node, list[Any], Compute], np.ndarray]
"""Gives the result of each step: is called with what it computes, its operands, and what makes the result of them."""


@dataclass(frozen=True)
class Step:
    """One step of a program; values are numbered: inputs, constants, then the result of each step.

    Attributes:
        compute: makes the result.
        reads: the numbers of the operands; ``_LEFT_OUT`` for one that is left out.
        last_reads: the values that nothing reads after it.
        source: what it computes.
    """

    compute: Compute
    reads: tuple[int, ...]
    last_reads: tuple[int, ...]
    source: Group | Node


@dataclass(frozen=True)
class Output:
    """An output of a program.

    Attributes:
        port: what the graph declares.
        value: its number.
        is_fresh: whether nothing else has a part in the array's memory.
        is_ready: whether every run makes just what the graph declares, and it is fresh.
    """

    port: Port
    value: int
    is_fresh: bool
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
        """Run the steps on arrays of the types and shapes that the program was made for; see ``Runner.run``."""
        values: list[Any] = [*inputs, *self.constants]
        for step in self.steps:
            operands = [None if value == _LEFT_OUT else values[value] for value in step.reads]
            values.append(step.compute(operands) if observe is None else observe(step.source, operands, step.compute))
            for value in step.last_reads:
                values[value] = None  # Its memory serves the steps to come.
        return {
            output.port.name: values[output.value]
            if output.is_ready
            else bound_output(output.port, values[output.value], output.is_fresh, dict(self.symbols))
            for output in self.outputs
        }


def make_program(
    graph: Graph,
    outputs: Sequence[Port],
    bound: Mapping[str, np.ndarray],
    symbols: Symbols,
    records_of: Callable[[Group], Records | None] = lambda _group: None,
    *,
    is_fused: bool = True,
) -> Program:
    """Make the program of a graph for inputs of known types and shapes.

    Args:
        graph: a graph without problems.
        outputs: its outputs, with their inferred types.
        bound: the inputs by value name; only their types and shapes are read.
        symbols: the sizes of the symbols of declared shapes.
        records_of: gives the records for a group that is the whole program.
        is_fused: whether kernels compute groups of nodes; if not, each node is run by itself, on arrays of any library.
    """
    types = _inferred(graph, bound) if is_fused else {}
    constants = {name: tensor.array for name, tensor in graph.constants if name not in bound}
    swapped = {name for name, array in bound.items() if not array.dtype.isnative}
    sources = {
        source.result if isinstance(source, Group) else source.outputs[0]: source for source in grouped(graph, types)
    }
    numbers = {name: number for number, name in enumerate((*bound, *constants, *sources))}
    values = [port.value for port in outputs]
    results = []
    for port in outputs:
        producer = sources.get(port.value)
        is_fresh = isinstance(producer, Group)
        is_fresh |= isinstance(producer, Node) and producer.schema.behaviour == "elementwise"
        is_fresh &= values.count(port.value) == 1
        is_ready = is_fresh and isinstance(producer, Group) and _is_ready(port, producer, symbols)
        results.append(Output(port, numbers[port.value], is_fresh, is_ready))
    is_one = len(sources) == len(results) == 1 and results[0].is_ready
    steps: list[Step] = []
    for source, last_reads in zip(sources.values(), _last_reads(graph, sources), strict=True):
        reads = tuple(numbers[value] if value else _LEFT_OUT for value in _read(source))
        if isinstance(source, Group):
            compute = _group_run(source, swapped, records_of(source) if is_one else None)
        else:
            compute = _move(types, source) or partial(run_node, source)
        steps.append(Step(compute, reads, tuple(numbers[value] for value in last_reads), source))
    return Program(tuple(constants.values()), tuple(steps), tuple(results), symbols)


def _inferred(graph: Graph, bound: Mapping[str, np.ndarray]) -> Mapping[str, TensorType]:
    """The types of all values for these inputs; none where there is a problem, which the run will meet."""
    types = {name: TensorType(of_numpy(array.dtype), of_sizes(array.shape)) for name, array in bound.items()}
    inference = infer_graph(with_inputs(graph, types))
    return {} if inference.problems else inference.types


def run_node(node: Node, inputs: Sequence[Any]) -> Any:
    """Run one node on arrays, also of Dask or xarray, from which its types and shapes are inferred; None is left out.

    Returns:
        An array, of the inputs' library.

    Raises:
        EltwiseError: for values that it cannot take, naming the node.
    """
    schema, data = node.schema, inputs[0] if inputs else None
    try:
        if schema.behaviour == "elementwise":
            return apply_operation(node.bound, inputs)
        if schema.behaviour == "constant":
            return constant_tensor(node.bound).array
        assert isinstance(schema, DataMovementSchema)
        assert data is not None
        types = [
            None if array is None else TensorType(of_numpy(array.dtype), of_sizes(array.shape)) for array in inputs
        ]
        indices = inputs[1] if schema.index_types and len(inputs) > 1 else None
        result = node_result(node, types, indices).type
        if schema.behaviour == "identity":
            check_inference(node.bound, inputs[2] if len(inputs) > 2 else None)
            return data
        _check_moves(inputs)
        return data.reshape(result.shape.sizes())
    except EltwiseError as error:
        raise located(error, node) from None


def _check_moves(inputs: Sequence[Any]) -> None:
    """Refuse to move elements of lazy arrays in a way that they cannot."""
    kind = next((kind_of(value) for value in inputs if kind_of(value)), "")
    if kind == "xarray" or (kind and not kind_of(inputs[0])):
        raise UnsupportedError(f"{kind} arrays are only run through element-wise operators")


_LEFT_OUT = -1


def _read(source: Group | Node) -> Sequence[str]:
    return [operand.value for operand in source.operands] if isinstance(source, Group) else source.inputs


def _is_ready(port: Port, group: Group, symbols: Symbols) -> bool:
    """Whether the result of a group is of the type and shape that the graph declares."""
    if port.type.element_type not in (None, group.expression.result_type(group.element_type)):
        return False
    try:
        match(port.type.shape, group.shape, "", dict(symbols))
    except ShapeError:  # The run says so, when it has the result.
        return False
    return True


def _move(types: Mapping[str, TensorType], node: Node) -> Compute | None:
    """What gives an array another shape, which is known before the run; None for a node that does something else."""
    result = types.get(node.outputs[0])
    if result is None or not result.shape.is_known or node.schema.behaviour not in ("reshape", "squeeze", "unsqueeze"):
        return None
    sizes = result.shape.sizes()
    return lambda operands: operands[0].reshape(sizes)


def _group_run(group: Group, swapped: set[str], records: Records | None) -> Compute:
    """What computes a group; its errors name the node."""
    names = [operand.value for operand in group.operands]
    is_swapped = (False, *(name in swapped for name in names))
    function = dispatch.prepare(group.typed, is_swapped, divisors_of(group), records)

    def run(operands: Sequence[Any]) -> np.ndarray:
        try:
            return function(*operands)
        except EltwiseError as error:
            raise located(error, group.nodes[-1]) from None

    return run


def divisors_of(group: Group) -> Divisors | None:
    """The operands of a group that must not hold a 0; None where there is none."""
    numbers = tuple(number for number, _node in group.divisors)
    return Divisors(numbers, partial(_check_divisors, group)) if numbers else None


def _check_divisors(group: Group, operands: Sequence[np.ndarray]) -> None:
    """Refuse integer divisors that hold a 0, naming the node."""
    for number, node in group.divisors:
        try:
            name = f"operand {node.bound.schema.operand_name(1)}"
            check_divisor(operands[number], group.operands[number].sizes, name, node.schema.versioned_name)
        except EltwiseError as error:
            raise located(error, node) from None


def with_inputs(graph: Graph, types: Mapping[str, TensorType]) -> Graph:
    """The same graph with inputs that declare what the arrays are; replaced constants are inputs like others."""
    ports = [
        replace(port, type=types[port.value], inner_type=None)
        for port in (*graph.inputs, *graph.optional_inputs)
        if port.value in types
    ]
    constants = tuple((name, tensor) for name, tensor in graph.constants if name not in types)
    return replace(graph, inputs=tuple(ports), optional_inputs=(), constants=constants, outputs=())


def _last_reads(graph: Graph, sources: Mapping[str, Group | Node]) -> list[tuple[str, ...]]:
    """For each step, the values that no later step and no output reads."""
    read_later = {port.value for port in graph.outputs}
    last_reads: list[tuple[str, ...]] = []
    for result, source in reversed(list(sources.items())):
        values = dict.fromkeys(value for value in (*_read(source), result) if value and value not in read_later)
        read_later.update(values)
        last_reads.append(tuple(values))
    return last_reads[::-1]
