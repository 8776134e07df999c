"""Nodes that another model has changed: with the other model's values of them, the outputs are those of that model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest

from eltwise.ir.graph import Node, Tensor
from eltwise.tracing.difference import worst_value
from eltwise.tracing.isolated import Isolated
from eltwise.tracing.runner import Values, copied
from eltwise.tracing.runs import NodeResult, Runs
from eltwise.tracing.search import smallest


def find_changed(
    runs: Runs, nodes: Mapping[int, NodeResult], isolated: Mapping[int, Isolated], outputs: Values
) -> dict[int, str]:
    """Find nodes with one node in their place in the other model, whose values make the difference of the outputs.

    A node is a candidate if its inputs agree and it gives another result than the other model's node. That its value
    may be compared with that of the other model is shown where the tested model, given the other model's values of
    some candidates, has the other model's outputs, and has not if one of these values is its own.

    Args:
        runs: the runs.
        nodes: the results of all nodes.
        isolated: the nodes that were run alone and gave another result.
        outputs: the outputs of the reference, by the names of the tested model.

    Returns:
        For each changed node the change, as a sentence.
    """
    candidates = [
        number
        for number in sorted(isolated)
        if nodes[number].blame == "not_isolated"
        and nodes[number].inputs_agree
        and len(runs.partners.in_place_of(number)) == 1
    ]
    found = smallest(candidates, lambda numbers: _has_outputs(runs, [isolated[one] for one in numbers], outputs))
    return {number: _change(runs, number) for number in found}


def _has_outputs(runs: Runs, replaced: Sequence[Isolated], outputs: Values) -> bool:
    """Whether the tested model has these outputs with some values replaced."""
    model, values = runs.model, {one.value: one.expected for one in replaced}
    names = [value for value in outputs if value in model.producer and value not in values]
    numbers = model.ancestors((model.producer[value] for value in names), values)
    outcome = runs.tested.run(numbers, runs.feeds | values, names, isolated=True)
    if outcome.message:
        return False
    results = copied(outcome.values) | values
    worst = worst_value(outputs, results, outputs, runs.tolerances)
    return worst is not None and not worst[0].is_beyond


def _change(runs: Runs, number: int) -> str:
    """What the other model has in place of a node."""
    node, other = runs.model.nodes[number], runs.partners.in_place_of(number)[0]
    if node.schema.name != other.schema.name:
        return f"the other model has {other.schema.name} {other.label!r} in its place"
    attributes, others = dict(node.operation.given), dict(other.operation.given)
    names = sorted(name for name in attributes.keys() | others if attributes.get(name) != others.get(name))
    if names:
        return f"the other model has another attribute {names[0]!r}"
    return next(_constants(runs, node, other), f"the other model has {other.label!r} in its place")


def _constants(runs: Runs, node: Node, other: Node) -> Iterator[str]:
    """The constants that differ between two nodes."""
    for value, partner in zip_longest(node.inputs, other.inputs, fillvalue=""):
        pair = runs.model.constant(value), runs.reference.model.constant(partner)
        if all(isinstance(one, Tensor) for one in pair) and pair[0] != pair[1]:
            yield f"the constant {value!r} has other values than {partner!r} of the other model"
