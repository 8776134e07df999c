"""The graphs of a model, one in another: which values their nodes see, what is known of them, and free names.

``scopes_of`` gives every node of a model with its scope: nested graphs and functions too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from eltwise.core.shapes import Shape
from eltwise.ir.graph import Graph, Node, Tensor
from eltwise.ir.infer import constant_tensor
from eltwise.ir.types import UNKNOWN_TYPE, TensorType
from eltwise.ir.verify import reads

Types = dict[str, TensorType]


@dataclass(eq=False)
class Scope:
    """A graph, or the body of a function, with what its nodes see.

    Attributes:
        graph: the graph.
        parent: the scope around it; None for the model's graph and for functions.
        is_in_function: whether it is the body of a function, or lies in one.
        own_types: the types of the values that the graph makes, as far as they are known.
        inner: the scopes of the graphs in its nodes, by the graph's id.
    """

    graph: Graph
    parent: Scope | None
    is_in_function: bool
    own_types: Types
    inner: dict[int, Scope] = field(default_factory=dict, repr=False)

    @cached_property
    def producers(self) -> dict[str, Node]:
        """The node that makes each value."""
        return {value: node for node in self.graph.nodes for value in node.outputs if value}

    @cached_property
    def inputs(self) -> frozenset[str]:
        """The values that a caller gives or may replace."""
        return frozenset(port.value for port in (*self.graph.inputs, *self.graph.optional_inputs))

    @cached_property
    def consumers(self) -> dict[str, list[Node]]:
        """The nodes that read each value, those too in whose graphs it is read."""
        readers: dict[str, list[Node]] = {}
        for node in self.graph.nodes:
            for value in dict.fromkeys(reads(node)):
                readers.setdefault(value, []).append(node)
        return readers

    def owner(self, value: str) -> Scope | None:
        """The scope that has a value, this one or one around it."""
        scope: Scope | None = self
        while scope and not (value in scope.producers or value in scope.inputs or value in scope.graph.constant):
            scope = scope.parent
        return scope

    def producer(self, value: str) -> Node | None:
        """The node that makes a value, here or in a graph around this one."""
        owner = self.owner(value)
        return owner.producers.get(value) if owner else None

    def type_of(self, value: str) -> TensorType:
        """The type of a value as far as it is known."""
        owner = self.owner(value)
        if owner is None:
            return UNKNOWN_TYPE
        if value in owner.graph.constant and value not in owner.inputs:
            return owner.graph.constant[value].type
        return owner.own_types.get(value, UNKNOWN_TYPE)

    def shape(self, value: str) -> Shape:
        """The shape of a value as far as it is known."""
        return self.type_of(value).shape

    def constant(self, value: str) -> Tensor | None:
        """The tensor that a value always is; None where a caller may set it, a node computes it, or it is sparse."""
        owner = self.owner(value)
        if owner is None or value in owner.inputs:
            return None
        tensor = owner.graph.constant.get(value)
        if tensor is not None:
            return None if tensor.is_sparse else tensor
        producer = owner.producers.get(value)
        if producer is None or producer.schema.behaviour != "constant" or len(producer.bound.attributes) != 1:
            return None
        return constant_tensor(producer.bound)


def scopes_of(graph: Graph, types: Mapping[int, Types]) -> Iterator[Scope]:
    """The scopes of a model's graph, its nested graphs and its functions, an outer one before those in it.

    Args:
        graph: the model's graph.
        types: the types of the values that each graph makes, by the graph's id; each scope has a copy.
    """
    yield from _scopes(graph, None, False, types)
    for function in graph.functions:
        yield from _scopes(function.body, None, True, {})


def _scopes(graph: Graph, parent: Scope | None, in_function: bool, types: Mapping[int, Types]) -> Iterator[Scope]:
    scope = Scope(graph, parent, in_function, dict(graph.declared if in_function else types.get(id(graph), {})))
    if parent is not None:
        parent.inner[id(graph)] = scope
    yield scope
    for node in graph.nodes:
        for _name, inner in node.graphs:
            yield from _scopes(inner, scope, in_function, types)


def all_graphs(graph: Graph) -> Iterator[Graph]:
    """A model's graph, the bodies of its functions and all graphs in their nodes."""
    waiting = [graph, *(function.body for function in graph.functions)]
    while waiting:
        body = waiting.pop()
        yield body
        waiting += (inner for node in body.nodes for _name, inner in node.graphs)


def annotated(graph: Graph) -> set[str]:
    """The values of an ONNX graph that a quantization annotation names."""
    message = getattr(getattr(graph.message, "model", None), "graph", graph.message)
    annotations = getattr(message, "quantization_annotation", ())
    named = {entry.value for annotation in annotations for entry in annotation.quant_parameter_tensor_names}
    return named.union(annotation.tensor_name for annotation in annotations)


class Names:
    """The names in a model with all its nested graphs and functions: how often each value is read, and free ones.

    Sibling graphs may use one name for two values. Their reads are counted together, so that a count of one is always
    true and a larger one may be too large.
    """

    def __init__(self, graph: Graph | None = None) -> None:
        self._taken: set[str] = set()
        self._numbers: Counter[str] = Counter()
        self._reads: Counter[str] = Counter()
        self._makers: Counter[str] = Counter()
        self._inputs: set[str] = set()
        functions = {id(function.body) for function in graph.functions} if graph else set()
        for body in all_graphs(graph) if graph else ():
            self._add(body, id(body) in functions)
        self.take((*self._reads, *self._makers, *self._inputs))

    def _add(self, graph: Graph, is_function: bool) -> None:
        inputs = [port.value for port in (*graph.inputs, *graph.optional_inputs)]
        self.take(inputs)
        self._inputs.update(() if is_function else inputs)
        self.take(name for name, _type in graph.declared)
        self._makers.update(name for name, _tensor in graph.constants)
        self._reads.update(port.value for port in graph.outputs)
        for node in graph.nodes:
            self._taken.add(node.name)
            self._makers.update(node.outputs)
            self._reads.update(node.inputs)
        self._reads.update(annotated(graph))

    def take(self, names: Iterable[str]) -> None:
        """Note that values have these names."""
        self._taken.update(names)

    def fresh(self, preferred: str) -> str:
        """Take a free name: the wanted one, or one with a number behind it."""
        name = preferred
        while not name or name in self._taken:
            self._numbers[preferred] += 1
            name = f"{preferred}_{self._numbers[preferred]}"
        self._taken.add(name)
        return name

    def is_read_once(self, name: str) -> bool:
        """Whether exactly one node reads a value that one place makes, no graph gives it out and no caller sets it."""
        return self._reads[name] == 1 and self._makers[name] == 1 and name not in self._inputs

    def is_read(self, name: str) -> bool:
        """Whether a node or a graph's output reads a value, or a caller sets it."""
        return self._reads[name] > 0 or name in self._inputs
