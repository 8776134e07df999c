"""The model as a whole, of which a runtime may compute several nodes as one: nodes that are wrong only together."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass

from eltwise.core.errors import counted
from eltwise.tracing.blame import Isolated, copied, isolated_of
from eltwise.tracing.model import size_of
from eltwise.tracing.run import Side, Tracer, Values, worst_value

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


def compare_whole(tracer: Tracer, feeds: Values) -> Whole:
    """Run a model as a whole; where its outputs are beyond the tolerance only then, find the nodes that are.

    Args:
        tracer: has run its parts.
        feeds: the values of the inputs.
    """
    model, tested, reference = tracer.model, tracer.tested, tracer.reference
    made = {value for values in model.made for value in values}
    wanted = [port.value for port in model.graph.outputs if port.value in made]
    wanted = [value for value in dict.fromkeys(wanted) if model.can_travel(value)]
    every = range(len(model.nodes))
    if model.random:
        return Whole((f"the whole model was not compared: {counted(len(model.random), 'node')} random",))
    weights = sum(size_of(tensor.type) or 0 for _name, tensor in model.graph.constants)
    if weights > _LARGEST_WEIGHTS:
        return Whole((f"the whole model was not compared: {weights >> 20:,} MiB of weights",))
    if not wanted:
        return Whole()
    got = tested.run(every, feeds, wanted)
    if got.words:
        return Whole(notes=(f"the whole model was not run: {tested.name}: {got.words}",), is_run=got.is_slow)
    for value in wanted:
        before = worst_value([value], tested.values, reference.values, tracer.tolerances)
        found = worst_value([value], got.values, reference.values, tracer.tolerances)
        if found is not None and before is not None and found[0].is_beyond and not before[0].is_beyond:
            return _search(tracer, feeds)
    return Whole()


def _reference_values(reference: Side, feeds: Values, wanted: list[str]) -> Values:
    """Values of the reference, all other ones not given out; nothing where it does not run."""
    made = reference.model.maker
    there = {value: feeds[value] for value in wanted if value in feeds}
    numbers = [made[value] for value in wanted if value in made]
    if not numbers:
        return there
    needed = reference.model.behind(numbers, ())
    if reference.refusal_of(needed):
        return {}
    outcome = reference.run(needed, feeds, [value for value in wanted if value in made])
    return {} if outcome.words else {**there, **outcome.values}


def _search(tracer: Tracer, feeds: Values) -> Whole:
    """Find the fewest neighbouring nodes that are wrong together, by halving."""
    count = len(tracer.model.nodes)
    start = bisect_left(range(1, count), True, key=lambda first: _window(tracer, feeds, range(first, count)) is None)
    ends = range(start + 1, count)
    stop = start + 1 + bisect_left(ends, True, key=lambda end: _window(tracer, feeds, range(start, end)) is not None)
    found = _window(tracer, feeds, range(start, stop))
    if found is None:
        words = "the whole model gives other results than its parts, and which nodes make the difference was not found"
        return Whole((words,))
    return Whole(fused=found)


def _window(tracer: Tracer, feeds: Values, numbers: range) -> Isolated | None:
    """Run neighbouring nodes on what the reference reads; what is beyond the tolerance, if anything is."""
    model = tracer.model
    made = model.made_by(numbers)
    leaving = [value for value in made if model.last_reader[value] >= numbers.stop and model.can_travel(value)]
    wanted = [*sorted({*model.read_by(numbers)} - {*made}), *leaving]
    values = _reference_values(tracer.reference, feeds, wanted)
    if not leaving or not all(value in values for value in wanted):
        return None
    outcome = tracer.tested.run(numbers, values, leaving)
    worst = worst_value(leaving, outcome.values, values, tracer.tolerances)
    if worst is None or not worst[0].is_beyond:
        return None
    got, values = copied(outcome.values), copied(values)
    return isolated_of(tracer.tested, numbers, model.part(numbers, values, leaving), got, values, worst)
