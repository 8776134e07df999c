"""Nodes that were run alone, with everything that shows the result: what a report is about and a case is made of."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from eltwise.runtimes import Model as Program
from eltwise.tracing.difference import Difference
from eltwise.tracing.model import Submodel
from eltwise.tracing.runner import Runner, Values


@dataclass(frozen=True)
class Isolated:
    """Nodes that were run alone on what the reference reads.

    Attributes:
        numbers: the numbers of the nodes: one, or the last of several with those that it could not be run without.
        program: the nodes as a model.
        inputs: the arrays of its inputs by value.
        value: the value of the last node that differs most.
        actual: that value of the runtime that is tested.
        expected: that value of the reference.
        own: how they differ.
        position: which output of the program it is.
        adapter: the name of the tested runtime, as the runtimes are found.
        right: whose result has the bits of the exact one; None where eltwise does not compute the node.
        exact: the exact result of that value.
    """

    numbers: tuple[int, ...]
    program: Program
    inputs: Values
    value: str
    actual: np.ndarray
    expected: np.ndarray
    own: Difference
    position: int
    adapter: str = ""
    right: tuple[str, ...] | None = None
    exact: np.ndarray | None = None


def isolated_of(
    tested: Runner,
    numbers: Iterable[int],
    submodel: Submodel,
    actual: Values,
    expected: Values,
    worst: tuple[Difference, str],
) -> Isolated:
    """The record of nodes that were run as a submodel, with the value that differs most."""
    own, value = worst
    return Isolated(
        tuple(numbers),
        submodel.program,
        dict(submodel.inputs),
        value,
        actual[value],
        expected[value],
        own,
        submodel.outputs.index(value),
        tested.host.runtime.name,
    )


def copied(values: Values) -> Values:
    """Copies of arrays that the next run of a host would overwrite."""
    return {name: array.copy() for name, array in values.items()}
