"""Which nodes make an error of their own: each suspect is run alone, on what the reference reads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from eltwise import oracle
from eltwise.core.errors import EltwiseError
from eltwise.formats.registry import of_bytes
from eltwise.model import load
from eltwise.runtimes import Model as Program
from eltwise.tracing.difference import Difference, Tolerance, measure
from eltwise.tracing.model import TracedModel
from eltwise.tracing.run import NodeRun, Outcome, Side, Values, rank

_MOST_CONFIRMED = 4
"""So many nodes of a segment are run as models of their own until one is wrong there too."""


@dataclass(frozen=True)
class Blamed:
    """The first node that is wrong alone, or the last of several that are wrong together, with all that shows it.

    Attributes:
        number: the number of the node.
        program: the node, or all of them, as a model.
        inputs: what it was given, by name.
        value: its value that differs most.
        got: that value of the tested runtime.
        wanted: that value of the reference.
        position: which output of the program it is.
        adapter: the name of the tested runtime, as the runtimes are found.
        right: whose result has the bits of the exact one; None where eltwise does not compute the node.
        exact: the exact result of that value.
    """

    number: int
    program: Program
    inputs: Values
    value: str
    got: np.ndarray
    wanted: np.ndarray
    position: int
    adapter: str = ""
    right: tuple[str, ...] | None = None
    exact: np.ndarray | None = None


@dataclass(eq=False)
class Blame:
    """Runs suspects alone.

    Attributes:
        first: the first node that is wrong alone.
    """

    tested: Side
    reference: Side
    tolerance: Tolerance
    first: Blamed | None = None

    def judge(self, suspects: Sequence[NodeRun], values: Values) -> None:
        """Find the error that each suspect makes itself; ``values`` are those of the reference."""
        model = self.tested.model
        found = self._alone([run.number for run in suspects], values)
        for run in suspects:
            run.own = self._own(model, run, found, values)
        if self.first is not None:
            return
        candidates = [run for run in suspects if run.own is not None and run.own.is_beyond][:_MOST_CONFIRMED]
        held = _around(model, model.behind((run.number for run in candidates), values))
        values = {name: array.copy() for name, array in values.items() if name in held}
        for run in candidates:
            self.first = self.first or self._confirmed(run, values)

    def _alone(self, numbers: Sequence[int], values: Values) -> Values:
        """The values of nodes that read nothing of each other; where a runtime refuses them together, one by one.

        Where the reference does not have what a node reads, the nodes that make it are run as well.
        """
        model = self.tested.model
        wanted = [value for number in numbers for value in model.made[number] if value in values]
        outcome = self.tested.run(model.behind(numbers, values), values, wanted, apart=True)
        if not outcome.words:
            return outcome.values
        if len(numbers) == 1:
            return {}
        middle = len(numbers) // 2
        first = {name: array.copy() for name, array in self._alone(numbers[:middle], values).items()}
        return first | self._alone(numbers[middle:], values)

    def _own(self, model: TracedModel, run: NodeRun, found: Values, values: Values) -> Difference | None:
        differences = [
            measure(value, found[value], values[value], self.tolerance)
            for value in model.made[run.number]
            if value in found and value in values
        ]
        return max(differences, key=rank, default=None)

    def _confirmed(self, run: NodeRun, values: Values) -> Blamed | None:
        """Run one node as a model of its own on both sides; None if it is right alone."""
        model, number = self.tested.model, run.number
        group, wanted = model.behind([number], values), [value for value in model.made[number] if value in values]
        try:
            part = model.part(group, values, wanted, apart=True)
        except EltwiseError:
            return None
        outcomes = [side.run(group, values, wanted, apart=True) for side in (self.tested, self.reference)]
        got, right = (self._or(outcome, values) for outcome in outcomes)
        differences = [
            (measure(value, got[value], right[value], self.tolerance), value)
            for value in part.wanted
            if value in got and value in right
        ]
        if not differences:
            return None
        run.own, value = max(differences, key=lambda pair: rank(pair[0]))
        if not run.own.is_beyond:
            return None
        inputs = dict(zip(part.given, part.inputs, strict=True))
        position, name = part.wanted.index(value), self.tested.host.runtime.name
        blamed = Blamed(number, part.program, inputs, value, got[value], right[value], position, name)
        return self._with_exact(blamed)

    def _or(self, outcome: Outcome, values: Values) -> Values:
        return values if outcome.words else {name: array.copy() for name, array in outcome.values.items()}

    def _with_exact(self, blamed: Blamed) -> Blamed:
        """Add the exact result where eltwise has the operator."""
        if self.tested.model.nodes[blamed.number].is_foreign:
            return blamed
        exact = exact_result(blamed.program, blamed.inputs, blamed.position)
        if exact is None:
            return blamed
        results = ((self.tested.name, blamed.got), (self.reference.name, blamed.wanted))
        right = tuple(name for name, array in results if _is_same(array, exact))
        return replace(blamed, right=right, exact=exact)


def copied(arrays: Iterable[np.ndarray]) -> tuple[np.ndarray, ...]:
    """Copies of arrays that the next run of a host would overwrite."""
    return tuple(array.copy() for array in arrays)


def exact_result(program: Program, inputs: Mapping[str, np.ndarray], position: int) -> np.ndarray | None:
    """What a model of operators of eltwise's gives; None if it cannot be run."""
    try:
        model = load(program.data, program.weights if of_bytes(program.data).domain == "openvino" else None)
        results = model.run({str(number): array for number, array in enumerate(inputs.values())})
    except EltwiseError:
        return None
    return list(results.values())[position]


def _is_same(array: np.ndarray, exact: np.ndarray) -> bool:
    return array.dtype == exact.dtype and array.shape == exact.shape and bool(oracle.same_bits(array, exact))


def _around(model: TracedModel, numbers: Sequence[int]) -> set[str]:
    """What nodes read and make."""
    return {value for number in numbers for value in (*model.reads[number], *model.made[number])}
