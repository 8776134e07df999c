"""The model as values: types, tensors, nodes that hold their resolved row, and graphs. It knows no file format."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from eltwise.core.dtypes import ElementType
from eltwise.core.errors import EltwiseError, GraphError, NameUnknownError, unknown_name
from eltwise.core.shapes import Shape, of_sizes
from eltwise.ops.schema import Domain, Operation, OpSchema

_LONGEST_CYCLE_SHOWN = 12


@dataclass(frozen=True)
class TensorType:
    """What is known of a tensor before it is there: its element type (None: not declared) and its shape."""

    element_type: ElementType | None
    shape: Shape

    def __str__(self) -> str:
        return f"{self.element_type or 'any type'}({self.shape})"


class Tensor:
    """A constant: a read-only array in native byte order, equal to another when type, shape and bits are equal."""

    def __init__(self, array: np.ndarray, element_type: ElementType) -> None:
        if array.dtype != element_type.storage:
            raise TypeError(f"an array of {array.dtype} is no {element_type}")
        self.array = np.ascontiguousarray(array).reshape(array.shape).view()
        self.array.flags.writeable = False
        self.element_type = element_type

    @property
    def type(self) -> TensorType:
        """Its element type and shape."""
        return TensorType(self.element_type, of_sizes(self.array.shape))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Tensor):
            return NotImplemented
        same_type = self.element_type is other.element_type and self.array.shape == other.array.shape
        return same_type and self.array.tobytes() == other.array.tobytes()

    def __hash__(self) -> int:
        return hash((self.element_type.name, self.array.shape, self.array.tobytes()))

    def __repr__(self) -> str:
        return f"Tensor({self.type})"


@dataclass(frozen=True)
class Port:
    """An input or output of a graph, as a caller sees it.

    Attributes:
        name: what it is called; the key of ``Model.run``'s arguments and results.
        type: the type that the caller gives or gets.
        value: the value inside the graph.
        inner_type: the element type of that value. It differs from ``type`` only in OpenVINO IR 10, where
            f16 inputs are given as float32 and most outputs are given back as float32 or int32.
        aliases: other names that it can be addressed by.
        layer: the name of the file's own node for it, where the format has one (OpenVINO's Result).
    """

    name: str
    type: TensorType
    value: str
    inner_type: ElementType | None = None
    aliases: tuple[str, ...] = ()
    layer: str = ""


@dataclass(frozen=True)
class Node:
    """One operation on named values; an input that is left out has the empty name."""

    name: str
    operation: Operation
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]

    @property
    def schema(self) -> OpSchema:
        """The operator version that it is."""
        return self.operation.schema

    @property
    def label(self) -> str:
        """Its name, or the name of what it makes where it has none."""
        return self.name or next(iter(self.outputs), "")


@dataclass(frozen=True)
class Origin:
    """Which dialect a graph is written in, and the stamps that its file carries.

    Attributes:
        domain: the specification whose rows the nodes hold.
        file_version: ONNX's ir_version, or the version of the OpenVINO IR (10 or 11).
        opset: the ONNX opset; 0 for OpenVINO, where each layer has its own.
        other_opsets: the opset imports of other ONNX domains.
    """

    domain: Domain
    file_version: int
    opset: int = 0
    other_opsets: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True)
class Graph:
    """A model: nodes in an order in which each finds its inputs made.

    Attributes:
        name: the graph's name.
        origin: the dialect and its stamps.
        inputs: what a caller must give.
        outputs: what a caller gets.
        nodes: the operations.
        constants: values that are in the file, by name.
        optional_inputs: constants that a caller may replace: ONNX graph inputs that are also initializers.
        input_order: the names of all inputs in the file's order.
        declared: the types that the file states for other values.
        tensor_names: further names of values (OpenVINO's tensor names).
        metadata: what else the file says of itself, as text, in the file's order.
        not_held: what the file says beside all that, a phrase each: ``the doc strings of 2 nodes``. None of it changes
            a result, and two graphs are equal without it.
    """

    name: str
    origin: Origin
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    nodes: tuple[Node, ...] = ()
    constants: tuple[tuple[str, Tensor], ...] = ()
    optional_inputs: tuple[Port, ...] = ()
    input_order: tuple[str, ...] = ()
    declared: tuple[tuple[str, TensorType], ...] = ()
    tensor_names: tuple[tuple[str, tuple[str, ...]], ...] = ()
    metadata: tuple[tuple[str, str], ...] = ()
    not_held: tuple[str, ...] = field(default=(), compare=False)

    @cached_property
    def constant(self) -> dict[str, Tensor]:
        """The constants by name."""
        return dict(self.constants)

    def find_input(self, name: str) -> Port:
        """Find an input by its name, another of its names, or its position among the required ones.

        Raises:
            NameUnknownError: where there is none.
        """
        return _find(name, (*self.inputs, *self.optional_inputs), len(self.inputs), "input")

    def find_output(self, name: str) -> Port:
        """Find an output by its name, another of its names, or its position.

        Raises:
            NameUnknownError: where there is none.
        """
        return _find(name, self.outputs, len(self.outputs), "output")


def _find(name: str, ports: tuple[Port, ...], positions: int, kind: str) -> Port:
    for port in ports:
        if name == port.name:
            return port
    aliased = [port for port in ports if name in port.aliases]
    if len(aliased) == 1:
        return aliased[0]
    if aliased:
        choices = ", ".join(port.name for port in aliased)
        raise NameUnknownError(f"{kind} {name!r} is not one but several", allowed=choices)
    if name.isascii() and name.isdigit() and len(name) < 10 and int(name) < positions:
        return ports[int(name)]
    raise unknown_name(kind, name, [port.name for port in ports])


def structure_problems(graph: Graph, unresolved: frozenset[str] = frozenset()) -> list[EltwiseError]:
    """Find what makes a graph no graph: names made twice, inputs that nothing makes, nodes out of order.

    ``unresolved`` are values whose nodes could not be read and are reported as such already.
    """
    problems: list[EltwiseError] = []
    made = dict.fromkeys(unresolved, "a node that could not be read")

    def make(value: str, by: str, node: str = "") -> None:
        if value in made:
            problems.append(GraphError(f"the value {value!r} is made twice, by {made[value]} and by {by}", node=node))
        made.setdefault(value, by)

    for port in graph.inputs:
        make(port.value, "an input")
    for name, _tensor in graph.constants:
        make(name, "a constant")
    cycles = _Cycles(graph.nodes)
    for node in graph.nodes:
        for value in node.inputs:
            if value and value not in made:
                problems += cycles.not_made(node, value)
        for output in node.outputs:
            make(output, f"node {node.label!r}", node.label)
    for port in graph.outputs:
        if port.value not in made:
            problems.append(GraphError(f"nothing makes the output {port.name!r}"))
    if not graph.outputs:
        problems.append(GraphError("the graph has no output"))
    return problems


class _Cycles:
    """Tells a node that only stands too early from one on a cycle, and names each cycle once."""

    def __init__(self, nodes: tuple[Node, ...]) -> None:
        self._maker = {output: node for node in nodes for output in node.outputs}
        feeds = {id(node): {id(maker) for maker in self._makers(node)} for node in nodes}
        self._near = _peeled(_turned(_peeled(feeds)))
        self._named: set[int] = set()

    def _makers(self, node: Node) -> list[Node]:
        return [self._maker[value] for value in node.inputs if value in self._maker]

    def not_made(self, node: Node, value: str) -> list[GraphError]:
        """Say why a value is not there when a node needs it; nothing where a named cycle says so already."""
        place = {"operator": node.schema.versioned_name, "node": node.label, "operand": f"input {value!r}"}
        maker = self._maker.get(value)
        if maker is None:
            return [GraphError("nothing makes this input", **place)]
        if {id(node), id(maker)} <= self._named:
            return []
        path = self._path(maker, node) if {id(node), id(maker)} <= self._near.keys() else []
        if path:
            self._named |= set(map(id, path))
            labels = [step.label for step in [*path, node]]
            if len(path) > _LONGEST_CYCLE_SHOWN:
                labels = [*labels[:_LONGEST_CYCLE_SHOWN], f"... ({len(path)} nodes in all)"]
            return [GraphError(f"the nodes {' -> '.join(labels)} form a cycle", **place)]
        wanted = "nodes in topological order"
        return [GraphError(f"only the later node {maker.label!r} makes this input", allowed=wanted, **place)]

    def _path(self, start: Node, goal: Node) -> list[Node]:
        """The nodes from ``goal`` on to ``start``, where start feeds goal; empty where they do not meet."""
        reader: dict[int, Node] = {}
        waiting = [start]
        while waiting:
            node = waiting.pop()
            if node is goal:
                path = [node]
                while node is not start:
                    node = reader[id(node)]
                    path.append(node)
                return path
            for maker in self._makers(node):
                if maker is not start and id(maker) not in reader:
                    reader[id(maker)] = node
                    waiting.append(maker)
        return []


def _peeled(feeds: dict[int, set[int]]) -> dict[int, set[int]]:
    """Take away, again and again, the nodes that no node feeds: what is left lies on or behind a cycle."""
    readers = _turned(feeds)
    waits_for = {node: len(makers) for node, makers in feeds.items()}
    ready = [node for node, count in waits_for.items() if not count]
    for node in ready:
        for reader in readers[node]:
            waits_for[reader] -= 1
            if not waits_for[reader]:
                ready.append(reader)
    gone = set(ready)
    return {node: makers - gone for node, makers in feeds.items() if node not in gone}


def _turned(feeds: dict[int, set[int]]) -> dict[int, set[int]]:
    """The same arrows in the other direction."""
    readers: dict[int, set[int]] = {node: set() for node in feeds}
    for node, makers in feeds.items():
        for maker in makers:
            readers[maker].add(node)
    return readers
