"""Two runs of a model in two runtimes: the first node that differs although its inputs are equal."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from eltwise import runtimes
from eltwise.comparison.tolerance import Given, check_patterns, parse_tolerances
from eltwise.core.errors import EltwiseError, FileFormatError, UnsupportedError, counted
from eltwise.formats import registry
from eltwise.ir.graph import Graph
from eltwise.model import Model
from eltwise.ops.schema import Domain
from eltwise.passes.convert import read_onnx_graph
from eltwise.passes.widen import in_float64
from eltwise.runtimes import Host, Runtime
from eltwise.tracing.blame import Blame, named
from eltwise.tracing.difference import DEFAULT
from eltwise.tracing.doubts import PairBlame
from eltwise.tracing.inputs import feeds_for
from eltwise.tracing.model import TracedModel, read_model
from eltwise.tracing.pair import PairTracer, other_feeds
from eltwise.tracing.report import TracedNode, TraceReport
from eltwise.tracing.run import NodeRun, Side, Tracer
from eltwise.tracing.segments import Tell, run_all
from eltwise.tracing.whole import Whole, compare_whole
from eltwise.tracing.wide import WideSide

if TYPE_CHECKING:
    from eltwise.model import Source

SEGMENT = 1 << 26
"""How many bytes the values and weights of a segment may have, by default."""

LIMIT = 120.0
"""How many seconds a runtime may take for a segment, by default."""

EXACT = "exact"
"""The name of the reference that is eltwise."""

FLOAT64 = "float64"
"""The name of the reference that computes the same graph in float64."""

_REFERENCES = {EXACT: "eltwise", FLOAT64: "onnxruntime"}
_SLOW = "onnx-reference"
"""What computes in float64 what the faster one does not have in it."""

_FOR_ONNX = {"openvino": "openvino-onnx"}
"""The adapters for ONNX models, of runtimes that have two."""


def trace(
    model: Source | Model | Graph,
    other: Source | Model | Graph | None = None,
    *,
    runtime: str,
    against: str,
    inputs: Mapping[str, object] | None = None,
    tolerance: Given = None,
    seed: int = 0,
    segment: int = SEGMENT,
    limit: float = LIMIT,
    progress: Tell | None = None,
) -> TraceReport:
    """Run a model in two runtimes and find the first node whose result differs although its inputs are equal.

    Each runtime runs in a process of its own. The model is run in segments whose values are all compared, so that the
    memory that is needed does not grow with the model. A node that is beyond the tolerance is run alone on what the
    reference reads, which tells its own error from what it inherits. At last the model is run as a whole: nodes that
    are right one by one and wrong together, as where a runtime fuses them, are found as well.

    Args:
        model: what ``load`` takes (a path, the bytes of a file or an ``onnx.ModelProto``), or a loaded model. Its
            operators may be any that the runtimes have.
        other: another model that is to mean the same, as after a conversion, which the reference runs. Values are
            matched by name, then by shape and contents.
        runtime: the runtime that is tested.
        against: the reference: another runtime, ``exact`` for eltwise, or ``float64`` for the same graph with float64
            in place of every other float type.
        inputs: for each input, by its name, its array. The others are drawn at random.
        tolerance: what does not count as a difference, as for ``compare``. By default integers are compared exactly,
            and floats by the digits of their type.
        seed: of the inputs that are drawn.
        segment: how many bytes the values and weights of a segment may have.
        limit: how many seconds a runtime may take for a segment.
        progress: told how many nodes of how many were run, and the name of the next.

    Returns:
        The report, with everything that was found until a runtime failed.

    Raises:
        EltwiseError: for a model that cannot be read, inputs that do not fit it, and runtimes that are not there.
    """
    tolerances = parse_tolerances(tolerance)
    graph = read_graph(model)
    second = _second(graph, other, runtime, against)
    wanted = [(runtime, graph), (against, second), *([(_SLOW, graph)] if against == FLOAT64 else [])]
    chosen = [_runtime_for(name, of.origin.domain) for name, of in wanted]
    feeds, words = feeds_for(graph, {} if inputs is None else inputs, seed)
    with ExitStack() as stack:
        hosts = [stack.enter_context(Host(found, limit, shares_memory=True)) for found in chosen]
        starting = stack.enter_context(ThreadPoolExecutor()).map(Host.version, hosts)
        traced = read_model(graph, feeds)
        check_patterns(tolerances, traced.maker)
        first = Side(runtime, hosts[0], traced, dict(feeds))
        last = _reference(first, second, against, hosts)
        versions = [_version(*pair) for pair in zip((first, last), starting, strict=False)]
        tracer = (Tracer if second is graph else PairTracer)(first, last, tolerances)
        blame = _blame(tracer)
        tracer.judge = blame.judge
        run_all(tracer, segment, progress or (lambda _done, _count, _name: None))
        blame.finish()
        whole = compare_whole(tracer, feeds) if second is graph else Whole()
    return _report(blame, whole, versions, words)


def _reference(first: Side, second: Graph, against: str, hosts: Sequence[Host]) -> Side:
    """The side of the reference, on the inputs of the tested one."""
    model, feeds = first.model, dict(first.values)
    if second is not model.graph:
        feeds = other_feeds(second, feeds, model.graph)
        model = read_model(second, feeds)
    if against != FLOAT64:
        return Side(against, hosts[1], model, feeds, against == EXACT)
    slower, narrow = Side(against, hosts[2], model), Side(against, hosts[1], first.model)
    return WideSide(against, hosts[1], model, feeds, slower=slower, narrow=narrow)


def _second(graph: Graph, other: Source | Model | Graph | None, runtime: str, against: str) -> Graph:
    """The model that the reference runs: the tested one unless another is given, or the tested one in float64."""
    if runtime == FLOAT64:
        raise UnsupportedError("float64 is a reference, not a runtime that is tested", hint="name it with against")
    if against != FLOAT64:
        return graph if other is None else read_graph(other)
    if other is not None:
        raise UnsupportedError("the reference float64 is the first model in another type", hint="give one model")
    return in_float64(graph)


def _report(blame: Blame, whole: Whole, versions: Sequence[str], inputs: str) -> TraceReport:
    tracer, model = blame.tracer, blame.model
    if whole.fused is not None:
        last = whole.fused.numbers[-1]
        run = tracer.nodes[last]
        names = [model.nodes[one].label for one in model.behind([last], ()) if one in whole.fused.numbers]
        run.out, run.blame, run.words = whole.fused.own, "fused", "wrong if nothing else is read"
        if len(names) > 1:
            run.words = f"wrong together, right one by one: {', '.join(names)}"
    nodes = [_described(model, tracer.nodes[number]) for number in sorted(tracer.nodes)]
    blamed = [number for number, node in enumerate(nodes) if node.blame in ("own", "in_graph", "fused")]
    first = nodes[blamed[0]] if blamed else None
    isolated = None if first is None else whole.fused if first.blame == "fused" else blame.found.get(blamed[0])
    return TraceReport(
        tuple(nodes),
        None if first is None else first.name,
        versions[0],
        versions[1],
        inputs,
        "; ".join(map(str, tracer.tolerances)) or DEFAULT,
        right=isolated.right if isolated else None,
        notes=(*_notes(model), *_notes_of_pair(tracer), *whole.notes),
        is_run=whole.is_run,
        blamed=isolated,
    )


def _blame(tracer: Tracer) -> Blame:
    """What judges the nodes; in float64 every value belongs to that of its name."""
    if not isinstance(tracer, PairTracer):
        return Blame(tracer)
    return Blame(tracer, tracer.other.narrow) if isinstance(tracer.other, WideSide) else PairBlame(tracer)


def _version(side: Side, version: str) -> str:
    """The name of a side with the version of its runtime."""
    return f"{side.name} (by {side.host.runtime.name} {version})" if side.name == FLOAT64 else f"{side.name} {version}"


def _notes_of_pair(tracer: Tracer) -> Iterator[str]:
    """What could not be matched between two models, and what was matched by its contents."""
    if not isinstance(tracer, PairTracer):
        return
    yield from tracer.notes
    if isinstance(tracer.other, WideSide) and tracer.other.not_widened:
        names = tracer.other.not_widened
        yield f"{counted(len(names), 'node')} computed in their own type, as no runtime has them in float64: {names[0]}"
    for kind, names in (
        ("matched by their contents", list(tracer.renamed)),
        ("not in the other model", [value for value in tracer.matching.unmatched if value not in tracer.renamed]),
    ):
        if names:
            yield f"{counted(len(names), 'value')} {kind}: {named(names)}"


def read_graph(source: Source | Model | Graph) -> Graph:
    """Read the graph of a model, whatever operators are in it.

    Raises:
        EltwiseError: if it cannot be read.
    """
    if isinstance(source, Model | Graph):
        return source if isinstance(source, Graph) else source.graph
    place = str(source) if isinstance(source, str | os.PathLike) else ""
    try:
        graph = read_onnx_graph(source)
        if graph is not None:
            return graph
        if place:
            return registry.read_file(Path(place)).graph
        if isinstance(source, bytes | bytearray | memoryview):
            return registry.read_bytes(bytes(source), None).graph
    except EltwiseError as error:
        raise error.located(where=place) from None
    allowed = "a path, the bytes of a file, an onnx.ModelProto or a loaded model"
    raise FileFormatError("not a model", got=type(source).__name__, allowed=allowed)


def _runtime_for(name: str, domain: Domain) -> Runtime:
    """The runtime of a name that reads models of a format."""
    if name in _REFERENCES:
        return runtimes.find(_REFERENCES[name])
    found = runtimes.find(_FOR_ONNX.get(name, name) if domain == "ai.onnx" else name, only_models=True)
    if not found.loads_models:
        raise UnsupportedError(f"the runtime {name!r} does not run models", hint="choose one that loads model files")
    if domain not in found.domains:
        format_name = registry.of_domain(domain).name
        hint = "convert the model first: eltwise convert"
        raise UnsupportedError(f"the runtime {name!r} does not read {format_name} models", hint=hint)
    return found


def _notes(model: TracedModel) -> Iterator[str]:
    """What is to be said of a trace beside its nodes."""
    called = {(function.domain, function.name) for function in model.graph.functions}
    whole = [
        f"{node.schema.name} {node.label!r}"
        for node in model.nodes
        if node.graphs or (getattr(node.schema, "of", ""), node.schema.name) in called
    ]
    if whole:
        more = f" and {len(whole) - 1} more" if len(whole) > 1 else ""
        yield f"compared as a whole, without the nodes inside: {whole[0]}{more}"


def _described(model: TracedModel, run: NodeRun) -> TracedNode:
    node, out, own = model.nodes[run.number], run.out, run.own
    status = "failed" if run.has_failed else "not_compared" if out is None else out.status
    told = own if run.blame == "own" else out
    return TracedNode(
        node.label,
        node.schema.name,
        status,
        run.error_in,
        out.error if out else None,
        own.error if own else None,
        told.cause if told else None,
        run.blame,
        run.value,
        out.max_ulp if out else None,
        told.explanation if told else "",
        run.words,
    )
