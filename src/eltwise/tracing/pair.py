"""Two models of one meaning, as before and after a conversion: the runs of both, value by value."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Sequence

import numpy as np

from eltwise.comparison.tolerance import Tolerances
from eltwise.core.errors import GraphError
from eltwise.ir.graph import Graph
from eltwise.tracing.difference import measure
from eltwise.tracing.matching import Matching, matched_inputs
from eltwise.tracing.model import TracedModel
from eltwise.tracing.run import Outcome, Side, Tracer, Values
from eltwise.tracing.wide import is_float

_UNKNOWN = "what it reads could not be computed"

_MOST_HELD = 1 << 26
"""How many bytes of values of other names are held until a value is found that belongs to them."""


def other_feeds(graph: Graph, feeds: Values, first: Graph) -> Values:
    """The inputs of the second model, by value: those of the first, as the float type that the second one takes.

    Args:
        graph: the second model.
        feeds: the inputs of the first, by value.
        first: the first model.

    Raises:
        GraphError: if the models have other inputs.
    """
    found: Values = {}
    for port, partner in matched_inputs(first, graph):
        array = None if partner is None else feeds[partner.value]
        wanted = port.inner_type or port.type.element_type
        if array is not None and wanted is not None and is_float(array.dtype) and wanted.kind == "float":
            array = array.astype(wanted.storage)
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
        other: the second model, its runtime and its values: those that its nodes and the first model's still need.
        matching: the values that belong together.
        renamed: the values of the first model that have another name in the second, found by their contents.
        notes: what the reference did not run.
    """

    missing_words = "the other model has no such value"

    def __init__(self, tested: Side, other: Side, tolerances: Tolerances) -> None:
        super().__init__(tested, PairSide(other.name, other.host, tested.model, dict(tested.values)), tolerances)
        self.renamed: dict[str, str] = {}
        self.notes: list[str] = []
        self.other = other
        self.matching = Matching(tested.model, other.model)
        self._partners = self.matching.partners
        self._unit_of = {number: unit for unit in other.model.units() for number in unit}
        self._done: set[int] = set()
        self.last_needed = _last_needed(tested.model, self._partners)
        self._uses = Counter(value for values in other.model.reads for value in values)
        self._uses.update(self._partners[value] for value in tested.model.maker if value in self._partners)
        self._held: dict[str, np.ndarray] = {}

    def _reference(self, numbers: Sequence[int]) -> Outcome:
        """Run the second model as far as it makes what belongs to the values of some nodes of the first."""
        model = self.other.model
        made = self.model.made_by(numbers)
        targets = {value: self._partners[value] for value in made if value in self._partners}
        makers = [model.maker[value] for value in targets.values() if value in model.maker]
        needed = set(model.behind(makers, self.other.values)) - self._done
        self._run_other(sorted({self._unit_of[number] for number in needed}, key=lambda unit: unit.start))
        found = {value: model.known(partner, self.other.values) for value, partner in targets.items()}
        return Outcome({value: array for value, array in found.items() if array is not None})

    def _release(self, value: str) -> None:
        self._uses[value] -= 1
        if not self._uses[value]:
            self.other.values.pop(value, None)

    def _run_other(self, units: Sequence[range]) -> None:
        """Run nodes of the second model; where that is not possible, its halves, and at last single nodes."""
        if not units:
            return
        model = self.other.model
        numbers = [number for unit in units for number in unit]
        there = self.other.values.keys() | {*model.made_by(numbers)}
        outcome = Outcome(words=_UNKNOWN)
        if all(value in there for value in model.read_by(numbers)):
            outcome = self.other.run(numbers, self.other.values)
        if outcome.words and len(units) > 1:
            middle = len(units) // 2
            self._run_other(units[:middle])
            self._run_other(units[middle:])
            return
        self._done.update(numbers)
        if outcome.words and outcome.words != _UNKNOWN:
            node = model.nodes[numbers[0]]
            self.notes.append(f"{self.other.name}: {node.schema.name} {node.label!r}: {outcome.words}")
        if not outcome.words:
            self._take(numbers, outcome.values)

    def _take(self, numbers: Sequence[int], values: Values) -> None:
        """Keep what is still needed of a run, and for a while what belongs to no value of the first model."""
        for value in self.other.model.read_by(numbers):
            self._release(value)
        partners = set(self._partners.values())
        for value, array in values.items():
            if self._uses[value] > 0:
                self.other.values[value] = array.copy()
            if value not in partners:
                self._held[value] = self.other.values.get(value, array.copy())
        while sum(array.nbytes for array in self._held.values()) > _MOST_HELD:
            del self._held[next(iter(self._held))]

    def _compare(self, numbers: Sequence[int], got: Outcome, wanted: Outcome) -> None:
        for value, array in got.values.items():
            if value not in self._partners and array.size and (array != array.flat[0]).any():
                name = next((name for name, other in self._held.items() if self._is_equal(value, array, other)), None)
                if name is not None:
                    self.renamed[value] = name
                    wanted.values[value] = self._held.pop(name)
        for value, array in got.values.items():
            other = wanted.values.get(value)
            if other is not None and other.dtype != array.dtype and is_float(other.dtype) and is_float(array.dtype):
                with np.errstate(all="ignore"):
                    wanted.values[value] = other.astype(array.dtype)
        super()._compare(numbers, got, wanted)
        for value in self.model.made_by(numbers):
            self._release(self._partners.get(value, ""))

    def _is_equal(self, value: str, array: np.ndarray, other: np.ndarray) -> bool:
        """Whether two arrays are within the tolerance."""
        is_alike = array.shape == other.shape and array.dtype == other.dtype
        return is_alike and not measure(value, array, other, self.tolerances).is_beyond


def _last_needed(model: TracedModel, known: Container[str]) -> dict[str, int]:
    """The last node that each value is kept for: where a node makes what is not known, for the readers of that."""
    found = dict(model.last_reader)
    for number in reversed(range(len(model.nodes))):
        last = max((found[value] for value in model.made[number] if value not in known), default=number)
        for value in model.reads[number]:
            found[value] = max(found[value], last)
    return found
