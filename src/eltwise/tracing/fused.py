"""Nodes that a runtime computes right one by one and wrong together, as where it fuses them.

An optimization that takes several nodes as one stops where a value between them is given out. So the smallest set of
values that must be given out to make the outputs right shows which nodes these are, whatever the reference.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from eltwise.comparison.tolerance import Tolerances
from eltwise.core.errors import named
from eltwise.tracing.difference import measure, worst_value
from eltwise.tracing.isolated import Isolated, isolated_of
from eltwise.tracing.model import TracedModel
from eltwise.tracing.runner import Outcome, Runner, Values, copied
from eltwise.tracing.search import smallest
from eltwise.tracing.segments import numbers_of, run_in_segments, segments

_LARGEST_GROUP = 32
"""So many nodes around a value are run as a model of their own."""

_MOST_BEFORE = 3
"""So far before a node are those that may be wrong only together with it."""


@dataclass(frozen=True)
class Fused:
    """Nodes that are wrong together.

    Attributes:
        numbers: their numbers.
        values: what must be given out to make the outputs right.
        isolated: the nodes as a model that shows it; None if they are right without the rest of the model.
    """

    numbers: tuple[int, ...]
    values: tuple[str, ...]
    isolated: Isolated | None


@dataclass(frozen=True)
class _Tail:
    """A model from one of its nodes on, with what this reads where all before are run in segments, and its outputs."""

    runner: Runner
    start: int
    feeds: Values
    outputs: Values
    tolerances: Tolerances

    def run(self, names: Sequence[str]) -> Outcome:
        """Run it as one model, with these values and its outputs given out."""
        numbers = range(self.start, len(self.runner.model.nodes))
        return self.runner.run(numbers, self.feeds, list(dict.fromkeys([*self.outputs, *names])))

    def is_right(self, values: Sequence[str] = ()) -> bool:
        """Whether its outputs are right if some values are given out."""
        outcome = self.run(values)
        worst = worst_value(self.outputs, outcome.values, self.outputs, self.tolerances)
        return not outcome.message and (worst is None or not worst[0].is_beyond)


def find_fused(
    runner: Runner,
    feeds: Values,
    outputs: Values,
    tolerances: Tolerances,
    most_bytes: int,
    *,
    isolates: bool = True,
) -> Fused | None:
    """Find the nodes of a model that are wrong together.

    The model is cut where it is right from there on, and wrong from a segment earlier on: what is wrong together lies
    in that segment, of which all values can be given out.

    Args:
        runner: the model, whose outputs are wrong if it is run as a whole.
        feeds: its inputs.
        outputs: its right outputs.
        tolerances: what does not count as a difference.
        most_bytes: how many bytes the values may have that are given out at once.
        isolates: whether the nodes are looked for as a model of their own.

    Returns:
        None if giving out values does not make the outputs right.
    """
    model, parts = runner.model, list(segments(runner.model, most_bytes))
    low, high = 0, len(parts)
    tail = _Tail(runner, 0, feeds, outputs, tolerances)
    if tail.is_right():  # As where it is wrong only with sizes that its file leaves open.
        return None
    while high - low > 1:
        middle = (low + high) // 2
        later = _tail_from(tail, parts[:middle])
        if later is None:
            return None
        if later.is_right():
            high = middle
        else:
            low = middle
    last = _tail_from(tail, parts[:low])
    if last is None:
        return None
    candidates = [
        value
        for value in model.made_by(numbers_of(parts[low]))
        if model.is_tensor(value) and model.last_reader[value] < len(model.nodes)
    ]
    values = smallest(candidates, last.is_right)
    return _group(last, values, isolates=isolates) if values else None


def _tail_from(whole: _Tail, before: Sequence[Sequence[range]]) -> _Tail | None:
    """A model from behind some segments on; None where one of these cannot be run."""
    model, values, start = whole.runner.model, whole.feeds, before[-1][-1].stop if before else 0
    for outcome, needed in run_in_segments(whole.runner.run, model, whole.feeds, before):
        if outcome.message:
            return None
        values = needed
    later = {*model.made_by(range(start, len(model.nodes)))}
    outputs = {name: array for name, array in whole.outputs.items() if name in later}
    return replace(whole, start=start, feeds=values, outputs=outputs)


def _group(tail: _Tail, values: Sequence[str], *, isolates: bool) -> Fused:
    """The fewest nodes around some values that are wrong as a model of their own."""
    model = tail.runner.model
    numbers = {number for value in values for number in _neighbors(tail, value)}
    core = tuple(sorted(numbers))
    while isolates and len(numbers) <= _LARGEST_GROUP:
        isolated = _wrong_within(tail, sorted(numbers))
        if isolated is not None:
            return Fused(isolated.numbers, tuple(values), isolated)
        names = {name for number in numbers for name in (*model.reads[number], *model.made[number])}
        wider = numbers.union(*(_neighbors(tail, name) for name in names))
        if wider == numbers:
            break
        numbers = wider
    return Fused(core, tuple(values), None)


def _wrong_within(tail: _Tail, numbers: Sequence[int]) -> Isolated | None:
    """The fewest of some nodes that are wrong as a model of their own, on what they are given in the whole model."""
    model = tail.runner.model
    names = [value for value in (*model.read_by(numbers), *model.made_by(numbers)) if value not in tail.feeds]
    outcome = tail.run([value for value in dict.fromkeys(names) if model.is_tensor(value)])
    return _fewest(tail.runner, numbers, tail.feeds | copied(outcome.values), tail.tolerances)


def nodes_before(model: TracedModel, number: int, right: Values) -> list[int]:
    """A node and those shortly before it of which it is known what they read, which may be wrong only together."""
    numbers = {number}
    for _step in range(_MOST_BEFORE):
        producers = {model.producer[value] for value in model.read_by(numbers) if value in model.producer}
        numbers |= {one for one in producers if right.keys() >= {*model.reads[one]}}
    return sorted(numbers)


def find_group(runner: Runner, number: int, right: Values, tolerances: Tolerances) -> Isolated | None:
    """Find the fewest nodes that are wrong together, of a node that is right alone and those before it.

    Args:
        runner: the model.
        number: the node.
        right: the right values.
        tolerances: what does not count as a difference.
    """
    numbers = nodes_before(runner.model, number, right)
    group = _fewest(runner, numbers, right, tolerances) if len(numbers) <= _LARGEST_GROUP else None
    return group if group is not None and group.numbers[-1] == number and len(group.numbers) > 1 else None


def together(model: TracedModel, numbers: Sequence[int], *, are_right: bool = True) -> str:
    """The sentence of nodes that are wrong together, and whether they are right one by one."""
    names = named([model.nodes[number].label for number in numbers])
    return f"{'wrong together, right' if are_right else 'other together than'} one by one: {names}"


def _fewest(runner: Runner, numbers: Sequence[int], right: Values, tolerances: Tolerances) -> Isolated | None:
    """The fewest nodes whose wrong result makes that of all: what is fused of fewer may be wrong in another way."""
    every = _isolate(runner, numbers, right, tolerances)
    if every is None:
        return None

    def is_enough(group: Sequence[int]) -> bool:
        one = _isolate(runner, group, right, tolerances)
        if one is None:
            return False
        behind = runner.model.made_by(number for number in numbers if number not in group)
        values = {name: array for name, array in right.items() if name not in behind} | {one.value: one.actual}
        result = _followed(runner, every.value, values)
        return result is not None and not measure(every.value, result, every.actual, tolerances).is_beyond

    return _isolate(runner, smallest(numbers, is_enough) or numbers, right, tolerances)


def _followed(runner: Runner, value: str, values: Values) -> np.ndarray | None:
    """What follows for a value from others; None where it cannot be run."""
    if value in values:
        return values[value]
    numbers = runner.model.ancestors([runner.model.producer[value]], values)
    return runner.run(numbers, values, [value]).values.get(value)


def _neighbors(tail: _Tail, value: str) -> list[int]:
    """The node of a tail that makes a value, and those that read it."""
    model = tail.runner.model
    producer = [model.producer[value]] if value in model.producer else []
    return [number for number in (*producer, *model.readers.get(value, ())) if number >= tail.start]


def _isolate(runner: Runner, numbers: Sequence[int], right: Values, tolerances: Tolerances) -> Isolated | None:
    """Run nodes with nothing given out but what others read; None if that is right or cannot be run."""
    model, inside = runner.model, set(numbers)
    outside = {value for number, values in enumerate(model.reads) if number not in inside for value in values}
    ends, produced = outside | model.ends, model.made_by(numbers)
    leaving = [value for value in produced if value in ends and value in right]
    inputs = {value: array for value, array in right.items() if value not in produced}
    if not leaving or not inputs.keys() >= {*model.read_by(numbers)} - {*produced}:
        return None
    record = isolated_of(numbers, runner.run(numbers, inputs, leaving), leaving, right, tolerances)
    return record if record is not None and record.difference.is_beyond else None
