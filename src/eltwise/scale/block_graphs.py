"""Element-wise graphs as functions of blocks: the same operators, on parts that have the rank of the output."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from eltwise.core.errors import UnsupportedError, raise_all
from eltwise.core.reshaping import of_rank
from eltwise.core.shapes import Sizes, of_sizes
from eltwise.engine.call import typed_call
from eltwise.engine.program import run_node, with_inputs
from eltwise.engine.runner import Runner
from eltwise.ir.graph import Graph, Node, Port
from eltwise.ir.infer import located
from eltwise.ir.infer_graph import infer_graph
from eltwise.ir.tensors import Tensor, of_array
from eltwise.ir.types import TensorType
from eltwise.ops.schema import ElementwiseSchema, Operation
from eltwise.scale.blocks import Axes, BlockCall

Place = tuple[str, Axes]
"""A value of a graph, and the axes of the output that its own lie in."""


def block_call(graph: Graph, output: Port, inputs: Mapping[str, Tensor]) -> BlockCall:
    """Make the function that computes blocks of an output.

    Raises:
        UnsupportedError: where an element is computed from more than what lies at its place in the inputs.
        EltwiseError: where types and shapes do not go together.
    """
    inference = infer_graph(with_inputs(graph, {name: tensor.type for name, tensor in inputs.items()}))
    raise_all(inference.problems)
    tensors = {**_constants(graph, inputs), **inputs}
    types = inference.types | {name: tensor.type for name, tensor in tensors.items()}
    end: Place = (output.value, tuple(range(len(_sizes(types, output.value)))))
    names = _names(_wanted(graph, types, tensors, end))
    nodes = tuple(_nodes(graph, types, tensors, names))
    leaves = [(value, axes) for value, axes in names if value in tensors]
    rank, element_type = of_rank(len(end[1])), types[output.value].element_type
    assert element_type is not None
    ports = tuple(Port(names[each], TensorType(types[each[0]].element_type, rank), names[each]) for each in leaves)
    whole = Port(output.name, TensorType(element_type, rank), names[end])
    runner = Runner(Graph(graph.name, graph.origin, ports, (whole,), nodes), (whole,))

    def function(blocks: Sequence[np.ndarray]) -> np.ndarray:
        return runner.run({port.name: block for port, block in zip(ports, blocks, strict=True)})[whole.name]

    return BlockCall(
        function,
        tuple(tensors[value] for value, _axes in leaves),
        tuple(axes for _value, axes in leaves),
        _sizes(types, output.value),
        element_type,
        _most_alive(nodes),
    )


def _constants(graph: Graph, inputs: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The values that do not depend on the inputs."""
    arrays = {name: tensor.array for name, tensor in graph.constants if name not in inputs}
    for node in graph.nodes:
        if all(value in arrays for value in node.inputs if value):
            arrays[node.outputs[0]] = run_node(node, [arrays[value] if value else None for value in node.inputs])
    return {name: of_array(name, array) for name, array in arrays.items()}


def _wanted(
    graph: Graph, types: Mapping[str, TensorType], tensors: Mapping[str, Tensor], end: Place
) -> dict[str, dict[Axes, None]]:
    """The values that the output is made of, with all the ways in which they lie in it."""
    axes_of: dict[str, dict[Axes, None]] = {end[0]: {end[1]: None}}
    for node in reversed(graph.nodes):
        output = node.outputs[0]
        for axes in axes_of.get(output, ()) if output not in tensors else ():
            for value, inner in _operands(node, types, axes):
                axes_of.setdefault(value, {})[inner] = None
    return axes_of


def _operands(node: Node, types: Mapping[str, TensorType], axes: Axes) -> list[Place]:
    """Where the operands of a node lie when its result lies in some axes."""
    behaviour, data = node.schema.behaviour, node.inputs[0]
    if any(node.inputs[1:]) and (behaviour == "identity" or node.bound.type_only is not None):
        raise located(UnsupportedError("an operand decides the type or the mode, so that it needs whole runs"), node)
    if behaviour == "elementwise":
        computation, values = node.computation(lambda value: types[value].element_type)
        operands = [TensorType(types[value].element_type, of_sizes(_sizes(types, value))) for value in values]
        plan = typed_call(computation, operands).plan
        return [(value, tuple(axes[each] for each in on)) for value, on in zip(values, plan.axes, strict=True)]
    if behaviour == "identity":
        return [(data, axes)]
    sizes, result = _sizes(types, data), _sizes(types, node.outputs[0])
    if [size for size in sizes if size != 1] != [size for size in result if size != 1]:
        raise located(UnsupportedError("this moves elements, so that the model cannot run block by block"), node)
    long = iter([axis for axis, size in zip(axes, result, strict=True) if size != 1])
    return [(data, tuple(None if size == 1 else next(long) for size in sizes))]


def _sizes(types: Mapping[str, TensorType], value: str) -> Sizes:
    shape = types[value].shape
    if not shape.is_known:
        raise UnsupportedError("the shape depends on values", operand=repr(value), got=f"({shape})")
    return shape.sizes()


def _names(axes_of: Mapping[str, Mapping[Axes, None]]) -> dict[Place, str]:
    """A name for every value and way in which it lies in the output: its own for the first one."""
    names: dict[Place, str] = {}
    used = set(axes_of)
    for value, ways in axes_of.items():
        name = value
        for axes in ways:
            names[value, axes] = name
            while name in used:
                name += "'"
            used.add(name)
    return names


def _nodes(
    graph: Graph, types: Mapping[str, TensorType], tensors: Mapping[str, Tensor], names: dict[Place, str]
) -> Iterator[Node]:
    """The nodes on parts; a value that is only moved gets the name of what it is made of."""
    ways: dict[str, list[Axes]] = {}
    for value, axes in names:
        ways.setdefault(value, []).append(axes)
    for node in graph.nodes:
        output, behaviour = node.outputs[0], node.schema.behaviour
        for axes in ways.get(output, ()) if output not in tensors else ():
            operands = iter([names[read] for read in _operands(node, types, axes)])
            inputs = tuple(next(operands, "") if value else "" for value in node.inputs)
            if behaviour == "elementwise":
                yield Node(node.name, _aligned(node.bound), inputs, (names[output, axes],))
            else:
                names[output, axes] = inputs[0]


def _aligned(operation: Operation) -> Operation:
    """The same operation of operands that have the rank of the result, so that NumPy's rule is theirs."""
    assert isinstance(operation.schema, ElementwiseSchema)
    return replace(operation, schema=replace(operation.schema, broadcasting="numpy", keeps_shape=False))


def _most_alive(nodes: Sequence[Node]) -> int:
    """How many results are held at a time, if no nodes are fused."""
    last = {value: number for number, node in enumerate(nodes) for value in node.inputs}
    alive = most = 0
    produced: set[str] = set()
    for number, node in enumerate(nodes):
        produced |= {*node.outputs}
        alive += 1
        most = max(most, alive)
        alive -= sum(value in produced and last[value] == number for value in {*node.inputs})
    return max(most, 1)
