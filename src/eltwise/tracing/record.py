"""A run of a model in a runtime as a file, which takes part in a trace as that runtime would."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, get_args

from eltwise.core.border import check_range, public
from eltwise.core.errors import UnsupportedError, named, unknown_name
from eltwise.core.machine import machine_name
from eltwise.core.progress import Progress, no_progress
from eltwise.model import Model, read
from eltwise.runtimes import Host, find
from eltwise.runtimes.environments import interpreter
from eltwise.tracing.difference import worst_value
from eltwise.tracing.fitting import fitting_feeds
from eltwise.tracing.inputs import InputRequest
from eltwise.tracing.model import read_model
from eltwise.tracing.recording import Recording, digest_of
from eltwise.tracing.repeated import OTHER_RESULTS, run_repeatedly
from eltwise.tracing.runner import Runner, Values
from eltwise.tracing.segments import run_in_segments, segments
from eltwise.tracing.trace import LIMIT, SEGMENT

if TYPE_CHECKING:
    from eltwise.formats.registry import Source

Chosen = Literal["outputs", "all"]
CHOICES: tuple[Chosen, ...] = get_args(Chosen)
LEFT_OUT = "the values between are left out: where they are given out, the runtime gives other outputs"


@public
def record(
    model: Source | Model,
    *,
    runtime: str,
    inputs: Mapping[str, object] | None = None,
    values: Chosen = "outputs",
    seed: int = 0,
    limit: float = LIMIT,
    progress: Progress = no_progress,
) -> Recording:
    """Run a model in a runtime and keep the inputs and what came of them.

    Args:
        model: what ``load`` takes, or a loaded model.
        runtime: the specification of the runtime.
        inputs: for each input, by its name, its array. The others are drawn at random.
        values: ``outputs``, or ``all`` for those between as well: these are given out by the runtime, so that it
            cannot fuse the nodes around them. Where this changes the outputs, they are left out.
        seed: of the inputs that are drawn.
        limit: how many seconds the runtime may take for an answer.
        progress: receives how many nodes were run.

    Returns:
        The run; ``save`` writes it to a file, which ``trace`` takes in place of a runtime.

    Raises:
        EltwiseError: for a model that cannot be read, inputs that do not fit it, and a runtime that does not run it.

    >>> run = record("examples/models/neg13_int32.onnx", runtime="onnxruntime")
    >>> list(run.inputs), list(run.values)
    (['x'], ['z'])
    """
    check_range("seed", seed, 0, 2**63)
    check_range("limit", limit, 0.01, 1e6)
    if values not in CHOICES:
        raise unknown_name("choice of values", values, CHOICES)
    request = InputRequest.of(read(model, reads_weights=False).graph, {} if inputs is None else inputs, seed)
    graph = request.graph
    adapter = find(runtime, only_models=True, domain=graph.origin.domain)
    interpreter(adapter, progress)
    request.draw()  # What cannot be drawn is refused before the runtime is started.
    with Host(adapter, limit, shares_memory=True) as host:
        version = host.version()
        feeds = fitting_feeds([host], request).feeds
        runner = Runner(runtime, host, read_model(graph, feeds))
        names = [port.value for port in graph.outputs if runner.model.is_tensor(port.value)]
        if not names:
            raise UnsupportedError("the model has no output that is a tensor of numbers, so there is nothing to record")
        numbers = range(len(runner.model.nodes))
        result = run_repeatedly(lambda arrays: runner.run(numbers, arrays, names), feeds, host, ())
        if result.first.message:
            raise UnsupportedError(f"{runtime} does not run the model: {result.first.message}")
        if result.message:
            problem = f"the run of {runtime} is not reproducible: {result.message}"
            hint = "give what is random as an input" if result.message == OTHER_RESULTS else ""
            raise UnsupportedError(problem, got=named(list(result.others)), hint=hint)
        outputs = result.first.values
        between = _values_between(runner, feeds, outputs, progress) if values == "all" else {}
    ports = {port.value: port.name for port in graph.inputs}
    metadata = {"model": digest_of(graph), "run": runtime, "version": version, "machine": machine_name()}
    notes = [LEFT_OUT] if values == "all" and not between else []
    if result.note:
        notes.append(f"{runtime}: {result.note}")
    if notes:
        metadata["note"] = "; ".join(notes)
    return Recording({ports[name]: array for name, array in feeds.items()}, between | outputs, metadata)


def _values_between(runner: Runner, feeds: Values, outputs: Values, progress: Progress) -> Values:
    """The values of all nodes, segment by segment; none where these lead to other outputs."""
    model, values = runner.model, Values()
    for outcome, _needed in run_in_segments(runner.run, model, feeds, segments(model, SEGMENT, progress)):
        if outcome.message:
            raise UnsupportedError(f"{runner.name} does not run a part of the model: {outcome.message}")
        values |= outcome.values
    worst = worst_value(outputs, feeds | values, outputs, ())
    return {} if worst is not None and worst[0].is_beyond else values
