"""A model made right for a runtime: exactly the nodes rewritten that it gets wrong, or every reason why not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

from eltwise.conversion import check_places, model_of, write
from eltwise.core.border import public
from eltwise.core.errors import (
    AttributeValueError,
    EltwiseError,
    FileFormatError,
    UnsupportedError,
    VerificationError,
    counted,
    raise_all,
    shown,
    unknown_name,
)
from eltwise.core.progress import Progress, no_progress
from eltwise.ir.graph import Graph
from eltwise.model import Model
from eltwise.passes.align_broadcast import align_broadcast
from eltwise.passes.analysis import Analysis
from eltwise.passes.opset import convert_opset
from eltwise.passes.report import Change, Comparison, PassReport
from eltwise.passes.upcast import upcast
from eltwise.runtimes import Runtime
from eltwise.targets.deployed import Inputs, deploy
from eltwise.targets.findings import by_rules, explained, find, invalid_nodes, not_read
from eltwise.targets.float16 import in_float16
from eltwise.targets.plan import (
    STEPS,
    TargetName,
    Versions,
    ask,
    choose_versions,
    decide,
    measured,
    read_model,
    runtime_on,
    target_named,
    unread,
    version_note,
)
from eltwise.targets.report import Finding, TargetReport
from eltwise.targets.rules import (
    DEFAULT_SEVERITY,
    REFUSALS,
    RuleSet,
    Severity,
    level,
    severity_named,
    shipped_rules,
)
from eltwise.tracing.notes import not_run
from eltwise.tracing.trace import LIMIT

if TYPE_CHECKING:
    from eltwise.formats.registry import Source

Precision = Literal["float16"]
"""The types that a float32 model is rewritten for."""

_MOST_ROUNDS = 4
"""So often nodes are decided again that were left alone: beside what was rewritten, one may not be right any more."""


@public
def repair(
    source: Source | Model,
    target: TargetName | str,
    *,
    allow: str | Sequence[str] = (),
    weights: bytes | None = None,
    verify: bool | None = False,
    severity: Severity = DEFAULT_SEVERITY,
    precision: Precision | None = None,
    inputs: Inputs | None = None,
    limit: float = LIMIT,
    progress: Progress = no_progress,
) -> tuple[Model, PassReport]:
    """Make a model right for a runtime, by what was measured of it.

    What can be made exact is; what is less severe than ``severity`` is left as it is; what is not is refused.

    Args:
        source: what ``load`` takes, or a loaded model. An ONNX model may hold any operators, an IR those that eltwise
            runs.
        target: ``onnxruntime`` or ``openvino``.
        allow: faults that are accepted, by name as ``check`` says them; one or several.
        weights: for the bytes of an .xml file, those of its .bin.
        verify: whether the repaired model is run there, and the original here, and the bits compared; None for where
            the runtime is installed and nothing is allowed.
        severity: the least severity that is repaired or refused.
        precision: ``float16`` rewrites a float32 model for it instead, and leaves the fewest nodes in float32 with
            which the outputs on the target, any run specification, are those of float64 within the tolerance.
        inputs: what that is tried on, with the tolerance.
        limit: how many seconds the target may take for an answer there.
        progress: receives the steps of that.

    Returns:
        The model, with external data where it was, and the report. Unless ``verify`` is set, nothing is run, also of a
        model that is unchanged, and the report's ``assumptions`` say so.

    Raises:
        EltwiseError: with every reason of every node that cannot be repaired.
        VerificationError: if the repaired model gives other values there, which no rule says.

    >>> model, report = repair("examples/models/sub13_bfloat16.onnx", "onnxruntime")
    >>> report["minus"].after
    ('Cast-13', 'Cast-13', 'Sub-13', 'Cast-13')
    """
    least = severity_named(severity)
    if precision is not None:
        if not isinstance(precision, str) or precision not in get_args(Precision):
            raise unknown_name("precision", shown(precision), get_args(Precision))
        if allow:
            problem, hint = "a rewrite for another precision accepts no faults", "leave it out, or the precision"
            raise AttributeValueError(problem, operand="allow", got=shown(allow), hint=hint)
        return in_float16(read_model(source, weights), target, inputs or Inputs(), progress, limit=limit)
    target_named(target)
    model = read_model(source, weights)
    try:
        runtime = runtime_on(target, model)
        if runtime is None:
            raise _refusal(not_read(model.graph), target)
        rules = shipped_rules(runtime.name)
        allowed = _allowed_names(allow, rules)
        others = rules.without(allowed)
        is_run = verify or (verify is None and not allow)  # Only a run shows that nothing is wrong.
        is_run = is_run and not model.analysis.invalidities
        observed = deploy(runtime, target, model, Inputs(), switches=False) if is_run else None
        expected = by_rules(model.analysis, target, others, least)
        if observed is not None and _is_refuted(expected, observed, runtime):
            graph, report = model.graph, _unchanged(model.graph)
        else:
            graph, report = _rewritten(model.analysis, target, others, least)
    except EltwiseError as error:
        raise error.located(where=model.analysis.name) from None
    notes = [*_left(graph, rules, allowed, least), version_note(runtime, rules)]
    dropped = () if report.unchanged or graph.origin.domain == "ai.onnx" else model.graph.not_held
    assumptions = (*report.assumptions, *filter(None, notes))
    report = replace(report, assumptions=assumptions, dropped=(*report.dropped, *dropped))
    repaired = model if report.unchanged else model_of(graph)
    if observed is not None and (verify or report.unchanged or runtime.is_installed):
        if not report.unchanged:
            observed = deploy(runtime, target, model, Inputs(), repaired, switches=False)
        return repaired, _verified(observed, target, report, least)
    # The settings of the version are those that a processor decides.
    not_run = f"what the rules of {target} {rules.version} say of the model, which was not run there"
    not_run += " (--run, or verify=True in Python, runs it)"
    return repaired, replace(report, assumptions=(*report.assumptions, not_run))


def repair_file(
    source: Path,
    out: Path,
    *,
    target: TargetName | str,
    allow: Sequence[str] = (),
    run: bool | None = None,
    severity: Severity = DEFAULT_SEVERITY,
    in_place: bool = False,
    precision: Precision | None = None,
    inputs: Inputs | None = None,
    limit: float = LIMIT,
    progress: Progress = no_progress,
) -> PassReport:
    """Write a model file that is right for a runtime.

    Args:
        source: an .onnx file, or an .xml file with its .bin beside it.
        out: the file to write, of the same format.
        target: ``onnxruntime`` or ``openvino``.
        allow: faults that are accepted, by name.
        run: whether the repaired model is run there, and the original here, before anything is written; by default
            where the runtime is installed and nothing is allowed.
        severity: the least severity that is repaired or refused.
        in_place: whether ``out`` may be the source.
        precision: as of ``repair``.
        inputs: as of ``repair``.
        limit: as of ``repair``.
        progress: receives how many bytes of external data have been copied.

    Returns:
        What was changed; a model that is right already is written byte for byte.

    Raises:
        EltwiseError: with every reason; ``out`` is as it was.
        VerificationError: for a model that does not compute the same there, and that no rewrite makes right.
    """
    if precision is None:
        target_named(target)
    elif run is False:
        problem = "the nodes that stay in float32 are found by running the model, which cannot be left out"
        raise AttributeValueError(problem, operand="run", got="False", hint="leave it out, or the precision")
    check_places(source, out, in_place)
    if source.suffix.lower() != out.suffix.lower():
        hint = "eltwise convert writes another format"
        got = out.suffix or "no ending"
        raise FileFormatError(
            "a repaired model keeps its format", where=str(out), got=got, allowed=source.suffix, hint=hint
        )
    model, report = repair(
        source, target, allow=allow, verify=run, severity=severity, precision=precision, inputs=inputs, limit=limit,
        progress=progress,
    )  # fmt: skip
    return write(model, out, report, progress)


def _is_refuted(expected: TargetReport, observed: TargetReport, runtime: Runtime) -> bool:
    """Whether the model as it is computes the same where it was run, although the rules expect that it does not."""
    note = version_note(runtime, shipped_rules(runtime.name), observed.version)
    seen = explained(expected, observed, is_of_another_version=bool(note))
    return expected.verdict == "disagree" and seen.verdict == "agree"


def _verified(observed: TargetReport, target: str, report: PassReport, least: Severity) -> PassReport:
    """The report with what came of the run of the repaired model, beside what the original means."""
    trace = observed.trace
    hint = f"repair has no rewrite for it; eltwise check --target {target} tells what helps"
    for finding in observed.findings:
        if level(finding.severity) >= level(least):
            raise VerificationError(f"{target}: {finding.message}", operand=finding.subject, hint=hint)
    if trace is not None and trace.verdict == "disagree":
        raise VerificationError(trace.summary, hint=hint)
    seen = [f"less severe, and seen in the run: {finding}" for finding in observed.findings]
    comparison = observed.comparison
    if trace is not None and trace.verdict == "agree":
        elements = sum(output.total or 0 for output in trace.outputs)
        comparison = Comparison(1, elements, "", trace.inputs, f"are those of {trace.against}, within the tolerance")
        seen += [not_run(trace.not_run)] if trace.not_run else []
    elif trace is not None and not (comparison and comparison.is_proof):
        reasons = [f"output {output.name!r}: {output.message}" for output in trace.outputs if output.message]
        comparison = Comparison(0, 0, next(iter(reasons), trace.summary))
    elif comparison is None:
        comparison = Comparison(0, 0, observed.note or "the outputs differ, less severely")
    return replace(report, comparison=comparison, assumptions=(*report.assumptions, *seen))


def _allowed_names(allow: str | Sequence[str], rules: RuleSet) -> tuple[str, ...]:
    """The names of what is allowed, of which one alone may be a text; names that no fault has are refused.

    Raises:
        AttributeValueError: naming those that there are.
    """
    names = (allow,) if isinstance(allow, str) else tuple(allow)
    known = list(dict.fromkeys(rule.fault for rule in rules.rules if rule.fault not in REFUSALS))
    for name in names:
        if name not in known:
            message = "there is no such difference to allow"
            raise AttributeValueError(message, operand="allow", got=shown(name), allowed=", ".join(known))
    return names


def _refusal(finding: Finding, runtime: str) -> UnsupportedError:
    reasons = f" ({', '.join(finding.reasons)})" if finding.reasons else ""
    return UnsupportedError(
        f"{finding.severity} on {runtime}{reasons}: {finding.message}",
        operator=finding.subject,
        node=finding.node,
        got=finding.element_type,
        hint=finding.helps,
    )


def _rewritten(analysis: Analysis, target: str, rules: RuleSet, least: Severity) -> tuple[Graph, PassReport]:
    """The model in versions that the runtime loads, with nodes rewritten until none is left that must be.

    Raises:
        EltwiseError: with everything that cannot be repaired.
    """
    _raise_refusals(analysis, target, rules, least)
    graph, report = _in_versions(analysis.graph, choose_versions(analysis.graph, rules, least))
    for _round in range(_MOST_ROUNDS):
        decided = [(site.node, decide(rules, site, least)[0]) for site in measured(graph, rules)]
        if any(chosen is None for _node, chosen in decided):
            _raise_refusals(Analysis(graph), target, rules, least)
        aligned, computed = ({id(node) for node, chosen in decided if chosen and step in chosen} for step in STEPS)
        if not aligned | computed:
            break
        # A node that is aligned is another one then, and is computed in a wider type in the next round.
        graph, first = align_broadcast(graph, lambda node, nodes=aligned: id(node) in nodes)  # type: ignore[misc]
        graph, second = upcast(graph, lambda node, nodes=computed - aligned: id(node) in nodes)  # type: ignore[misc]
        report = _joined(report, _joined(first, second))
    return graph, report


def _raise_refusals(analysis: Analysis, target: str, rules: RuleSet, least: Severity) -> None:
    """Refuse a model with everything that counts and cannot be repaired."""
    findings = find(analysis, target, rules, least)
    named = invalid_nodes(analysis)
    counting = [
        finding for finding in findings if level(finding.severity) >= level(least) and finding.node not in named
    ]
    refused = [_refusal(finding, f"{target} {rules.number}") for finding in counting if not finding.is_repairable]
    raise_all([*analysis.invalidities, *refused, *(unread(analysis) if counting else ())])


def _in_versions(graph: Graph, versions: Versions) -> tuple[Graph, PassReport]:
    """The model with the opset and the file version that the runtime is to get."""
    origin, report = graph.origin, _unchanged(graph)
    if versions.file_version != origin.file_version:
        graph = replace(graph, origin=replace(origin, file_version=versions.file_version))
        reason = f"nothing in the model needs more than {versions.file_version}"
        change = Change("", f"ir_version {origin.file_version}", (f"ir_version {versions.file_version}",), reason)
        report = replace(report, changes=(change,), unchanged=False)
    if versions.opset not in (0, origin.opset):
        graph, second = convert_opset(graph, versions.opset)
        report = _joined(report, second)
    return graph, report


def _unchanged(graph: Graph) -> PassReport:
    return PassReport(str(graph.origin), str(graph.origin), unchanged=True)


def _left(repaired: Graph, rules: RuleSet, allowed: Collection[str], least: Severity) -> Iterator[str]:
    """What the rules expect of a repaired model: what is allowed by its node, what else is not repaired by its kind."""
    less: Counter[tuple[Severity, str]] = Counter()
    for site in measured(repaired, rules):
        named = [rule.fault for rule in ask(rules, site) or () if rule.fault in allowed]
        if named:
            yield f"{site.schema.versioned_name} node {site.node.label!r}: allowed: {', '.join(named)}"
        left = ask(rules.without(allowed), site)
        if left:
            less[left[0].severity, ", ".join(rule.fault for rule in left)] += 1
    for (severity, faults), count in sorted(less.items(), key=lambda item: -level(item[0][0])):
        reason = "left as it is" if level(severity) < level(least) else "not seen in the run"
        yield f"{reason}: {severity} at {counted(count, 'node')} ({faults})"


def _joined(first: PassReport, second: PassReport) -> PassReport:
    return PassReport(
        first.before,
        second.after,
        (*first.changes, *second.changes),
        (*first.dropped, *second.dropped),
        (*first.assumptions, *second.assumptions),
        first.unchanged and second.unchanged,
    )
