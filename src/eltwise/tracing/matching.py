"""The partner map of two models: the same computation, the same name, the same output."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import zip_longest

from eltwise.core.errors import EltwiseError
from eltwise.core.shapes import Shape
from eltwise.ir.graph import Node, Port
from eltwise.tracing.model import TracedModel
from eltwise.tracing.partners import Partners, as_read, has_one_operator, is_alike, is_one_constant


def match(first: TracedModel, second: TracedModel) -> Partners:
    """Match the values of two models by the nodes that make them, by name, and outputs also by position."""
    matching = _Matching(first, second)
    partners = dict(matching.partners)
    for value in first.producer:
        if first.source(value) in partners:
            partners.setdefault(value, partners[first.source(value)])
    _match_quantized(first, second, partners)
    return Partners(first, second, partners, matching.is_same)


@dataclass(eq=False)
class _Matching:
    """Matches node by node, in topological order, since each match rests on those before."""

    first: TracedModel
    second: TracedModel
    partners: dict[str, str] = field(default_factory=dict)
    _of_outputs: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for port, partner in matched_ports(self.second.graph.inputs, self.first.graph.inputs):
            if partner is not None:
                self.partners[partner.value] = port.value
        self._has_one_format = self.first.graph.origin.domain == self.second.graph.origin.domain
        self._used, self._taken = set[int](), set[str]()
        self._names_of = {value: [value, *names] for value, names in self.first.graph.tensor_names}
        for value in self.first.producer:
            if (source := self.first.source(value)) != value:
                self._names_of.setdefault(source, [source]).append(value)
        self._by_name = self._names()
        self._readers: dict[tuple[str, ...], list[int]] = {}
        for number, node in enumerate(self.second.nodes):
            if not self.second.is_copy(node):
                values = _computed_inputs(self.second, number)
                for key in dict.fromkeys(
                    tuple(sorted(map(of, values))) for of in (self.second.source, self.second.origin)
                ):
                    self._readers.setdefault(key, []).append(number)
        self._match_outputs()
        for number in range(len(self.first.nodes)):
            self._match_node(number)

    def is_same(self, number: int) -> bool:
        """Whether the second model has this node: its operator, attributes and constants, on the same inputs."""
        node = self.first.nodes[number]
        if self.first.is_copy(node):
            partner = self._partner(node.outputs[0])
            return self._is_one_input(node.inputs[0], partner) and self._is_read_alike(node.outputs[0], partner)
        others = (self.partners.get(value) for value in self.first.made[number])
        producers = {self.second.producer.get(other) for other in others if other is not None}
        other = producers.pop() if len(producers) == 1 else None
        if other is None:
            return False
        one, two = self.first.nodes[number], self.second.nodes[other]
        pairs = zip_longest(one.inputs, two.inputs, fillvalue="")
        is_one_input = (self._is_one_input(*pair) and self._is_read_alike(*pair) for pair in pairs)
        return is_alike(one, two) and all(is_one_input)

    def _names(self) -> dict[str, str]:
        """The values of the second model by all their names; what is constant there too, as after folding."""
        by_name: dict[str, str] = {}
        names = dict(self.second.graph.tensor_names)
        for value in (*self.second.producer, *self.second.graph.constant):
            for name in (*names.get(value, ()), value):
                by_name.setdefault(name, self.second.source(value))
        return by_name

    def _partner(self, value: str) -> str:
        """What belongs to a value, or to what it is a copy of; empty if that is not known."""
        return self.partners.get(value) or self.partners.get(self.first.source(value), "")

    def _match_outputs(self) -> None:
        for port, other in matched_ports(self.first.graph.outputs, self.second.graph.outputs):
            if other is not None and port.value in self.first.producer:
                self.partners[port.value] = self.second.source(other.value)
                self._of_outputs[self.first.source(port.value)] = self.second.source(other.value)

    def _match_node(self, number: int) -> None:
        node = self.first.nodes[number]
        if self.first.is_copy(node):
            self._match_copy(node)
            return
        named = {}
        for value in self.first.made[number]:
            names = self._names_of.get(value, [value])
            partner = next((self._by_name[name] for name in names if name in self._by_name), None)
            named[value] = None if partner in self._taken else partner
        other = self._counterpart(number, set(filter(None, named.values())))
        outputs, alike = dict[str, str](), dict[str, str]()
        if other is not None:
            outputs = dict(zip(node.outputs, self.second.nodes[other].outputs, strict=False))
            self._used.add(other)
            if is_alike(node, self.second.nodes[other]):
                self._taken.update(outputs.values())
                alike = outputs
            for value, operand in zip(node.inputs, self.second.nodes[other].inputs, strict=False):
                if value in self.first.producer and self._is_constant(value) and self._may_be(value, operand):
                    self.partners.setdefault(value, self.second.source(operand))
        for value, name in named.items():
            partner = alike.get(value) or self._of_outputs.get(value) or outputs.get(value) or name
            if partner and self._may_be(value, partner):
                self.partners.setdefault(value, partner)

    def _match_copy(self, node: Node) -> None:
        """Match a copy of a constant, and one in whose place the second model has another node on the same input."""
        value, partner = node.outputs[0], self._by_name.get(node.outputs[0])
        if partner is None or value in self.partners or partner in self._taken:
            return
        if self._is_constant(value):
            is_partner = self.second.is_constant(partner)
        else:
            number, source = self.second.producer.get(partner), self._partner(node.inputs[0])
            read = () if number is None else _computed_inputs(self.second, number)
            is_partner = partner != source and list(map(self.second.source, read)) == [source]
        if is_partner and self._may_be(value, partner):
            self.partners[value] = partner

    def _may_be(self, value: str, partner: str) -> bool:
        """Whether two values have one shape, and one type or two of floats, as far as these are known."""
        types = [one for one in (self.first.types.get(value), self.second.types.get(partner)) if one is not None]
        element_types = [one.element_type for one in types if one.element_type is not None]
        kinds = {"float" if one.kind == "float" else one for one in element_types}
        return len(kinds) < 2 and (len(types) < 2 or _may_be_one(types[0].shape, types[1].shape))

    def _counterpart(self, number: int, named: set[str]) -> int | None:
        """The node of the second model that does the same on the same inputs, if one can be told from others."""
        values = _computed_inputs(self.first, number)
        inputs = [self._partner(value) or self._partner(self.first.origin(value)) for value in values]
        if "" in inputs:
            return None
        node, nodes = self.first.nodes[number], self.second.nodes
        candidates = [
            one for one in self._readers.get(tuple(sorted(inputs)), []) if not self._is_of_another(one, number)
        ]
        candidates = [one for one in candidates if one not in self._used] or candidates
        alike = [one for one in candidates if is_alike(node, nodes[one])]
        of_name = [one for one in candidates if named & set(nodes[one].outputs)]
        best = [one for one in of_name if inputs and one in alike]
        best = best or [one for one in alike if self._has_constants(node, nodes[one])] or of_name
        if best or named or not inputs:
            return best[0] if best else None
        is_cast = self.first.origin(node.outputs[0]) != node.outputs[0]
        others = candidates if self._has_one_format and not is_cast else []
        candidates = [one for one in candidates if has_one_operator(node, nodes[one])] or others
        return candidates[0] if len(candidates) == 1 else None

    def _is_of_another(self, other: int, number: int) -> bool:
        """Whether a node of the second model is the same as another one of the first, by its name too."""
        node = self.second.nodes[other]
        values = map(self.first.source, node.outputs)
        producers = {self.first.producer.get(value, number) for value in values} - {number}
        inputs = set(self.first.reads[number])
        alike = [one for one in producers if set(self.first.reads[one]) == inputs]
        return any(self._has_constants(self.first.nodes[one], node) for one in alike)

    def _has_constants(self, one: Node, two: Node) -> bool:
        return is_alike(one, two) and all(
            self._is_one_input(value, other) or (self._partner(value) and not self._is_constant(value))
            for value, other in zip_longest(one.inputs, two.inputs, fillvalue="")
        )

    def _is_constant(self, value: str) -> bool:
        """Whether a value of the first model is a constant or a copy of one."""
        return self.first.is_constant(self.first.source(value))

    def _is_read_alike(self, value: str, other: str) -> bool:
        """Whether constants are one to those that read them: one that is rounded, and has its type again, is not."""
        if not self._is_constant(value):
            return True
        try:
            return is_one_constant(as_read(self.first, value), as_read(self.second, other))
        except EltwiseError:
            return False

    def _is_one_input(self, value: str, other: str) -> bool:
        if self._partner(value) and not self._is_constant(value):
            return self._partner(value) == self.second.source(other)
        constants = self.first.constant(self.first.source(value)), self.second.constant(self.second.source(other))
        return value == other == "" or is_one_constant(*constants)


def matched_ports(ports: Sequence[Port], others: Sequence[Port]) -> list[tuple[Port, Port | None]]:
    """Each input or output of a model with that of another one: of the same name, or else of the same position."""
    by_name = {name: port for port in others for name in (port.name, *port.aliases)}
    by_position = others if len(ports) == len(others) else [None] * len(ports)
    return [
        (port, next((by_name[name] for name in (port.name, *port.aliases) if name in by_name), other))
        for port, other in zip(ports, by_position, strict=True)
    ]


def _match_quantized(first: TracedModel, second: TracedModel, partners: dict[str, str]) -> None:
    """Match what is quantized in one model only by what its readers get: the value that is dequantized again.

    A quantizer may do the work of the node before it, as of a Relu by a zero point at its lower limit.
    """
    quantized, others = _dequantized(first), _dequantized(second)
    for value, partner in list(partners.items()):
        if value in quantized and partner not in others:
            partners.setdefault(quantized[value], partners.pop(value))
        elif partner in others and value not in quantized:
            partners[value] = others[partner]


def _dequantized(model: TracedModel) -> dict[str, str]:
    """For each value that is only quantized, and only dequantized then, the value that comes of it."""
    readers: dict[str, list[Node]] = {}
    for node in model.nodes:
        for value in filter(None, dict.fromkeys(node.inputs)):
            readers.setdefault(value, []).append(node)
    ends = {port.value for port in model.graph.outputs}
    pairs: dict[str, str] = {}
    for value, nodes in readers.items():
        if value in ends or [node.schema.name for node in nodes] != ["QuantizeLinear"]:
            continue
        last = readers.get(nodes[0].outputs[0], [])
        if last and {node.schema.name for node in last} == {"DequantizeLinear"} and nodes[0].inputs[0] == value:
            pairs[value] = last[0].outputs[0]
    return pairs


def _may_be_one(one: Shape, two: Shape) -> bool:
    """Whether no known sizes of two shapes contradict each other."""
    if one.dimensions is None or two.dimensions is None:
        return True
    pairs = zip(one.dimensions, two.dimensions, strict=False)
    contradict = (mine.is_known and other.is_known and mine.low != other.low for mine, other in pairs)
    return one.rank == two.rank and not any(contradict)


def _computed_inputs(model: TracedModel, number: int) -> list[str]:
    """What a node reads, without copies of constants."""
    return [value for value in model.reads[number] if not model.is_constant(model.source(value))]
