"""Which nodes make an error of their own: each suspect is run alone, on what the reference reads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from eltwise import oracle
from eltwise.comparison.causes import UNEXPLAINED
from eltwise.core.dtypes import of_numpy
from eltwise.core.errors import EltwiseError
from eltwise.faults.record import Operation
from eltwise.formats.registry import of_bytes
from eltwise.model import load
from eltwise.ops.schema import ElementwiseSchema
from eltwise.runtimes import Model as Program
from eltwise.tracing.difference import Difference, explained
from eltwise.tracing.model import Part, TracedModel
from eltwise.tracing.precision import of_rounded_operands
from eltwise.tracing.run import NodeRun, Outcome, Side, Tracer, Values, worst_value

_MOST_EXPLAINED = 16
"""So many nodes that are wrong alone are run as models of their own, and their causes are looked for."""

_MOST_NAMED = 6


@dataclass(frozen=True)
class Isolated:
    """Nodes that were run alone on what the reference reads, with all that shows what came of it.

    Attributes:
        numbers: the numbers of the nodes: one, or the last of several with those that it could not be run without.
        program: the nodes as a model.
        inputs: what it was given, by name.
        value: the value of the last node that differs most.
        got: that value of the tested runtime.
        wanted: that value of the reference.
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
    got: np.ndarray
    wanted: np.ndarray
    own: Difference
    position: int
    adapter: str = ""
    right: tuple[str, ...] | None = None
    exact: np.ndarray | None = None


@dataclass(eq=False)
class Blame:
    """Runs suspects alone.

    Attributes:
        tracer: what ran them together.
        helper: what runs the nodes in place of a reference that cannot.
        found: the nodes that are wrong alone, by their numbers: the first ones.
    """

    tracer: Tracer
    helper: Side | None = None
    found: dict[int, Isolated] = field(default_factory=dict)

    @property
    def model(self) -> TracedModel:
        """The model of the tested runtime."""
        return self.tracer.model

    def judge(self, runs: Sequence[NodeRun], values: Values) -> None:
        """Say of the nodes of a segment that are beyond the tolerance which are wrong themselves.

        Args:
            runs: the nodes.
            values: the reference's.
        """
        suspects = [run for run in runs if run.is_beyond]
        owns = self.owns_of(suspects, values)
        for run in suspects:
            self.say(run, owns.get(run.number), self.model.behind([run.number], values))
        chosen = [run for run in suspects if run.blame == "own"][: _MOST_EXPLAINED - len(self.found)]
        numbers = self.model.behind((run.number for run in chosen), values)
        held = {*self.model.read_by(numbers), *self.model.made_by(numbers)}
        values = {name: array.copy() for name, array in values.items() if name in held}
        for run in chosen:
            isolated = self.isolate([run.number], values)
            if isolated is not None:
                self.say(run, isolated.own, isolated.numbers)
                self.keep(run, isolated)

    def owns_of(self, runs: Sequence[NodeRun], values: Values) -> dict[int, Difference]:
        """The differences that nodes make themselves, each on what the reference reads, by their numbers."""
        found = self._alone([run.number for run in runs], values) if runs else {}
        owns = {}
        for run in runs:
            worst = worst_value(self.model.made[run.number], found, values, self.tracer.tolerances)
            if worst is not None:
                owns[run.number] = worst[0]
        return owns

    def finish(self) -> None:
        """Give the last word, after all segments."""

    def say(self, run: NodeRun, own: Difference | None, numbers: Sequence[int]) -> None:
        """Say what a node that is beyond the tolerance was found to be, when it was run alone or with others."""
        run.own, run.words = own, ""
        if own is None:
            run.blame = "not_isolated"
        elif not own.is_beyond:
            run.blame = "in_graph" if run.inputs_equal and len(numbers) == 1 else "inherited"
        else:
            run.blame = "own" if len(numbers) == 1 else "not_isolated"
        if run.blame == "not_isolated":
            others = [self.model.nodes[number].label for number in numbers if number != run.number]
            run.words = f"not told apart from {named(others[::-1])}" if others else "it could not be run alone"

    def keep(self, run: NodeRun, isolated: Isolated) -> None:
        """Find the cause of a node that is wrong alone, and keep it to be shown."""
        if run.blame == "own" and len(self.found) < _MOST_EXPLAINED:
            isolated = self.with_exact(isolated)
            run.own = self._with_cause(isolated)
            self.found[run.number] = replace(isolated, own=run.own)

    def _alone(self, numbers: Sequence[int], values: Values) -> Values:
        """The values of nodes that read nothing of each other; where a runtime refuses them together, one by one.

        Where the reference does not have what a node reads, the nodes that make it are run as well.
        """
        wanted = [value for value in self.model.made_by(numbers) if value in values]
        outcome = self.tracer.tested.run(self.model.behind(numbers, values), values, wanted, apart=True)
        if not outcome.words:
            return outcome.values
        if len(numbers) == 1:
            return {}
        middle = len(numbers) // 2
        first = copied(self._alone(numbers[:middle], values))
        return first | self._alone(numbers[middle:], values)

    def isolate(self, numbers: Sequence[int], values: Values) -> Isolated | None:
        """Run a node on both sides as a model of its own, with those that make what the reference does not have."""
        group = self.model.behind(numbers, values)
        wanted = [value for value in self.model.made[group[-1]] if value in values]
        try:
            part = self.model.part(group, values, wanted, apart=True)
        except EltwiseError:
            return None
        outcomes = [side.run(group, values, wanted, apart=True) for side in (self.tracer.tested, self.tracer.reference)]
        got, right = (_values_or(outcome, values) for outcome in outcomes)
        worst = worst_value(wanted, got, right, self.tracer.tolerances)
        return (
            None
            if worst is None or outcomes[0].words
            else isolated_of(self.tracer.tested, group, part, got, right, worst)
        )

    def with_exact(self, isolated: Isolated) -> Isolated:
        """The same with the exact result, if eltwise computes the node."""
        if isolated.right is not None or self.model.nodes[isolated.numbers[-1]].is_foreign:
            return isolated
        exact = exact_result(isolated.program, isolated.inputs, isolated.position)
        if exact is None:
            return isolated
        results = ((self.tracer.tested.name, isolated.got), (self.tracer.reference.name, isolated.wanted))
        right = tuple(name for name, array in results if oracle.same_bits(array, exact))
        return replace(isolated, right=right, exact=exact)

    def _with_cause(self, isolated: Isolated) -> Difference:
        """Find the cause: of the result that is wrong, if the exact one tells which that is."""
        wanted, got = isolated.wanted, isolated.got
        operation, operands = None, list[np.ndarray]()
        if isolated.exact is not None:
            wanted = isolated.exact
            got = isolated.wanted if isolated.right == (self.tracer.tested.name,) else isolated.got
            operation, operands = _operation(self.model, isolated)
        cause = explained(isolated.own, got, wanted, operation, operands)
        runs = (
            (self.helper or self.tracer.reference, isolated.got, self.tracer.tested),
            (self.tracer.tested, isolated.wanted, self.tracer.reference),
        )
        for side, result, other in runs:
            if cause.cause in (None, UNEXPLAINED):
                cause = of_rounded_operands(cause, side, isolated, result, other.name)
        return cause


