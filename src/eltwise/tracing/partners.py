"""The two runs that a trace compares, and which value of the reference belongs to each value of the tested model."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass

from eltwise.comparison.tolerance import Tolerances
from eltwise.core.dtypes import ElementType
from eltwise.tracing.model import TracedModel
from eltwise.tracing.runner import Runner, Values

NOT_NUMBERS = "what it makes is not a tensor of numbers"
"""The message of a node that is computed on both sides and cannot be compared."""


@dataclass(frozen=True)
class Partners:
    """The partner map of two models.

    Attributes:
        first: the tested model.
        second: that of the reference.
        values: values of the second model by those of the first. That two values are partners does not prove that
            they mean the same.
        is_identity: whether both have the same nodes, so that partners certainly mean the same.
    """

    first: TracedModel
    second: TracedModel
    values: Mapping[str, str]
    is_identity: bool = False

    @property
    def has_one_format(self) -> bool:
        """Whether both are of one format."""
        return self.first.graph.origin.domain == self.second.graph.origin.domain

    @property
    def has_one_opset(self) -> bool:
        """Whether both are of one format, and of one version of the operators of each domain that both import."""
        first, second = self.first.graph.origin, self.second.graph.origin
        others = dict(second.other_opsets)
        is_of_one = all(others.get(domain, version) == version for domain, version in first.other_opsets)
        return self.has_one_format and first.opset == second.opset and is_of_one

    def partner(self, value: str) -> str:
        """What belongs to a value, or to what it is a copy of; empty if that is not known."""
        return self.values.get(value) or self.values.get(self.first.source(value), "")

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

    def is_of_one_type(self, value: str) -> bool:
        """Whether a value and its partner have one element type, as far as both are known."""
        types = self.first.type_of(value), self.second.type_of(self.values.get(value, ""))
        return self.is_identity or len({one.element_type for one in types} - {None}) < 2

    def rounded_to(self, value: str) -> ElementType | None:
        """The type of the fewest digits of the floats that a value or its partner is made of; None of others."""
        types = self.first.rounded_to.get(value), self.second.rounded_to.get(self.values.get(value, ""))
        return min((one for one in types if one is not None), key=lambda one: one.digits, default=None)

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


@dataclass(frozen=True)
class Runs:
    """What is compared with what.

    Attributes:
        tested: the tested model in its runtime.
        reference: the reference.
        partners: which of its values belong to those of the tested model.
        tolerances: what does not count as a difference.
        feeds: the inputs of the tested model, by value.
        reference_feeds: those of the reference.
    """

    tested: Runner
    reference: Runner
    partners: Partners
    tolerances: Tolerances
    feeds: Values
    reference_feeds: Values

    @property
    def model(self) -> TracedModel:
        """The tested model."""
        return self.tested.model


def identity(first: TracedModel, second: TracedModel) -> Partners:
    """The partner map of a model and itself, or of the same nodes in other types."""
    values = (*first.producer, *(port.value for port in first.graph.inputs))
    return Partners(first, second, {value: value for value in values}, is_identity=True)


def last_uses(partners: Partners, steps: Mapping[int, int]) -> tuple[dict[str, int], dict[str, int]]:
    """The last node of the first model for which each value is retained.

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
