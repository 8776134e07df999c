"""Notes of a trace: what was not compared and why; the names of both runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from eltwise.core.errors import counted, named
from eltwise.ir.graph import Node
from eltwise.passes.unintended import unintended_nodes
from eltwise.tracing.model import TracedModel
from eltwise.tracing.opened import MOST_ROUNDS, Opened
from eltwise.tracing.partners import Runs
from eltwise.tracing.program import source_line
from eltwise.tracing.records import TracedNode
from eltwise.tracing.references import FLOAT64
from eltwise.tracing.report import TraceReport
from eltwise.tracing.runner import Runner
from eltwise.tracing.steps import notes_of_ties
from eltwise.tracing.tracer import Tracer


def notes_of(runs: Runs, tracer: Tracer, result: Opened, first: TracedNode | None) -> list[str]:
    """What was not compared and why, and what a reader must know of the model."""
    model = runs.model
    line = "" if first is None else source_line(model.graph, model.nodes[first.number].outputs[0])
    return [
        *_of_model(model, result.longer),
        *notes_of_ties(tracer.steps.ties, lambda one: tracer.nodes[one].name, runs.tested.name),
        *([f"opened: {counted(result.branches, 'If')}, on the branch that is taken"] if result.branches else []),
        *([f"opened: {counted(result.rounds, 'loop')}, round by round"] if result.rounds else []),
        *([not_run(result.not_run)] if result.not_run else []),
        *([f"{first.name!r} was made by {line}"] if first is not None and line else []),
        *_of_reference(runs, tracer.renamed),
        *_of_doubts(runs, [tracer.nodes[number] for number in sorted(tracer.steps.doubted)]),
    ]


def not_run(nodes: Sequence[Node]) -> str:
    """The sentence of nodes in branches and loops that do not run on the inputs."""
    names = named([f"{node.schema.name} {node.label!r}" for node in nodes])
    return f"{counted(len(nodes), 'node')} not run, in a branch or loop that these inputs do not enter: {names}"


def swapped(report: TraceReport) -> TraceReport:
    """The report of the same runs with the other one tested, which runs no node alone: what it refuses is no fault."""
    blamed = None if report.blamed is None else replace(report.blamed, is_wrong=False)
    nodes = tuple(replace(node, has_failed=False) for node in report.nodes)
    outputs = tuple(
        replace(output, status="not_compared") if output.status == "failed" else output for output in report.outputs
    )
    return replace(report, nodes=nodes, outputs=outputs, blamed=blamed, runtime=report.against, against=report.runtime)


def version_of(runner: Runner, version: str) -> str:
    """The name of a runner with the version of its runtime."""
    name, runtime = runner.name, runner.host.runtime
    if version == runtime.version:
        return name
    return f"{name} (by {runtime.name} {version})" if name == FLOAT64 else f"{name} {version}"


def _of_reference(runs: Runs, renamed: Sequence[str]) -> Iterator[str]:
    """What a reference did not compute, and what could not be matched between two models or only by its contents."""
    foreign = sum(node.is_foreign for node in runs.reference.model.nodes) if runs.reference.is_exact else 0
    if foreign:
        nodes = counted(foreign, "node")
        yield f"the reference has the results of {runs.tested.name} for {nodes} that eltwise does not compute"
    by_runner: dict[str, dict[str, None]] = {}
    for node, runner in runs.reference.fallback_nodes:
        by_runner.setdefault(runner, {})[f"{node.schema.name} {node.label!r}"] = None
    for runner, labels in by_runner.items():
        its = "its" if len(labels) == 1 else "their"
        nodes = f"{counted(len(labels), 'node')} computed in {its} own type by {runner}"
        yield f"{nodes}, which nothing has in float64: {next(iter(labels))}"
    for kind, names in (
        ("matched by their contents", list(renamed)),
        (runs.reference.missing, [value for value in runs.partners.unmatched if value not in renamed]),
    ):
        if names:
            yield f"{counted(len(names), 'value')} {kind}: {named(names)}"


def _of_doubts(runs: Runs, nodes: Sequence[TracedNode]) -> Iterator[str]:
    """The nodes of which two runtimes give other results in float64, one of them those of the tested runtime."""
    if nodes:
        first, second = (runner.host.runtime.name for runner in (runs.reference, runs.reference.fallbacks[0]))
        names = named(list(map(str, nodes)))
        yield f"{first} and {second} differ in float64, and {second} agrees with what was tested: {names}"


def _of_model(model: TracedModel, longer: Mapping[str, int]) -> Iterator[str]:
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
