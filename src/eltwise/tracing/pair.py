"""Two models of one meaning, as before and after a conversion: whose values belong together, and their runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Mapping, Sequence

import numpy as np

from eltwise.comparison.tolerance import Tolerances
from eltwise.core.dtypes import FLOAT64
from eltwise.core.errors import GraphError
from eltwise.ir.graph import Graph
from eltwise.tracing.inputs import Feeds
from eltwise.tracing.model import TracedModel
from eltwise.tracing.run import Outcome, Side, Tracer, Values
from eltwise.tracing.wide import WideSide

_SAMPLED = 256
_CLOSE = 2.0**-5
"""Values of other names are the same if a sample differs by less than this part of its largest."""

_UNKNOWN = "what it reads could not be computed"

_MOST_HELD = 1 << 26
"""How many bytes of values of other names are held until a value is found that belongs to them."""


def other_feeds(graph: Graph, feeds: Feeds, first: Graph, *, is_wide: bool = False) -> Values:
    """The inputs of the second model, by value: those of the first of the same name, or else of the same position.

    Args:
        graph: the second model.
        feeds: the inputs of the first.
        first: the first model.
        is_wide: whether the second is the first in float64.

    Raises:
        GraphError: if the models have other inputs.
    """
    given = {name: feeds.values[port.value] for port in first.inputs for name in (port.name, *port.aliases)}
    found: Values = {}
    for position, port in enumerate(graph.inputs):
        array = next((given[name] for name in (port.name, *port.aliases) if name in given), None)
        if array is None and len(graph.inputs) == len(first.inputs):
            array = feeds.values[first.inputs[position].value]
        wanted = port.inner_type or port.type.element_type
        if is_wide and array is not None and wanted is FLOAT64:
            array = array.astype(np.float64)
        if array is None or (wanted is not None and wanted.numpy != array.dtype):
            got = "none of this name" if array is None else str(array.dtype)
            words = "the models have other inputs"
            raise GraphError(words, operand=f"input {port.name!r} of the second model", got=got, allowed=str(port.type))
        found[port.value] = array
    return found


class PairSide(Side):
    """The reference of a pair: the values of the second model by the names of the first, whose nodes it cannot run."""

    def run(self, *_given: object, **_options: object) -> Outcome:
        """Nothing: the nodes of the first model are not in the second."""
        return Outcome(words="the reference is another model")


class PairTracer(Tracer):
    """Runs one model on the tested side and another one as the reference.

    Attributes:
        other: the second model, its runtime and its values.
        renamed: the values of the first model that have another name in the second, found by their contents.
        notes: what the reference did not run.
    """

    missing_words = "the other model has no such value"

    def __init__(self, tested: Side, other: Side, tolerances: Tolerances) -> None:
        super().__init__(tested, PairSide(other.name, other.host, tested.model, dict(tested.values)), tolerances)
        self.renamed: dict[str, str] = {}
        self.notes: list[str] = []
        self.other = other
        self._unit_of = {number: unit for unit in other.model.units() for number in unit}
        self._done: set[int] = set()
        self._partners = _partners(tested.model, other.model)
        self.last_needed = _last_needed(tested.model, self._partners)
        self._readers = Counter(value for values in other.model.reads for value in values)
        self._held: dict[str, np.ndarray] = {}
        self._is_wide = isinstance(other, WideSide)

    @property
    def unmatched(self) -> list[str]:
        """The values of the first model that the second does not have."""
        made = (value for values in self.model.made for value in values)
        return [value for value in made if value not in self._partners and value not in self.renamed]

    def _reference(self, numbers: Sequence[int]) -> Outcome:
        """Run the second model as far as its values have the names of what some nodes of the first make."""
        model = self.other.model
        made = (value for number in numbers for value in self.model.made[number])
        targets = {self._partners[value]: value for value in made if value in self._partners}
        makers = [model.maker[value] for value in targets if value in model.maker]
        needed = set(model.behind(makers, self.other.values)) - self._done
        found: Values = {}
        self._run_other(
            sorted({self._unit_of[number] for number in needed}, key=lambda unit: unit.start), targets, found
        )
        for value, name in targets.items():
            if value in self.other.values:
                found.setdefault(name, self.other.values[value])
        return Outcome(found)

    def _run_other(self, units: Sequence[range], targets: Mapping[str, str], found: Values) -> None:
        """Run nodes of the second model; where that is not possible, its halves, and at last single nodes."""
        if not units:
            return
        numbers = [number for unit in units for number in unit]
        there = self.other.values.keys() | {value for number in numbers for value in self.other.model.made[number]}
        outcome = Outcome(words=_UNKNOWN)
        if all(value in there for number in numbers for value in self.other.model.reads[number]):
            outcome = self.other.run(numbers, self.other.values)
        if outcome.words and len(units) > 1:
            middle = len(units) // 2
            self._run_other(units[:middle], targets, found)
            self._run_other(units[middle:], targets, found)
            return
        self._done.update(numbers)
        if outcome.words:
            node = self.other.model.nodes[numbers[0]]
            if outcome.words == _UNKNOWN:
                return
            self.notes.append(f"{self.other.name}: {node.schema.name} {node.label!r}: {outcome.words}")
            return
        self._take(numbers, outcome.values, targets, found)

    def _take(self, numbers: Sequence[int], values: Values, targets: Mapping[str, str], found: Values) -> None:
        """Keep what later nodes read, what has the name of a value of the first model, and some others."""
        for value in (value for number in numbers for value in self.other.model.reads[number]):
            self._readers[value] -= 1
            if not self._readers[value]:
                self.other.values.pop(value, None)
        named = set(self._partners.values())
        for value, array in values.items():
            kept = array.copy() if self._readers[value] or value in targets or value not in named else None
            if kept is None:
                continue
            if self._readers[value]:
                self.other.values[value] = kept
            if value in targets:
                found[targets[value]] = kept
            elif value not in named:
                self._held[value] = kept
        while sum(array.nbytes for array in self._held.values()) > _MOST_HELD:
            del self._held[next(iter(self._held))]

    def _compare(self, numbers: Sequence[int], got: Outcome, wanted: Outcome) -> None:
        for value, array in got.values.items():
            if value not in self._partners:
                name = next((name for name, other in self._held.items() if _looks_same(array, other)), None)
                if name is not None:
                    self.renamed[value] = name
                    wanted.values[value] = self._held.pop(name)
        for value, array in got.values.items():
            wide = wanted.values.get(value)
            if self._is_wide and wide is not None and wide.dtype == np.float64 != array.dtype:
                with np.errstate(all="ignore"):
                    wanted.values[value] = wide.astype(array.dtype)
        super()._compare(numbers, got, wanted)


def _last_needed(model: TracedModel, known: Container[str]) -> dict[str, int]:
    """The last node that each value is kept for: where a node makes what is not known, for the readers of that."""
    found = dict(model.last_reader)
    for number in reversed(range(len(model.nodes))):
        last = max((found[value] for value in model.made[number] if value not in known), default=number)
        for value in model.reads[number]:
            found[value] = max(found[value], last)
    return found


def _partners(first: TracedModel, second: TracedModel) -> dict[str, str]:
    """The values of the second model by those of the first that have the same name, or are the same output."""
    by_name: dict[str, str] = {}
    names = dict(second.graph.tensor_names)
    for value in second.maker:
        for name in (*names.get(value, ()), value):
            by_name.setdefault(name, value)
    names = dict(first.graph.tensor_names)
    found = {}
    for value in first.maker:
        partner = next((by_name[name] for name in (*names.get(value, ()), value) if name in by_name), None)
        if partner is not None:
            found[value] = partner
    outputs = [[port.value for port in model.graph.outputs] for model in (first, second)]
    if len(outputs[0]) == len(outputs[1]):
        for value, other in zip(*outputs, strict=True):
            if value in first.maker and other in second.maker:
                found.setdefault(value, other)
    return found


def _looks_same(array: np.ndarray, other: np.ndarray) -> bool:
    """Whether two values have one shape and nearly equal samples that are not all the same number."""
    if array.shape != other.shape or array.dtype != other.dtype or not array.size:
        return False
    step = max(1, array.size // _SAMPLED)
    with np.errstate(all="ignore"):
        one, two = (values.reshape(-1)[::step].astype(np.float64) for values in (array, other))
        largest = float(np.max(np.abs(one), initial=0))
        return bool(np.ptp(one) > 0 and np.all(np.abs(one - two) <= _CLOSE * largest))
