"""A model run on a runtime, in a process of its own, and compared bit for bit with what it means."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from itertools import islice
from types import MappingProxyType

import numpy as np

from eltwise import oracle
from eltwise.core.dtypes import of_numpy
from eltwise.core.errors import EltwiseError, ManyProblemsError, counted, named, raise_all
from eltwise.engine.undefined import as_stated, marked_run
from eltwise.ir.graph import Graph
from eltwise.ir.scopes import all_graphs
from eltwise.model import Model
from eltwise.ops.schema import ElementwiseSchema
from eltwise.passes.report import Comparison
from eltwise.runtimes import Answer, Host, Runtime
from eltwise.runtimes import Model as Program
from eltwise.targets.report import SPECIAL, Finding, TargetReport
from eltwise.targets.rules import Severity, level
from eltwise.tracing.inputs import InputRequest
from eltwise.tracing.model_program import as_file, weights_of
from eltwise.tracing.trace import LIMIT
from eltwise.verification import Outputs, Run, compare_runs, difference, runs_of

_MOST_ROUNDS = 6
"""How often inputs of one size are drawn."""

_MOST_READ = 1 << 30
"""How many bytes of weights the runs of a model read together, beside the first one."""

_DIFFERENCES: dict[Severity, str] = {
    "wrong values": "those that are wrong",
    "precision": "what is less precise",
    "sign of zero or NaN": "the sign of zero or NaN",
}
"""What differs at most, by its severity."""

_KINDS = {"crashed": "crashes", "hung": "hangs"}
_CLOSE_FLOAT64 = 2.0**-30
"""Ordinary float64 numbers that differ by more than this part of the largest were computed in float32."""

_CLOSE = 2.0**-6
"""Ordinary numbers that differ by less than this part of the largest in the result differ in precision only."""


class _RefusedError(Exception):
    """The runtime gave no result."""

    def __init__(self, answer: Answer) -> None:
        super().__init__(answer.message)
        self.answer = answer


def observe(
    runtime: Runtime,
    model: Model,
    graph: Graph | None = None,
    seed: int = 0,
    sets: Mapping[str, Mapping[str, np.ndarray]] = MappingProxyType({}),
) -> TargetReport:
    """Load a model on a runtime, run it there and here, and compare the bits; any NaN equals any NaN.

    Args:
        runtime: the runtime.
        model: the model that is right; if eltwise does not run it, the runtime only loads what it is given.
        graph: what the runtime is given, if that is not the model itself.
        seed: of the drawn values.
        sets: what it is run on instead, by the names of the sets and of the inputs.

    Returns:
        The version that ran, or none; and the outputs that differ or a refusal, else what was compared. ``is_compared``
        says whether it is one of these three, and ``worst_run`` is the run whose outputs differ most severely.
    """
    report = TargetReport(runtime.name, "")
    if not runtime.is_installed:
        return _not_compared(report, f"{' and '.join(runtime.packages)} is not installed here")
    graph = graph or model.graph
    with ExitStack() as stack:
        try:
            program = stack.enter_context(as_file(graph))  # First, since it refuses what is too large.
        except EltwiseError as error:
            return _not_compared(report, str(error))
        host = stack.enter_context(Host(runtime, LIMIT, shares_memory=True))
        try:
            report = replace(report, version=host.version())
            answer = host.run(program, (), only_load=True)
            if answer.kind != "result":
                return replace(report, findings=(_refused(answer),), is_compared=True)
            if reason := _without_bits(graph):
                return _not_compared(report, f"it is loaded, and {reason}")
            raise_all(model.problems)
        except ManyProblemsError as error:
            first, *others = error.problems
            return _not_compared(report, f"{first} and {counted(len(others), 'problem')} more")
        except EltwiseError as error:
            return _not_compared(report, str(error))
        runs = _runs_on(model, sets, seed) if sets else runs_of(model, seed, _MOST_ROUNDS)
        runs = islice(runs, max(1, _MOST_READ // max(1, weights_of(graph))))
        report = _compared(report, host, program, None if sets else model, runs)
        if report.comparison is None:
            return report
        source = "the given inputs" if sets else f"hard and random values of the seed {seed}"
        is_whole = not sets or report.comparison.runs == len(sets)
        comparison = replace(report.comparison, inputs=source)
        return replace(report, comparison=comparison, is_compared=report.is_compared and is_whole)


def severity_of(
    got: np.ndarray | None, exact: np.ndarray, is_ordinary: bool, *, is_whole: bool = False
) -> Severity | None:
    """How severe it is that a runtime gives an array in place of the exact one; None if the bits are equal.

    Of ordinary numbers a difference that is large beside the largest result is a wrong value. Numbers at the limits of
    their type differ that much if a step is rounded once instead of twice, so that they count as precision. Of a whole
    model an infinity or NaN in place of a number is a wrong value, too, and so is half the digits of float64; on
    ordinary or given inputs also a number in place of NaN.
    """
    if got is None or got.dtype != exact.dtype or got.shape != exact.shape:
        return "wrong values"
    if oracle.same_bits(got, exact):
        return None
    if of_numpy(exact.dtype).kind != "float":
        return "wrong values"
    with np.errstate(all="ignore"):
        mine, theirs = exact.astype(np.float64).reshape(-1), got.astype(np.float64).reshape(-1)
        is_lost = np.isfinite(mine) & ~np.isfinite(theirs)
        is_lost |= is_ordinary & np.isnan(mine) & ~np.isnan(theirs)
        differs = ~(np.isnan(mine) | np.isnan(theirs)) & (mine != theirs)
        both_finite = np.isfinite(mine) & np.isfinite(theirs)
        close = _CLOSE_FLOAT64 if is_whole and exact.dtype == np.float64 else _CLOSE
        allowed = close * float(np.max(np.abs(mine[both_finite]), initial=0))
        is_far = differs & ~(np.abs(mine - theirs) <= allowed)
    if (is_ordinary and is_far.any()) or (is_whole and is_lost.any()):
        return "wrong values"
    return "precision" if differs.any() else "sign of zero or NaN"


def _has_other_specials(got: np.ndarray | None, exact: np.ndarray) -> bool:
    """Whether an infinity or NaN is in place of another value, or another value in its place."""
    if got is None or of_numpy(exact.dtype).kind != "float":
        return False
    is_special = ~(np.isfinite(exact) & np.isfinite(got))
    return bool((is_special & ~((got == exact) | (np.isnan(got) & np.isnan(exact)))).any())


def _without_bits(graph: Graph) -> str:
    """Why no bits of a model's results are right: eltwise does not run it, or no text says how they are rounded."""
    nodes = [node for body in all_graphs(graph) for node in body.nodes]
    foreign = Counter(node.schema.name for node in nodes if node.is_foreign)
    functions = Counter(
        node.schema.name
        for node in nodes
        if isinstance(node.schema, ElementwiseSchema) and node.schema.expression().is_real
    )
    names = named([name for name, _count in (foreign or functions).most_common()])
    if foreign:
        return f"eltwise does not run {names}"
    return f"no specification states the bits of {names}" if functions else ""


