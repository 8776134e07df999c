"""Two runs of a model in two runtimes: the first node that differs although its inputs are equal."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from eltwise import runtimes
from eltwise.comparison.tolerance import Given, parse_tolerances
from eltwise.core.errors import EltwiseError, FileFormatError, UnsupportedError
from eltwise.formats import registry
from eltwise.ir.graph import Graph
from eltwise.model import Model
from eltwise.ops.schema import Domain
from eltwise.runtimes import Host, Runtime
from eltwise.tracing.blame import Blame
from eltwise.tracing.difference import DEFAULT, Difference
from eltwise.tracing.inputs import feeds_for
from eltwise.tracing.model import TracedModel, read_model, segments
from eltwise.tracing.report import TracedNode, TraceReport
from eltwise.tracing.run import NodeRun, Side, Tracer
from eltwise.tracing.whole import WholeRun

if TYPE_CHECKING:
    from eltwise.model import Source

SEGMENT = 1 << 28
"""How many bytes the values and weights of a segment may have, by default."""

LIMIT = 120.0
"""How many seconds a runtime may take for a segment, by default."""

EXACT = "exact"
"""The name of the reference that is eltwise."""

_MOST_NODES = 1000
"""The most nodes of a segment."""

_FOR_ONNX = {"openvino": "openvino-onnx"}
"""The adapters for ONNX models, of runtimes that have two."""

Tell = Callable[[int, int, str], None]


def trace(
    model: Source | Model | Graph,
    *,
    runtime: str,
    against: str,
    inputs: Mapping[str, object] | None = None,
    tolerance: Given = None,
    seed: int = 0,
    segment: int = SEGMENT,
    limit: float = LIMIT,
    weights: bytes | None = None,
    progress: Tell | None = None,
) -> TraceReport:
    """Run a model in two runtimes and find the first node whose result differs although its inputs are equal.

    Each runtime runs in a process of its own. The model is run in segments whose values are all compared, so that the
    memory that is needed does not grow with the model. A node that is beyond the tolerance is run alone on what the
    reference reads, which tells its own error from what it inherits.

    Args:
        model: what ``load`` takes (a path, the bytes of a file or an ``onnx.ModelProto``), or a loaded model. Its
            operators may be any that the runtimes have.
        runtime: the runtime that is tested.
        against: the reference: another runtime, or ``exact``.
        inputs: for each input, by its name, its array. The others are drawn at random.
        tolerance: what does not count as a difference, as for ``compare``. By default integers are compared exactly,
            and floats by the digits of their type.
        seed: of the inputs that are drawn.
        segment: how many bytes the values and weights of a segment may have.
        limit: how many seconds a runtime may take for a segment.
        weights: for the bytes of an .xml file, those of its .bin.
        progress: told how many nodes of how many were run, and the name of the next.

    Returns:
        The report, with everything that was found until a runtime failed.

    Raises:
        EltwiseError: for a model that cannot be read, inputs that do not fit it, and runtimes that are not there.
    """
    tolerances = parse_tolerances(tolerance)
    graph = read_graph(model, weights)
    tested, reference = (_runtime_for(name, graph.origin.domain) for name in (runtime, against))
    feeds = feeds_for(graph, inputs or {}, seed)
    traced = read_model(graph, feeds.values)
    with ExitStack() as stack:
        sides = [
            Side(
                name,
                stack.enter_context(Host(found, limit, shares_memory=True)),
                traced,
                dict(feeds.values),
                is_exact=name == EXACT,
            )
            for name, found in ((runtime, tested), (against, reference))
        ]
        versions = [f"{side.name} {side.host.version()}" for side in sides]
        blame = Blame(sides[0], sides[1], tolerances)
        tracer = Tracer(sides[0], sides[1], tolerances)
        tracer.on_suspects = blame.judge
        _run_all(tracer, segment, progress or (lambda _done, _count, _name: None))
        whole = WholeRun(sides[0], sides[1], feeds.values, tolerances).compare()
    nodes = [_described(traced, tracer.nodes[number]) for number in sorted(tracer.nodes)]
    if whole.fused and whole.difference is not None:
        last = whole.fused.stop - 1
        nodes[last] = _wrong_together(nodes[last], whole.difference, [nodes[number].name for number in whole.fused])
    first = next((node for node in nodes if node.blame in ("own", "in_graph", "fused")), None)
    blamed = whole.blamed if first is not None and first.blame == "fused" else blame.first
    return TraceReport(
        tuple(nodes),
        first.name if first else None,
        versions[0],
        versions[1],
        inputs=feeds.words,
        tolerance="; ".join(map(str, tolerances)) or DEFAULT,
        right=blamed.right if blamed else None,
        notes=(*_notes(traced), *whole.notes),
        blamed=blamed,
    )


def _wrong_together(node: TracedNode, found: Difference, names: Sequence[str]) -> TracedNode:
    """The last of several nodes that are wrong only where the runtime computes them as one."""
    words = (
        f"wrong together, right one by one: {', '.join(names)}" if len(names) > 1 else "wrong if nothing else is read"
    )
    return replace(
        node,
        status="differs",
        error_out=found.error,
        max_ulp=found.max_ulp,
        cause=found.cause,
        explanation=found.explanation,
        blame="fused",
        words=words,
    )


def read_graph(source: Source | Model | Graph, weights: bytes | None = None) -> Graph:
    """Read the graph of a model, whatever operators are in it.

    Raises:
        EltwiseError: if it cannot be read.
    """
    if isinstance(source, Model | Graph):
        return source if isinstance(source, Graph) else source.graph
    if isinstance(source, bytes | bytearray | memoryview):
        return registry.read_bytes(bytes(source), weights).graph
    if isinstance(source, str | os.PathLike):
        try:
            return registry.read_file(Path(source)).graph
        except EltwiseError as error:
            raise error.located(where=str(source)) from None
    from eltwise.formats.onnx.reader import is_model_proto, read_model_proto

    if not is_model_proto(source):
        allowed = "a path, the bytes of a file, an onnx.ModelProto or a loaded model"
        raise FileFormatError("not a model", got=type(source).__name__, allowed=allowed)
    return read_model_proto(source, None, "").graph


def _runtime_for(name: str, domain: Domain) -> Runtime:
    """The runtime of a name that reads models of a format."""
    if name == EXACT:
        return runtimes.find("eltwise")
    found = runtimes.find(_FOR_ONNX.get(name, name) if domain == "ai.onnx" else name)
    if not found.loads_models:
        raise UnsupportedError(f"the runtime {name!r} does not run models", hint="choose one that loads model files")
    if domain not in found.domains:
        format_name = registry.of_domain(domain).name
        hint = "convert the model first: eltwise convert"
        raise UnsupportedError(f"the runtime {name!r} does not read {format_name} models", hint=hint)
    return found


def _run_all(tracer: Tracer, segment: int, progress: Tell) -> None:
    model = tracer.model
    count = len(model.nodes)
    position = 0
    while position < count:
        units = [unit for unit in model.units() if unit.start >= position]
        chosen = next(segments(model, units, segment, _MOST_NODES))
        progress(position, count, model.nodes[position].label)
        tracer.run(chosen)
        position = chosen[-1].stop
    progress(count, count, "")


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
    blame = None
    if out is not None and out.is_beyond:
        wrong_alone = own is not None and own.is_beyond
        blame = "own" if wrong_alone else "in_graph" if run.inputs_equal else "inherited"
    told = own if blame == "own" else out
    return TracedNode(
        node.label,
        node.schema.name,
        status,
        run.error_in,
        out.error if out else None,
        own.error if own else None,
        told.cause if told else None,
        blame,
        run.value,
        out.max_ulp if out else None,
        told.explanation if told else "",
        run.words,
    )
