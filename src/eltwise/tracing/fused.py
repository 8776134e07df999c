"""Nodes that a runtime computes right one by one and wrong together, as where it fuses them.

An optimization that takes several nodes as one stops where a value between them is given out. So the smallest set of
values that must be given out to make the outputs right shows which nodes these are, whatever the reference.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from eltwise.comparison.tolerance import Tolerances
from eltwise.tracing.difference import worst_value
from eltwise.tracing.isolated import Isolated
from eltwise.tracing.model import size_of
from eltwise.tracing.runner import Runner, Values, copied
from eltwise.tracing.search import smallest

_LARGEST_GROUP = 32
"""So many nodes around a value are run as a model of their own."""


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


def find_fused(runner: Runner, feeds: Values, outputs: Values, tolerances: Tolerances, most_bytes: int) -> Fused | None:
    """Find the nodes of a model that are wrong together.

    Args:
        runner: the model, whose outputs are wrong if it is run as a whole.
        feeds: its inputs.
        outputs: its right outputs.
        tolerances: what does not count as a difference.
        most_bytes: how many bytes the values may have that are given out at once.

    Returns:
        None if giving out values does not make the outputs right.
    """

    def is_right(values: Sequence[str]) -> bool:
        outcome = runner.run(range(len(runner.model.nodes)), feeds, list(dict.fromkeys([*outputs, *values])))
        worst = worst_value(outputs, outcome.values, outputs, tolerances)
        return not outcome.message and worst is not None and not worst[0].is_beyond

    for candidates in _chunks(runner, most_bytes):
        values = smallest(candidates, is_right)
        if values:
            return _group(runner, feeds, outputs, tolerances, values)
    return None


def _chunks(runner: Runner, most_bytes: int) -> list[list[str]]:
    """The values between nodes, in groups of about so many bytes."""
    model, chunks, filled = runner.model, [list[str]()], 0
    for value in model.producer:
        if not model.is_tensor(value) or model.last_reader[value] == len(model.nodes):
            continue
        size = size_of(model.types.get(value)) or 0
        if chunks[-1] and filled + size > most_bytes:
            chunks.append([])
            filled = 0
        chunks[-1].append(value)
        filled += size
    return chunks


def _group(runner: Runner, feeds: Values, outputs: Values, tolerances: Tolerances, values: Sequence[str]) -> Fused:
    """The fewest nodes around some values that are wrong as a model of their own."""
    numbers = {number for value in values for number in _neighbors(runner, value)}
    core = tuple(sorted(numbers))
    while len(numbers) <= _LARGEST_GROUP:
        isolated = _wrong_within(runner, feeds, list(outputs), tolerances, sorted(numbers))
        if isolated is not None:
            return Fused(isolated.numbers, tuple(values), isolated)
        names = {name for number in numbers for name in (*runner.model.reads[number], *runner.model.made[number])}
        wider = numbers.union(*(_neighbors(runner, name) for name in names))
        if wider == numbers:
            break
        numbers = wider
    return Fused(core, tuple(values), None)


def _wrong_within(
    runner: Runner, feeds: Values, outputs: Sequence[str], tolerances: Tolerances, numbers: Sequence[int]
) -> Isolated | None:
    """The fewest of some nodes that are wrong as a model of their own, on what they are given in the whole model."""
    model = runner.model
    values = [value for value in (*model.read_by(numbers), *model.made_by(numbers)) if value not in feeds]
    names = [value for value in dict.fromkeys([*outputs, *values]) if model.is_tensor(value)]
    outcome = runner.run(range(len(model.nodes)), feeds, names)
    right = feeds | copied(outcome.values)
    fewest = smallest(numbers, lambda group: _isolate(runner, group, right, tolerances) is not None)
    return _isolate(runner, fewest, right, tolerances) if fewest else None


def _neighbors(runner: Runner, value: str) -> list[int]:
    """The node that makes a value, and those that read it."""
    model = runner.model
    producer = [model.producer[value]] if value in model.producer else []
    return producer + [number for number, names in enumerate(model.reads) if value in names]


def _isolate(
    runner: Runner, numbers: Sequence[int], right: Mapping[str, np.ndarray], tolerances: Tolerances
) -> Isolated | None:
    """Run nodes with nothing given out but what others read; None if that is right or cannot be run."""
    model, inside = runner.model, set(numbers)
    outside = {value for number, values in enumerate(model.reads) if number not in inside for value in values}
    ends = outside | {port.value for port in model.graph.outputs}
    produced = model.made_by(numbers)
    leaving = [value for value in produced if value in ends and value in right]
    inputs = {value: array for value, array in right.items() if value not in produced}
    if not leaving or not inputs.keys() >= {*model.read_by(numbers)} - {*produced}:
        return None
    outcome = runner.run(numbers, inputs, leaving)
    worst = worst_value(leaving, outcome.values, right, tolerances)
    if worst is None or not worst[0].is_beyond:
        return None
    difference, value = worst
    submodel = model.submodel(numbers, inputs, leaving)
    return Isolated(tuple(numbers), submodel, value, outcome.values[value].copy(), right[value], difference)
