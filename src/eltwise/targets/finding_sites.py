"""The op sites of a graph: every element-wise node of it and of the graphs in its nodes, and what is around it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from math import prod
from typing import get_args

from eltwise.core.dtypes import INT32, ElementType
from eltwise.core.errors import EltwiseError
from eltwise.formats.onnx.tensors import StoredTensor
from eltwise.ir.graph import Graph, Node, Tensor
from eltwise.ir.verify import reads
from eltwise.ops.schema import ElementwiseSchema
from eltwise.passes.scopes import Scope, all_scopes
from eltwise.targets.constants import Held, fits_int32, held_as, is_plain, unknown_numbers
from eltwise.targets.sites import Operand, Producer, Site, pairs_of, patterns_of, read_wider, sources_of

PRODUCERS = {
    "ai.onnx": ("subtract", "add", "multiply"),
    "openvino": ("subtract", "add", "multiply", "squared_difference"),
}
"""What producers compute that are measured in pairs, by format."""

_RANDOM = ("RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike", "Bernoulli", "Multinomial")
_FEW_BITS = 4
_SIZES = ("Shape", "Size", "ShapeOf")
_KEEPING_SIZES = (
    *("Cast", "Concat", "Convert", "Expand", "Flatten", "Gather", "Identity", "Max", "Min", "Mod", "Reshape", "Slice"),
    *("Split", "Squeeze", "Transpose", "Unsqueeze"),
)
"""Operators that make sizes, and those that give some of what they read, or less."""
_ANY_HELD: tuple[Held, ...] = get_args(Held)


def find_sites(graph: Graph) -> Iterator[Site]:
    """Find the op sites of a graph and of the graphs in its nodes; external data is not read.

    The bodies of functions are left out: the types in them depend on the call.
    """
    for scope in all_scopes(graph):
        if not scope.is_in_function:
            around = _Around(scope)
            yield from (
                _site(node, node.schema, around)
                for node in scope.graph.nodes
                if isinstance(node.schema, ElementwiseSchema) and not node.is_foreign
            )


def _site(node: Node, schema: ElementwiseSchema, around: _Around) -> Site:
    scope = around.scope
    types = (scope.type_of(value).element_type for value in (*node.inputs, *node.outputs))
    element_type = next((found for found in types if found is not None), None)
    site = Site(
        node.label, schema, element_type, node.operation.rule.name, is_beside_foreign=around.is_beside_foreign(node)
    )
    if len(node.inputs) != 2 or element_type is None:
        return site
    a, b = node.inputs
    shapes = scope.shape(a), scope.shape(b)
    is_static = all(shape.is_known for shape in shapes)
    constant = around.is_constant(a), around.is_constant(b)
    sources = sources_of(
        constant,
        (around.is_made_of_constants(a), around.is_made_of_constants(b)),
        is_static=is_static,
        has_neighbours=around.has_neighbours(node),
        is_plain=sum(constant) == 1 and around.is_plain(a if constant[0] else b, element_type),
    )
    pairs = pairs_of(
        element_type, around.operand(a), around.operand(b), is_static=is_static, producers=PRODUCERS[schema.domain]
    )
    are_sizes = element_type.is_integer and element_type.bits >= INT32.bits and all(map(around.is_size, node.inputs))
    patterns = patterns_of(node.operation.rule, *shapes)
    site = replace(site, patterns=patterns, sources=sources, pairs=pairs, are_sizes=are_sizes)
    return read_wider(site) if around.is_brought_further(node, element_type) else site


class _Around:
    """What is around the nodes of a scope: which values are constants, and which nodes make and read them."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self._given = {port.value for port in scope.graph.outputs}
        self._readers = Counter(value for node in self._needed() for value in reads(node))
        self._are_made_of_constants: dict[str, bool] = {}
        self._are_sizes: dict[str, bool] = {}
        origin = scope.graph.origin
        self._is_ir = origin.domain == "openvino"
        # OpenVINO gives the results of an IR 10 in other types, so that they are read too.
        self._are_results_read = self._is_ir and origin.file_version == 10

    def is_constant(self, value: str) -> bool:
        """Whether a value is a constant that no caller replaces."""
        owner = self.scope.owner(value)
        if owner is None or value in owner.inputs:
            return False
        producer = owner.producers.get(value)
        return value in owner.graph.constant or (producer is not None and producer.schema.behaviour == "constant")

    def is_plain(self, value: str, element_type: ElementType) -> bool:
        """Whether a constant is known to have plain numbers only."""
        tensor = self._numbers(value)
        return tensor is not None and is_plain(tensor.array, element_type)

    def operand(self, value: str) -> Operand:
        """What is known of an operand."""
        if self.is_constant(value):
            tensor, shape = self._numbers(value), self.scope.shape(value)
            if tensor is not None:
                return Operand(held_as(tensor.array))
            return Operand(unknown_numbers(prod(shape.sizes())) if shape.is_known else _ANY_HELD[1:])
        held: tuple[Held, ...] = _ANY_HELD if self.is_made_of_constants(value) else ("run-time",)
        return Operand(held, self._producer_of_operand(value))

    def has_neighbours(self, node: Node) -> bool:
        """Whether nodes make an operand or read the result."""
        made = (not self.is_constant(value) and self._is_made(value) for value in node.inputs)
        return any(made) or node.outputs[0] in self.scope.consumers

    def _is_made(self, value: str) -> bool:
        owner = self.scope.owner(value)
        return owner is None or value in owner.producers

    def is_brought_further(self, node: Node, element_type: ElementType) -> bool:
        """Whether a node that is no element-wise one, whose pair that would be, reads the result in another type."""
        value = node.outputs[0]
        consumers = self.scope.consumers.get(value, [])
        # What stays in 8 bits shows in a pair of nodes of more bits; of 4 bits it takes three to overflow there.
        if self._is_ir and element_type.bits <= _FEW_BITS and consumers:
            return True
        is_read = any(not isinstance(consumer.schema, ElementwiseSchema) for consumer in consumers)
        return is_read or (self._are_results_read and value in self._given)

    def is_beside_foreign(self, node: Node) -> bool:
        """Whether an operator that eltwise does not know makes an operand or reads the result."""
        beside = [self.scope.producer(value) for value in node.inputs]
        beside += [consumer for value in node.outputs for consumer in self.scope.consumers.get(value, [])]
        return any(one is not None and one.is_foreign for one in beside)

    def is_made_of_constants(self, value: str) -> bool:
        """Whether a value is a constant, or made by nodes of constants only."""

        def depends_on(current: str) -> bool | list[str]:
            owner, node = self.scope.owner(current), self.scope.producer(current)
            # A runtime may take an input that has a value for a constant.
            if self.is_constant(current) or (owner is not None and current in owner.graph.constant):
                return True
            if node is None or node.schema.name in _RANDOM or node.graphs:
                return False
            return [name for name in node.inputs if name] or False

        return _holds(value, self._are_made_of_constants, depends_on)

    def is_size(self, value: str) -> bool:
        """Whether a value is computed of the sizes of tensors and of constants that fit int32."""

        def depends_on(current: str) -> bool | list[str]:
            if self.is_constant(current):
                tensor = self._numbers(current)
                return tensor is not None and tensor.element_type.is_integer and fits_int32(tensor.array)
            node = self.scope.producer(current)
            if node is None or node.schema.name in _SIZES:
                return node is not None
            is_kept = isinstance(node.schema, ElementwiseSchema) or node.schema.name in _KEEPING_SIZES
            return [name for name in node.inputs if name] if is_kept else False

        return _holds(value, self._are_sizes, depends_on)

    def _producer_of_operand(self, value: str) -> Producer | None:
        """The node that makes a value; those that only hand it on do not count."""
        is_shared = False
        while (node := self.scope.producer(value)) is not None:
            is_shared = is_shared or self._readers[value] > 1 or value in self._given
            if node.schema.behaviour == "identity" and node.inputs:
                value = node.inputs[0]
                continue
            function = node.schema.function if isinstance(node.schema, ElementwiseSchema) else ""
            if function in PRODUCERS[self.scope.graph.origin.domain]:
                has_constant = any(self.is_made_of_constants(name) for name in node.inputs if name)
                return Producer(function, has_constant, is_shared)
            return Producer("cast" if node.schema.behaviour == "cast" else "")
        owner = self.scope.owner(value)
        return None if owner is not None and owner.parent is None else Producer("")

    def _numbers(self, value: str) -> Tensor | None:
        """A constant's tensor where its numbers are in memory."""
        tensor = self.scope.constant(value)
        if tensor is None or (isinstance(tensor, StoredTensor) and tensor.is_external):
            return None
        try:
            return Tensor(tensor.array, tensor.element_type)
        except EltwiseError:
            return None  # It is no tensor; the checks of the model say so.

    def _needed(self) -> Iterator[Node]:
        """The nodes that outputs need, each once; runtimes leave out the others first, so that they share nothing."""
        waiting = list(self._given)
        found: set[int] = set()
        while waiting:
            node = self.scope.producers.get(waiting.pop())
            if node is not None and id(node) not in found:
                found.add(id(node))
                waiting += reads(node)
                yield node


def _holds(value: str, known: dict[str, bool], depends_on: Callable[[str], bool | list[str]]) -> bool:
    """Whether something holds of a value that may depend on whether it holds of all values that it is made of."""
    waiting = [value]
    while waiting:
        current = waiting[-1]
        found = depends_on(current)
        unknown = [] if isinstance(found, bool) else [name for name in found if name not in known]
        if current not in known and unknown:
            known[current] = False  # Holds on a cycle, which no valid model has.
            waiting += unknown
            continue
        waiting.pop()
        known[current] = found if isinstance(found, bool) else all(known[name] for name in found)
    return known[value]
