"""Whether a model computes the same on a runtime: it is run there, and options and repairs are tried where not."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, overload

from eltwise import runtimes
from eltwise.comparison.tolerance import ToleranceLike, check_patterns, parse_tolerances
from eltwise.conversion import model_of
from eltwise.core.border import public
from eltwise.core.errors import EltwiseError, UnsupportedError, errors_located
from eltwise.core.shapes import of_sizes
from eltwise.model import Model
from eltwise.ops.schema import Domain
from eltwise.runtimes.registry import is_function
from eltwise.runtimes.specification import split
from eltwise.targets.deployed import Inputs, deploy, trace_of
from eltwise.targets.findings import by_rules, explained, not_read, with_unintended
from eltwise.targets.plan import TargetName, read_model, runtime_on, target_named, version_note
from eltwise.targets.problems import ProblemsReport, problems_of
from eltwise.targets.repair import repair
from eltwise.targets.report import TargetReport
from eltwise.targets.rules import DEFAULT_SEVERITY, Severity, severity_named, shipped_rules
from eltwise.tracing.inputs import InputRequest, check_inputs
from eltwise.tracing.recording import is_recording
from eltwise.tracing.switches import Judge, Trial, find_switches, multiplies_bytes
from eltwise.tracing.trace import trace

if TYPE_CHECKING:
    import numpy as np

    from eltwise.formats.registry import Source
    from eltwise.ir.graph import Graph

InputsLike = Mapping[str, object] | Mapping[str, Mapping[str, object]] | None
"""How a caller gives inputs: arrays by their names, or several such sets by the names of these."""

_Run = Callable[[str, Model | None], TargetReport]
"""Runs a model, or another one in its place, with a specification."""

_SIZES_FIXED = "the sizes fixed"
_MOST_REFUSED = 4
"""A model that is refused in the same words at so many sizes is not tried at others."""

_UNOPTIMIZED: dict[Domain, str] = {"ai.onnx": "onnxruntime:optimization=disabled", "openvino": "openvino:precision=f32"}
"""What a recorded run of a model that eltwise does not run is compared with, by the domain of the model."""


@overload
def check(source: Source | Model, target: None = None, *, weights: bytes | None = None) -> ProblemsReport: ...
@overload
def check(
    source: Source | Model,
    target: TargetName | str,
    *,
    weights: bytes | None = None,
    run: bool = True,
    severity: Severity = DEFAULT_SEVERITY,
    inputs: InputsLike = None,
    tolerance: ToleranceLike = None,
    seed: int = 0,
) -> TargetReport: ...
@public
def check(
    source: Source | Model,
    target: TargetName | str | None = None,
    *,
    weights: bytes | None = None,
    run: bool = True,
    severity: Severity = DEFAULT_SEVERITY,
    inputs: InputsLike = None,
    tolerance: ToleranceLike = None,
    seed: int = 0,
) -> TargetReport | ProblemsReport:
    """Tell whether a model loads on a runtime and computes the same there, or without a runtime, what is wrong with it.

    If the runtime is installed, it is run on the model, in a process of its own, and measured rules explain what
    differs. The results are compared with the exact ones, bit for bit, or, where eltwise does not run all operators,
    with the same graph in float64. Where the model does not compute the same, the first node that is wrong is named,
    and what ``repair`` makes of it and options of the runtime are tried. If nothing can be run, the rules say what they
    can, and the verdict is not established.

    Args:
        source: what ``load`` takes (a path, the bytes of a file or an ``onnx.ModelProto``), or a loaded model.
            Operators that eltwise does not run may be in it; they are counted and not checked.
        target: ``onnxruntime`` or ``openvino``, also with options, as in ``openvino:precision=f32``; or the path of a
            recorded run, ``FILE.safetensors``, which is compared with the exact results where eltwise runs all
            operators, else with those of onnxruntime without optimizations, of an IR with those of OpenVINO in float32.
        weights: for the bytes of an .xml file, those of its .bin.
        run: whether the model is run if that is possible.
        severity: the least severity that counts: ``refused``, ``wrong values``, ``precision`` or
            ``sign of zero or NaN``.
        inputs: arrays of inputs by their names, or several such sets by names of their own, of which the worst is
            reported; the others are drawn at random.
        tolerance: of the comparison with float64, as for ``trace``.
        seed: of the values that are drawn.

    Returns:
        The report; ``is_good`` says that the outputs were compared, and nothing found that counts.

    Raises:
        EltwiseError: if there is no such target, no model to read, or a tolerance is for no tensor of the model.

    >>> report = check("examples/models/sub13_bfloat16.onnx", "onnxruntime", run=False)
    >>> report.is_good, report[0].severity
    (False, 'refused')
    """
    if target is None:
        return problems_of(source, weights)
    least = severity_named(severity)
    parse_tolerances(tolerance)
    if is_recording(target):
        model = read_model(source, weights)
        _check_tensors(model.graph, tolerance)
        run_inputs = Inputs(input_sets(model.graph, inputs), tolerance, seed)
        return with_unintended(_of_recording(model, target, least, run_inputs), model)
    name = target if is_function(target) else split(target).name
    target_named(name)
    model = read_model(source, weights)
    _check_tensors(model.graph, tolerance)
    runtime = runtime_on(name, model)
    if runtime is None:
        return TargetReport(target, "", findings=(not_read(model.graph),), severity=least)
    rules = shipped_rules(runtime.name)
    if target != name:
        runtime = runtimes.find(target, domain=model.graph.origin.domain)
        report = TargetReport(target, "", "the rules are of the installed version without options", severity=least)
    else:
        report = by_rules(model.analysis, target, rules, least)
        report = replace(report, note=version_note(runtime, rules))
    if not run:
        return with_unintended(report, model)
    run_inputs = Inputs(input_sets(model.graph, inputs), tolerance, seed)
    deployed = deploy(runtime, target, model, run_inputs)
    note = version_note(runtime, rules, deployed.version) if target == name else ""
    report = replace(report, note=note if target == name else report.note)
    report = explained(report, deployed, is_of_another_version=bool(note))
    if report.verdict == "disagree" and deployed.version:
        report = _with_remedies(report, deployed, model, run_inputs)
        if report.trace is None:
            report = replace(report, trace=trace_of(deployed, target, model, run_inputs))
    return with_unintended(report, model)


def _of_recording(model: Model, target: str, severity: Severity, inputs: Inputs) -> TargetReport:
    """What a recorded run computed of a model, beside what the model means.

    Raises:
        UnsupportedError: for several sets of inputs, since a run is of one.
    """
    if len(inputs.sets) > 1:
        hint = "leave out inputs: those that were recorded are used"
        raise UnsupportedError("a recorded run is of one set of inputs", got=f"{len(inputs.sets)} sets", hint=hint)
    arrays = next(iter(inputs.sets.values()), {})
    reference = _UNOPTIMIZED[model.graph.origin.domain] if model.problems else "eltwise"
    traced = trace(model, runtime=target, against=reference, inputs=arrays, tolerance=inputs.tolerance)
    return TargetReport(target, "as recorded", severity=severity, trace=traced)


def input_sets(graph: Graph, inputs: InputsLike) -> dict[str, dict[str, np.ndarray]]:
    """The sets of inputs by their names; what does not fit is refused before anything runs."""
    if inputs is None:
        return {}
    is_one = not all(isinstance(one, Mapping) for one in inputs.values()) if isinstance(inputs, Mapping) else True
    sets = {"": inputs} if is_one else inputs
    checked: dict[str, dict[str, np.ndarray]] = {}
    for name, one in sets.items():
        with errors_located(where=str(name)):
            checked[str(name)] = check_inputs(graph, one)
    return checked


def _check_tensors(graph: Graph, tolerance: ToleranceLike) -> None:
    """Refuse a tolerance for no tensor of a model; those in bodies have names only where these are opened for a run."""
    if not (graph.functions or any(node.graphs for node in graph.nodes)):
        check_patterns(parse_tolerances(tolerance), (value for node in graph.nodes for value in node.outputs if value))


def _with_remedies(report: TargetReport, deployed: TargetReport, model: Model, inputs: Inputs) -> TargetReport:
    """Run the repaired model, and the options of the target unless the trace did; only what helps is a remedy."""

    def run(specification: str, other: Model | None) -> TargetReport:
        runtime = runtimes.find(specification, domain=model.graph.origin.domain)
        result = deploy(runtime, specification, model, inputs, other, switches=False)
        return replace(result, severity=report.severity)

    remedies = list[Trial]()
    if any(finding.is_repairable for finding in report.severe) and (repaired := _repaired(report, model)):
        remedies.append(_trial(f"eltwise repair --target {report.target}", run(report.target, repaired)))
    switches = None if deployed.trace is None else deployed.trace.switches
    # What only rules say no run refutes or confirms.
    is_shown = replace(deployed, severity=report.severity).verdict == "disagree"
    if switches is None and is_shown and not any(trial.verdict == "agree" for trial in remedies):
        switches = find_switches(report.target, _judge(run, None), has_bytes=multiplies_bytes(model.graph))
    remedies += () if switches is None else switches.remedies[:1]
    is_mended = any(trial.verdict == "agree" for trial in remedies)
    if report.is_refused and not is_mended and not model.analysis.invalidities:  # Which no sizes make valid.
        remedies += _of_sizes(report, model, inputs, run)
    return replace(report, remedies=tuple(remedies), switches=switches)


def _trial(name: str, result: TargetReport) -> Trial:
    return Trial(name, result.verdict, result.error, result.exception)


def _judge(run: _Run, other: Model | None) -> Judge:
    """What runs one model, or another one in its place, with any specification."""
    return lambda specification: _trial(specification, run(specification, other))


def _of_sizes(report: TargetReport, model: Model, inputs: Inputs, run: _Run) -> Iterator[Trial]:
    """Run a model that is refused as it is with sizes fixed that its file leaves open, until it computes the same.

    Refusals that are the same at some sizes have nothing to do with these.
    """
    target, graph, arrays = report.target, model.graph, next(iter(inputs.sets.values()), {})
    refusals, refused = _refusals(report), 0
    for drawn in InputRequest.of(graph, arrays, inputs.seed).of_each_size():
        if not drawn.sizes or refused == _MOST_REFUSED:
            return
        types = [port.type._replace(shape=of_sizes(drawn.feeds[port.value].shape)) for port in graph.inputs]
        ports = tuple(replace(port, type=known) for port, known in zip(graph.inputs, types, strict=True))
        deployed, suffix = model_of(replace(graph, inputs=ports)), f"{_SIZES_FIXED} ({drawn.sizes})"
        result = run(target, deployed)
        if refusals & _refusals(result):
            refused += 1
            continue
        trial = _trial(suffix, result)
        if trial.verdict == "agree":
            yield trial
            return
        if trial.error is not None:  # Other sizes may not fit the model.
            yield trial
        switches = find_switches(target, _judge(run, deployed), has_bytes=multiplies_bytes(graph))
        for helpful in (*switches.remedies, *(tried for tried in switches.trials if tried.exception))[:1]:
            yield replace(helpful, name=f"{helpful.name} and {suffix}")
            return


def _refusals(report: TargetReport) -> set[str]:
    """How a runtime refused a model that it was given, in its words."""
    return {finding.message for finding in report.findings if finding.is_seen and finding.kind == "refused"}


def _repaired(report: TargetReport, model: Model) -> Model | None:
    """The repaired model; None where some of its findings cannot be repaired, as their sentences say."""
    try:
        return repair(model, target_named(report.target), severity=report.severity)[0]
    except EltwiseError:
        return None
