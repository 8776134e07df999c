"""Which value of the reference belongs to each value of the tested model: its own, if both run one model."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass

from eltwise.core.dtypes import ElementType
from eltwise.core.errors import EltwiseError
from eltwise.ir.graph import Node, Tensor
from eltwise.ops.expression import Expression
from eltwise.ops.schema import ElementwiseSchema
from eltwise.tracing.model import TracedModel
from eltwise.tracing.runner import cast_float, in_narrower_type


@dataclass(frozen=True)
class Partners:
    """The partner map of two models.

    Attributes:
        first: the tested model.
        second: that of the reference.
        values: values of the second model by those of the first. That two values are partners does not prove that
            they mean the same.
        finds_same: returns whether the second model has a node of the first as well: with the same operator, attributes
            and constants, on the partners of its inputs. It may read constants. None where both have the same nodes.
    """

    first: TracedModel
    second: TracedModel
    values: Mapping[str, str]
    finds_same: Callable[[int], bool] | None = None

    @property
    def is_identity(self) -> bool:
        """Whether both have the same nodes, so that partners certainly mean the same."""
        return self.finds_same is None

    @property
    def has_one_format(self) -> bool:
        """Whether both are of one format."""
        return self.first.graph.origin.domain == self.second.graph.origin.domain

    def is_same(self, number: int) -> bool:
        """Whether the second model has a node of the first as well."""
        return self.finds_same is None or self.finds_same(number)

    def has_same_attributes(self, number: int) -> bool:
        """Whether the other model has a node with its attributes; of two formats, if both compute one expression."""
        if self.is_identity or self.has_one_format:
            return self.is_same(number)
        node, others = self.first.nodes[number], self.in_place_of(number)
        if not any(one.operation.attributes for one in (node, *others)):
            return True
        expressions = [_expression_of(one) for one in (node, *others)]
        return None not in expressions and all(one == expressions[0] for one in expressions)

    @property
    def unmatched(self) -> list[str]:
        """The values of the first model for which the second has none."""
        return [value for value in self.first.producer if value not in self.values]

    def region(self, numbers: Iterable[int]) -> list[int]:
        """The nodes of the second model that compute the partners of what the last of some nodes makes.

        They start at the partners of what the nodes of the first model read.
        """
        chosen = list(numbers)
        inputs = {value for value in self.first.read_by(chosen) if value not in self.first.made_by(chosen)}
        known = {self.values[value] for value in inputs if value in self.values}
        return self.second.ancestors(self._producers(chosen[-1], known), known)

    def in_place_of(self, number: int) -> list[Node]:
        """The nodes of the second model that compute what a node makes, without copies."""
        return [node for one in self.region([number]) if not self.second.is_copy(node := self.second.nodes[one])]

    def instead_of(self, number: int) -> str:
        """What the second model has instead of a node, of which it has at most one, as a sentence."""
        node, others = self.first.nodes[number], self.in_place_of(number)
        if not others:
            partner = next((self.values[value] for value in self.first.made[number] if value in self.values), "")
            what = "the constant" if self.second.is_constant(partner) else "the value"
            return f"the other model has {what} {partner!r} in its place"
        name = f"{others[0].schema.name} {others[0].label!r}"
        if self.first.is_copy(node) or not is_of_one_kind(node, others[0]):
            may_be_same = not self.has_one_format and has_one_operator(node, others[0])
            unknown = "; attributes of two formats are not compared" if may_be_same else ""
            return f"the other model has {name} in its place{unknown}"
        attributes, other_attributes = attributes_of(node), attributes_of(others[0])
        names = attributes.keys() | other_attributes
        if changed := sorted(one for one in names if attributes.get(one) != other_attributes.get(one)):
            return f"the other model has another attribute {changed[0]!r}"
        pairs = [*zip(node.inputs, others[0].inputs, strict=False)]
        exchanged = [*zip(node.inputs, others[0].inputs[::-1], strict=False)]
        if len(pairs) == 2 and all(self._is_operand(*pair) for pair in exchanged):
            return "the other model has its operands exchanged"
        for value, other in pairs:
            if None not in self._constants(value, other) and not self._is_operand(value, other):
                return f"the other model has another constant {value!r}"
        return f"the other model has {others[0].label!r} in its place"

    def _constants(self, value: str, other: str) -> tuple[object, object]:
        """The constants that a value of each model is, or a copy of; None of what is computed."""
        return self.first.constant(self.first.source(value)), self.second.constant(self.second.source(other))

    def _is_operand(self, value: str, other: str) -> bool:
        """Whether a value of the second model is an equal constant, or the partner of one of the first."""
        one, two = self._constants(value, other)
        if one is not None:
            return one == two
        partner = self.values.get(value) or self.values.get(self.first.source(value))
        return partner in (other, self.second.source(other))

    def is_of_one_type(self, value: str) -> bool:
        """Whether a value and its partner have one element type, as far as both are known."""
        types = self.first.types.get(value), self.second.types.get(self.values.get(value, ""))
        elements = {one.element_type for one in types if one is not None and one.element_type is not None}
        return self.is_identity or len(elements) < 2

    def schedule(self) -> dict[int, int]:
        """When to run the second model: for each of its nodes that is needed, the first node that needs it.

        Units of the second model run as a whole.
        """
        units = {number: unit for unit in self.second.units() for number in unit}
        steps: dict[int, int] = {}
        for number in range(len(self.first.nodes)):
            waiting = list(self._producers(number))
            while waiting:
                one = waiting.pop()
                if one not in steps:
                    steps[one] = number
                    values = self.second.reads[one]
                    waiting += [self.second.producer[value] for value in values if value in self.second.producer]
                    waiting += units[one]
        return steps

    def _producers(self, number: int, known: Container[str] = ()) -> list[int]:
        """The nodes of the second model that make the partners of what a node makes, without those that are known."""
        partners = (self.values.get(value, "") for value in self.first.made[number])
        return [
            self.second.producer[value] for value in partners if value in self.second.producer and value not in known
        ]


def identity(first: TracedModel, second: TracedModel) -> Partners:
    """The partner map of a model and itself, or of the same nodes in other types."""
    values = (*first.producer, *(port.value for port in first.graph.inputs))
    return Partners(first, second, {value: value for value in values})


def last_uses(partners: Partners, steps: Mapping[int, int]) -> tuple[dict[str, int], dict[str, int]]:
    """The last node of the first model for which each value is retained.

    Args:
        partners: the partner map.
        steps: its schedule.

    Returns:
        The values of the first model, and those of the second. Where a node makes a value without a partner, its inputs
        are retained for the readers of that, which are run together with it.
    """
    first, second = partners.first, partners.second
    last = dict(first.last_reader)
    for number in reversed(range(len(first.nodes))):
        unmatched = (last[value] for value in first.made[number] if value not in partners.values)
        latest = max(unmatched, default=number)
        for value in first.reads[number]:
            last[value] = max(last[value], latest)
    other: dict[str, int] = {}
    for number, step in steps.items():
        for value in second.reads[number]:
            other[value] = max(other.get(value, -1), step)
    for value, partner in partners.values.items():
        other[partner] = max(other.get(partner, -1), first.producer.get(value, -1))
    return last, other


def attributes_of(node: Node) -> dict[str, object]:
    """The attributes of a node, of which those that name a float type are equal whichever it is."""
    attributes = dict(node.operation.attributes)
    if node.is_foreign and node.schema.domain == "ai.onnx":
        from eltwise.formats.onnx.float_types import any_float

        return {name: any_float(value) for name, value in attributes.items()}
    floats = (name for name, value in attributes.items() if isinstance(value, ElementType) and value.kind == "float")
    return attributes | dict.fromkeys(floats, "float")


def is_of_one_kind(one: Node, two: Node) -> bool:
    """Whether two nodes have one operator of one format, so that their attributes can be compared."""
    return one.schema.domain == two.schema.domain and one.schema.name == two.schema.name


def is_alike(one: Node, two: Node) -> bool:
    """Whether two nodes have one operator, and in one format the same attributes."""
    if is_of_one_kind(one, two):
        return attributes_of(one) == attributes_of(two)
    return has_one_operator(one, two)


def has_one_operator(one: Node, two: Node) -> bool:
    """Whether two nodes have one operator, which two formats may call Conv and Convolution, or Relu and ReLU."""
    if one.schema.domain == two.schema.domain:
        return is_of_one_kind(one, two)
    names = sorted((one.schema.name.casefold(), two.schema.name.casefold()), key=len)
    return names[1].startswith(names[0])


def _expression_of(node: Node) -> Expression | None:
    """What an element-wise node computes of each element; None of others."""
    if node.is_foreign or not isinstance(node.schema, ElementwiseSchema):
        return None
    try:
        return node.bound.computation(len(node.inputs)).expression
    except EltwiseError:
        return None


def as_read(model: TracedModel, value: str) -> object:
    """What the readers of a value get of a constant or a copy of one, in the type that they read; None of another.

    Raises:
        EltwiseError: where the constant cannot be read.
    """
    constant, declared = model.constant(model.source(value)), model.types.get(value)
    element_type = None if declared is None else declared.element_type
    if not isinstance(constant, Tensor) or element_type is None or element_type is constant.type.element_type:
        return constant
    return Tensor(cast_float(constant.array, element_type.storage), element_type)


def is_one_constant(one: object, two: object) -> bool:
    """Whether two constants are equal, also where one of them is the other rounded to another float type."""
    if one is None or one == two:
        return one is not None
    if not (isinstance(one, Tensor) and isinstance(two, Tensor)) or one.shape != two.shape:
        return False
    types = {one.type.element_type, two.type.element_type}
    if len(types) < 2 or any(kind is None or kind.kind != "float" for kind in types):
        return False
    try:
        arrays = in_narrower_type(one.array, two.array)
    except EltwiseError:
        return False
    return arrays[0].tobytes() == arrays[1].tobytes()
