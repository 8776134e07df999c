"""The partner map of two models: the same computation, the same name, the same output."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from eltwise.core.shapes import Shape
from eltwise.ir.graph import Node, Port
from eltwise.tracing.counterparts import is_alike, is_near, is_of_constant, is_of_one_operator
from eltwise.tracing.model import TracedModel
from eltwise.tracing.partners import Partners


def match(first: TracedModel, second: TracedModel) -> Partners:
    """Match the values of two models by the nodes that make them, by name, and outputs also by position."""
    values = _Matching(first, second).values
    for value in first.producer:
        if first.source(value) in values:
            values.setdefault(value, values[first.source(value)])
    _match_quantized(first, second, values)
    return Partners(first, second, values)


@dataclass(eq=False)
class _Matching:
    """Matches node by node, in topological order, since each match rests on those before."""

    first: TracedModel
    second: TracedModel
    values: dict[str, str] = field(default_factory=dict)
    _of_outputs: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._partners = Partners(self.first, self.second, self.values)
        for port, partner in matched_ports(self.second.graph.inputs, self.first.graph.inputs):
            if partner is not None:
                self.values[partner.value] = port.value
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

    def _names(self) -> dict[str, str]:
        """The values of the second model by all their names; what is constant there too, as after folding."""
        by_name: dict[str, str] = {}
        names = dict(self.second.graph.tensor_names)
        for value in (*self.second.producer, *self.second.graph.constant):
            for name in (*names.get(value, ()), value):
                by_name.setdefault(name, self.second.source(value))
        return by_name

    def _match_outputs(self) -> None:
        for port, other in matched_ports(self.first.graph.outputs, self.second.graph.outputs):
            if other is not None and port.value in self.first.producer:
                self.values[port.value] = self.second.source(other.value)
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
                if value in self.first.producer and is_of_constant(self.first, value) and self._may_be(value, operand):
                    self.values.setdefault(value, self.second.source(operand))
        for value, name in named.items():
            partner = alike.get(value) or self._of_outputs.get(value) or outputs.get(value) or name
            if partner and self._may_be(value, partner):
                self.values.setdefault(value, partner)

    def _match_copy(self, node: Node) -> None:
        """Match a copy of a constant, and one in whose place the second model has another node on the same input."""
        value, partner = node.outputs[0], self._by_name.get(node.outputs[0])
        if partner is None or value in self.values or partner in self._taken:
            return
        if is_of_constant(self.first, value):
            is_partner = self.second.is_constant(partner)
        else:
            number, source = self.second.producer.get(partner), self._partners.partner(node.inputs[0])
            read = () if number is None else _computed_inputs(self.second, number)
            is_partner = partner != source and list(map(self.second.source, read)) == [source]
        if is_partner and self._may_be(value, partner):
            self.values[value] = partner

    def _may_be(self, value: str, partner: str) -> bool:
        """Whether two values have one shape, and one type or two of floats, as far as these are known."""
        one, two = self.first.type_of(value), self.second.type_of(partner)
        element_types = (each for each in (one.element_type, two.element_type) if each is not None)
        kinds = {"float" if each.kind == "float" else each for each in element_types}
        return len(kinds) < 2 and _may_be_one(one.shape, two.shape)

    def _has_known_types(self, number: int, other: int) -> bool:
        """Whether the types of what two nodes make are known, as of onnxruntime's operators they are not."""
        types = [*map(self.first.type_of, self.first.made[number]), *map(self.second.type_of, self.second.made[other])]
        return all(one.element_type is not None for one in types)

    def _counterpart(self, number: int, named: set[str]) -> int | None:
        """The node of the second model that does the same on the same inputs, if one can be told from others."""
        values = _computed_inputs(self.first, number)
        inputs = [self._partners.partner(value) or self._partners.partner(self.first.origin(value)) for value in values]
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
        best = best or [one for one in alike if is_near(self._partners, node, nodes[one])] or of_name
        if best or named or not inputs:
            return best[0] if best else None
        is_cast = self.first.origin(node.outputs[0]) != node.outputs[0]
        is_comparable = self._partners.has_one_format and not is_cast
        others = [one for one in candidates if is_comparable and self._has_known_types(number, one)]
        candidates = [one for one in candidates if is_of_one_operator(node, nodes[one])] or others
        return candidates[0] if len(candidates) == 1 else None

    def _is_of_another(self, other: int, number: int) -> bool:
        """Whether a node of the second model is the same as another one of the first, by its name too."""
        node = self.second.nodes[other]
        values = map(self.first.source, node.outputs)
        producers = {self.first.producer.get(value, number) for value in values} - {number}
        inputs = set(self.first.reads[number])
        alike = [one for one in producers if set(self.first.reads[one]) == inputs]
        return any(is_near(self._partners, self.first.nodes[one], node) for one in alike)


def matched_ports(ports: Sequence[Port], others: Sequence[Port]) -> list[tuple[Port, Port | None]]:
    """Each input or output of a model with that of another one: of the same name, or else of the same position.

    One that has the name of another is not matched by its position as well.
    """
    by_name = {name: port for port in others for name in port.names}
    of_name = [next((by_name[name] for name in port.names if name in by_name), None) for port in ports]
    named = {id(other) for other in of_name if other is not None}
    free = [None if id(other) in named else other for other in others]
    by_position = free if len(ports) == len(others) else [None] * len(ports)
    return [(port, one or other) for port, one, other in zip(ports, of_name, by_position, strict=True)]


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
    pairs: dict[str, str] = {}
    for value in model.readers:
        nodes = _readers(model, value)
        if value in model.ends or [node.schema.name for node in nodes] != ["QuantizeLinear"]:
            continue
        last = _readers(model, nodes[0].outputs[0])
        if last and {node.schema.name for node in last} == {"DequantizeLinear"} and nodes[0].inputs[0] == value:
            pairs[value] = last[0].outputs[0]
    return pairs


def _readers(model: TracedModel, value: str) -> list[Node]:
    return [model.nodes[number] for number in model.readers.get(value, ())]


def _may_be_one(one: Shape, two: Shape) -> bool:
    """Whether no known sizes of two shapes contradict each other."""
    if one.dimensions is None or two.dimensions is None:
        return True
    pairs = zip(one.dimensions, two.dimensions, strict=False)
    contradict = (mine.is_known and other.is_known and mine.low != other.low for mine, other in pairs)
    return one.rank == two.rank and not any(contradict)


def _computed_inputs(model: TracedModel, number: int) -> list[str]:
    """What a node reads, without copies of constants."""
    return [value for value in model.reads[number] if not is_of_constant(model, value)]