def isolated_of(
    tested: Side, numbers: Iterable[int], part: Part, got: Values, wanted: Values, worst: tuple[Difference, str]
) -> Isolated:
    """What shows nodes that were run as a part, with the value that differs most."""
    (own, value), name = worst, tested.host.runtime.name
    inputs, position = dict(zip(part.given, part.inputs, strict=True)), part.wanted.index(value)
    return Isolated(tuple(numbers), part.program, inputs, value, got[value], wanted[value], own, position, name)


def named(names: Sequence[str]) -> str:
    """The first names, and how many more there are."""
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(names[:_MOST_NAMED]) + more


def exact_result(program: Program, inputs: Mapping[str, np.ndarray], position: int) -> np.ndarray | None:
    """What a model of operators of eltwise's gives; None if it cannot be run."""
    try:
        model = load(program.data, program.weights if of_bytes(program.data).domain == "openvino" else None)
        results = model.run({str(number): array for number, array in enumerate(inputs.values())})
    except EltwiseError:
        return None
    return list(results.values())[position]


def copied(values: Values) -> Values:
    """Copies of arrays that the next run of a host would overwrite."""
    return {name: array.copy() for name, array in values.items()}


def _values_or(outcome: Outcome, values: Values) -> Values:
    return values if outcome.words else copied(outcome.values)


def _operation(model: TracedModel, isolated: Isolated) -> tuple[Operation | None, list[np.ndarray]]:
    """What a node computes, with its operands in the shape of the result; nothing where that is not so simple."""
    node = model.nodes[isolated.numbers[-1]]
    operands = [model.known(name, isolated.inputs) for name in node.inputs]
    found = [operand for operand in operands if operand is not None]
    if not isinstance(node.schema, ElementwiseSchema) or isolated.exact is None or len(found) < len(operands):
        return None, []
    if len({operand.dtype for operand in found}) != 1:
        return None, []
    try:
        expanded = [np.broadcast_to(operand, isolated.exact.shape) for operand in found]
    except ValueError:  # Another rule than NumPy's.
        return None, []
    return Operation(node.operation.expression(len(found)), of_numpy(found[0].dtype)), expanded
