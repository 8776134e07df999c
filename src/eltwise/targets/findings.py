"""What measured rules say of a model without running it: each node that a runtime refuses or computes otherwise."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from eltwise.core.errors import AttributeValueError, EltwiseError
from eltwise.faults.families import REFUSED_IN_PART, sentence_of
from eltwise.ir.graph import Graph
from eltwise.ir.scopes import all_graphs
from eltwise.model import Model
from eltwise.passes.analysis import Analysis
from eltwise.passes.unintended import unintended
from eltwise.passes.upcast import exact_upcast
from eltwise.targets.plan import (
    Steps,
    Versions,
    ask,
    choose_versions,
    decide,
    in_opset,
    measured,
    other_operators,
    unread,
    worst,
)
from eltwise.targets.report import INVALID, Finding, TargetReport
from eltwise.targets.rules import REFUSALS, Rule, RuleSet, Severity, level
from eltwise.targets.sites import Site, sites_of
from eltwise.tracing.report import TraceReport


def by_rules(analysis: Analysis, target: str, rules: RuleSet, least: Severity) -> TargetReport:
    """What the rules say of a model, without running it."""
    checked = measured(analysis.graph, rules)
    findings = _with_problems(analysis, find(analysis, target, rules, least), checked)
    is_declared = all(port.type.shape.dimensions is not None for port in analysis.graph.inputs)
    others = [site for site in sites_of(analysis.graph) if ask(rules, site) is None]
    return TargetReport(
        target,
        rules.version,
        "",
        tuple(findings),
        len(checked),
        sum(site.is_beside_foreign for site in checked),
        Counter(_not_measured(site, is_declared=is_declared) for site in others) + Counter(other_operators(analysis)),
        severity=least,
    )


def explained(report: TargetReport, observed: TargetReport, *, is_of_another_version: bool) -> TargetReport:
    """The report of the rules with what came of the run, which decides if it compared anything."""
    note = "; ".join(filter(None, (report.note, observed.note)))
    report = replace(report, version=observed.version or report.version, comparison=observed.comparison, note=note)
    if not observed.version:
        return report
    report = replace(report, is_compared=observed.is_compared, trace=observed.trace, sets=observed.sets)
    if is_of_another_version and observed.traced_verdict == "agree":  # What was measured of another version loses.
        unseen = (
            replace(one, is_seen=False) if one.kind == "differs" and _has_run(one, observed.trace) else one
            for one in report.findings
        )
        report = replace(report, findings=tuple(unseen))
    if not observed.is_compared:  # It was loaded, which tells of refusals only.
        findings = (replace(one, is_seen=False) if one.kind in ("refused", INVALID) else one for one in report.findings)
        return replace(report, findings=(*findings, *observed.findings), special=observed.special)
    highest = max((level(finding.severity) for finding in observed.findings), default=-1)
    rules = [replace(finding, is_seen=level(finding.severity) <= highest) for finding in report.findings]
    explained = {finding.severity for finding in rules if finding.is_seen and finding.kind != INVALID}
    others = (finding for finding in observed.findings if finding.severity not in explained)
    return replace(report, findings=(*rules, *others))


def find(analysis: Analysis, target: str, rules: RuleSet, least: Severity) -> list[Finding]:
    """Everything of a valid model that a runtime does not load or does not compute as it is meant."""
    versions = choose_versions(analysis.graph, rules, least)
    return [*_of_versions(versions, target), *_of_sites(versions, target, analysis, rules, least)]


def invalid_nodes(analysis: Analysis) -> set[str]:
    """The names of invalid nodes, but for those that other nodes have as well."""
    counts = Counter(node.label for graph in all_graphs(analysis.graph) for node in graph.nodes)
    return {problem.node for problem in analysis.invalidities if counts[problem.node] == 1}


def _with_problems(analysis: Analysis, findings: list[Finding], checked: Sequence[Site]) -> list[Finding]:
    """The findings of a model that is not valid, of which nothing can be repaired."""
    problems = analysis.invalidities
    if not problems:
        return findings
    seen, sites, wrong = set[str](), {site.node.label for site in checked}, list[Finding]()
    for problem in problems:
        finding = _of_problem(problem)
        wrong.append(replace(finding, kind=INVALID, is_of_site=finding.node in sites - seen))
        seen.add(finding.node)
    helps = "what the model is refused for comes first"
    named = invalid_nodes(analysis)
    rest = (finding for finding in findings if finding.node not in named)
    return [
        *wrong,
        *(replace(one, helps=helps if one.is_repairable else one.helps, is_repairable=False) for one in rest),
    ]


def with_unintended(report: TargetReport, model: Model) -> TargetReport:
    """The report with what a valid model should not be deployed with, as nodes in training mode or infinite slopes."""
    attributes = (one for one in model.problems if isinstance(one, AttributeValueError))
    problems = [] if model.analysis.invalidities else [*attributes, *unintended(model.graph)]
    trace = report.trace
    if trace is not None:
        trace = replace(trace, notes=tuple(note for note in trace.notes if note not in map(str, problems)))
    findings = (replace(_of_problem(one), severity="wrong values", kind="unintended") for one in problems)
    return replace(report, trace=trace, findings=(*report.findings, *findings))


def not_read(graph: Graph) -> Finding:
    """What is found of an IR on a runtime that reads ONNX only."""
    version_here = f"OpenVINO IR {graph.origin.file_version}"
    helps = "convert it first: eltwise convert IN.xml OUT.onnx"
    return Finding("", version_here, message="it reads ONNX only", helps=helps)


def _of_problem(problem: EltwiseError) -> Finding:
    """What a problem of the model is as a finding."""
    message = problem.problem
    message += f", got {problem.got}" if problem.got else ""
    message += f"; allowed: {problem.allowed}" if problem.allowed else ""
    subject = problem.operator or problem.operand or "the model"
    if problem.operator and problem.operand:
        message = f"{problem.operand}: {message}"
    return Finding(problem.node, subject, message=message, helps=problem.hint)


def _has_run(finding: Finding, trace: TraceReport | None) -> bool:
    """Whether a run shows anything of a node, as it does not where it lies in a branch or loop that was not entered."""
    if not finding.is_in_body or trace is None:
        return not finding.is_in_body
    # A node of a function, which is inlined, has a longer name in the run.
    return not (trace.not_opened or any(node.label.startswith(finding.node) for node in trace.not_run))


def _not_measured(site: Site, *, is_declared: bool) -> str:
    if site.element_type is None:
        return f"{site.schema.versioned_name} of unknown type"
    if not site.context:
        hint = "" if is_declared else " (declare the shapes of the model's inputs)"
        return f"{site.schema.versioned_name} of unknown rank{hint}"
    return f"{site.schema.versioned_name} of {site.type_name} (not measured)"


def _of_versions(versions: Versions, target: str) -> Iterator[Finding]:
    for subject, allowed in versions.refused:
        helps = f"eltwise repair --target {target} changes it"
        if versions.reason:
            helps = "no version that it loads can say this model"
        message = versions.reason or f"it loads {allowed}"
        yield Finding("", subject, message=message, helps=helps, is_repairable=not versions.reason)


def _of_sites(
    versions: Versions, target: str, analysis: Analysis, rules: RuleSet, least: Severity
) -> Iterator[Finding]:
    is_whole, inner = not unread(analysis), _in_bodies(analysis.graph)
    for site in measured(analysis.graph, rules):
        matches = ask(rules, site) or ()
        severity = worst(matches)
        if severity is None:
            continue
        steps, then = decide(rules, site, min(severity, least, key=level), versions.opset)
        first = [rule for rule in matches if rule.severity == severity]
        faults = [rule.fault for rule in first]
        helps = "what would help cannot be written, since the IR has layers that are not known here"
        if steps is None or is_whole:
            helps = _helps(site, steps, then, faults, target, versions.opset)
        yield Finding(
            site.node.label,
            site.schema.versioned_name,
            site.type_name,
            site.broadcast,
            severity,
            next((fault for fault in faults if fault in (*REFUSALS, REFUSED_IN_PART)), "differs"),
            tuple(fault for fault in faults if fault not in (*REFUSALS, REFUSED_IN_PART)),
            "; ".join(dict.fromkeys(_message(rule, site) for rule in first)),
            helps,
            steps is not None and is_whole,
            is_of_site=True,
            is_in_body=id(site.node) in inner,
        )


def _in_bodies(graph: Graph) -> set[int]:
    """The nodes in branches and loops, by their ids."""
    nodes = (node for body in all_graphs(graph) for node in body.nodes)
    bodies = (body for node in nodes for _name, one in node.graphs for body in all_graphs(one))
    return {id(node) for body in bodies for node in body.nodes}


def _message(rule: Rule, site: Site) -> str:
    operator = f"{site.schema.name}({site.schema.version})"
    return rule.message.replace("{op}", operator) or sentence_of(rule.fault)


def _helps(
    site: Site, steps: Steps | None, then: Sequence[Rule], faults: Sequence[str], target: str, opset: int
) -> str:
    """What to do about a node."""
    if steps is None and any(fault in REFUSALS for fault in faults):
        return "no way to write it is exact there"
    if steps is None:
        return f"no way to write it is exact there; repair leaves it as it is where {', '.join(faults)} is allowed"
    actions = []
    upgraded = in_opset(site, opset) if opset else site
    if upgraded is not None and upgraded.schema != site.schema:
        actions.append(f"upgrades the model to opset {opset}")
    if "align" in steps:
        actions.append("aligns B by its shape")
    if "upcast" in steps and site.element_type is not None:
        actions.append(f"computes it in {exact_upcast(site.expression, site.element_type)} and casts back")
    outcome = f"after which only {worst(then)} is left" if then else "which was measured to be exact"
    return f"eltwise repair --target {target} {' and '.join(actions)}, {outcome}"
