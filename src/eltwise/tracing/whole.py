"""The model as a whole, of which a runtime may compute several nodes as one: nodes that are wrong only together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from eltwise.comparison.tolerance import Tolerances
from eltwise.core.errors import counted
from eltwise.tracing.blame import Isolated, copied, isolated_of
from eltwise.tracing.model import TracedModel, size_of
from eltwise.tracing.run import Side, Values, worst_value

_LARGEST_WEIGHTS = 1 << 29
"""A model with more bytes of weights is not run as a whole: it would take several times the memory."""


@dataclass(frozen=True)
class Whole:
    """What came of running the whole model, of which only the outputs are given out.

    Attributes:
        notes: what is to be said of it.
        fused: the nodes that are wrong together, and not one by one.
        is_run: whether the tested runtime ran the model.
    """

    notes: tuple[str, ...] = ()
    fused: Isolated | None = None
    is_run: bool = True


@dataclass(frozen=True)
class WholeRun:
    """Runs a model as a whole, and windows of it.

    Attributes:
        tested: the runtime that is tested.
        reference: the reference.
        feeds: the values of the inputs.
        tolerances: what does not count as a difference.
    """

    tested: Side
    reference: Side
    feeds: Values
    tolerances: Tolerances

    @property
    def _model(self) -> TracedModel:
        return self.tested.model

    def compare(self) -> Whole:
        """Compare the outputs; where they are beyond the tolerance only in the whole model, find the nodes that are."""
        made = {value for values in self._model.made for value in values}
        wanted = [port.value for port in self._model.graph.outputs if port.value in made]
        wanted = [value for value in dict.fromkeys(wanted) if self._model.can_travel(value)]
        every = range(len(self._model.nodes))
        if self._model.random:
            return Whole((f"the whole model was not compared: {counted(len(self._model.random), 'node')} random",))
        weights = sum(size_of(tensor.type) or 0 for _name, tensor in self._model.graph.constants)
        if weights > _LARGEST_WEIGHTS:
            return Whole((f"the whole model was not compared: {weights >> 20:,} MiB of weights",))
        if not wanted:
            return Whole()
        got = self.tested.run(every, self.feeds, wanted)
        if got.words:
            return Whole(notes=(f"the whole model was not run: {self.tested.name}: {got.words}",), is_run=got.is_slow)
        reference, tolerances = self.reference.values, self.tolerances
        for value in wanted:
            before = worst_value([value], self.tested.values, reference, tolerances)
            found = worst_value([value], got.values, reference, tolerances)
            if found is not None and before is not None and found[0].is_beyond and not before[0].is_beyond:
                return self._search()
        return Whole()

    def _reference_values(self, wanted: list[str]) -> Values:
        """Values of the reference, all other ones not given out; nothing where it does not run."""
        made = self._model.maker
        there = {value: self.feeds[value] for value in wanted if value in self.feeds}
        numbers = [made[value] for value in wanted if value in made]
        if not numbers:
            return there
        needed = self._model.behind(numbers, ())
        if self.reference.refusal_of(needed):
            return {}
        outcome = self.reference.run(needed, self.feeds, [value for value in wanted if value in made])
        return {} if outcome.words else {**there, **outcome.values}

    def _search(self) -> Whole:
        """Find the fewest neighbouring nodes that are wrong together, by halving."""
        count = len(self._model.nodes)
        start = _last_true(0, count - 1, lambda first: self._window(range(first, count)) is not None)
        stop = -_last_true(-count, -start - 1, lambda end: self._window(range(start, -end)) is not None)
        found = self._window(range(start, stop))
        if found is None:
            words = (
                "the whole model gives other results than its parts, and which nodes make the difference was not found"
            )
            return Whole((words,))
        return Whole(fused=found)

    def _window(self, numbers: range) -> Isolated | None:
        """Run neighbouring nodes on what the reference reads; what is beyond the tolerance, if anything is."""
        model = self._model
        made = {value for number in numbers for value in model.made[number]}
        read = dict.fromkeys(value for number in numbers for value in model.reads[number] if value not in made)
        leaving = [
            value
            for number in numbers
            for value in model.made[number]
            if model.last_reader[value] >= numbers.stop and model.can_travel(value)
        ]
        values = self._reference_values([*read, *leaving])
        if not leaving or not all(value in values for value in (*read, *leaving)):
            return None
        outcome = self.tested.run(numbers, values, leaving)
        worst = worst_value(leaving, outcome.values, values, self.tolerances)
        if worst is None or not worst[0].is_beyond:
            return None
        got, values = copied(outcome.values), copied(values)
        return isolated_of(self.tested, numbers, model.part(numbers, values, leaving), got, values, worst)


def _last_true(low: int, high: int, is_true: Callable[[int], bool]) -> int:
    """The last number for which something is true, if it is true for ``low`` and never again once it is not."""
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if is_true(middle) else (low, middle - 1)
    return low
