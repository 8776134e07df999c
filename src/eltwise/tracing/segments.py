"""The segments in which a model is run: of so many bytes of values and weights that all of them fit into memory."""

from __future__ import annotations

from collections.abc import Sequence

from eltwise.tracing.model import TracedModel, size_of

_MOST_NODES = 250
"""The most nodes of a segment: OpenVINO takes more than twice the time for twice as many that it gives out."""


def next_segment(model: TracedModel, start: int, most_bytes: int) -> list[range]:
    """The first units from a node on whose values and weights take about so many bytes at most; at least one.

    A value of unknown size is taken to be as large as the largest that its node reads.
    """
    sizes: dict[str, int] = {}
    segment: list[range] = []
    filled = count = 0
    for unit in _units_from(model, start):
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


def _units_from(model: TracedModel, start: int) -> Sequence[range]:
    return [unit for unit in model.units() if unit.start >= start]
