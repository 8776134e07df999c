"""Which nodes make an error of their own: each suspect is run alone, on what the reference reads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from eltwise import oracle
from eltwise.comparison.causes import UNEXPLAINED
from eltwise.comparison.tolerance import Tolerances
from eltwise.conformance.fault_model import Operation
from eltwise.core.dtypes import of_numpy
from eltwise.core.errors import EltwiseError
from eltwise.formats.registry import of_bytes
from eltwise.ir.graph import Node
from eltwise.model import load
from eltwise.ops.schema import ElementwiseSchema
from eltwise.runtimes import Model as Program
from eltwise.tracing.difference import Difference, explained, measure
from eltwise.tracing.model import Part, TracedModel
from eltwise.tracing.precision import of_rounded_operands
from eltwise.tracing.run import NodeRun, Outcome, Side, Values, rank

_MOST_EXPLAINED = 16
"""So many nodes that are wrong alone are run as models of their own, and their causes are looked for."""


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
        tested: the runtime that is tested.
        reference: the reference.
        tolerances: what does not count as a difference.
        helper: what runs the nodes in place of a reference that cannot.
        first: the first node that is wrong alone.
    """

    tested: Side
    reference: Side
    tolerances: Tolerances
    helper: Side | None = None
    first: Blamed | None = None
    _explained: int = 0

    def judge(self, suspects: Sequence[NodeRun], values: Values) -> None:
        """Find the error that each suspect makes itself; ``values`` are those of the reference."""
        model = self.tested.model
        found = self._alone([run.number for run in suspects], values)
        for run in suspects:
            run.own = self._own(model, run, found, values)
        wrong = [run for run in suspects if run.own is not None and run.own.is_beyond]
        chosen = wrong[: _MOST_EXPLAINED - self._explained]
        held = _around(model, model.behind((run.number for run in chosen), values))
        values = {name: array.copy() for name, array in values.items() if name in held}
        for run in chosen:
            self._explain(run, values)

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
            measure(value, found[value], values[value], self.tolerances)
            for value in model.made[run.number]
            if value in found and value in values
        ]
        return max(differences, key=rank, default=None)

    def _explain(self, run: NodeRun, values: Values) -> None:
        """Run one node as a model of its own on both sides, and find the cause if it is wrong there too."""
        model = self.tested.model
        group = model.behind([run.number], values)
        wanted = [value for value in model.made[run.number] if value in values]
        try:
            part = model.part(group, values, wanted, apart=True)
        except EltwiseError:
            return
        outcomes = [side.run(group, values, wanted, apart=True) for side in (self.tested, self.reference)]
        got, right = (self._or(outcome, values) for outcome in outcomes)
        there = [value for value in wanted if value in got and value in right]
        differences = [(measure(value, got[value], right[value], self.tolerances), value) for value in there]
        if not differences:
            return
        run.own, value = max(differences, key=lambda pair: rank(pair[0]))
        if not run.own.is_beyond:
            return
        self._explained += 1
        blamed = self._blamed(run.number, part, value, got[value], right[value])
        run.own = self._with_cause(run.own, blamed, group, values)
        self.first = self.first or blamed

    def _or(self, outcome: Outcome, values: Values) -> Values:
        return values if outcome.words else {name: array.copy() for name, array in outcome.values.items()}

    def _blamed(self, number: int, part: Part, value: str, got: np.ndarray, wanted: np.ndarray) -> Blamed:
        inputs, position = dict(zip(part.given, part.inputs, strict=True)), part.wanted.index(value)
        exact, right = None, None
        if not self.tested.model.nodes[number].is_foreign:
            exact = exact_result(part.program, inputs, position)
        if exact is not None:
            results = ((self.tested.name, got), (self.reference.name, wanted))
            right = tuple(name for name, array in results if oracle.same_bits(array, exact))
        name = self.tested.host.runtime.name
        return Blamed(number, part.program, inputs, value, got, wanted, position, name, right, exact)

    def _with_cause(self, found: Difference, blamed: Blamed, group: Sequence[int], values: Values) -> Difference:
        """Find the cause: of the result that is wrong, if the exact one tells which that is."""
        wanted, got = blamed.wanted, blamed.got
        operation, operands = None, list[np.ndarray]()
        if blamed.exact is not None:
            wanted = blamed.exact
            got = blamed.wanted if blamed.right == (self.tested.name,) else blamed.got
            operation, operands = _operation(self.tested.model, blamed, values)
        cause = explained(found, got, wanted, operation, operands)
        runs = ((self.helper or self.reference, blamed.got, self.tested), (self.tested, blamed.wanted, self.reference))
        for side, result, other in runs:
            if cause.cause in (None, UNEXPLAINED):
                cause = of_rounded_operands(cause, side, group, values, blamed.value, result, other.name)
        return cause


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


def _operation(model: TracedModel, blamed: Blamed, values: Values) -> tuple[Operation | None, list[np.ndarray]]:
    """What a node computes, with its operands in the shape of the result; nothing where that is not so simple."""
    node = model.nodes[blamed.number]
    operands = [_operand(model, node, name, values) for name in node.inputs]
    found = [operand for operand in operands if operand is not None]
    if not isinstance(node.schema, ElementwiseSchema) or blamed.exact is None or len(found) < len(operands):
        return None, []
    if len({operand.dtype for operand in found}) != 1:
        return None, []
    try:
        expanded = [np.broadcast_to(operand, blamed.exact.shape) for operand in found]
    except ValueError:  # Another rule than NumPy's.
        return None, []
    return Operation(node.operation.expression(len(found)), of_numpy(found[0].dtype)), expanded


def _operand(model: TracedModel, node: Node, name: str, values: Values) -> np.ndarray | None:
    if name in values:
        return values[name]
    tensor = model.graph.constant.get(name)
    try:
        return None if tensor is None else tensor.array
    except EltwiseError:
        return None


def _around(model: TracedModel, numbers: Sequence[int]) -> set[str]:
    """What nodes read and make."""
    return {value for number in numbers for value in (*model.reads[number], *model.made[number])}
