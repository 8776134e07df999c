"""What of a model is traced: its part of numbers, its functions, branches and loops opened for their nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

import numpy as np

from eltwise.core.errors import EltwiseError
from eltwise.formats.onnx.inlining import BRANCHES, REPEATED, with_counted_rounds, with_inlined
from eltwise.ir.graph import Graph, Node, Port
from eltwise.ir.scopes import all_graphs
from eltwise.ir.verify import reads, topological_order
from eltwise.runtimes import Host
from eltwise.tracing.model import read_model
from eltwise.tracing.records import TracedOutput
from eltwise.tracing.runner import Runner

_DEEPEST = 8
"""So deep branches are opened in others."""

MOST_ROUNDS, _FIRST_WITH_AXES = 16, 13
"""A Loop or Scan of more rounds is compared as a whole, and one before the opset in which axes are operands."""


@dataclass(frozen=True)
class Opened:
    """A model that is traced node by node.

    Attributes:
        graph: the model with the nodes of functions, branches and loops in their places; itself if it has none.
        branches: how many Ifs were opened.
        rounds: how many Loops and Scans were.
        deciding: the values that decide on a branch or end a loop, which the graph gives out, too.
        longer: how many rounds each Loop and Scan has that was not opened for their number, by its first output.
        not_run: the nodes of branches that are not taken, and of loops without a round.
        conditions: what decides on each If that was opened and whether it holds, by the first output of the If.
    """

    graph: Graph
    branches: int = 0
    rounds: int = 0
    deciding: frozenset[str] = frozenset()
    longer: Mapping[str, int] = field(default_factory=dict)
    not_run: tuple[Node, ...] = ()
    conditions: Mapping[str, tuple[str, bool]] = field(default_factory=dict)

    @property
    def not_opened(self) -> tuple[Node, ...]:
        """The nodes in bodies that stay as they are, of which it is not known whether they run."""
        bodies = (body for body in all_graphs(self.graph) if body is not self.graph)
        known = {node.outputs for node in self.not_run}
        return tuple(node for body in bodies for node in body.nodes if node.outputs not in known)


def opened(graph: Graph, host: Host, feeds: Mapping[str, np.ndarray], *, shortens: bool = False) -> Opened:
    """Open the functions of an ONNX model, of each If the branch that the tested runtime takes, and rounds of loops.

    What cannot be opened stays as it is, and is compared as a whole.

    Args:
        graph: the model.
        host: the process of the tested runtime.
        feeds: its inputs, by value.
        shortens: whether loops of more rounds are opened with one, which shows their nodes and gives other results.
    """
    has_bodies = any(node.schema.name in ("If", *REPEATED) for node in graph.nodes)
    if graph.origin.domain != "ai.onnx" or not (graph.functions or has_bodies):
        return Opened(graph)
    result, bodies = Opened(graph), _Bodies()
    with suppress(EltwiseError):
        result = Opened(with_inlined(graph, {})[0])
        for _depth in range(_DEEPEST):
            conditions, counts = _conditions_of(result.graph, host, feeds), _rounds_of(result.graph, host, feeds)
            branches = {output: holds for output, (_value, holds) in conditions.items()}
            bodies.add(result.graph, branches, counts)
            longer = {output: count for output, count in counts.items() if count > MOST_ROUNDS}
            rounds = {output: 1 if output in longer else count for output, count in counts.items() if count}
            if not shortens:
                rounds = {output: count for output, count in rounds.items() if output not in longer}
            result = replace(result, longer=longer, not_run=bodies.not_run)
            if not branches and not rounds:
                break
            graph, deciding = with_inlined(result.graph, branches, rounds)
            opened_so_far = result.branches + len(branches), result.rounds + len(rounds)
            conditions = {**result.conditions, **conditions}
            result = Opened(graph, *opened_so_far, result.deciding.union(deciding), longer, bodies.not_run, conditions)
    return result


class _Bodies:
    """Which branches and bodies run; of those in a loop, whose copies keep the names in them, in any of its rounds."""

    def __init__(self) -> None:
        self._runs: dict[object, tuple[Graph, bool]] = {}

    def add(self, graph: Graph, branches: Mapping[str, bool], counts: Mapping[str, int]) -> None:
        """Note the bodies of a graph's nodes of which it is known.

        Args:
            graph: the model, as far as it is opened.
            branches: whether the condition of an If holds, by its first output.
            counts: how many rounds a Loop or a Scan has, by its first output.
        """
        for node in graph.nodes:
            entered = {BRANCHES[branches[name]] for name in node.outputs[:1] if name in branches}
            entered |= {"body" for name in node.outputs[:1] if counts.get(name)}
            for name, body in node.graphs if entered or 0 in map(counts.get, node.outputs[:1]) else ():
                key = name, tuple(inner.outputs for inner in body.nodes)
                _body, runs = self._runs.get(key, (body, False))
                self._runs[key] = body, runs or name in entered

    @property
    def not_run(self) -> tuple[Node, ...]:
        """The nodes in those that never run."""
        bodies = (inner for body, runs in self._runs.values() if not runs for inner in all_graphs(body))
        return tuple(node for body in bodies for node in body.nodes)


def _conditions_of(graph: Graph, host: Host, feeds: Mapping[str, np.ndarray]) -> dict[str, tuple[str, bool]]:
    """The condition of each If and whether it holds, by its first output."""
    runner = Runner("", host, read_model(graph, feeds))
    values = {node.outputs[0]: node.inputs[0] for node in runner.model.nodes if _is(node, ("If",))}
    arrays = _arrays_of(runner, values, feeds)
    return {output: (values[output], bool(array.reshape(-1)[0])) for output, array in arrays.items() if array.size}


def _rounds_of(graph: Graph, host: Host, feeds: Mapping[str, np.ndarray]) -> dict[str, int]:
    """How many rounds each Loop and Scan has, by its first output."""
    if graph.origin.opset < _FIRST_WITH_AXES or not any(_is(node, REPEATED) for node in graph.nodes):
        return {}
    counted, counters = with_counted_rounds(graph)
    runner = Runner("", host, read_model(counted, feeds))
    used = {node.outputs[0] for node in runner.model.nodes if _is(node, REPEATED)}
    arrays = _arrays_of(runner, {output: name for output, name in counters.items() if output in used}, feeds)
    return {output: array.size for output, array in arrays.items()}


def _is(node: Node, operators: Sequence[str]) -> bool:
    return node.schema.name in operators and bool(node.graphs) and bool(node.outputs[0])


def _arrays_of(runner: Runner, values: Mapping[str, str], feeds: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The arrays of values on some inputs, by the names that they have here; what cannot be had is left out."""
    model, known = runner.model, dict(feeds)
    names = [name for name in dict.fromkeys(values.values()) if name in model.producer]
    if names:
        outcome = runner.run(model.ancestors((model.producer[name] for name in names), ()), feeds, names)
        known |= outcome.values
    arrays = {output: model.array_of(name, known) for output, name in values.items()}
    return {output: array for output, array in arrays.items() if array is not None}


