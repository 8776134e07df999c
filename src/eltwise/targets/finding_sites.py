"""The op sites of a graph: every element-wise node of it and of the graphs in its nodes, and what is around it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import get_args

from eltwise.core.dtypes import ElementType
from eltwise.core.errors import EltwiseError
from eltwise.core.shapes import UNKNOWN_RANK
from eltwise.ir.graph import Graph, Node, Tensor, TensorType
from eltwise.ir.infer_graph import infer_graph
from eltwise.ops.schema import ElementwiseSchema
from eltwise.targets.constants import Held, held_as, is_plain, unknown_numbers
from eltwise.targets.sites import Operand, Producer, Site, pairs_of, patterns_of, read_wider, sources_of

PRODUCERS = {
    "ai.onnx": ("subtract", "add", "multiply"),
    "openvino": ("subtract", "add", "multiply", "squared_difference"),
}
"""What producers compute that were measured in pairs, by format."""

_RANDOM = ("RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike", "Bernoulli", "Multinomial")
_FEW_BITS = 4
_ANY_HELD: tuple[Held, ...] = get_args(Held)
_ANY_CONSTANT = _ANY_HELD[1:]


def find_sites(graph: Graph, typed: Graph | None = None) -> Iterator[Site]:
    """Find the op sites of a graph and of the graphs in its nodes; no weights are read that are not in memory.

    The bodies of functions are left out: the types in them depend on the call.

    Args:
        graph: the graph.
        typed: the same nodes in the same order in a graph that declares the types of values which foreign nodes make.
    """
    yield from _sites(graph, typed or graph, None)


def _sites(graph: Graph, typed: Graph, outer: _Scope | None) -> Iterator[Site]:
    scope = _Scope(graph, typed, outer)
    for node, twin in zip(graph.nodes, typed.nodes, strict=True):
        if isinstance(node.schema, ElementwiseSchema) and not node.is_foreign:
            yield _site(node, node.schema, scope)
        for (_name, inner), (_same, typed_inner) in zip(node.graphs, twin.graphs, strict=True):
            yield from _sites(inner, typed_inner, scope)


def _site(node: Node, schema: ElementwiseSchema, scope: _Scope) -> Site:
    element_type = scope.element_type(node)
    site = Site(
        node.label, schema, element_type, node.operation.rule.name, is_beside_foreign=scope.is_beside_foreign(node)
    )
    if len(node.inputs) != 2 or element_type is None:
        return site
    a, b = node.inputs
    shapes = scope.type_of(a).shape, scope.type_of(b).shape
    is_static = all(shape.is_known for shape in shapes)
    constant = scope.is_constant(a), scope.is_constant(b)
    sources = sources_of(
        constant,
        (scope.is_made_of_constants(a), scope.is_made_of_constants(b)),
        is_static=is_static,
        has_neighbours=scope.has_neighbours(node),
        is_plain=sum(constant) == 1 and scope.is_plain(a if constant[0] else b, element_type),
    )
    pairs = pairs_of(
        element_type, scope.operand(a), scope.operand(b), is_static=is_static, producers=PRODUCERS[schema.domain]
    )
    site = replace(site, patterns=patterns_of(node.operation.rule, *shapes), sources=sources, pairs=pairs)
    return read_wider(site) if scope.is_brought_further(node, element_type) else site


class _Scope:
    """A graph with what is around it: which values are constants, and which nodes make and read them."""

    def __init__(self, graph: Graph, typed: Graph, outer: _Scope | None) -> None:
        self._graph = graph
        self._outer = outer
        self._types: Mapping[str, TensorType] = _types(graph, typed)
        self._producers = {value: node for node in graph.nodes for value in node.outputs if value}
        self._inputs = {port.value for port in graph.inputs}
        self._given = {port.value for port in graph.outputs}
        self._optional = {port.value for port in graph.optional_inputs}
        self._readers = Counter(value for node in self._needed() for value in _reads(node))
        others = [node for node in graph.nodes if not isinstance(node.schema, ElementwiseSchema)]
        self._read_otherwise = {value for node in others for value in _reads(node)}
        self._read_by_foreign = {value for node in others if node.is_foreign for value in _reads(node)}
        self._read = {value for node in graph.nodes for value in _reads(node)}
        self._are_made_of_constants: dict[str, bool] = {}
        # OpenVINO gives the results of an IR 10 in other types, so that they are read too.
        self._are_results_read = graph.origin.domain == "openvino" and graph.origin.file_version == 10

    def type_of(self, value: str) -> TensorType:
        """The type of a value as far as it is known."""
        owner = self._owner(value)
        return owner._types.get(value, _UNKNOWN) if owner else self._types.get(value, _UNKNOWN)

    def element_type(self, node: Node) -> ElementType | None:
        """The type of a node's operands."""
        known = (self.type_of(value).element_type for value in (*node.inputs, *node.outputs))
        return next((found for found in known if found is not None), None)

    def is_constant(self, value: str) -> bool:
        """Whether a value is a constant that no caller replaces."""
        owner = self._owner(value)
        if owner is None or value in owner._optional:
            return False
        producer = owner._producers.get(value)
        return value in owner._graph.constant or (producer is not None and producer.schema.behaviour == "constant")

    def is_plain(self, value: str, element_type: ElementType) -> bool:
        """Whether a constant is known to have plain numbers only."""
        tensor = self._tensor(value)
        return tensor is not None and is_plain(tensor.array, element_type)

    def operand(self, value: str) -> Operand:
        """What is known of an operand."""
        if self.is_constant(value):
            tensor, shape = self._tensor(value), self.type_of(value).shape
            if tensor is not None:
                return Operand(held_as(tensor.array))
            return Operand(unknown_numbers(prod(shape.sizes())) if shape.is_known else _ANY_CONSTANT)
        held: tuple[Held, ...] = _ANY_HELD if self.is_made_of_constants(value) else ("run-time",)
        return Operand(held, self._producer_of_operand(value))

    def has_neighbours(self, node: Node) -> bool:
        """Whether nodes make an operand or read the result."""
        made = any(
            not self.is_constant(value) and ((owner := self._owner(value)) is None or value in owner._producers)
            for value in node.inputs
        )
        return made or node.outputs[0] in self._read

    def is_brought_further(self, node: Node, element_type: ElementType) -> bool:
        """Whether a node that is no element-wise one, whose pair that would be, reads the result in another type."""
        value = node.outputs[0]
        # What stays in 8 bits shows in a pair of nodes of more bits; of 4 bits it takes three to overflow there.
        if self._graph.origin.domain == "openvino" and element_type.bits <= _FEW_BITS and value in self._read:
            return True
        return value in self._read_otherwise or (self._are_results_read and value in self._given)

    def is_beside_foreign(self, node: Node) -> bool:
        """Whether an operator that eltwise does not know makes an operand or reads the result."""
        producers = (owner._producers.get(value) for value in node.inputs if (owner := self._owner(value)))
        is_after = any(producer is not None and producer.is_foreign for producer in producers)
        return is_after or any(value in self._read_by_foreign for value in node.outputs)

    def is_made_of_constants(self, value: str) -> bool:
        """Whether a value is a constant, or made by nodes of constants only."""
        waiting = [value]
        while waiting:
            current = waiting[-1]
            unknown = [name for name in self._made_of(current) if name not in self._are_made_of_constants]
            if current not in self._are_made_of_constants and unknown:
                self._are_made_of_constants[current] = False  # Holds on a cycle, which no valid model has.
                waiting += unknown
                continue
            waiting.pop()
            owner = self._owner(current)
            made_of = self._made_of(current)
            # A runtime may take an input that has a value for a constant.
            is_held = self.is_constant(current) or (owner is not None and current in owner._graph.constant)
            self._are_made_of_constants[current] = is_held or (
                bool(made_of) and all(self._are_made_of_constants[name] for name in made_of)
            )
        return self._are_made_of_constants[value]

    def _made_of(self, value: str) -> list[str]:
        """What the node that makes a value reads; nothing where that may be another value at each run."""
        node = self._producer(value)
        if node is None or node.schema.name in _RANDOM or node.graphs:
            return []
        return [name for name in node.inputs if name]

    def _producer_of_operand(self, value: str) -> Producer | None:
        """The node that makes a value; those that only hand it on do not count."""
        is_shared = False
        while (node := self._producer(value)) is not None:
            is_shared = is_shared or self._readers[value] > 1 or value in self._given
            if node.schema.behaviour == "identity" and node.inputs:
                value = node.inputs[0]
                continue
            function = node.schema.function if isinstance(node.schema, ElementwiseSchema) else ""
            if function in PRODUCERS[self._graph.origin.domain]:
                has_constant = any(self.is_made_of_constants(name) for name in node.inputs if name)
                return Producer(function, has_constant, is_shared)
            return Producer("cast" if node.schema.behaviour == "cast" else "")
        owner = self._owner(value)
        return None if owner is not None and owner._outer is None else Producer("")

    def _producer(self, value: str) -> Node | None:
        owner = self._owner(value)
        return owner._producers.get(value) if owner else None

    def _tensor(self, value: str) -> Tensor | None:
        """A constant's tensor where its numbers are in memory."""
        owner = self._owner(value)
        tensor = owner._graph.constant.get(value) if owner else None
        if tensor is None or getattr(tensor, "is_external", False):
            return None
        try:
            return Tensor(tensor.array, tensor.element_type)
        except EltwiseError:
            return None  # It is no tensor; the checks of the model say so.

    def _owner(self, value: str) -> _Scope | None:
        """The innermost graph that has a value."""
        has_it = value in self._producers or value in self._graph.constant or value in self._inputs
        if has_it or value in self._optional:
            return self
        return self._outer._owner(value) if self._outer else None

    def _needed(self) -> Iterator[Node]:
        """The nodes that outputs need, each once; what none needs runtimes leave out first, so that it shares nothing."""
        waiting = list(self._given)
        found: set[int] = set()
        while waiting:
            node = self._producers.get(waiting.pop())
            if node is not None and id(node) not in found:
                found.add(id(node))
                waiting += _reads(node)
                yield node


def _types(graph: Graph, typed: Graph) -> dict[str, TensorType]:
    """The types of the values of a graph, as far as they are declared or can be inferred."""
    ports = {port.value: port.type for port in typed.outputs}
    return ports | dict(typed.declared) | infer_graph(replace(graph, declared=typed.declared)).types


def _reads(node: Node) -> Sequence[str]:
    """What a node reads, and the graphs in it."""
    found = [value for value in node.inputs if value]
    for _name, inner in node.graphs:
        found += [value for one in inner.nodes for value in _reads(one)]
        found += [port.value for port in inner.outputs]
    return found


_UNKNOWN = TensorType(None, UNKNOWN_RANK)
