"""Two runs of a model in two runtimes: the first node that differs although its inputs are equal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from eltwise import runtimes
from eltwise.comparison.tolerance import ToleranceLike, check_patterns, parse_tolerances
from eltwise.core.border import check_range, public
from eltwise.core.dtypes import FLOAT32
from eltwise.core.dtypes import FLOAT64 as FLOAT64_TYPE
from eltwise.core.errors import EltwiseError, UnsupportedError, counted, named
from eltwise.core.progress import Progress, no_progress
from eltwise.formats import registry
from eltwise.formats.onnx.float64 import in_float64
from eltwise.ir.graph import Graph
from eltwise.ir.types import TensorType
from eltwise.model import Model, read
from eltwise.ops.schema import Domain
from eltwise.passes.unintended import unintended_nodes
from eltwise.runtimes import Host, Runtime
from eltwise.runtimes.environments import interpreter, versions_between
from eltwise.tracing.conclude import Conclusion, conclude
from eltwise.tracing.difference import DEFAULT
from eltwise.tracing.inputs import SIZES, check_inputs, feeds_for, open_sizes, reference_feeds
from eltwise.tracing.matching import match
from eltwise.tracing.model import TracedModel, has_large_weights, program_of, read_model
from eltwise.tracing.opened import Opened, opened
from eltwise.tracing.partners import identity
from eltwise.tracing.program import source_line
from eltwise.tracing.recorded_side import recorded_side
from eltwise.tracing.records import TracedNode
from eltwise.tracing.report import TraceReport
from eltwise.tracing.runner import Runner
from eltwise.tracing.runs import NodeResult, Runs
from eltwise.tracing.segments import next_segment
from eltwise.tracing.steps import notes_of_ties
from eltwise.tracing.switches import Switches, find_switches
from eltwise.tracing.tracer import Tracer
from eltwise.tracing.trials import judge_of

if TYPE_CHECKING:
    import numpy as np

    from eltwise.formats.registry import Source

SEGMENT = 1 << 26
"""The bytes that the values and weights of a segment may have, by default."""

LIMIT = 120.0
"""How many seconds a runtime may take for a segment, by default."""

EXACT = "exact"
"""The name of the reference that is eltwise."""

FLOAT64 = "float64"
"""The name of the reference that computes the same graph in float64."""

_REFERENCES = {EXACT: "eltwise", FLOAT64: "onnxruntime"}
_SLOW = "onnx-reference"
"""The runtime that computes in float64 what the faster one does not have in it."""


@public
def trace(
    model: Source | Model,
    other: Source | Model | None = None,
    *,
    runtime: str,
    against: str,
    inputs: Mapping[str, object] | None = None,
    rtol: float | None = None,
    atol: float | None = None,
    ulp: int | None = None,
    tolerance: ToleranceLike = None,
    seed: int = 0,
    segment: int = SEGMENT,
    limit: float = LIMIT,
    switches: bool = True,
    versions: str | Sequence[str] = (),
    progress: Progress = no_progress,
) -> TraceReport:
    """Run a model in two runtimes and find the first node whose result differs although its inputs are equal.

    Each runtime runs in a process of its own. The model is run in segments whose values are all compared, so that the
    memory that is needed does not grow with the model. A node that is beyond the tolerance is run alone on what the
    reference reads, which tells its own error from what it inherits. At last the model is run as a whole, as it is
    deployed, and its outputs are compared with those of the reference: the verdict is about these. Where they differ
    and those of the segments do not, as where a runtime fuses nodes, the nodes that are wrong only together are found.

    Args:
        model: what ``load`` takes (a path, the bytes of a file or an ``onnx.ModelProto``), or a loaded model. Its
            operators may be any that the runtimes have.
        other: another model that is to mean the same, as after a conversion, which the reference runs. Values are
            matched by name, then by shape and contents. One of the two may be the path of a PyTorch program that was
            saved by ``torch.export.save``, ``FILE.pt2``, which runs in ``torch``.
        runtime: the runtime that is tested.
        against: the reference: another runtime, ``exact`` for eltwise, or ``float64`` for the same graph with float64
            in place of every other float type. One of the two may be the path of a recorded run, ``FILE.safetensors``.
        inputs: for each input, by its name, its array. The others are drawn at random, or are those of a recorded run.
        rtol: what does not count as a difference, as for ``compare``. By default integers are compared exactly, and
            floats by the digits of their type.
        atol: the same, absolute.
        ulp: the same, in units of the last place.
        tolerance: the same for some values, by name.
        seed: of the inputs that are drawn.
        segment: how many bytes the values and weights of a segment may have.
        limit: how many seconds a runtime may take for a segment.
        switches: whether, where an output differs, options of the tested runtime are tried that may make it right.
        versions: of the tested runtime, among which the change is then sought: ``LOW..HIGH``, or a list of them, the
            oldest first.
        progress: receives how many nodes were run, before each segment and at the end.

    Returns:
        The report; a runtime that fails, hangs or crashes is a finding, not an error.

    Raises:
        EltwiseError: for a model that cannot be read, inputs that do not fit it, and runtimes that are not there.

    >>> report = trace("examples/models/neg13_int32.onnx", runtime="onnxruntime", against="exact")
    >>> report.is_good, len(report)
    (True, 1)
    """
    for name, number, low, high in (
        ("seed", seed, 0, 2**63),
        ("segment", segment, 1, 2**63),
        ("limit", limit, 0.01, 1e6),
    ):
        check_range(name, number, low, high)
    tolerances = parse_tolerances(tolerance, rtol=rtol, atol=atol, ulp=ulp)
    side = recorded_side(model, other, (runtime, against), float(limit), tuple(_REFERENCES))
    if side is not None and side.is_tested:
        model, other, runtime, against = model if other is None else other, None, against, runtime
    elif side is not None:
        other = None
    tested_model = read(model, reads_weights=False)
    graph = tested_model.graph
    second = _second(graph, other, runtime, against)
    among = _versions_of(runtime, graph, versions)
    if side is None:
        arrays = check_inputs(graph, {} if inputs is None else inputs)
        feeds_for(graph, arrays, seed)  # What cannot be drawn is refused before a runtime is started.
    else:
        feeds, source = side.feeds(graph, {} if inputs is None else inputs, seed)
    names = [(runtime, graph), *([(against, second)] if side is None else [])]
    names += [(_SLOW, graph)] if against == FLOAT64 else []
    adapters = [_runtime_for(name, each.origin.domain) for name, each in names]
    for adapter in adapters:
        interpreter(adapter, progress)  # Its environment may have to be made, which takes a while.
    with ExitStack() as stack:
        hosts = [stack.enter_context(Host(adapter, float(limit), shares_memory=True)) for adapter in adapters]
        if side is None:
            feeds, source = _fitting_feeds(hosts[0], graph, arrays, seed)
        starting = stack.enter_context(ThreadPoolExecutor()).map(Host.version, hosts)
        is_one_model = other is None
        result = opened(graph, hosts[0], feeds) if is_one_model and side is None else Opened(graph)
        traced = read_model(result.graph, feeds)
        if result.graph is not graph:
            traced.file, second = graph, _second(result.graph, None, runtime, against)
        check_patterns(tolerances, traced.producer)
        tested, recorded = Runner(runtime, hosts[0], traced), None
        if side is None:
            reference, others = _reference(tested, second, against, hosts, feeds)
            partners = (identity if is_one_model else match)(traced, reference.model)
        else:
            reference = recorded = side.runner(traced, feeds)
            others, partners = feeds, recorded.partners()
        sides = [_version(*pair) for pair in zip((tested, reference), starting, strict=False)]
        runs = Runs(tested, reference, partners, tolerances, feeds, others)
        tracer = _traced(runs, segment, progress)
        conclusion = conclude(runs, tracer, segment)
        is_swapped = side is not None and side.is_tested
        start = partial(_started, domain=graph.origin.domain, limit=float(limit), progress=progress)
        search = _search(runs, conclusion, start, among) if switches and not is_swapped else None
    report = _report(runs, tracer, conclusion, [*sides, recorded.recording.name if recorded else ""], source, result)
    report = replace(report, model=tested_model.analysis.name or graph.name, switches=search)
    if recorded is not None:
        report = replace(report, notes=(*recorded.notes, *report.notes))
    return _swapped(report) if is_swapped else report


def _search(
    runs: Runs, conclusion: Conclusion, start: Callable[[str], Host], versions: Sequence[str]
) -> Switches | None:
    """Which options or versions of the tested runtime make outputs right that differ; None where none does."""
    if {"differs", "failed"}.isdisjoint(output.status for output in conclusion.outputs):
        return None
    return find_switches(runs.tested.name, judge_of(runs, conclusion.right, start), versions)


def _versions_of(runtime: str, graph: Graph, versions: str | Sequence[str]) -> Sequence[str]:
    """The versions of a runtime among which a change is sought."""
    if not versions or not isinstance(versions, str):
        return versions
    adapter = _runtime_for(runtime, graph.origin.domain)
    if not adapter.packages:
        raise UnsupportedError(f"the runtime {runtime!r} is no package with versions", hint="leave out versions")
    return versions_between(adapter.packages[0], versions)


def _started(specification: str, *, domain: Domain, limit: float, progress: Progress) -> Host:
    """The process of another specification, whose environment may have to be made."""
    adapter = _runtime_for(specification, domain)
    interpreter(adapter, progress)
    return Host(adapter, limit, shares_memory=True)


def _swapped(report: TraceReport) -> TraceReport:
    """The report of the same runs with the other one tested: what the reference refuses is no fault then."""

    def compared(records: Sequence[Any]) -> tuple[Any, ...]:
        return tuple(replace(one, status="not_compared") if one.status == "failed" else one for one in records)

    nodes, outputs = compared(report.nodes), compared(report.outputs)
    return replace(report, nodes=nodes, outputs=outputs, runtime=report.against, against=report.runtime)


def _fitting_feeds(
    host: Host, graph: Graph, arrays: Mapping[str, np.ndarray], seed: int
) -> tuple[dict[str, np.ndarray], str]:
    """The inputs, with the first sizes of open dimensions on which the model runs, or the first of all."""
    tries = [feeds_for(graph, arrays, seed, size) for size in SIZES]
    if len({open_sizes(graph, feeds) for feeds, _source in tries}) == 1 or has_large_weights(graph):
        return tries[0]
    try:
        program = program_of(graph)
    except EltwiseError:
        return tries[0]
    for feeds, source in tries:
        answer = host.run(program, [feeds[port.value] for port in graph.inputs])
        if answer.kind != "refused":
            return feeds, source
    return tries[0]


def _reference(
    tested: Runner, second: Graph, against: str, hosts: Sequence[Host], feeds: dict[str, np.ndarray]
) -> tuple[Runner, dict[str, np.ndarray]]:
    """The reference, and its inputs by value."""
    model, values = tested.model, feeds
    if second is not model.graph:
        values = reference_feeds(second, feeds, model.graph)
        model = read_model(second, values)
    if against != FLOAT64:
        is_exact = against == EXACT
        return Runner(against, hosts[1], model, is_exact=is_exact, is_deployed=not is_exact), values
    # Inference knows operators that give float32 whatever they read, as DequantizeLinear; here they do not.
    model = replace(model, types={name: _widened(declared) for name, declared in model.types.items()})
    slower = Runner(_SLOW, hosts[2], model, float_type=FLOAT64_TYPE)
    narrow = Runner(against, hosts[1], tested.model, float_type=FLOAT32)
    fallbacks = (slower, narrow)
    runner = Runner(against, hosts[1], model, is_deployed=False, float_type=FLOAT64_TYPE, fallbacks=fallbacks)
    return runner, values


def _widened(declared: TensorType) -> TensorType:
    is_narrow = declared.element_type is not None and declared.element_type.kind == "float"
    return declared._replace(element_type=FLOAT64_TYPE) if is_narrow else declared


def _traced(runs: Runs, most_bytes: int, progress: Progress) -> Tracer:
    """Run all nodes of the tested model and what the reference has in their place."""
    tracer, model, start = Tracer(runs), runs.model, 0
    while start < len(model.nodes):
        units = next_segment(model, start, most_bytes)
        progress(start, len(model.nodes), model.nodes[start].label)
        tracer.run(units)
        start = units[-1].stop
    progress(len(model.nodes), len(model.nodes), "")
    return tracer


def _second(graph: Graph, other: Source | Model | None, runtime: str, against: str) -> Graph:
    """The model that the reference runs: the tested one unless another is given, or the tested one in float64."""
    if runtime == FLOAT64:
        raise UnsupportedError("float64 is a reference, not a runtime that is tested", hint="name it with against")
    if against != FLOAT64:
        return graph if other is None else read(other, reads_weights=False).graph
    if other is not None:
        raise UnsupportedError("the reference float64 is the first model in another type", hint="give one model")
    return in_float64(graph)


def _report(
    runs: Runs, tracer: Tracer, conclusion: Conclusion, versions: Sequence[str], inputs: str, result: Opened
) -> TraceReport:
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
        right=isolated.right if isolated else None,
        notes=(
            *_notes(runs.model),
            *notes_of_ties(tracer.steps.ties, lambda one: str(runs.model.nodes[one].label), runs.tested.name),
            *([f"opened: {counted(result.branches, 'If')}, on the branch that is taken"] if result.branches else []),
            *_lines_of(runs, conclusion),
            *_notes_of_reference(runs, tracer.renamed),
            *conclusion.notes,
        ),
        blamed=isolated,
        adapter=runs.tested.host.runtime.name,
        is_pair=not runs.partners.is_identity,
    )


def _lines_of(runs: Runs, conclusion: Conclusion) -> Iterator[str]:
    """The line of a PyTorch program that made the first node, where the exporter noted it."""
    if conclusion.first is not None:
        node = runs.model.nodes[conclusion.first]
        if line := source_line(runs.model.graph, node.outputs[0]):
            yield f"{node.label!r} was made by {line}"


def _version(runner: Runner, version: str) -> str:
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
    if names := runs.reference.fallback_nodes:
        yield f"{counted(len(names), 'node')} computed in their own type, as no runtime has them in float64: {names[0]}"
    for kind, names in (
        ("matched by their contents", list(renamed)),
        (runs.reference.missing, [value for value in runs.partners.unmatched if value not in renamed]),
    ):
        if names:
            yield f"{counted(len(names), 'value')} {kind}: {named(names)}"


def _runtime_for(name: str, domain: Domain) -> Runtime:
    """The runtime of a name that reads models of a format."""
    if name in _REFERENCES:
        return runtimes.find(_REFERENCES[name])
    runtime = runtimes.find(name, only_models=True, domain=domain)
    if not runtime.loads_models:
        raise UnsupportedError(f"the runtime {name!r} does not run models", hint="choose one that loads model files")
    if domain not in runtime.domains:
        format_name = registry.of_domain(domain).name
        hint = "convert the model first: eltwise convert"
        raise UnsupportedError(f"the runtime {name!r} does not read {format_name} models", hint=hint)
    return runtime


def _notes(model: TracedModel) -> Iterator[str]:
    """What is in training mode or random, and the nodes with bodies, which are compared as a whole."""
    yield from map(str, unintended_nodes(model.graph))
    called = {(function.domain, function.name) for function in model.graph.functions}
    names = [f"{node.schema.name} {node.label!r}" for node in model.nodes if node.graphs or node.operator in called]
    if names:
        yield f"compared as a whole, without the nodes inside: {named(names, 1)}"


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
