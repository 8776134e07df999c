"""The segments in which a model is run: of so many bytes of values and weights that all of them fit into memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from eltwise.core.progress import Progress, no_progress
from eltwise.tracing.model import TracedModel
from eltwise.tracing.model_program import size_of
from eltwise.tracing.runner import Outcome, Values, copied

_MOST_NODES = 250
"""The most nodes of a segment: OpenVINO takes more than twice the time for twice as many that it gives out."""


def segments(model: TracedModel, most_bytes: int, progress: Progress = no_progress) -> Iterator[list[range]]:
    """The units of a model in segments whose values and weights take about so many bytes at most; each at least one.

    A segment is made when it is asked for, of the units as they are then. ``progress`` receives the number of nodes
    before each, and at the end.
    """
    start, count = 0, len(model.nodes)
    while start < count:
        progress(start, count, model.nodes[start].label)
        segment = _next_segment(model, start, most_bytes)
        yield segment
        start = segment[-1].stop
    progress(count, count, "")


def run_in_segments(
    run: Callable[[list[int], Values], Outcome], model: TracedModel, feeds: Values, parts: Iterable[Sequence[range]]
) -> Iterator[tuple[Outcome, Values]]:
    """Run segments of a model one after the other, each on the values of those before.

    Returns:
        What came of each, and all values so far that nodes after it read or the model gives out. These are copies.
    """
    values = dict(feeds)
    for units in parts:
        outcome = run(numbers_of(units), values)
        outcome = replace(outcome, values=copied(outcome.values))
        stop, values = units[-1].stop, values | outcome.values
        values = {name: array for name, array in values.items() if model.last_reader.get(name, -1) >= stop}
        yield outcome, values


def numbers_of(units: Sequence[range]) -> list[int]:
    """The numbers of the nodes of some units."""
    return [number for unit in units for number in unit]


def _next_segment(model: TracedModel, start: int, most_bytes: int) -> list[range]:
    """The first units from a node on; a value of unknown size counts as the largest that its node reads."""
    sizes: dict[str, int] = {}
    segment: list[range] = []
    filled = count = 0
    for unit in model.units():
        if unit.start < start:
            continue
        needed = 0
        for number in unit:
            largest = max((sizes.get(value, 0) for value in model.reads[number]), default=0)
            for value in model.made[number]:
                size = size_of(model.type_of(value))
                sizes[value] = largest if size is None else size
                needed += sizes[value]
            needed += model.weight_of(number)
        if segment and (filled + needed > most_bytes or count + len(unit) > _MOST_NODES):
            break
        segment.append(unit)
        filled, count = filled + needed, count + len(unit)
    return segment
