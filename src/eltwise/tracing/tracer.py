"""The runs of a tested model and of the reference, segment by segment, and what each node makes of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby

import numpy as np

from eltwise.tracing.attribute import Attribution
from eltwise.tracing.difference import EQUAL, Difference, largest, measure, rank, signal_to_noise
from eltwise.tracing.isolated import Isolated
from eltwise.tracing.partners import NOT_NUMBERS, Runs, last_uses
from eltwise.tracing.records import TracedNode
from eltwise.tracing.runner import Outcome, Values, copied, in_type_of
from eltwise.tracing.segments import numbers_of, run_in_segments, segments
from eltwise.tracing.steps import Steps

RANDOM = "random: it makes other values in every run, and what follows is given those of the reference"
_NO_INPUT = "what it reads could not be computed"

_MOST_HELD = 1 << 26
"""How many bytes of values without a partner are held until a value is found that has their contents."""


class Tracer:
    """Runs the nodes of the tested model, and of the reference those that make the partners of their values.

    It goes through the model once and holds only values that are still needed, which is why it has a state.

    Attributes:
        nodes: the results of the nodes that were run, by number.
        values: those of the tested model that are still needed; at the end its outputs.
        expected: those of the reference, by the names and in the types of the tested model.
        outputs: those of the reference that are outputs, in its own types.
        renamed: the values of the tested model that were matched by their contents.
    """

    def __init__(self, runs: Runs) -> None:
        self.nodes: dict[int, TracedNode] = {}
        self.values, self.expected, self.outputs = dict(runs.feeds), dict(runs.feeds), dict(runs.feeds)
        self.renamed: list[str] = []
        self.steps = Steps(runs, self._run_reference)
        self._attribution = Attribution(runs, self.steps)
        self._runs, self._tested, self._reference, self._model = runs, runs.tested, runs.reference, runs.model
        self._partners = runs.partners.values
        self._partnered = frozenset(self._partners.values())
        self._reference_values = dict(runs.reference_feeds)
        self._differences: dict[str, Difference] = {}
        self._held: Values = dict(runs.reference.unmatched)
        self._thread = ThreadPoolExecutor(1)
        self._plan()

    @property
    def isolated(self) -> Mapping[int, Isolated]:
        """The first nodes that give another result alone, by number."""
        return self._attribution.isolated

    def run(self, units: Sequence[range]) -> None:
        """Run the nodes of a segment; where that is not possible, its halves, and at last single nodes."""
        units = self._ready(units)
        groups = [list(group) for _kind, group in groupby(units, self._kind)]
        if len(groups) != 1:
            for group in groups:
                self.run(group)
            return
        numbers = numbers_of(units)
        steps = self._steps_of(numbers)
        refusal = self._reference.refusal_of(steps)
        waiting = self._thread.submit(self._tested.run, numbers, self.values)
        expected = Outcome(message=refusal) if refusal else self._run_reference(steps, self._reference_values)
        actual = waiting.result()
        if self._keep_together(actual, expected):
            low, high = min(numbers), max(numbers)
            self.run([unit for unit in self._model.units() if unit.start <= high and unit.stop > low])
        elif (actual.message or (expected.message and not refusal)) and len(units) > 1:
            middle = len(units) // 2
            self.run(units[:middle])
            self.run(units[middle:])
        else:
            self._compare(numbers, actual, expected, is_random=self._kind(units[0])[1])

    def _plan(self) -> None:
        """Plan when each node of the reference is run, and until when each value is needed."""
        steps = self._runs.partners.schedule()
        self._last, self._reference_last = last_uses(self._runs.partners, steps)
        self._steps: dict[int, list[int]] = {}
        for number in sorted(steps):
            self._steps.setdefault(steps[number], []).append(number)

    def _steps_of(self, numbers: Sequence[int]) -> list[int]:
        """The nodes of the reference that are run for some nodes."""
        return sorted(one for number in numbers for one in self._steps.get(number, ()))

    def _kind(self, unit: range) -> tuple[bool, bool]:
        """What keeps nodes from being run together: that the reference refuses them, that they are random."""
        steps = self._steps_of(unit)
        is_random = not self._model.random.isdisjoint(unit) or not self._reference.model.random.isdisjoint(steps)
        return bool(self._reference.refusal_of(steps)), is_random

    def _keep_together(self, actual: Outcome, expected: Outcome) -> bool:
        """Keep what reads a value beside what makes it, where a runtime does not give it out; whether that is new."""
        is_new = False
        for runner, outcome in ((self._tested, actual), (self._reference, expected)):
            lost = set(outcome.lost) - runner.model.indivisible
            runner.model.indivisible |= lost
            is_new |= bool(lost)
        if is_new:
            self._plan()
        return is_new

    def _ready(self, units: Sequence[range]) -> list[range]:
        """The units whose inputs were computed; the nodes of the others have that as their message."""
        computed, ready = set(self.values), []
        for unit in units:
            with_unit = computed | {*self._model.made_by(unit)}
            if with_unit.issuperset(self._model.read_by(unit)):
                ready.append(unit)
                computed = with_unit
                continue
            for number in unit:
                self.nodes[number] = self._node(number, _NO_INPUT)
        return ready

    def _run_reference(self, numbers: Sequence[int], values: Values) -> Outcome:
        """Run nodes of the reference on values; where that is not possible, its halves."""
        model = self._reference.model
        units = [unit for unit in model.units() if unit.start in numbers]
        parts = [list(group) for _key, group in groupby(units, self._fallback_unit)]
        if len(parts) < 2:
            available = values.keys() | {*model.made_by(numbers)}
            if self._reference.needs_inputs and not available >= {*model.read_by(numbers)}:
                outcome = Outcome(message=_NO_INPUT)
            else:
                outcome = self._reference.run(numbers, values) if numbers else Outcome()
            if not outcome.message or len(units) < 2:
                return outcome
            parts = [units[: len(units) // 2], units[len(units) // 2 :]]
        results, values = Outcome(), dict(values)
        for part in parts:
            outcome = self._run_reference(numbers_of(part), values)
            values |= (new := copied(outcome.values))
            results = Outcome(results.values | new, results.message or outcome.message, results.lost + outcome.lost)
        return results

    def untied_outputs(self, most_bytes: int) -> Values:
        """The outputs of the reference that goes on with its own side of every tie."""
        feeds, parts, outputs = self._runs.reference_feeds, segments(self._model, most_bytes), Values()
        for outcome, _needed in run_in_segments(self._run_reference, self._model, feeds, parts):
            outputs |= {value: array for value, array in outcome.values.items() if value in self._model.ends}
        return outputs

    def _fallback_unit(self, unit: range) -> range | None:
        """The unit, if one of its nodes is run alone; None for others, which are run together."""
        return unit if any(map(self._reference.runs_alone, unit)) else None

    def _compare(self, numbers: Sequence[int], actual: Outcome, outcome: Outcome, *, is_random: bool) -> None:
        values, is_random = actual.values, is_random and not actual.message
        if not (actual.message or outcome.message or is_random):
            outcome = self.steps.follow(numbers, (self.values, values), (self._reference_values, outcome))
        computed = self._expected_of(numbers, actual, outcome)
        computed_names = computed.keys()
        typed = self._tested.typed(computed)  # What follows a node that fails reads them.
        expected = {name: in_type_of(array, values.get(name, typed[name])) for name, array in computed.items()}
        if actual.message or (is_random and not outcome.message):
            values = computed = expected = {**values, **expected}
        results = list(map(self._node, numbers))
        for result in results:
            inputs = [self._differences.get(value, EQUAL) for value in self._model.reads[result.number]]
            result.inputs_equal = all(one.status == "equal" and one.is_exact for one in inputs)
            result.inputs_agree = not any(one.is_beyond for one in inputs)
            result.error_in = largest(one.error for one in inputs)
            is_computed = not outcome.message or bool(computed_names & {*self._model.made[result.number]})
            result.has_failed = bool(actual.message) and is_computed
            if is_random:
                result.message = RANDOM
            elif actual.message or (outcome.message and not expected.keys() & {*self._model.made[result.number]}):
                refusal = self._reference.refusal_of(self._steps_of([result.number])) or outcome.message
                sides = ((self._tested, actual.message), (self._reference, refusal))
                result.message = "; ".join(f"{runner.name}: {message}" for runner, message in sides if message)
            else:
                self._compare_values(result, values, computed)
            self.nodes[result.number] = result
        self._retain(numbers, values, expected, outcome.values)
        ends = [value for value in self._model.made_by(numbers) if value in self._model.ends and value in self.expected]
        self.outputs |= {value: computed.get(value, self.expected[value]).copy() for value in ends}
        self._attribution.attribute(results, {**self.expected, **expected}, {**self.expected, **computed})
        self._forget(max(numbers))

    def _node(self, number: int, message: str = "") -> TracedNode:
        node = self._model.nodes[number]
        return TracedNode(number, node.label, node.schema.name, message=message)

    def _expected_of(self, numbers: Sequence[int], actual: Outcome, outcome: Outcome) -> Values:
        """The values of the reference by the names of the tested model."""
        expected: Values = {}
        computed = {**self._reference_values, **outcome.values}
        self._held |= {name: array for name, array in outcome.values.items() if name not in self._partnered}
        for value in self._model.made_by(numbers):
            partner, other = self._partners.get(value), actual.values.get(value)
            if partner is None:
                array = None if other is None else self._find(value, other)
            else:
                array = self._reference.model.array_of(partner, computed)
            if array is not None:
                expected[value] = array
        return expected

    def _find(self, value: str, array: np.ndarray) -> np.ndarray | None:
        """The value of the reference without a partner that has the contents of one of the tested model."""
        if not array.size or (array == array.flat[0]).all():
            return None
        for name, other in self._held.items():
            is_alike = array.shape == other.shape and array.dtype == other.dtype
            if is_alike and not measure(value, array, other, self._runs.tolerances).is_beyond:
                self.renamed.append(value)
                return self._held.pop(name)
        return None

    def _compare_values(self, result: TracedNode, values: Values, expected: Values) -> None:
        inputs = [self._differences.get(value, EQUAL) for value in self._model.reads[result.number]]
        for value in self._model.made[result.number]:
            if value not in values or value not in expected:
                self._differences[value] = max(inputs, key=rank, default=EQUAL)
                continue
            rounded_to = self._runs.partners.rounded_to(value)
            difference = measure(value, values[value], expected[value], self._runs.tolerances, rounded_to=rounded_to)
            if difference.is_beyond and (message := self._reference.doubt(expected[value], values[value])):
                result.message, self._differences[value] = message, max(inputs, key=rank, default=EQUAL)
                continue
            self._differences[value] = difference
            if result.out is None or rank(difference) > rank(result.out):
                result.out, result.value = difference, value
        if result.is_beyond:
            result.snr = signal_to_noise(values[result.value], expected[result.value])
        if result.out is None and not result.message:
            produced = self._model.made[result.number]
            result.message = NOT_NUMBERS if self._partners.keys() & {*produced} else self._reference.missing

    def _retain(self, numbers: Sequence[int], values: Values, expected: Values, computed: Values) -> None:
        """Keep what later nodes read, each array once; what one side could not compute is that of the other."""
        last, copies = max(numbers), dict[int, np.ndarray]()

        def copy(array: np.ndarray) -> np.ndarray:
            if id(array) not in copies:
                copies[id(array)] = array.copy()
            return copies[id(array)]

        for value in self._model.made_by(numbers):
            partner = self._partners.get(value, "")
            if value in values and value not in expected and partner:
                expected = expected | {value: values[value]}
                computed = computed | self._reference.typed({partner: values[value]})
            if self._last[value] <= last:
                continue
            if value in expected:
                self.expected[value] = copy(expected[value])
            if value in values:
                is_equal = value in expected and self._differences.get(value, EQUAL).status == "equal"
                self.values[value] = self.expected[value] if is_equal else copy(values[value])
        for name, array in computed.items():
            if self._reference_last.get(name, -1) > last:
                self._reference_values[name] = copy(array)
            if name in self._held:
                self._held[name] = copy(array)
        while sum(array.nbytes for array in self._held.values()) > _MOST_HELD:
            del self._held[next(iter(self._held))]

    def _forget(self, last: int) -> None:
        stores = (
            (self.values, self._last),
            (self.expected, self._last),
            (self._reference_values, self._reference_last),
        )
        for values, needed in stores:
            for value in [value for value in values if needed.get(value, -1) <= last]:
                del values[value]
