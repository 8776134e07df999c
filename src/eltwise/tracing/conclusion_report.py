"""The report of a trace, with notes of what was not compared and why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from eltwise.core.errors import counted, named
from eltwise.passes.unintended import unintended_nodes
from eltwise.tracing.conclude import Conclusion
from eltwise.tracing.difference import DEFAULT
from eltwise.tracing.model import TracedModel
from eltwise.tracing.opened import MOST_ROUNDS, Opened
from eltwise.tracing.program import source_line
from eltwise.tracing.records import TracedNode
from eltwise.tracing.references import FLOAT64
from eltwise.tracing.report import TraceReport
from eltwise.tracing.runner import Runner
from eltwise.tracing.runs import NodeResult, Runs
from eltwise.tracing.steps import notes_of_ties
from eltwise.tracing.tracer import Tracer


def report_of(
    runs: Runs, tracer: Tracer, conclusion: Conclusion, versions: Sequence[str], inputs: str, result: Opened
) -> TraceReport:
    """Make the report of runs that were compared.

    Args:
        runs: both runs.
        tracer: what came of each node.
        conclusion: what came of the whole model.
        versions: the names of both runs, with their versions.
        inputs: what they were run on.
        result: which branches were opened.
    """
    number = conclusion.first
    isolated = None if number is None else conclusion.isolated.get(number)
    return TraceReport(
        tuple(_traced_node(runs.model, tracer.nodes[one]) for one in sorted(tracer.nodes)),
        conclusion.outputs,
        None if number is None else runs.model.nodes[number].label,
        versions[0],
        versions[1],
        inputs,
        "; ".join(map(str, runs.tolerances)) or DEFAULT,
        notes=(
            *_notes(runs.model, result.longer),
            *notes_of_ties(tracer.steps.ties, lambda one: str(runs.model.nodes[one].label), runs.tested.name),
            *([f"opened: {counted(result.branches, 'If')}, on the branch that is taken"] if result.branches else []),
            *([f"opened: {counted(result.rounds, 'loop')}, round by round"] if result.rounds else []),
            *_lines_of(runs, conclusion),
            *_notes_of_reference(runs, tracer.renamed),
            *conclusion.notes,
        ),
        blamed=isolated,
        adapter=runs.tested.host.runtime.name,
        is_pair=not runs.partners.is_identity,
        feeds=runs.feeds,
        right_outputs=conclusion.right,
    )


def swapped(report: TraceReport) -> TraceReport:
    """The report of the same runs with the other one tested: what the reference refuses is no fault then."""

    def compared(records: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(replace(one, status="not_compared") if one.status == "failed" else one for one in records)

    nodes, outputs = compared(report.nodes), compared(report.outputs)
    return replace(report, nodes=nodes, outputs=outputs, runtime=report.against, against=report.runtime)


def _lines_of(runs: Runs, conclusion: Conclusion) -> Iterator[str]:
    """The line of a PyTorch program that made the first node, where the exporter noted it."""
    if conclusion.first is not None:
        node = runs.model.nodes[conclusion.first]
        if line := source_line(runs.model.graph, node.outputs[0]):
            yield f"{node.label!r} was made by {line}"


def version_of(runner: Runner, version: str) -> str:
    """The name of a runner with the version of its runtime."""
    name, runtime = runner.name, runner.host.runtime
    if version == runtime.version:
        return name
    return f"{name} (by {runtime.name} {version})" if name == FLOAT64 else f"{name} {version}"


def _notes_of_reference(runs: Runs, renamed: Sequence[str]) -> Iterator[str]:
    """What a reference did not compute, and what could not be matched between two models or only by its contents."""
    foreign = sum(node.is_foreign for node in runs.reference.model.nodes) if runs.reference.is_exact else 0
    if foreign:
        nodes = counted(foreign, "node")
        yield f"the reference has the results of {runs.tested.name} for {nodes} that eltwise does not compute"
    if names := list(dict.fromkeys(runs.reference.fallback_nodes)):
        yield f"{counted(len(names), 'node')} computed in their own type, as no runtime has them in float64: {names[0]}"
    for kind, names in (
        ("matched by their contents", list(renamed)),
        (runs.reference.missing, [value for value in runs.partners.unmatched if value not in renamed]),
    ):
        if names:
            yield f"{counted(len(names), 'value')} {kind}: {named(names)}"


def _notes(model: TracedModel, longer: Mapping[str, int]) -> Iterator[str]:
    """What is in training mode or random, and the nodes with bodies, which are compared as a whole."""
    yield from map(str, unintended_nodes(model.graph))
    called = {(function.domain, function.name) for function in model.graph.functions}
    nodes = [node for node in model.nodes if node.graphs or node.operator in called]
    names = [f"{node.schema.name} {node.label!r}{_rounds(longer.get(node.outputs[0], 0))}" for node in nodes]
    if names:
        yield f"compared as a whole, without the nodes inside: {named(names, 1)}"


def _rounds(count: int) -> str:
    """Why a loop is compared as a whole that has too many rounds, in parentheses; empty for others."""
    return f" ({count:,} rounds, and up to {MOST_ROUNDS} are followed)" if count else ""


def _traced_node(model: TracedModel, result: NodeResult) -> TracedNode:
    node, out, alone = model.nodes[result.number], result.out, result.alone
    status = "failed" if result.has_failed else "not_compared" if out is None else out.status
    difference = alone if result.blame == "own" else out
    return TracedNode(
        node.label,
        node.schema.name,
        status,
        result.error_in,
        out.error if out else None,
        alone.error if alone else None,
        difference.cause if difference else None,
        result.blame,
        result.value,
        out.max_ulp if out else None,
        difference.explanation if difference else "",
        result.message,
        result.snr,
        result.own_snr,
    )
