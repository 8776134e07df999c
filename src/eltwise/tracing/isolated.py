"""Nodes that were run alone, with everything that shows the result: what a report is about and a case is made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from eltwise.comparison.tolerance import Tolerances
from eltwise.engine.undefined import marked_run
from eltwise.model import load
from eltwise.tracing.difference import Difference, worst_value
from eltwise.tracing.model import Submodel
from eltwise.tracing.runner import Outcome, Values, in_type_of


@dataclass(frozen=True)
class Isolated:
    """Nodes that were run alone on what the reference reads.

    Attributes:
        numbers: the numbers of the nodes: one, or the last of several with those that it could not be run without.
        submodel: the nodes as a model, with its inputs.
        value: the value of the last node that differs most.
        actual: that value of the runtime that is tested.
        expected: that value of the reference.
        difference: how they differ.
        others: the other values of the last node that are compared, of the reference.
        right: whose result has the bits of the exact one; None where eltwise does not compute the node.
        exact: the exact result of that value.
        unstated: which of its elements no specification states; None where all are stated.
        is_wrong: whether the tested runtime gave this wrong result: beyond the tolerance of the exact one, as far as
            that is stated, or of the reference where eltwise does not compute the node.
    """

    numbers: tuple[int, ...]
    submodel: Submodel
    value: str
    actual: np.ndarray
    expected: np.ndarray
    difference: Difference
    others: Mapping[str, np.ndarray] = field(default_factory=dict)
    right: tuple[str, ...] | None = None
    exact: np.ndarray | None = None
    unstated: np.ndarray | None = None
    is_wrong: bool = True

    @property
    def position(self) -> int:
        """Which output of the submodel the value is."""
        return self.submodel.outputs.index(self.value)


def isolated_of(
    numbers: Sequence[int], outcome: Outcome, names: Sequence[str], expected: Values, tolerances: Tolerances
) -> Isolated | None:
    """What nodes gave that were run alone; None where they did not run, or gave nothing that is compared."""
    worst = worst_value(names, outcome.values, expected, tolerances)
    if outcome.submodel is None or worst is None:
        return None
    difference, value = worst
    actual = outcome.values[value].copy()
    compared = [name for name in names if name in outcome.values and name in expected]
    typed = {name: in_type_of(expected[name], outcome.values[name]) for name in compared}
    others = {name: array.copy() for name, array in typed.items() if name != value}
    return Isolated(tuple(numbers), outcome.submodel, value, actual, typed[value], difference, others)


def exact_results(submodel: Submodel) -> tuple[Values, Values]:
    """Run nodes as a model in eltwise, also where integers are divided by 0.

    Returns:
        The results by value, and which elements of them no specification states; values of which all are stated are
        left out there.

    Raises:
        EltwiseError: where it does not compute them, or not on these inputs.
    """
    model = load(submodel.program.data, submodel.program.weights or None)
    feeds = dict(zip((port.name for port in model.inputs), submodel.inputs.values(), strict=True))
    names = dict(zip((port.name for port in model.outputs), submodel.outputs, strict=True))
    exact, unstated = (
        {names[name]: array for name, array in one.items()} for one in marked_run(model.graph, model.outputs, feeds)
    )
    return exact, unstated