def part_of_numbers(graph: Graph) -> tuple[Graph, tuple[TracedOutput, ...]]:
    """What does not depend on inputs of strings, sequences and the like.

    Returns:
        The model without these inputs, the nodes that depend on them, and the outputs of these; and those outputs, not
        compared.
    """
    sources = {port.value: port for port in graph.inputs if not port.value_type.may_run}
    if not sources:
        return graph, ()
    nodes = []
    for number in topological_order(graph.nodes):
        node = graph.nodes[number]
        source = next((sources[value] for value in reads(node) if value in sources), None)
        if source is None:
            nodes.append(node)
        else:
            sources |= dict.fromkeys(node.outputs, source)
    outputs = tuple(port for port in graph.outputs if port.value not in sources)
    left_out = tuple(_not_compared(port, sources[port.value]) for port in graph.outputs if port.value in sources)
    if not left_out:
        return graph, ()
    inputs = tuple(port for port in graph.inputs if port.value not in sources)
    names = {port.name for port in (*inputs, *graph.optional_inputs)}
    order = tuple(name for name in graph.input_order if name in names)
    return replace(graph, inputs=inputs, outputs=outputs, nodes=tuple(nodes), input_order=order), left_out


def _not_compared(output: Port, source: Port) -> TracedOutput:
    kind = source.type.other or source.type.element_type
    message = f"it depends on the input {source.name!r}, which is {kind} and cannot be given to a runtime here"
    return TracedOutput(output.name, "not_compared", message=message)
