"""A run of a model in a runtime as a file, which takes part in a trace as that runtime would."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, get_args

from eltwise.core.border import check_limit, check_seed, public
from eltwise.core.errors import UnsupportedError, named, unknown_name
from eltwise.core.machine import machine_name
from eltwise.core.progress import Progress, no_progress
from eltwise.formats.submodels import of_file
from eltwise.ir.graph import Graph
from eltwise.model import Model, read
from eltwise.runtimes import Host, find
from eltwise.runtimes.environments import interpreter
from eltwise.tracing.difference import worst_value
from eltwise.tracing.fitting import fitting_feeds
from eltwise.tracing.inputs import InputRequest
from eltwise.tracing.model import read_model
from eltwise.tracing.recording import Recording, digest_of
from eltwise.tracing.repeated import OTHER_RESULTS, Repeated, run_repeatedly
from eltwise.tracing.runner import Runner, Values
from eltwise.tracing.segments import run_in_segments, segments
from eltwise.tracing.trace import LIMIT, SEGMENT

if TYPE_CHECKING:
    from eltwise.formats.registry import Source

Chosen = Literal["outputs", "all"]
CHOICES: tuple[Chosen, ...] = get_args(Chosen)
MISSING = "missing"
"""The name in the metadata of the list of outputs that a run does not have, as JSON."""

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
        The run; ``save`` writes it to a file, which ``trace`` takes in place of a runtime. Outputs that are no tensors
        of numbers, and those that random nodes make differ in a second run, are left out, and its note names them.

    Raises:
        EltwiseError: for a model that cannot be read, inputs that do not fit it, and a runtime that does not run it.

    >>> run = record("examples/models/neg13_int32.onnx", runtime="onnxruntime")
    >>> list(run.inputs), list(run.values)
    (['x'], ['z'])
    """
    check_seed(seed)
    check_limit(limit)
    if values not in CHOICES:
        raise unknown_name("choice of values", values, CHOICES)
    graph = of_file(read(model, reads_weights=False).graph)
    request = InputRequest.of(graph, {} if inputs is None else inputs, seed)
    graph = request.graph
    adapter = find(runtime, only_models=True, domain=graph.origin.domain)
    interpreter(adapter, progress)
    request.draw()  # What cannot be drawn is refused before the runtime is started.
    with Host(adapter, limit, shares_memory=True) as host:
        version = host.version()
        feeds = fitting_feeds([host], request).feeds
        runner = Runner(runtime, host, read_model(graph, feeds))
        result = _run_of_outputs(runner, graph, feeds)
        outputs = {name: array for name, array in result.first.values.items() if name not in result.others}
        between = _values_between(runner, feeds, outputs, progress) if values == "all" else Values()
    ports = {port.value: port.name for port in graph.inputs}
    metadata = {"model": digest_of(graph), "run": runtime, "version": version, "machine": machine_name()}
    missing = [port.name for port in graph.outputs if port.value not in outputs]
    notes = [LEFT_OUT] if between is None else []
    if missing:
        notes.append(f"outputs that are random or no tensors of numbers are left out: {named(missing)}")
        metadata[MISSING] = json.dumps(missing)
    if result.note:
        notes.append(f"{runtime}: {result.note}")
    if notes:
        metadata["note"] = "; ".join(notes)
    return Recording({ports[name]: array for name, array in feeds.items()}, (between or {}) | outputs, metadata)


def record_whole(model: Model, runtime: str, inputs: Mapping[str, object] | None, seed: int) -> Recording:
    """Record a run of which every output is compared.

    Raises:
        EltwiseError: as ``record`` does, and where it leaves an output out.
    """
    recording = record(model, runtime=runtime, inputs=inputs, seed=seed)
    if MISSING in recording.metadata:
        problem = "not every output can be compared, since some are random or no tensors of numbers"
        got, hint = named(json.loads(recording.metadata[MISSING])), "compare the others as arrays"
        raise UnsupportedError(problem, operand=model.analysis.name or model.graph.name, got=got, hint=hint)
    return recording


def _run_of_outputs(runner: Runner, graph: Graph, feeds: Values) -> Repeated:
    """The outputs, and those that a second run gives otherwise, which may be some of them.

    Raises:
        UnsupportedError: where there are no others, and where the runtime does not run the model, or not again.
    """
    names = [port.value for port in graph.outputs if runner.model.is_tensor(port.value)]
    if not names:
        raise UnsupportedError("the model has no output that is a tensor of numbers, so there is nothing to record")
    result = run_repeatedly(lambda arrays: runner.run_file(arrays, names), feeds, runner.host, ())
    if result.first.message:
        raise UnsupportedError(f"{runner.name} does not run the model: {result.first.message}")
    is_random = result.message == OTHER_RESULTS
    is_partly = is_random and result.others.keys() < set(names)
    if result.message and not (is_partly and result.others.keys() <= _random_values(runner)):
        problem = f"the run of {runner.name} is not reproducible: {result.message}"
        hint = "give what is random as an input" if is_random else ""
        raise UnsupportedError(problem, got=named(list(result.others)), hint=hint)
    return result


def _random_values(runner: Runner) -> set[str]:
    """The values that depend on random nodes."""
    model, numbers, values = runner.model, set(runner.model.random), set[str]()
    for number in range(len(model.nodes)):
        if number in numbers or not values.isdisjoint(model.reads[number]):
            values |= {*model.made[number]}
    return values


def _values_between(runner: Runner, feeds: Values, outputs: Values, progress: Progress) -> Values | None:
    """The values of all nodes but random ones, segment by segment; None where these lead to other outputs."""
    model, values = runner.model, Values()
    for outcome, _needed in run_in_segments(runner.run, model, feeds, segments(model, SEGMENT, progress)):
        if outcome.message:
            raise UnsupportedError(f"{runner.name} does not run a part of the model: {outcome.message}")
        values |= outcome.values
    worst = worst_value(outputs, feeds | values, outputs, ())
    if worst is not None and worst[0].is_beyond:
        return None
    random = _random_values(runner)
    return {name: array for name, array in values.items() if name not in random}
