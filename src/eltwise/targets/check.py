"""Whether a model loads on a runtime and means the same there: what happens to each node that does not, what helps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

from eltwise import runtimes
from eltwise.core.errors import EltwiseError, unknown_name
from eltwise.model import Model, load
from eltwise.passes.upcast import exact_upcast
from eltwise.runtimes import Runtime
from eltwise.targets.report import Finding, Kind, TargetReport
from eltwise.targets.rewrites import REFUSALS, Answer, Decision, ask, decide, in_opset
from eltwise.targets.rules import DEFAULT_SEVERITY, PAIR_SELECTORS, SEVERITIES, Match, RuleSet, Severity, severity_named
from eltwise.targets.rules_file import shipped_rules
from eltwise.targets.run import Observed, observe
from eltwise.targets.sites import Site
from eltwise.targets.subject import Subject, subject_of
from eltwise.targets.versions import Versions, versions_for

if TYPE_CHECKING:
    from eltwise.model import Source
    from eltwise.ops.schema import Domain

TARGETS: dict[str, dict[Domain, str]] = {
    "onnxruntime": {"ai.onnx": "onnxruntime"},
    "openvino": {"ai.onnx": "openvino-onnx", "openvino": "openvino"},
}
"""The targets, and the runtime that reads each format there."""

_KINDS: dict[str, Kind] = {
    "refused": "refused",
    "refused in part": "refused in part",
    "hangs": "hangs",
    "crashes": "crashes",
}


def check(
    source: Source | Model,
    target: str,
    *,
    weights: bytes | None = None,
    verify: bool = False,
    run: bool = True,
    severity: str = DEFAULT_SEVERITY,
) -> TargetReport:
    """Tell whether a model loads on a runtime and means the same there.

    Where the runtime is installed it is run on the model, in a process of its own, and measured rules explain what
    differs. Where it is not, or eltwise does not run the model, the rules alone answer.

    Args:
        source: what ``load`` takes (a path, the bytes of a file or an ``onnx.ModelProto``), or a loaded model.
            Operators that eltwise does not run may be in it; they are counted and not checked.
        target: ``onnxruntime`` or ``openvino``.
        weights: for the bytes of an .xml file, those of its .bin.
        verify: whether the model must be run: where it cannot be, the report says so and why, as it always does.
        run: whether the model is run where that is possible.
        severity: the least severity that counts: ``refused``, ``wrong values``, ``precision`` or
            ``sign of zero or NaN``.

    Returns:
        The report; ``is_good`` says that nothing was found that counts.

    Raises:
        EltwiseError: where there is no such target, or no model to read.
    """
    runtimes_of = runtimes_on(target)
    least = severity_named(severity)
    subject = subject_of(source, weights)
    name = runtimes_of.get(subject.graph.origin.domain)
    if name is None:
        return TargetReport(target, "", findings=(_not_read(subject),), severity=least)
    runtime, rules = runtime_named(name), shipped_rules(name)
    report = by_rules(subject, target, rules, least)
    observed = observe(runtime, subject.graph, lambda: here(source, weights)) if run or verify else Observed()
    return _explained(report, observed, note_of(runtime, rules, observed.version))


def runtimes_on(target: object) -> Mapping[Domain, str]:
    """The runtimes of a target, by the format that they read.

    Raises:
        NameUnknownError: naming the targets that there are.
    """
    if isinstance(target, str) and target in TARGETS:
        return TARGETS[target]
    raise unknown_name("target", target if isinstance(target, str) else repr(target), list(TARGETS))


def runtime_named(name: str) -> Runtime:
    """A runtime by its name, installed or not."""
    return next(runtime for runtime in runtimes.RUNTIMES if runtime.name == name)


def note_of(runtime: Runtime, rules: RuleSet, run: str = "") -> str:
    """What is to be said where another version is installed than was measured; empty where none is."""
    package = next(iter(runtime.packages), "")
    try:
        installed = run.partition(" ")[0] or version(package)
    except PackageNotFoundError:
        return ""
    if installed == rules.number:
        return ""
    return (
        f"{package} {installed} is installed here, the rules are of {rules.number} "
        f"(eltwise targets --refresh --runtime {runtime.name} measures the installed one)"
    )


def here(source: Source | Model, weights: bytes | None = None) -> Model:
    """The model that a source is, whole.

    Raises:
        EltwiseError: where it has problems or holds what is not run here.
    """
    return source if isinstance(source, Model) else load(source, weights)


def by_rules(subject: Subject, target: str, rules: RuleSet, least: Severity) -> TargetReport:
    """What the rules say of a model, without running it."""
    asked = [(site, ask(rules, site)) for site in subject.all_sites]
    checked = [(site, answer) for site, answer in asked if answer.is_measured]
    versions = versions_for(subject.graph, [site for site, _answer in checked], rules, least)
    wrong = list(map(invalid, subject.problems))
    said = {finding.node for finding in wrong}
    found = [*_of_versions(versions, target), *_of_sites(checked, versions, target, subject, rules)]
    if wrong:
        found = [_not_yet(finding) for finding in found if finding.node not in said]
    findings = (*wrong, *found)
    named = {finding.node for finding in findings}
    return TargetReport(
        target,
        rules.version,
        "",
        findings,
        len(checked),
        0 if wrong else sum(site.node not in named for site, _answer in checked),
        sum(site.is_beside_foreign for site, _answer in checked),
        Counter(_not_measured(site) for site, answer in asked if not answer.is_measured)
        + Counter(subject.other_operators),
        severity=least,
    )


def invalid(problem: EltwiseError) -> Finding:
    """What is told of a problem that makes a model no valid one."""
    words = problem.problem
    words += f", got {problem.got}" if problem.got else ""
    words += f"; allowed: {problem.allowed}" if problem.allowed else ""
    subject = problem.operator or problem.operand or "the model"
    if problem.operator and problem.operand:
        words = f"{problem.operand}: {words}"
    return Finding(problem.node, subject, words=words, helps=problem.hint or "the model is not valid")


def _explained(report: TargetReport, observed: Observed, note: str) -> TargetReport:
    """The report of the rules with what came of the run, which decides where it compared anything."""
    report = replace(report, version=observed.version or report.version, note=note, comparison=observed.comparison)
    if not observed.version:
        return report
    worst = max((SEVERITIES.index(finding.severity) for finding in observed.findings), default=-1)
    if not observed.is_compared:  # It was loaded, which tells of refusals only.
        found = (replace(one, is_seen=False) if one.kind == "refused" else one for one in report.findings)
        return replace(report, findings=tuple(found))
    rules = [replace(finding, is_seen=SEVERITIES.index(finding.severity) <= worst) for finding in report.findings]
    # What the rules explain is not said twice.
    explained = {finding.severity for finding in rules if finding.is_seen}
    return replace(
        report, findings=(*rules, *(found for found in observed.findings if found.severity not in explained))
    )


def _not_read(subject: Subject) -> Finding:
    version_here = f"OpenVINO IR {subject.graph.origin.file_version}"
    helps = "convert it first: eltwise convert IN.xml OUT.onnx"
    return Finding("", version_here, words="it reads ONNX only", helps=helps)


def _not_yet(finding: Finding) -> Finding:
    """What is said of the rest of a model that is refused as a whole, so that ``repair`` refuses it too."""
    helps = "what the model is refused for comes first" if finding.is_repairable else finding.helps
    return replace(finding, helps=helps, is_repairable=False)


def _not_measured(site: Site) -> str:
    if "unknown-rank" in site.patterns:
        return f"{site.schema.versioned_name} of unknown rank (declare the shapes of the model's inputs)"
    if site.element_type is None:
        return f"{site.schema.versioned_name} of unknown type"
    return f"{site.schema.versioned_name} of {site.type_name} (not measured)"


def _of_versions(versions: Versions, target: str) -> Iterator[Finding]:
    for subject, allowed in versions.refused:
        helps = f"eltwise repair --target {target} changes it"
        if versions.reason:
            helps = "no version that it loads can say this model"
        yield Finding(
            "", subject, words=versions.reason or f"it loads {allowed}", helps=helps, is_repairable=not versions.reason
        )


def _of_sites(
    checked: Sequence[tuple[Site, Answer]], versions: Versions, target: str, subject: Subject, rules: RuleSet
) -> Iterator[Finding]:
    for site, answer in checked:
        severity = answer.severity
        if severity is None:
            continue
        decision = decide(rules, site, severity, opset=versions.opset)
        worst = [match for match in answer.matches if match.rule.severity == severity]
        refusal = next((match.rule.fault for match in worst if match.rule.fault in _KINDS), "")
        can_help = decision.steps is not None and not subject.unread
        yield Finding(
            site.node,
            site.schema.versioned_name,
            site.type_name,
            site.broadcast,
            severity,
            _KINDS.get(refusal, "differs"),
            tuple(match.rule.fault for match in worst if match.rule.fault not in _KINDS),
            "; ".join(dict.fromkeys(_words(match, rules, site) for match in worst)),
            helps(decision, target, versions.opset, subject),
            can_help,
        )


def _words(match: Match, rules: RuleSet, site: Site) -> str:
    """What happens, and in which pair where it takes one."""
    rule, situation = match.rule, match.situation
    if rule.words:
        return rule.words.replace("{op}", f"{site.schema.name}({site.schema.version})")
    text = rules.faults.get(rule.fault, rule.fault)
    if not rule.where.keys() & set(PAIR_SELECTORS):
        return text
    beside = "b" if situation["operand"] == "a" else "a"
    producer = situation["producer"].replace("-constant", " with a constant")
    made = "given" if producer == "none" else f"after {producer}"
    return f"{text} ({situation['operand']} {made}, {beside} {situation['other']})"


def helps(decision: Decision, target: str, opset: int, subject: Subject) -> str:
    """What to do about a node."""
    if decision.steps is not None and subject.unread:
        return "what would help cannot be written, since the IR has layers that are not known here"
    if decision.steps is not None:
        then = decision.then.severity
        outcome = f"after which only {then} is left" if then else "which was measured to be exact"
        return f"eltwise repair --target {target} {in_words(decision, opset)}, {outcome}"
    worst = [match.rule.fault for match in decision.now.matches if match.rule.severity == decision.now.severity]
    names = [fault for fault in worst if fault not in REFUSALS]
    if len(names) < len(worst):
        return "no way to write it is exact there"
    allowed = " ".join(f"--allow {name!r}" for name in names)
    return f"no way to write it is exact there; eltwise repair {allowed} leaves it as it is"


def in_words(decision: Decision, opset: int) -> str:
    """What is done to a node, as a clause."""
    site, words = decision.site, []
    there = in_opset(site, opset) if opset else site
    if there is not None and there.schema != site.schema:
        words.append(f"upgrades the model to opset {opset}")
    if decision.steps and "align" in decision.steps:
        words.append("aligns B by its shape")
    if decision.steps and "upcast" in decision.steps and site.element_type is not None:
        wide = exact_upcast(site.schema.expression(2), site.element_type)
        words.append(f"computes it in {wide} and casts back")
    return " and ".join(words)
