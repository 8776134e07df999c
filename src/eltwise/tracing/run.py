"""The runs of one or two models in their runtimes, segment by segment, and what each node makes of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import groupby

import numpy as np

from eltwise.comparison.tolerance import Tolerances
from eltwise.core.errors import EltwiseError
from eltwise.runtimes import Answer, Host
from eltwise.tracing.difference import EQUAL, Difference, measure
from eltwise.tracing.model import Part, TracedModel

Values = dict[str, np.ndarray]

RANDOM = "random: it makes other values in every run, and what follows is given those of the reference"


@dataclass(eq=False)
class Side:
    """One of the two runs.

    Attributes:
        name: of the runtime.
        host: its process.
        model: its model.
        values: those that later nodes read.
        is_exact: whether it is eltwise, which is not asked about operators that it does not have.
    """

    name: str
    host: Host
    model: TracedModel
    values: Values = field(default_factory=dict)
    is_exact: bool = False

    def refusal_of(self, numbers: Iterable[int]) -> str:
        """Why some nodes are not given to the runtime; empty if they are."""
        foreign = [node.schema.name for node in map(self.model.nodes.__getitem__, numbers) if node.is_foreign]
        return f"eltwise does not compute {foreign[0]}" if self.is_exact and foreign else ""

    def run(
        self,
        numbers: Iterable[int],
        values: Mapping[str, np.ndarray],
        wanted: Sequence[str] | None = None,
        *,
        apart: bool = False,
        replaced: Mapping[str, np.ndarray] | None = None,
    ) -> Outcome:
        """Run some nodes; where that is refused, with short lists as constants, and then without the inputs' sizes."""
        chosen = list(numbers)
        outcome = Outcome(words="")
        for options in ({}, {"fixes_sizes": True}, {"keeps_sizes": False}):
            try:
                part = self.model.part(chosen, values, wanted, apart=apart, replaced=replaced, **options)
            except EltwiseError as error:
                return Outcome(words=str(error))
            if not part.wanted:  # As of a node that makes strings: a runtime may refuse to give out nothing.
                return Outcome(part_given=part.given)
            if "fixes_sizes" in options and part.given == outcome.part_given:
                continue
            answer = self.host.run(part.program, part.inputs, results=part.results)
            found = _outcome(answer, part)
            if not found.words or not outcome.words:
                outcome = found
            if answer.kind != "refused":
                break
        return outcome


@dataclass(frozen=True)
class Outcome:
    """What came of running a part: its values, or in words why there are none.

    Attributes:
        values: by name; those of a host that shares memory are there until its next run.
        words: how it was refused, crashed or hung; empty if it ran.
        lost: values that are no arrays.
        part_given: the inputs of the part.
        is_slow: whether it gave no answer in time.
    """

    values: Values = field(default_factory=dict)
    words: str = ""
    lost: tuple[str, ...] = ()
    part_given: tuple[str, ...] = ()
    is_slow: bool = False


def _outcome(answer: Answer, part: Part) -> Outcome:
    if answer.kind != "result":
        return Outcome(words=f"{answer.kind}: {answer.words}", part_given=part.given, is_slow=answer.kind == "hung")
    if len(answer.arrays) != len(part.wanted):
        words = f"gave {len(answer.arrays)} values instead of {len(part.wanted)}"
        return Outcome(words=words, part_given=part.given)
    pairs = list(zip(part.wanted, answer.arrays, strict=True))
    lost = tuple(name for name, array in pairs if array is None)
    return Outcome({name: array for name, array in pairs if array is not None}, "", lost, part.given)


@dataclass
class NodeRun:
    """What is known of one node.

    Attributes:
        number: its number in the model.
        out: the difference of its worst value; None if nothing of it was compared.
        value: the name of that value.
        error_in: the largest error of what it reads.
        inputs_equal: whether all that it reads has the same bits in both runs.
        inputs_agree: whether all that it reads is within the tolerance.
        own: the difference where it is run alone on what the reference reads; None if that was not needed.
        words: why it could not be run or compared.
        has_failed: whether the tested runtime could not run it.
        blame: what a node that is beyond the tolerance was found to be.
    """

    number: int
    out: Difference | None = None
    value: str = ""
    error_in: float | None = 0.0
    inputs_equal: bool = True
    inputs_agree: bool = True
    own: Difference | None = None
    words: str = ""
    has_failed: bool = False
    blame: str | None = None

    @property
    def is_beyond(self) -> bool:
        """Whether what it makes is beyond the tolerance."""
        return self.out is not None and self.out.is_beyond