def _not_compared(report: TargetReport, reason: str) -> TargetReport:
    return replace(report, comparison=Comparison(0, 0, reason))


def _runs_on(model: Model, sets: Mapping[str, Mapping[str, np.ndarray]], seed: int) -> Iterator[Run | str]:
    """Run a model on sets of inputs, of which what is missing is drawn; where that does not work, why not."""
    for name, arrays in sets.items():
        try:
            feeds = InputRequest.of(model.graph, arrays, seed).draw().feeds
            named = {port.name: feeds[port.value] for port in model.inputs}
            yield Run(named, model.run(named), is_ordinary=True, name=name)
        except EltwiseError as error:
            yield str(error)


def _compared(
    report: TargetReport, host: Host, program: Program, drawn: Model | None, runs: Iterator[Run | str]
) -> TargetReport:
    """The report with what differs; of the model whose inputs are drawn, what no specification states is left out."""
    different, worst, left_out = dict[tuple[str, bool], Finding](), list[tuple[Severity, Run]](), list[int]()

    def compute(inputs: Outputs) -> Outputs:
        answer = host.run(program, inputs)
        if answer.kind != "result":
            raise _RefusedError(answer)
        return answer.arrays  # type: ignore[return-value]

    def check_twice(run: Run, outputs: Outputs) -> None:
        check(run, outputs)
        check(run, compute(list(run.feeds.values())))

    def check(run: Run, outputs: Outputs) -> None:
        if len(outputs) != len(run.expected):
            message = f"gave {len(outputs)} values instead of {len(run.expected)}"
            raise _RefusedError(Answer("refused", message=message))
        pairs = zip(outputs, run.expected.values(), strict=True)
        if all(output is not None and oracle.same_bits(output, exact) for output, exact in pairs):
            return
        unstated = {} if drawn is None else marked_run(drawn.graph, drawn.outputs, run.feeds)[1]
        left_out.append(sum(map(int, map(np.count_nonzero, unstated.values()))))
        for (name, exact), output in zip(run.expected.items(), outputs, strict=True):
            got = None if output is None else as_stated(output, exact, unstated.get(name))
            severity = severity_of(got, exact, run.is_ordinary, is_whole=True)
            is_special = severity not in (None, "wrong values") and _has_other_specials(got, exact)
            key = name, is_special
            if severity and (key not in different or level(severity) > level(different[key].severity)):
                message = "nothing" if got is None else difference(got, exact)
                finding = _different(name, f"on {run.name}: {message}" if run.name else message, severity)
                different[key] = replace(finding, kind=SPECIAL) if is_special else finding
                if not worst or level(severity) > level(worst[-1][0]):
                    worst.append((severity, run))

    try:
        # What is drawn are many runs; of few, a runtime that keeps a state may be right in all the first ones.
        comparison = compare_runs(runs, compute, check if drawn else check_twice)
    except _RefusedError as error:
        return replace(report, findings=(*different.values(), _refused(error.answer)), is_compared=True)
    if worst:
        comparison = replace(comparison, outcome=f"{comparison.outcome}, but for {_DIFFERENCES[worst[-1][0]]}")
    if any(left_out):
        outcome = f"{comparison.outcome}; {sum(left_out)} more, which no specification states, were left out"
        comparison = replace(comparison, elements=comparison.elements - sum(left_out), outcome=outcome)
    is_compared = bool(different) or comparison.is_proof
    worst_run = worst[-1][1] if worst else None
    findings = tuple(different.values())
    return replace(report, findings=findings, comparison=comparison, is_compared=is_compared, worst_run=worst_run)


def _different(name: str, message: str, severity: Severity) -> Finding:
    return Finding(
        "",
        f"the model, output {name!r}",
        severity=severity,
        kind="differs",
        message=f"gives other values: {message}",
        helps="seen when it was run there",
        is_seen=True,
    )


def _refused(answer: Answer) -> Finding:
    kind = _KINDS.get(answer.kind, "refused")
    return Finding("", "the model", kind=kind, message=answer.message, helps="seen when it was run there", is_seen=True)
