"""A float32 model rewritten for float16, with the fewest nodes left in float32 that keep its outputs right."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field

import numpy as np

from eltwise import runtimes
from eltwise.comparison.tolerance import Tolerances, parse_tolerances
from eltwise.conversion import model_of
from eltwise.core.border import check_limit
from eltwise.core.errors import AttributeValueError, EltwiseError, UnsupportedError, VerificationError, counted, named
from eltwise.core.exit_codes import ExitCode
from eltwise.core.progress import Progress, no_progress
from eltwise.formats.onnx.float_types import Narrowing
from eltwise.ir.graph import Graph
from eltwise.model import Model
from eltwise.passes.report import Change, Comparison, PassReport
from eltwise.runtimes import Host
from eltwise.runtimes import Model as Program
from eltwise.targets.deployed import Inputs
from eltwise.tracing.difference import measure
from eltwise.tracing.inputs import with_replaced
from eltwise.tracing.model_program import program_of
from eltwise.tracing.references import FLOAT64
from eltwise.tracing.report import TraceReport
from eltwise.tracing.search import smallest
from eltwise.tracing.trace import LIMIT, trace

_MOST_NAMED = 12


def in_float16(
    model: Model, target: str, inputs: Inputs, progress: Progress = no_progress, *, limit: float = LIMIT
) -> tuple[Model, PassReport]:
    """Rewrite a float32 model for float16; inputs and outputs of the model keep their types.

    A set of nodes stays in float32 of which none can be left out: with it the outputs that the target gives are those
    of float64 within the tolerance. It is found by halving, and each step runs the model.

    Args:
        model: an ONNX model.
        target: the specification of the runtime that runs it.
        inputs: what it is run on, and the tolerance, which must be given.
        progress: receives how many nodes the set has that is tried.
        limit: how many seconds the target may take for an answer; a set with which it takes longer is none.

    Raises:
        AttributeValueError: for a limit out of range, and without a tolerance.
        UnsupportedError: where the outputs in float64 could not be established.
        VerificationError: where the model is beyond the tolerance in float32 already, or with every node in float16
            that may be.
    """
    check_limit(limit)
    if inputs.tolerance is None:
        hint = 'such as --tolerance "rtol=1e-2, atol=1e-3"'
        raise AttributeValueError("float16 needs a tolerance of the outputs", operand="tolerance", hint=hint)
    narrowing = Narrowing(model.graph)
    if not narrowing.ports:
        kinds = named(list(dict.fromkeys(node.op_type for node in narrowing.model.graph.node)), _MOST_NAMED)
        message = "no node of this model computes float32 that it could compute in float16"
        raise UnsupportedError(message, got=kinds or "no nodes", hint="there is nothing to rewrite")
    traces = [_reference(model, target, arrays, inputs, limit) for arrays in (inputs.sets or {"": {}}).values()]
    runtime = runtimes.find(target, only_models=True, domain=model.graph.origin.domain)
    with ExitStack() as stack:
        host = stack.enter_context(Host(runtime, limit, shares_memory=True))
        search = _Search(narrowing, host, traces, parse_tolerances(inputs.tolerance), progress)
        candidates = list(narrowing.ports)
        retained = [] if search.is_right([]) else smallest(candidates, search.is_right)
        if len(retained) == len(candidates) or not search.is_right(retained):
            reason = search.failure or "the outputs leave the tolerance then"
            raise VerificationError(f"no node can be float16 on {target}: {reason}")
    graph = narrowing.graph_with(retained)
    # What is given back runs in a process that has run nothing else.
    with Host(runtime, limit, shares_memory=True) as host:
        if not _Search(narrowing, host, traces, search.tolerances, progress).is_right(retained):
            raise VerificationError(f"{target} gives other outputs when the model is run again")
    elements = sum(array.size for one in traces for array in one.right_outputs.values())
    outcome = f"are those of float64 within {'; '.join(map(str, search.tolerances))}"
    comparison = Comparison(len(traces), elements, "", traces[0].inputs, outcome)
    return model_of(graph), _report(narrowing, retained, str(model.graph.origin), comparison)


def _reference(
    model: Model, target: str, arrays: Mapping[str, np.ndarray], inputs: Inputs, limit: float
) -> TraceReport:
    """The trace of the model as it is against float64, whose outputs are the right ones."""
    report = trace(
        model, runtime=target, against=FLOAT64, inputs=arrays, tolerance=inputs.tolerance, seed=inputs.seed,
        switches=False, limit=limit,
    )  # fmt: skip
    if report.is_refused:
        failed = next((output.message for output in report.outputs if output.message), report.summary)
        raise VerificationError(f"the model does not run in float32 already: {failed}")
    if report.verdict == "disagree":
        command = f"eltwise trace MODEL --runtime {target} --against {FLOAT64}"
        hint = f"give a larger tolerance, or see what is wrong: {command}"
        raise VerificationError(f"in float32 already, {report.summary}", hint=hint)
    if report.verdict != "agree":
        error = UnsupportedError(f"the outputs in float64 are not established: {report.summary}")
        error.exit_code = ExitCode.NOT_ESTABLISHED
        raise error
    return report


@dataclass
class _Search:
    """Runs the model with sets of nodes in float32, each once.

    Attributes:
        narrowing: the model.
        host: the process of the target.
        traces: the inputs and the right outputs of each set of inputs.
        tolerances: what does not count as a difference.
        progress: receives the size of a set.
        results: whether the outputs are right, by the nodes in float32.
        failure: why the target gave no outputs for the last set; empty if it did.
    """

    narrowing: Narrowing
    host: Host
    traces: list[TraceReport]
    tolerances: Tolerances
    progress: Progress
    results: dict[frozenset[int], bool] = field(default_factory=dict)
    failure: str = ""

    def is_right(self, retained: Collection[int]) -> bool:
        """Whether the outputs are right with these nodes in float32."""
        key = frozenset(retained)
        if key not in self.results:
            self.progress(len(self.results), len(self.narrowing.ports), f"{len(key)} nodes in float32")
            self.results[key] = self._is_right(self.narrowing.graph_with(key))
        return self.results[key]

    def _is_right(self, graph: Graph) -> bool:
        names = [port.value for port in graph.outputs]
        programs = dict[frozenset[str], Program]()  # Sets of inputs may replace other constants.
        for one in self.traces:
            replaced, key = with_replaced(graph, one.feeds), frozenset(one.feeds)
            try:
                program = programs[key] if key in programs else programs.setdefault(key, program_of(replaced))
            except EltwiseError as error:
                self.failure = str(error)
                return False
            answer = self.host.run(program, [one.feeds[port.value] for port in replaced.inputs])
            self.failure = f"{answer.kind}: {answer.message}" if answer.kind != "result" else ""
            arrays = dict(zip(names, answer.arrays, strict=False)) if answer.kind == "result" else {}
            for name, right in one.right_outputs.items():
                array = arrays.get(name)
                if array is None or measure(name, array, right, self.tolerances, is_output=True).is_beyond:
                    return False
        return True


def _report(narrowing: Narrowing, retained: Collection[int], origin: str, comparison: Comparison) -> PassReport:
    """What became float16, and what did not and why."""
    nodes = narrowing.model.graph.node
    count = len(narrowing.ports) - len(retained)
    changes = [Change("", f"{counted(count, 'node')} of float32", ("float16",))]
    changes += [
        Change(narrowing.label(number), nodes[number].op_type, (), "it stays in float32: the outputs need it")
        for number in sorted(retained)
    ]
    rest = (node.op_type for number, node in enumerate(nodes) if number not in narrowing.ports)
    others = Counter(name for name in rest if name != "Constant")
    if others:
        kinds = named([f"{count} {name}" for name, count in others.most_common()], _MOST_NAMED)
        changes.append(Change("", "other nodes", (), f"not in float32, or without float16: {kinds}"))
    return PassReport(origin, origin, tuple(changes), comparison=comparison)
