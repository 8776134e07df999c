"""Which values of two models belong together: the same computation, the same name, the same output."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import zip_longest

from eltwise.ir.graph import Graph, Node, Port
from eltwise.tracing.model import TracedModel


@dataclass(eq=False)
class Matching:
    """The values of one model that another one has.

    That two values have one name, or are made in the same way of values that belong together, does not prove that they
    mean the same; ``Blame`` looks for the proof.

    Attributes:
        first: the model.
        second: the other one.
        partners: the values of the second model by those of the first.
    """

    first: TracedModel
    second: TracedModel
    partners: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for port, found in matched_inputs(self.first.graph, self.second.graph):
            if found is not None:
                self.partners[found.value] = port.value
        self._copied, self._same_as = _copies(self.first), _copies(self.second)
        self._has_one_format = self.first.graph.origin.domain == self.second.graph.origin.domain
        self._used, self._taken = set[int](), set[str]()
        self._names_of = {value: [value, *names] for value, names in self.first.graph.tensor_names}
        for copy, value in self._copied.items():
            self._names_of.setdefault(value, [value]).append(copy)
        self._by_name = self._names()
        self._readers: dict[tuple[str, ...], list[int]] = {}
        for number, values in enumerate(self.second.reads):
            if not _is_copy(self.second.nodes[number]):
                self._readers.setdefault(tuple(sorted(map(self._source, values))), []).append(number)
        self._match_outputs()
        for number in range(len(self.first.nodes)):
            self._match_node(number)

    @property
    def unmatched(self) -> list[str]:
        """The values of the first model for which the second has none; those apart that only copy another."""
        return [value for value in self.first.maker if value not in self.partners and value not in self._copied]

    def is_same(self, number: int) -> bool:
        """Whether the second model has this node: its operator, attributes and constants, on the same inputs."""
        others = (self.partners.get(value) for value in self.first.made[number])
        makers = {self.second.maker.get(other) for other in others if other is not None}
        other = makers.pop() if len(makers) == 1 else None
        if other is None:
            return False
        one, two = self.first.nodes[number], self.second.nodes[other]
        pairs = zip_longest(one.inputs, two.inputs, fillvalue="")
        return self._is_alike(one, two) and all(self._is_one_input(*pair) for pair in pairs)

    def others(self, number: int) -> list[Node]:
        """The nodes of the second model that compute what a node makes of what it reads, copies apart."""
        known = {self._partner(value) for value in self.first.reads[number]}
        made = (self.partners.get(value, "") for value in self.first.made[number])
        makers = [self.second.maker[other] for other in made if other in self.second.maker]
        nodes = [self.second.nodes[other] for other in self.second.behind(makers, known)]
        return [node for node in nodes if not _is_copy(node)]

    def _names(self) -> dict[str, str]:
        """The values of the second model by all their names; what is constant there too, as after folding."""
        found: dict[str, str] = {}
        names = dict(self.second.graph.tensor_names)
        for value in (*self.second.maker, *self.second.graph.constant):
            for name in (*names.get(value, ()), value):
                found.setdefault(name, self._source(value))
        return found

    def _source(self, value: str) -> str:
        return self._same_as.get(value, value)

    def _partner(self, value: str) -> str:
        """What belongs to a value, or to what it is a copy of; empty if that is not known."""
        return self.partners.get(value) or self.partners.get(self._copied.get(value, value), "")

    def _match_outputs(self) -> None:
        """Match what both models give out: by name, or else by position where they give out as many."""
        first, second = (model.graph.outputs for model in (self.first, self.second))
        by_name = {name: port.value for port in second for name in (port.name, *port.aliases)}
        for position, port in enumerate(first):
            other = next((by_name[name] for name in (port.name, *port.aliases) if name in by_name), None)
            if other is None and len(first) == len(second):
                other = second[position].value
            if other is not None and port.value in self.first.maker:
                for value in {port.value, self._copied.get(port.value, port.value)}:
                    self.partners[value] = self._source(other)

    def _match_node(self, number: int) -> None:
        node = self.first.nodes[number]
        if _is_copy(node):
            return
        named = {}
        for value in self.first.made[number]:
            names = self._names_of.get(value, [value])
            found = next((self._by_name[name] for name in names if name in self._by_name), None)
            named[value] = None if found in self._taken else found
        other = self._counterpart(number, set(filter(None, named.values())))
        made = dict[str, str]()
        if other is not None:
            made = dict(zip(node.outputs, self.second.nodes[other].outputs, strict=False))
            self._used.add(other)
            if self._is_alike(node, self.second.nodes[other]):
                self._taken.update(made.values())
        for value, name in named.items():
            partner = made.get(value) or name
            if partner and self._may_be(value, partner):
                self.partners.setdefault(value, partner)

    def _may_be(self, value: str, partner: str) -> bool:
        """Whether two values have one shape, and one type or two of floats, as far as these are known."""
        types = [found for found in (self.first.types.get(value), self.second.types.get(partner)) if found is not None]
        shapes = {found.shape for found in types if found.shape.is_known}
        kinds = {one if one.kind != "float" else "float" for found in types if (one := found.element_type) is not None}
        return len(shapes) < 2 and len(kinds) < 2

    def _counterpart(self, number: int, named: set[str]) -> int | None:
        """The node of the second model that does the same on the same inputs, if one can be told from others."""
        inputs = [self._partner(value) for value in self.first.reads[number]]
        if "" in inputs:
            return None
        node, nodes = self.first.nodes[number], self.second.nodes
        found = [one for one in self._readers.get(tuple(sorted(inputs)), []) if not self._is_of_another(one, number)]
        found = [one for one in found if one not in self._used] or found
        alike = [one for one in found if self._is_alike(node, nodes[one])]
        of_name = [one for one in found if named & set(nodes[one].outputs)]
        best = [one for one in of_name if inputs and one in alike]
        best = best or [one for one in alike if self._has_constants(node, nodes[one])] or of_name
        if best or named or not inputs:
            return best[0] if best else None
        others = found if self._has_one_format else []
        found = [one for one in found if self._has_operator(node, nodes[one])] or others
        return found[0] if len(found) == 1 else None

    def _is_of_another(self, other: int, number: int) -> bool:
        """Whether a node of the second model is the same as another one of the first, by its name too."""
        node = self.second.nodes[other]
        values = (self._copied.get(value, value) for value in node.outputs)
        makers = {self.first.maker.get(value, number) for value in values} - {number}
        inputs = set(self.first.reads[number])
        alike = [maker for maker in makers if set(self.first.reads[maker]) == inputs]
        return any(self._has_constants(self.first.nodes[maker], node) for maker in alike)

    def _is_alike(self, one: Node, two: Node) -> bool:
        """Whether two nodes have one operator, and in one format the same attributes."""
        if self._has_one_format and dict(one.operation.given) != dict(two.operation.given):
            return False
        return self._has_operator(one, two)

    def _has_operator(self, one: Node, two: Node) -> bool:
        """Whether two nodes have one operator, which two formats may call Conv and Convolution, or Relu and ReLU."""
        if self._has_one_format:
            return one.schema.name == two.schema.name
        names = sorted((one.schema.name.casefold(), two.schema.name.casefold()), key=len)
        return names[1].startswith(names[0])

    def _has_constants(self, one: Node, two: Node) -> bool:
        return self._is_alike(one, two) and all(
            self._is_one_input(value, other) or self._partner(value)
            for value, other in zip_longest(one.inputs, two.inputs, fillvalue="")
        )

    def _is_one_input(self, value: str, other: str) -> bool:
        if self._partner(value):
            return self._partner(value) == self._source(other)
        constant = self.first.constant(value)
        return value == other == "" or (constant is not None and constant == self.second.constant(other))


def matched_inputs(first: Graph, second: Graph) -> list[tuple[Port, Port | None]]:
    """Each input of the second model, with that of the first: of the same name, or else of the same position."""
    by_name = {name: port for port in first.inputs for name in (port.name, *port.aliases)}
    found = []
    for position, port in enumerate(second.inputs):
        named = next((by_name[name] for name in (port.name, *port.aliases) if name in by_name), None)
        is_one_for_one = len(first.inputs) == len(second.inputs)
        found.append((port, named or (first.inputs[position] if is_one_for_one else None)))
    return found


def _copies(model: TracedModel) -> Mapping[str, str]:
    """What each Identity copies, through others."""
    found: dict[str, str] = {}
    for node in model.nodes:
        if _is_copy(node):
            found[node.outputs[0]] = found.get(node.inputs[0], node.inputs[0])
    return found


def _is_copy(node: Node) -> bool:
    return node.schema.name == "Identity" and len(node.inputs) == 1
