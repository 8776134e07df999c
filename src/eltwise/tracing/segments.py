"""The segments in which a model is run: of so many bytes of values and weights that all of them fit into memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from eltwise.tracing.model import TracedModel, size_of
from eltwise.tracing.run import Tracer

Tell = Callable[[int, int, str], None]

_MOST_NODES = 250
"""The most nodes of a segment: OpenVINO takes more than twice the time for twice as many that it gives out."""


def run_all(tracer: Tracer, most_bytes: int, progress: Tell) -> None:
    """Run all nodes of a model.

    Args:
        tracer: what runs them.
        most_bytes: how many bytes the values and weights of a segment may have.
        progress: told how many nodes of how many were run, and the name of the next.
    """
    model = tracer.model
    count = len(model.nodes)
    position = 0
    while position < count:
        chosen = _segment(model, [unit for unit in model.units() if unit.start >= position], most_bytes)
        progress(position, count, model.nodes[position].label)
        tracer.run(chosen)
        position = chosen[-1].stop
    progress(count, count, "")


def _segment(model: TracedModel, units: Sequence[range], most_bytes: int) -> list[range]:
    """The first units whose values and weights take about so many bytes at most; at least one.

    A value of unknown size is taken to be as large as the largest that its node reads.
    """
    sizes: dict[str, int] = {}
    segment: list[range] = []
    filled = count = 0
    for unit in units:
        needed = 0
        for number in unit:
            largest = max((sizes.get(value, 0) for value in model.reads[number]), default=0)
            for value in model.made[number]:
                known = size_of(model.types.get(value))
                sizes[value] = largest if known is None else known
                needed += sizes[value]
            needed += model.weight_of(number)
        if segment and (filled + needed > most_bytes or count + len(unit) > _MOST_NODES):
            break
        segment.append(unit)
        filled, count = filled + needed, count + len(unit)
    return segment
