"""A graph that is run again and again, each time by a program for arrays of certain types and shapes.

A program is a list of steps, with kernels for whole groups of nodes. What depends on values that only a run knows (a
shape that is an input) is inferred by the run, a node at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from eltwise.core.casting import cast
from eltwise.core.dtypes import ElementType, of_numpy
from eltwise.core.errors import EltwiseError, ShapeError
from eltwise.core.shapes import of_sizes
from eltwise.engine.arrays import kind_of
from eltwise.engine.call import calls_of, check_divisor
from eltwise.engine.fusion import Group, grouped
from eltwise.engine.io_binding import Symbols, bound_inputs, bound_output, match
from eltwise.ir.graph import Graph, Node, Port
from eltwise.ir.infer import cast_target, constant_tensor, located, node_result
from eltwise.ir.infer_graph import infer_graph
from eltwise.ir.types import TensorType
from eltwise.kernels import dispatch, float_mode
from eltwise.kernels.native import Records, is_possible
from eltwise.ops.schema import DataMovementSchema

Observe = Callable[[Group | Node, list[np.ndarray], np.ndarray], None]
"""Is called after each step with its operands, those that are there, and its result."""

_MOST_PROGRAMS = 64


class Runner:
    """Runs one graph; its programs are kept by the types and shapes of what it is run on.

    Args:
        graph: a graph without problems.
        outputs: its outputs with their inferred types.
    """

    def __init__(self, graph: Graph, outputs: tuple[Port, ...]) -> None:
        self._graph, self._outputs = graph, outputs
        converts = any(port.inner_type is not None for port in graph.inputs)
        self._names = None if converts else tuple(port.name for port in graph.inputs)
        self._programs: dict[Hashable, Program] = {}
        self._kernel: OneKernel | None = None

    def run(self, feeds: Mapping[str, object], observe: Observe | None = None) -> dict[str, np.ndarray]:
        """Run the graph.

        Args:
            feeds: the inputs by name, another of their names, or position.
            observe: is called after each step.

        Returns:
            New arrays by output name, in native byte order; none shares memory with an input or another output.

        Raises:
            EltwiseError: for inputs that are missing or do not fit, or values that a node cannot take.
        """
        kernel = self._kernel
        if kernel is not None and observe is None and type(feeds) is dict and len(feeds) == len(self._graph.inputs):
            try:
                operands = [feeds[each] if type(each) is str else each for each in kernel.sources]
            except KeyError:  # An input may be given by another of its names.
                pass
            else:
                return {kernel.output: kernel.function(*operands)}
        return self._run(feeds, observe)

    def _run(self, feeds: Mapping[str, object], observe: Observe | None = None) -> dict[str, np.ndarray]:
        """Run the program for what is given, which is kept."""
        try:
            if self._names is not None and len(feeds) == len(self._names) and float_mode.is_default():
                arrays: list[Any] = [feeds.get(name) for name in self._names]
                program = self._programs.get(_key(arrays))
                if program is not None:
                    return program.run(arrays, observe)
            if any(kind_of(value) for value in feeds.values()):
                from eltwise.engine import lazy_graph  # Few runs are on arrays of other libraries.

                return lazy_graph.run(self._graph, self._outputs, feeds, lambda arrays: self._run(arrays, observe))
            with float_mode.default_mode():  # Conversions need it too, not only kernels.
                float_mode.require_default()
                return self._bound_run(feeds, observe)
        except MemoryError:
            given = ", ".join(f"{name} {getattr(value, 'shape', ())}" for name, value in feeds.items())
            raise ShapeError("a run on these inputs does not fit into memory", got=given) from None

    def _bound_run(self, feeds: Mapping[str, object], observe: Observe | None) -> dict[str, np.ndarray]:
        """Check what is given, and find or make the program for it."""
        symbols: Symbols = {}
        bound = bound_inputs(self._graph, feeds, symbols)
        ordered = {port.value: bound.pop(port.value) for port in self._graph.inputs} | bound
        arrays = list(ordered.values())
        key = (_key(arrays), *bound) if bound else _key(arrays)  # What is left replaces constants.
        program = self._programs.get(key)
        if program is None:
            program = make_program(self._graph, self._outputs, ordered, symbols, self._records_of)
            if len(self._programs) >= _MOST_PROGRAMS:
                self._programs.clear()
            self._programs[key] = program
        return program.run(arrays, observe)

    def _records_of(self, group: Group) -> Records | None:
        """The records for a group that is the whole program: the same for all programs that are like the first one."""
        names = {port.value: port.name for port in self._graph.inputs}
        operands = tuple(operand.value for operand in group.operands)
        is_whole = {*names} <= {*operands} <= {*names, *self._graph.constant}
        if self._names is None or not is_whole or not is_possible():
            return None
        if self._kernel is None:
            sources = tuple(names[each] if each in names else self._graph.constant[each].array for each in operands)
            output = next(port.name for port in self._outputs)
            records = Records(len(operands))

            def function(*given: object) -> np.ndarray:
                feeds = {each: value for each, value in zip(sources, given, strict=True) if isinstance(each, str)}
                return self._run(feeds)[output]

            self._kernel = OneKernel(operands, sources, output, records, records.builtin(function, output))
        return self._kernel.records if self._kernel.operands == operands else None


@dataclass(frozen=True)
class OneKernel:
    """What runs a graph that one kernel computes.

    Attributes:
        operands: the values that the kernel reads.
        sources: for each of them the name of an input, or the array of a constant.
        output: the name of the only output.
        records: the calls that are made often.
        function: computes the output, given the operands.
    """

    operands: tuple[str, ...]
    sources: tuple[str | np.ndarray, ...]
    output: str
    records: Records
    function: Callable[..., np.ndarray]


def _key(arrays: Sequence[Any]) -> Hashable:
    """The types and shapes of arrays, of which whatever was checked holds for others too; None for other objects."""
    parts: list[Hashable] = []
    for array in arrays:
        if type(array) is not np.ndarray:
            return None
        parts += (array.dtype, array.shape)
    return tuple(parts)


@dataclass(frozen=True)
class Step:
    """One step of a program; values are numbered: inputs, constants, then the result of each step.

    Attributes:
        run: makes the result, given all values.
        reads: the numbers of the operands.
        last_reads: the values that nothing reads after it.
        source: what it computes.
    """

    run: Callable[[list[Any]], np.ndarray]
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
            result = step.run(values)
            values.append(result)
            if observe is not None:
                observe(step.source, [values[value] for value in step.reads], result)
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
) -> Program:
    """Make the program of a graph for inputs of known types and shapes.

    Args:
        graph: a graph without problems.
        outputs: its outputs, with their inferred types.
        bound: the inputs by value name; only their types and shapes are read.
        symbols: the sizes of the symbols of declared shapes.
        records_of: gives the records for a group that is the whole program.
    """
    types = {name: TensorType(of_numpy(array.dtype), of_sizes(array.shape)) for name, array in bound.items()}
    inference = infer_graph(with_inputs(graph, types))
    known = {} if inference.problems else inference.types
    constants = {name: tensor.array for name, tensor in graph.constants if name not in bound}
    swapped = {name for name, array in bound.items() if not array.dtype.isnative}
    made = {
        source.result if isinstance(source, Group) else source.outputs[0]: source for source in grouped(graph, known)
    }
    numbers = {name: number for number, name in enumerate((*bound, *constants, *made))}
    values = [port.value for port in outputs]
    found = []
    for port in outputs:
        maker = made.get(port.value)
        is_fresh = isinstance(maker, Group) or (maker is not None and maker.schema.behaviour in ("elementwise", "cast"))
        is_fresh = is_fresh and values.count(port.value) == 1
        is_ready = is_fresh and isinstance(maker, Group) and _is_ready(port, maker, symbols)
        found.append(Output(port, numbers[port.value], is_fresh, is_ready))
    is_one = len(made) == len(found) == 1 and found[0].is_ready
    steps: list[Step] = []
    for source, last_reads in zip(made.values(), _last_reads(graph, made), strict=True):
        reads = tuple(numbers[value] if value else _LEFT_OUT for value in _read(source))
        if isinstance(source, Group):
            run = _group_run(source, reads, swapped, records_of(source) if is_one else None)
        else:
            run = _node_run(source, reads)
        given = tuple(value for value in reads if value != _LEFT_OUT)
        steps.append(Step(run, given, tuple(numbers[value] for value in last_reads), source))
    return Program(tuple(constants.values()), tuple(steps), tuple(found), symbols)


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


def _node_run(node: Node, reads: tuple[int, ...]) -> Callable[[list[Any]], np.ndarray]:
    return lambda values: run_node(node, [None if value == _LEFT_OUT else values[value] for value in reads])


def _group_run(
    group: Group,
    reads: tuple[int, ...],
    swapped: set[str],
    records: Records | None,
) -> Callable[[list[Any]], np.ndarray]:
    """What computes a group; its errors name the node."""
    names = [operand.value for operand in group.operands]
    is_swapped = (False, *(name in swapped for name in names))
    given = None if group.divisors else records
    function = dispatch.prepare(group.expression, group.element_type, group.plan, is_swapped, given)

    def run(values: list[Any]) -> np.ndarray:
        for number, node in group.divisors:
            try:
                name = f"operand {node.schema.operand_name(1)}"
                check_divisor(values[reads[number]], group.plan, number, name, node.schema.versioned_name)
            except EltwiseError as error:
                raise located(error, node) from None
        try:
            return function(*[values[value] for value in reads])
        except EltwiseError as error:
            raise located(error, group.nodes[-1]) from None

    return run


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


def _last_reads(graph: Graph, made: Mapping[str, Group | Node]) -> list[tuple[str, ...]]:
    """For each step, the values that no later step and no output reads."""
    kept = {port.value for port in graph.outputs}
    found: list[tuple[str, ...]] = []
    for result, source in reversed(list(made.items())):
        values = dict.fromkeys(value for value in (*_read(source), result) if value and value not in kept)
        kept.update(values)
        found.append(tuple(values))
    return found[::-1]


def run_node(node: Node, inputs: Sequence[Any]) -> Any:
    """Run one node; its types and shapes are inferred from the arrays.

    Args:
        node: the node.
        inputs: arrays, also of Dask, or of xarray if the node is element-wise; None for an input that is left out.

    Raises:
        EltwiseError: for values that it cannot take, naming the node.
    """
    schema, data = node.schema, inputs[0] if inputs else None
    try:
        if schema.behaviour == "elementwise":
            return calls_of(node.operation).apply(inputs)
        if schema.behaviour == "constant":
            return constant_tensor(node.operation).array
        assert isinstance(schema, DataMovementSchema)
        assert data is not None
        types = [
            None if array is None else TensorType(of_numpy(array.dtype), of_sizes(array.shape)) for array in inputs
        ]
        indices = inputs[1] if schema.index_types and len(inputs) > 1 else None
        result = node_result(node, types, indices).type
        if schema.behaviour == "identity":
            return data
        if schema.behaviour == "cast":
            return _cast(data, cast_target(node.operation), node.operation.value("saturate") == 1)
        return data.reshape(result.shape.sizes())
    except EltwiseError as error:
        raise located(error, node) from None


def _cast(data: Any, target: ElementType, saturate: bool) -> Any:
    if not kind_of(data):
        return cast(data, of_numpy(data.dtype), target, saturate)
    from eltwise.engine.dask_arrays import cast_lazily  # Few graphs are run on lazy arrays.

    return cast_lazily(data, of_numpy(data.dtype), target, saturate)
