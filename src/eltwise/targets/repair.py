"""A model made right for a runtime: exactly the nodes rewritten that it gets wrong, or every reason why not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from eltwise.core.errors import (
    AttributeValueError,
    EltwiseError,
    FileFormatError,
    UnsupportedError,
    counted,
    raise_all,
)
from eltwise.ir.graph import Graph
from eltwise.ir.infer_graph import infer_graph
from eltwise.ir.verify import structure_problems
from eltwise.model import Examination, Model, save
from eltwise.passes.align_broadcast import align_broadcast
from eltwise.passes.convert import Progress, check_places, copy_ir, write_onnx
from eltwise.passes.opset import convert_opset
from eltwise.passes.report import Change, Report
from eltwise.passes.upcast import upcast
from eltwise.passes.verify import VerificationError
from eltwise.targets.check import here, note_of, runtime_named, runtimes_on
from eltwise.targets.rewrites import REFUSALS, Decision, ask, decide
from eltwise.targets.rules import DEFAULT_SEVERITY, SEVERITIES, RuleSet, Severity, is_at_least, severity_named
from eltwise.targets.rules_file import shipped_rules
from eltwise.targets.run import observe
from eltwise.targets.subject import Subject, subject_of
from eltwise.targets.versions import Versions, versions_for

if TYPE_CHECKING:
    from eltwise.model import Source

_MOST_ROUNDS = 4
"""So often nodes are decided anew that were left alone: beside what was rewritten, one may not be right any more."""


def repair(
    source: Source | Model,
    target: str,
    *,
    allow: str | Sequence[str] = (),
    weights: bytes | None = None,
    verify: bool = False,
    severity: str = DEFAULT_SEVERITY,
) -> tuple[Model, Report]:
    """Make a model right for a runtime, by what was measured of it.

    What can be made exact is; what is less severe than ``severity`` is left as it is; what is not is refused.

    Args:
        source: what ``load`` takes, or a loaded model. An ONNX model may hold any operators, an IR those that run here.
        target: ``onnxruntime`` or ``openvino``.
        allow: faults that are accepted, by name as ``check`` says them; one or several.
        weights: for the bytes of an .xml file, those of its .bin.
        verify: whether the repaired model is run there, and the one before here, and the bits compared.
        severity: the least severity that is repaired or refused.

    Returns:
        The model, with external data where it was, and the report.

    Raises:
        EltwiseError: with every reason of every node that cannot be repaired.
        VerificationError: where the repaired model gives other values there, which no rule says.
    """
    subject = subject_of(source, weights)
    graph, report = repair_subject(subject, target, allow, severity_named(severity))
    if verify:
        report = _verified(report, graph, source, weights, target, severity_named(severity))
    if report.unchanged and isinstance(source, Model):
        return source, report
    return _model(graph), report


def repair_file(
    source: Path,
    out: Path,
    *,
    target: str,
    allow: Sequence[str] = (),
    verify: bool = False,
    severity: str = DEFAULT_SEVERITY,
    in_place: bool = False,
    progress: Progress | None = None,
) -> Report:
    """Write a model file that is right for a runtime.

    Args:
        source: an .onnx file, or an .xml file with its .bin beside it.
        out: the file to write, of the same format.
        target: ``onnxruntime`` or ``openvino``.
        allow: faults that are accepted, by name.
        verify: whether the repaired model is run there, and the one before here, before anything is written.
        severity: the least severity that is repaired or refused.
        in_place: whether ``out`` may be the source.
        progress: told about external data that is copied.

    Returns:
        What was changed. A model that is right already is written byte for byte.

    Raises:
        EltwiseError: with every reason; ``out`` is as it was.
    """
    runtimes_on(target)
    check_places(source, out, in_place)
    if source.suffix.lower() != out.suffix.lower():
        raise FileFormatError(
            "a repaired model keeps its format",
            where=str(out),
            got=out.suffix or "no ending",
            allowed=source.suffix,
            hint="eltwise convert writes another format",
        )
    least = severity_named(severity)
    graph, report = repair_subject(subject_of(source), target, allow, least)
    if verify:
        report = _verified(report, graph, source, None, target, least)
    if graph.origin.domain == "ai.onnx":
        report = write_onnx(graph, out, report, progress)
    elif report.unchanged:
        copy_ir(source, out)
    else:
        save(_model(graph), out)
    return report


def repair_subject(
    subject: Subject, target: str, allow: str | Sequence[str] = (), least: Severity = DEFAULT_SEVERITY
) -> tuple[Graph, Report]:
    """Repair a model that was read; the arguments and errors are those of ``repair``."""
    name = runtimes_on(target).get(subject.graph.origin.domain)
    if name is None:
        hint = "convert it first: eltwise convert"
        raise UnsupportedError(f"{target} reads ONNX only", where=subject.where, got="an IR", hint=hint)
    rules = shipped_rules(name)
    allowed = _allowed_names(allow, rules)
    sites = [site for site in subject.all_sites if ask(rules, site).is_measured]
    versions = versions_for(subject.graph, sites, rules, least, allowed)
    decisions = [decide(rules, site, least, allowed, versions.opset) for site in sites]
    runtime = f"{target} {rules.number}"
    wrong = subject.problems
    said = {problem.node for problem in wrong if problem.node}
    of_nodes = (problem for problem in _refusals(decisions, runtime) if problem.node not in said)
    problems = [*_version_problems(versions, runtime), *wrong, *of_nodes]
    if subject.unread and any(decision.steps for decision in decisions):
        problems += subject.unread
    try:
        raise_all(problems)
        graph, report = _rewritten(subject.graph, versions, rules, least, allowed, runtime)
    except EltwiseError as error:
        raise error.located(where=subject.where) from None
    notes = filter(None, [*_left(decisions, least, allowed), note_of(runtime_named(name), rules)])
    dropped = () if report.unchanged or subject.is_onnx else subject.graph.not_held
    return graph, replace(report, assumptions=(*report.assumptions, *notes), dropped=(*report.dropped, *dropped))


def _allowed_names(allow: object, rules: RuleSet) -> tuple[str, ...]:
    """The names of what is allowed, of which one alone may be a text; names that no fault has are refused.

    Raises:
        AttributeValueError: naming those that there are.
    """
    names = (allow,) if isinstance(allow, str) or not isinstance(allow, Iterable) else tuple(allow)
    known = dict.fromkeys(["not measured", *(rule.fault for rule in rules.rules if rule.fault not in REFUSALS)])
    for name in names:
        if name not in list(known):
            raise AttributeValueError(
                "there is no such difference to allow", operand="--allow", got=repr(name), allowed=", ".join(known)
            )
    return names


def _version_problems(versions: Versions, runtime: str) -> Iterator[EltwiseError]:
    if versions.reason:
        subject, loaded = versions.refused[-1]
        yield UnsupportedError(f"{runtime} does not load {subject}: {versions.reason}", allowed=loaded)


def _refusals(decisions: Iterable[Decision], runtime: str) -> Iterator[EltwiseError]:
    for decision in decisions:
        if decision.steps is not None:
            continue
        site, now = decision.site, decision.now
        is_refused = any(fault in REFUSALS for fault in now.faults)
        names = " ".join(f"--allow {fault!r}" for fault in now.faults)
        yield UnsupportedError(
            f"{now.severity} on {runtime} ({', '.join(now.faults)}), and no way to write it is known to be exact there",
            operator=site.schema.versioned_name,
            node=site.node,
            got=site.type_name,
            hint="" if is_refused else f"to leave it as it is: {names}",
        )


def _rewritten(
    graph: Graph, versions: Versions, rules: RuleSet, least: Severity, allowed: Collection[str], runtime: str
) -> tuple[Graph, Report]:
    """The model in its versions, with nodes rewritten until none is left that must be."""
    graph, report = _in_versions(graph, versions)
    for _round in range(_MOST_ROUNDS):
        sites = [site for site in Subject(graph).all_sites if ask(rules, site).is_measured]
        decisions = [decide(rules, site, least, allowed) for site in sites]
        raise_all(list(_refusals(decisions, runtime)))
        to_align = {decision.site.node for decision in decisions if "align" in (decision.steps or ())}
        to_upcast = {decision.site.node for decision in decisions if "upcast" in (decision.steps or ())}
        if not to_align and not to_upcast:
            break
        graph, first = align_broadcast(graph, lambda node, named=to_align: node.label in named)  # type: ignore[misc]
        graph, second = upcast(graph, lambda node, named=to_upcast: node.label in named)  # type: ignore[misc]
        report = joined(report, joined(first, second))
    return graph, report


def _in_versions(graph: Graph, versions: Versions) -> tuple[Graph, Report]:
    """The model with the opset and the file version that the runtime is to get."""
    origin = graph.origin
    described = f"ONNX opset {origin.opset}" if origin.domain == "ai.onnx" else f"OpenVINO IR {origin.file_version}"
    report = Report(described, described, unchanged=True)
    if versions.file_version != origin.file_version:
        graph = replace(graph, origin=replace(origin, file_version=versions.file_version))
        reason = f"nothing in the model needs more than {versions.file_version}"
        change = Change("", f"ir_version {origin.file_version}", (f"ir_version {versions.file_version}",), reason)
        report = replace(report, changes=(change,), unchanged=False)
    if versions.opset not in (0, origin.opset):
        graph, second = convert_opset(graph, versions.opset)
        report = joined(report, second)
    return graph, report


def _left(decisions: Sequence[Decision], least: Severity, allowed: Collection[str]) -> Iterator[str]:
    """What is left as it is, a sentence each: what is allowed node by node, what is less severe by its kind."""
    less: Counter[tuple[Severity, str]] = Counter()
    for decision in decisions:
        site, then = decision.site, decision.then
        named = [fault for fault in then.faults if fault in allowed]
        if named and then.severity is not None and is_at_least(then.severity, least):
            yield f"{site.schema.versioned_name} node {site.node!r}: allowed: {', '.join(named)}"
        elif then.severity is not None:
            less[then.severity, ", ".join(then.faults)] += 1
    for (severity, faults), count in sorted(less.items(), key=lambda item: -SEVERITIES.index(item[0][0])):
        yield f"left as it is: {severity} at {counted(count, 'node')} ({faults})"


def joined(first: Report, second: Report) -> Report:
    """Two reports as one: a node that both changed is described by what it became in the end."""
    later = list(second.changes)
    changes: list[Change] = []
    for change in first.changes:
        other = next((one for one in later if one.node == change.node and one.before in change.after), None)
        if other is None:
            changes.append(change)
            continue
        later.remove(other)
        before = change.after[: change.after.index(other.before)]
        reason = "; ".join(part for part in (change.reason, other.reason) if part)
        changes.append(Change(change.node, change.before, (*before, *other.after), reason))
    return Report(
        first.before,
        second.after,
        (*changes, *later),
        (*first.dropped, *second.dropped),
        (*first.assumptions, *second.assumptions),
        first.unchanged and second.unchanged,
    )


def _verified(
    report: Report, graph: Graph, source: Source | Model, weights: bytes | None, target: str, least: Severity
) -> Report:
    """The report with what was compared there.

    Raises:
        VerificationError: where the repaired model is refused there, or gives other values that count.
    """
    runtime = runtime_named(runtimes_on(target)[graph.origin.domain])
    observed = observe(runtime, graph, lambda: here(source, weights))
    for finding in observed.findings:
        if is_at_least(finding.severity, least):
            raise VerificationError(f"{target}: {finding.words}", operand=finding.subject)
    seen = tuple(f"less severe, and seen in the run: {finding}" for finding in observed.findings)
    return replace(report, comparison=observed.comparison, assumptions=(*report.assumptions, *seen))


def _model(graph: Graph) -> Model:
    inference = infer_graph(graph)
    return Model(Examination(graph, inference, (*structure_problems(graph), *inference.problems)))