class Tracer:
    """Runs one model on two sides at once.

    Attributes:
        tested: the runtime that is tested.
        reference: the reference.
        tolerances: what does not count as a difference.
        nodes: what is known of each node that was reached, by its number.
        missing_words: why a node that ran has no value to compare.
        last_needed: the number of the last node for which each value is kept.
        judge: told of a segment's nodes, with the reference's values.
    """

    missing_words = "what it makes is not a tensor of numbers"

    def __init__(self, tested: Side, reference: Side, tolerances: Tolerances) -> None:
        self.tested = tested
        self.last_needed: dict[str, int] = tested.model.last_reader
        self.reference = reference
        self.nodes: dict[int, NodeRun] = {}
        self.judge: Callable[[list[NodeRun], Values], None] = lambda _runs, _values: None
        self.tolerances = tolerances
        self._found: dict[str, Difference] = {}
        self._threads = ThreadPoolExecutor(1)

    @property
    def model(self) -> TracedModel:
        """The model."""
        return self.tested.model

    def run(self, units: Sequence[range]) -> None:
        """Run the nodes of a segment; where that is not possible, its halves, and at last single nodes."""
        units = self._ready(units)
        if not units:
            return
        groups = [list(group) for _kind, group in groupby(units, self._kind)]
        if len(groups) > 1:
            for group in groups:
                self.run(group)
            return
        numbers = [number for unit in units for number in unit]
        refusal = self.reference.refusal_of(units[0])
        waiting = self._threads.submit(self.tested.run, numbers, self.tested.values)
        wanted = Outcome(words=refusal) if refusal else self._reference(numbers)
        got = waiting.result()
        lost = {*got.lost, *wanted.lost}
        if lost and not lost <= self.model.kept_together:
            self.model.kept_together |= lost
            self._again(numbers)
        elif (got.words or (wanted.words and not refusal)) and len(units) > 1:
            middle = len(units) // 2
            self.run(units[:middle])
            self.run(units[middle:])
        else:
            self._compare(numbers, got, wanted)

    def _kind(self, unit: range) -> tuple[bool, bool]:
        """What keeps nodes from being run together: that the reference refuses them, that they are random."""
        return bool(self.reference.refusal_of(unit)), not self.model.random.isdisjoint(unit)

    def _reference(self, numbers: Sequence[int]) -> Outcome:
        """What the reference makes of the values of some nodes."""
        return self.reference.run(numbers, self.reference.values)

    def _again(self, numbers: Sequence[int]) -> None:
        """Run nodes once more, since some of them must stay together."""
        low, high = min(numbers), max(numbers)
        self.run([unit for unit in self.model.units() if unit.start <= high and unit.stop > low])

    def _ready(self, units: Sequence[range]) -> list[range]:
        """The units whose inputs are there; of the others it is said that they are not."""
        there, ready = set(self.tested.values), []
        for unit in units:
            made = there | {*self.model.made_by(unit)}
            if made.issuperset(self.model.read_by(unit)):
                ready.append(unit)
                there = made
                continue
            for number in unit:
                self.nodes[number] = NodeRun(number, words="what it reads could not be computed")
        return ready

    def _compare(self, numbers: Sequence[int], got: Outcome, wanted: Outcome) -> None:
        values, reference = got.values, wanted.values
        is_random = not self.model.random.isdisjoint(numbers)
        if is_random and not (got.words or wanted.words):
            values = reference = {**values, **reference}
        elif got.words and not wanted.words:
            values = reference
        elif wanted.words and not got.words:
            reference = values
        runs = []
        for number in numbers:
            run = NodeRun(number)
            reads = [self._found.get(value, EQUAL) for value in self.model.reads[number]]
            run.inputs_equal = all(found.status == "equal" for found in reads)
            run.inputs_agree = not any(found.is_beyond for found in reads)
            run.error_in = worst(found.error for found in reads)
            if is_random and not got.words:
                run.words = RANDOM
            elif got.words or wanted.words:
                run.has_failed = bool(got.words)
                said = ((self.tested, got.words), (self.reference, wanted.words))
                run.words = "; ".join(f"{side.name}: {words}" for side, words in said if words)
            else:
                self._compare_node(run, values, reference)
            self.nodes[number] = run
            runs.append(run)
        self._keep(numbers, values, reference)
        self.judge(runs, {**self.reference.values, **reference})
        self._forget(max(numbers))

    def _compare_node(self, run: NodeRun, values: Values, reference: Values) -> None:
        behind = [self._found.get(value, EQUAL) for value in self.model.reads[run.number]]
        for value in self.model.made[run.number]:
            if value not in values or value not in reference:
                self._found[value] = max(behind, key=rank, default=EQUAL)
                continue
            found = self._found[value] = measure(value, values[value], reference[value], self.tolerances)
            if run.out is None or rank(found) > rank(run.out):
                run.out, run.value = found, value
        if run.out is None:
            run.words = self.missing_words

    def _keep(self, numbers: Sequence[int], values: Values, reference: Values) -> None:
        """Keep what later nodes read; the same array for both sides if it is equal in both."""
        last = max(numbers)
        for value in self.model.made_by(numbers):
            if self.last_needed[value] <= last:
                continue
            if value in reference:
                self.reference.values[value] = reference[value].copy()
            if value in values:
                is_equal = value in reference and (values is reference or self._found.get(value) == EQUAL)
                self.tested.values[value] = self.reference.values[value] if is_equal else values[value].copy()

    def _forget(self, last: int) -> None:
        for side in (self.tested, self.reference):
            for value in [value for value in side.values if self.last_needed.get(value, -1) <= last]:
                del side.values[value]


def rank(found: Difference) -> tuple[int, float]:
    """How bad a difference is beside another one."""
    order = ("equal", "within_tolerance", "differs").index(found.status)
    return order, float("inf") if found.error is None else found.error


def worst_value(
    names: Iterable[str], got: Mapping[str, np.ndarray], wanted: Mapping[str, np.ndarray], tolerances: Tolerances
) -> tuple[Difference, str] | None:
    """The value that differs most of those that are in both; None if there is none."""
    there = (name for name in names if name in got and name in wanted)
    found = [(measure(name, got[name], wanted[name], tolerances), name) for name in there]
    return max(found, key=lambda pair: rank(pair[0]), default=None)


def worst(errors: Iterable[float | None]) -> float | None:
    """The largest error; None if one has no size."""
    known = list(errors)
    return None if None in known else max((error for error in known if error is not None), default=0.0)
