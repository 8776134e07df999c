"""Nodes that another model has changed: with its constants, or its values of them, the outputs are those it has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from eltwise.comparison.arrays import compare_arrays
from eltwise.comparison.causes import UNEXPLAINED
from eltwise.core.errors import EltwiseError, named
from eltwise.ir.graph import Tensor
from eltwise.tracing.counterparts import as_read, counterpart, has_other_meaning, is_alike, operand_pairs
from eltwise.tracing.difference import worst_value
from eltwise.tracing.isolated import Isolated
from eltwise.tracing.model import TracedModel
from eltwise.tracing.partners import Runs
from eltwise.tracing.records import TracedNode
from eltwise.tracing.runner import Values, copied, in_narrower_type
from eltwise.tracing.search import smallest

_MOST_SEARCHED = 16
"""Of more constants that differ the smallest set that matters is not looked for: all of them are said."""


@dataclass(frozen=True)
class ChangedConstant:
    """A constant of the tested model that is another one at the same node of the other model.

    Attributes:
        number: the node.
        name: the constant.
        other: its name in the other model.
        array: its elements, in the type that the node reads.
        other_array: those of the other model, in that type.
    """

    number: int
    name: str
    other: str
    array: np.ndarray
    other_array: np.ndarray

    def message(self) -> str:
        """How it differs, in words."""
        record = compare_arrays(self.other_array, self.array)
        cause = record.explanation if record.cause not in (None, UNEXPLAINED) else ""
        message = f"the constant B, {self.name!r}, is not A, {self.other!r} of the other model"
        return f"{message}: {cause or f'they differ by {record.max_abs:.4g} at most'}"


def find_changed(
    runs: Runs, nodes: Mapping[int, TracedNode], isolated: Mapping[int, Isolated], outputs: Values
) -> dict[int, str]:
    """Find nodes that the other model has with other constants, attributes or operators, and that make the difference.

    A node is a candidate if the other model has one node in its place at most, and that one reads other constants, or
    its inputs agree and it gives another result. That its value may be compared with that of the other model is shown
    where the tested model, given the other model's constants or values of some candidates, has the other model's
    outputs, and has not if one of these is its own.

    Returns:
        For each changed node the change, as a sentence.
    """
    constants = list(_changed_constants(runs))
    if len(constants) > _MOST_SEARCHED and _has_outputs(runs, constants, outputs):
        return {one.number: one.message() for one in reversed(constants)}
    numbers = [one for one in sorted(isolated) if nodes[one].blame == "not_isolated" and nodes[one].inputs_agree]
    others = {number: counterpart(runs.partners, number) for number in numbers}
    values = [isolated[number] for number, other in others.items() if len(other.nodes) < 2]
    candidates: list[ChangedConstant | Isolated] = [*constants[:_MOST_SEARCHED], *values]
    changes = dict[int, str]()
    for one in smallest(candidates, lambda some: _has_outputs(runs, some, outputs)):
        if isinstance(one, ChangedConstant):
            changes.setdefault(one.number, one.message())
        else:
            changes.setdefault(one.numbers[-1], others[one.numbers[-1]].change)
    return changes


def unseen_changes(runs: Runs) -> list[str]:
    """Lines for the constants, attributes and functions of the other model that are others, where the outputs agree.

    Models of two formats are passed over: a converter folds nodes into constants of others. Of two opsets an operator
    may have other attributes.
    """
    if not runs.partners.has_one_format:
        return []
    constants = [f"{one.name!r} of {runs.model.nodes[one.number].label!r}" for one in _changed_constants(runs)]
    groups = {"another constant in the other model": list(dict.fromkeys(constants))} if constants else {}
    for number, node in enumerate(runs.model.nodes if runs.partners.has_one_opset else ()):
        other = counterpart(runs.partners, number)
        if not other.is_same and len(other.nodes) == 1 and has_other_meaning(runs.partners, node, other.nodes[0]):
            groups.setdefault(other.change, []).append(repr(node.label))
    reason = "which takes no output beyond the tolerance on these inputs"
    return [f"{named(names)}: {change}, {reason}" for change, names in groups.items()]


def _changed_constants(runs: Runs) -> Iterator[ChangedConstant]:
    """The other constants of nodes that the other model has too, with the same operator and attributes."""
    for number in range(len(runs.model.nodes)):
        for name, value, partner in _operands(runs, number):
            array, other = _array_as_read(runs.model, value), _array_as_read(runs.reference.model, partner)
            if array is None or other is None or array.shape != other.shape:
                continue
            pair = in_narrower_type(array, other)
            if pair[0].dtype == pair[1].dtype and pair[0].tobytes() != pair[1].tobytes():
                with np.errstate(over="ignore"):
                    yield ChangedConstant(number, name, partner, array, other.astype(array.dtype))


def _array_as_read(model: TracedModel, value: str) -> np.ndarray | None:
    try:
        tensor = as_read(model, value)
        return tensor.array if isinstance(tensor, Tensor) else None
    except EltwiseError:
        return None


def _operands(runs: Runs, number: int) -> Iterator[tuple[str, str, str]]:
    """The constants of a changed node, each as itself, as what is read, and as what the node in its place reads.

    Of a copy, which is left out there, what it gives is read.
    """
    node, other = runs.model.nodes[number], counterpart(runs.partners, number)
    if other.is_same:
        return
    if runs.model.is_copy(node):
        yield node.inputs[0], node.outputs[0], runs.partners.partner(node.outputs[0])
    elif len(other.nodes) == 1 and is_alike(node, other.nodes[0]):
        pairs = operand_pairs(node, other.nodes[0])
        yield from ((name, name, other) for name, other in pairs if runs.model.is_constant(name))


def _has_outputs(runs: Runs, replaced: Sequence[ChangedConstant | Isolated], outputs: Values) -> bool:
    """Whether the tested model has these outputs with some constants and values replaced."""
    model = runs.model
    constants = {one.name: one.other_array for one in replaced if isinstance(one, ChangedConstant)}
    isolated = [one for one in replaced if isinstance(one, Isolated)]
    values = {name: array for one in isolated for name, array in {**one.others, one.value: one.expected}.items()}
    names = [value for value in outputs if value in model.producer and value not in values]
    numbers = model.ancestors((model.producer[value] for value in names), values)
    outcome = runs.tested.run(numbers, runs.feeds | values, names, isolated=True, replaced=constants)
    if outcome.message:
        return False
    results = copied(outcome.values) | values
    worst = worst_value(outputs, results, outputs, runs.tolerances)
    return worst is not None and not worst[0].is_beyond
