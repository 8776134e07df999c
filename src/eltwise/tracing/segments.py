"""The segments in which a model is run: of so many bytes of values and weights that all of them fit into memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from eltwise.core.progress import Progress, no_progress
from eltwise.tracing.model import TracedModel, size_of

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
                size = size_of(model.types.get(value))
                sizes[value] = largest if size is None else size
                needed += sizes[value]
            needed += model.weight_of(number)
        if segment and (filled + needed > most_bytes or count + len(unit) > _MOST_NODES):
            break
        segment.append(unit)
        filled, count = filled + needed, count + len(unit)
    return segment
