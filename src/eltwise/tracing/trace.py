"""Two runs of a model in two runtimes: the first node that differs although its inputs are equal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

from eltwise.comparison.tolerance import ToleranceLike, check_patterns, parse_tolerances
from eltwise.core.border import check_limit, check_range, check_seed, public
from eltwise.core.errors import UnsupportedError
from eltwise.core.progress import Progress, no_progress
from eltwise.formats.submodels import of_file
from eltwise.ir.graph import Graph
from eltwise.model import Model, read
from eltwise.runtimes import Host, Runtime
from eltwise.runtimes.environments import interpreter, versions_between
from eltwise.tracing.conclude import conclude
from eltwise.tracing.fitting import fitting_feeds
from eltwise.tracing.inputs import InputRequest, reference_feeds
from eltwise.tracing.matching import match
from eltwise.tracing.model import read_model
from eltwise.tracing.notes import notes_of, swapped, version_of
from eltwise.tracing.opened import Opened, opened, part_of_numbers
from eltwise.tracing.partners import Runs, identity
from eltwise.tracing.program import given_side, with_export
from eltwise.tracing.references import (
    EXACT,
    FLOAT64,
    SLOW,
    in_float64,
    reference_runner,
    runtime_for,
    second_model,
    stand_ins,
)
from eltwise.tracing.report import TraceReport
from eltwise.tracing.runner import Runner
from eltwise.tracing.segments import segments
from eltwise.tracing.switches import Switches, find_switches, multiplies_bytes
from eltwise.tracing.tracer import Tracer
from eltwise.tracing.whole import judge_of

if TYPE_CHECKING:
    from eltwise.formats.registry import Source

SEGMENT = 1 << 26
"""The bytes that the values and weights of a segment may have, by default."""

LIMIT = 120.0
"""How many seconds a runtime may take for a segment, by default."""

MOST_HUNG = 12
"""A node that hangs is found among more than a thousand after so many answers; then the runtime hangs on all."""


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
            saved by ``torch.export.save``, ``FILE.pt2``, which runs in ``torch``; one alone is compared with the model
            that PyTorch exports from it, for which it needs onnxscript.
        runtime: the runtime that is tested.
        against: the reference: another runtime, ``exact`` for eltwise, or ``float64`` for the same graph with float64
            in place of every other float type. One of the two may be the path of a recorded run, ``FILE.safetensors``.
        inputs: for each input, by its name, its array. The others are drawn at random, or are those of a recorded run;
            constants that an input may replace stay.
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
    check_seed(seed)
    check_range("segment", segment, 1, 2**63)
    check_limit(limit)
    tolerances = parse_tolerances(tolerance, rtol=rtol, atol=atol, ulp=ulp)
    model, other = with_export(model, other, (runtime, against), float(limit))
    side = given_side(model, other, (runtime, against), float(limit))
    is_swapped = side is not None and side.is_tested
    if is_swapped:
        model, runtime, against = model if other is None else other, against, runtime
    tested_model, inputs = read(model, reads_weights=False), {} if inputs is None else inputs
    whole, is_one = of_file(tested_model.graph), other is None and side is None
    part, left_out = part_of_numbers(whole) if is_one else (whole, ())
    request = (InputRequest.of if side is None else side.request)(part, inputs, seed)
    graph = second = request.graph
    if side is None:
        replaced = [port.name for port in tested_model.graph.optional_inputs if port.name in request.arrays]
        second = second_model(graph, other, runtime, against, replaced)
    elif runtime == FLOAT64:  # The sides of a program that is tested are exchanged.
        graph = second = in_float64(graph)
    request.draw()  # What cannot be drawn is refused before a runtime is started.
    among = _versions_of(runtime, graph, versions)
    # Onnxruntime has few kernels of float64, and here no other runtime stands in for a node.
    names = [(SLOW if runtime == FLOAT64 else runtime, graph), *([(against, second)] if side is None else [])]
    names += [(name, graph) for name in stand_ins()] if against == FLOAT64 else []
    adapters = _adapters(names, progress)
    with ExitStack() as stack:
        started = [Host(adapter, float(limit), shares_memory=True, most_hung=MOST_HUNG) for adapter in adapters]
        hosts = [stack.enter_context(host) for host in started]
        feeds, source, _sizes = fitting_feeds(hosts, request, None if against == FLOAT64 else second)
        feeds = feeds if runtime != FLOAT64 else reference_feeds(graph, feeds, request.graph)
        starting = stack.enter_context(ThreadPoolExecutor()).map(Host.version, hosts[:2])
        result = opened(graph, hosts[0], feeds) if is_one else Opened(graph)
        traced = read_model(result.graph, feeds, result.deciding)
        if result.graph is not graph:
            traced.file, second = graph, second_model(result.graph, None, runtime, against)
        check_patterns(tolerances, traced.producer)
        tested, recorded = Runner(runtime, hosts[0], traced, is_exact=runtime == EXACT), None
        if side is None:
            reference, others = reference_runner(tested, second, against, hosts, feeds, tolerances)
            partners = (identity if other is None else match)(traced, reference.model)
        else:
            reference = recorded = side.runner(traced, feeds, request.graph)
            others, partners = feeds, recorded.partners()
        sides = [version_of(*pair) for pair in zip((tested, reference), starting, strict=False)]
        runs = Runs(tested, reference, partners, tolerances, feeds, others)
        tracer = Tracer(runs)
        for units in segments(traced, segment, progress):
            tracer.run(units)
        report = conclude(runs, tracer, segment)
        search = _search(runs, report, among, float(limit), progress) if switches and not is_swapped else None
    report = replace(
        report,
        outputs=(*report.outputs, *left_out),
        runtime=sides[0],
        against=recorded.recording.name if recorded else sides[1],
        inputs=source,
        notes=(
            *(recorded.notes if recorded else ()),
            *notes_of(runs, tracer, result, report.first_node),
            *report.notes,
        ),
        model=tested_model.analysis.name or graph.name,
        switches=search,
        in_other_type=tuple(node for node, _runner in runs.reference.fallback_nodes),
        not_run=result.not_run,
        not_opened=result.not_opened,
    )
    return swapped(report) if is_swapped else report


def _search(
    runs: Runs, report: TraceReport, versions: Sequence[str], limit: float, progress: Progress
) -> Switches | None:
    """Which options or versions of the tested runtime make outputs right; None where no known one differs.

    Where the other model makes all the difference, only versions that are asked for are tried.
    """
    if not versions and {node.blame for node in report.nodes if node.is_wrong_itself} == {"changed"}:
        return None
    names = {output.name for output in report.outputs if output.status in ("differs", "failed")}
    differing = {port.value for port in runs.model.graph.outputs if port.name in names}
    right = dict(report.right_outputs)
    if not differing or not differing <= right.keys():
        return None
    if not (versions or runs.tested.host.runtime.options):
        return None

    def start(specification: str) -> Host:
        return Host(_adapters([(specification, runs.model.graph)], progress)[0], limit, shares_memory=True)

    has_bytes = multiplies_bytes(runs.model.graph)
    return find_switches(runs.tested.name, judge_of(runs, right, differing, start), versions, has_bytes=has_bytes)


def _versions_of(runtime: str, graph: Graph, versions: str | Sequence[str]) -> Sequence[str]:
    """The versions of a runtime among which a change is sought."""
    if not versions or not isinstance(versions, str):
        return versions
    adapter = runtime_for(runtime, graph.origin.domain)
    if not adapter.packages:
        raise UnsupportedError(f"the runtime {runtime!r} is no package with versions", hint="leave out versions")
    return versions_between(adapter.packages[0], versions)


def _adapters(names: Iterable[tuple[str, Graph]], progress: Progress) -> list[Runtime]:
    """The runtimes of models by their specifications; an environment may have to be made, which takes a while."""
    adapters = [runtime_for(name, graph.origin.domain) for name, graph in names]
    for adapter in adapters:
        interpreter(adapter, progress)
    return adapters
