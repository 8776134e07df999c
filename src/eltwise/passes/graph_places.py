"""The element-wise nodes of a graph of this package, as a runtime meets them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from eltwise.core.dtypes import ElementType
from eltwise.core.shapes import UNKNOWN_RANK
from eltwise.ir.graph import Graph, Node, TensorType
from eltwise.ops.schema import ElementwiseSchema
from eltwise.passes.company import FORMULAS, OTHERS, Maker, Operand, companies_of, held_as, needed_of
from eltwise.passes.places import Place, layouts_of, read_wider, surroundings_of
from eltwise.passes.plain import is_plain_constant

_FEW_BITS = 4


def graph_places(graph: Graph, types: Mapping[str, TensorType]) -> Iterator[tuple[int, Place]]:
    """Find the element-wise nodes of a graph, each with its number.

    Args:
        graph: the graph.
        types: the types of its values as far as they are known.
    """
    wiring = _Wiring(graph)
    for number, node in enumerate(graph.nodes):
        wiring.pass_by(node)
        if isinstance(node.schema, ElementwiseSchema) and len(node.inputs) == 2 and len(node.outputs) == 1:
            yield number, _place(node, node.schema, types, wiring)


class _Wiring:
    """What is known of the values of a graph: which are constants, and what makes and reads them."""

    def __init__(self, graph: Graph) -> None:
        self.constants = set(graph.constant) - {port.value for port in graph.optional_inputs}
        self.made = set(graph.constant)  # A runtime may take an input that has a value for a constant.
        self._graph = graph
        self._makers = {value: node for node in graph.nodes for value in node.outputs}
        self._given = {port.value for port in graph.outputs}
        self._read = {value for node in graph.nodes for value in node.inputs}
        others = [node for node in graph.nodes if not isinstance(node.schema, ElementwiseSchema)]
        self._read_otherwise = {value for node in others for value in node.inputs}
        needed = needed_of(self._given, self._makers.get, lambda node: node.inputs)
        self._readers = Counter(value for node in needed for value in node.inputs)
        # OpenVINO gives the results of an IR 10 in other types, so that they are read too.
        self._are_results_read = graph.origin.domain == "openvino" and graph.origin.file_version == 10

    def pass_by(self, node: Node) -> None:
        """Take note of a node; all before it were passed by."""
        if all(value in self.made for value in node.inputs if value):
            self.made.update(node.outputs)
        if node.schema.behaviour == "constant":
            self.constants.update(node.outputs)

    def has_neighbours(self, node: Node) -> bool:
        """Whether nodes make an operand or read the result."""
        is_read = node.outputs[0] in self._read
        return not self._makers.keys().isdisjoint(set(node.inputs) - self.constants) or is_read

    def is_brought_further(self, value: str, element_type: ElementType | None) -> bool:
        """Whether what is no element-wise node, whose company that would be, reads a value in another type perhaps."""
        # What stays in 8 bits shows in a pair of nodes of more bits; of 4 bits it takes three to overflow there.
        if element_type is not None and element_type.bits <= _FEW_BITS and value in self._read:
            return True
        return value in self._read_otherwise or (self._are_results_read and value in self._given)

    def is_plain(self, node: Node) -> bool:
        """Whether the one constant operand has plain numbers only."""
        held = [value for value in node.inputs if value in self.constants]
        if len(held) != 1 or held[0] not in self._graph.constant:
            return False
        tensor = self._graph.constant[held[0]]
        return is_plain_constant(tensor.array, tensor.element_type)

    def operand(self, value: str) -> Operand:
        """What is known of an operand."""
        if value in self.constants and value in self._graph.constant:
            return Operand(held_as(self._graph.constant[value].array))
        if value in self.constants:
            return Operand(tuple(kind for kind in OTHERS if kind != "run-time"))
        return Operand(OTHERS if value in self.made else ("run-time",), self._maker(value))

    def _maker(self, value: str) -> Maker | None:
        """The node that makes a value; those that only hand it on do not count."""
        is_shared = False
        while (node := self._makers.get(value)) is not None:
            is_shared = is_shared or self._readers[value] > 1 or value in self._given
            if node.schema.behaviour == "identity":
                value = node.inputs[0]
                continue
            has_constant = any(name in self.made for name in node.inputs)
            if isinstance(node.schema, ElementwiseSchema):
                return Maker(node.schema.function, has_constant, is_shared)
            return Maker("cast" if node.schema.behaviour == "cast" else "")
        return None


def _place(node: Node, schema: ElementwiseSchema, types: Mapping[str, TensorType], wiring: _Wiring) -> Place:
    a, b = (types[name].shape if name in types else UNKNOWN_RANK for name in node.inputs)
    element_type = _element_type(node, types)
    rule = node.operation.rule
    is_static = a.is_known and b.is_known
    held = tuple(name in wiring.constants for name in node.inputs)
    made = tuple(name in wiring.made for name in node.inputs)
    surroundings = surroundings_of(
        (held[0], held[1]), (made[0], made[1]), is_static, wiring.has_neighbours(node), is_plain=wiring.is_plain(node)
    )
    first, second = (wiring.operand(name) for name in node.inputs)
    companies = () if element_type is None else companies_of(element_type, first, second, is_static, FORMULAS)
    place = Place(node.label, schema, element_type, rule.name, layouts_of(rule, a, b), surroundings, companies)
    return read_wider(place) if wiring.is_brought_further(node.outputs[0], element_type) else place


def _element_type(node: Node, types: Mapping[str, TensorType]) -> ElementType | None:
    known = (types[name].element_type for name in (*node.outputs, *node.inputs) if name in types)
    return next((found for found in known if found is not None), None)
