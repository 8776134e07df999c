"""Nodes that were run alone, with everything that shows the result: what a report is about and a case is made of."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from eltwise.core.errors import ValueRangeError
from eltwise.engine.undefined import undefined_outputs
from eltwise.model import load
from eltwise.tracing.difference import Difference
from eltwise.tracing.model import Submodel
from eltwise.tracing.runner import Values


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
    right: tuple[str, ...] | None = None
    exact: np.ndarray | None = None
    unstated: np.ndarray | None = None
    is_wrong: bool = True

    @property
    def position(self) -> int:
        """Which output of the submodel the value is."""
        return self.submodel.outputs.index(self.value)


def exact_results(submodel: Submodel) -> tuple[Values, Values]:
    """Run nodes as a model in eltwise.

    Returns:
        The results by value, and which elements of them no specification states; values of which all are stated are
        left out there.

    Raises:
        EltwiseError: where it does not compute them, or not on these inputs.
    """
    model = load(submodel.program.data, submodel.program.weights or None)
    feeds = dict(zip((port.name for port in model.inputs), submodel.inputs.values(), strict=True))
    names = dict(zip((port.name for port in model.outputs), submodel.outputs, strict=True))
    results, unstated = model.run(feeds), undefined_outputs(model.graph, model.outputs, feeds)
    exact, unknown = ({names[name]: array for name, array in one.items()} for one in (results, unstated))
    return exact, unknown


def stated_results(submodel: Submodel) -> tuple[Values, Values]:
    """Run nodes as ``exact_results`` does, also a node that divides integers by 0, of which no specification states it.

    Raises:
        EltwiseError: as ``exact_results`` does.
    """
    try:
        return exact_results(submodel)
    except ValueRangeError:
        model = load(submodel.program.data, submodel.program.weights or None)
        nodes = [node for node in model.graph.nodes if node.schema.behaviour == "elementwise"]
        positions = [number for number, port in enumerate(model.inputs) if port.value == nodes[-1].inputs[-1]]
        if len(nodes) > 1 or not positions or not nodes[0].computation(lambda _value: None)[0].expression.divides:
            raise
        name = list(submodel.inputs)[positions[0]]
        divisor = submodel.inputs[name]
        inputs = {**submodel.inputs, name: np.where(divisor == 0, divisor.dtype.type(1), divisor)}
        results, _unstated = exact_results(replace(submodel, inputs=inputs))
        try:
            return results, {value: np.broadcast_to(divisor == 0, array.shape) for value, array in results.items()}
        except ValueError:  # Another rule than NumPy's.
            pass
        raise
