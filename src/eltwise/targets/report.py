"""What was found of a model and a runtime: grouped by cause for people, all of it for programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from eltwise.core.errors import counted, named
from eltwise.core.escaping import as_lines, on_one_line
from eltwise.core.exit_codes import ExitCode
from eltwise.faults.families import UNEXPLAINED
from eltwise.formats.reports import BaseReport
from eltwise.passes.report import Comparison, verification_fields, verification_lines
from eltwise.report.annotations import NOT_ESTABLISHED, Annotation, Level
from eltwise.targets.rules import DEFAULT_SEVERITY, Severity, level
from eltwise.tracing.difference import largest
from eltwise.tracing.records import EXIT_CODES, VERDICTS, Verdict
from eltwise.tracing.report import TraceReport
from eltwise.tracing.switches import Switches, Trial
from eltwise.verification import Run

_SET_VERDICTS: dict[Verdict, str] = {"agree": "equal", "disagree": "different", "not_established": "not established"}
_LEVELS: dict[Severity, Level] = {
    "refused": "error",
    "wrong values": "error",
    "precision": "warning",
    "sign of zero or NaN": "note",
}
_NOT_RUN = "the model does not run"
_UNINTENDED = "it should not be deployed as it is"
INVALID = "invalid"
"""The kind of what no runtime has to run, whether this one does or not."""

SPECIAL = "special_values"
"""The kind of what differs on zeros, limits, infinities or NaN, where a node is given these alone."""

_MOST_GROUPS = 16
_MOST_NODES = 4


@dataclass(frozen=True)
class Finding:
    """One node, or the model as a whole, that a runtime does not load or does not compute as it is meant.

    Attributes:
        node: the node's name, or the name of what it makes; empty for the model.
        subject: what it is, for example ``Sub-14``, or what else of the model.
        element_type: of the operands; empty for the model.
        broadcast: the broadcast rule; empty for the model.
        severity: what it means.
        kind: ``differs`` if a runtime gives other values; ``refused``, ``refused_in_part``, ``hangs`` or ``crashes``;
            ``invalid`` for what is no valid model; ``unintended`` for what no model should be deployed with, as a node
            in training mode; ``special_values`` for a node that differs on these, where it runs alone.
        reasons: the faults that explain other values, by name; what ``repair`` takes as ``allow``.
        message: what happens, in words.
        helps: what to do about it.
        is_repairable: whether ``repair`` makes it exact.
        is_seen: whether it was seen when the model was run there; None if the model was not run, or not compared.
        is_of_site: whether it is the first finding of a node that was checked by rules; names are no identity.
        is_in_body: whether its node lies in a branch or a loop, which a run may not enter.
    """

    node: str
    subject: str
    element_type: str = ""
    broadcast: str = ""
    severity: Severity = "refused"
    kind: str = "refused"
    reasons: tuple[str, ...] = ()
    message: str = ""
    helps: str = ""
    is_repairable: bool = False
    is_seen: bool | None = None
    is_of_site: bool = False
    is_in_body: bool = False

    def __str__(self) -> str:
        return on_one_line(_sentence([self]))

    @property
    def rule(self) -> str:
        """The slug of the first family of faults that explains it, or of how the runtime refuses it."""
        return (*self.reasons, UNEXPLAINED if self.kind == "differs" else self.kind)[0]

    @property
    def cause(self) -> tuple[object, ...]:
        """What findings of one cause have in common."""
        message = "" if self.reasons else self.message
        return (self.severity, self.subject, self.element_type, self.kind, self.reasons, message, self.helps)

    def to_dict(self) -> dict[str, object]:
        """Everything as plain values."""
        plain = {name: value for name, value in vars(self).items() if not name.startswith("is_")}
        return {**plain, "reasons": list(self.reasons), "repairable": self.is_repairable, "seen": self.is_seen}


@dataclass(frozen=True, repr=False)
class TargetReport(BaseReport[Finding]):
    """Whether a model loads on a runtime, and means the same there.

    Attributes:
        target: the runtime.
        version: the version that was run, or else the one that was measured.
        note: what must be known of it, for example that the installed version was not measured, or why it was not run.
        findings: everything that was found, of every severity, in the model's order.
        checked: how many nodes were checked by rules.
        beside_others: how many of them are beside operators that they were not measured with.
        not_checked: the operators of the other nodes, with how many there are and why.
        comparison: what was compared there and here, bit for bit; None if it was not run.
        is_compared: whether the runtime refused the model, or its results were compared with the exact ones.
        trace: the whole model there against float64, where eltwise does not compute all of it; against the exact
            results where outputs differ from these, on the inputs of that run.
        sets: of several sets of inputs how many had each verdict; the trace is that of the worst.
        remedies: the repair that was tried where it does not compute the same, and the options that help.
        switches: all options that were tried, and which of them make the difference; None where none were.
        severity: the least severity that counts.
        special: which special values were tried on which nodes; empty where none were.
        worst_run: the run whose outputs differ most from the exact ones; None if the bits were not compared, or equal.
    """

    json_kind = "target"
    records_field = "findings"
    record_names = ("node", "subject")

    target: str
    version: str
    note: str = ""
    findings: tuple[Finding, ...] = ()
    checked: int = 0
    beside_others: int = 0
    not_checked: Mapping[str, int] = field(default_factory=dict)
    comparison: Comparison | None = None
    is_compared: bool = False
    trace: TraceReport | None = None
    sets: tuple[tuple[Verdict, int], ...] = ()
    remedies: tuple[Trial, ...] = ()
    switches: Switches | None = None
    severity: Severity = DEFAULT_SEVERITY
    special: str = ""
    worst_run: Run | None = None

    @property
    def severe(self) -> tuple[Finding, ...]:
        """The findings that count: severe enough, and not refuted by running the model."""
        return tuple(finding for finding in self.findings if self._counts(finding) and finding.is_seen is not False)

    @property
    def verdict(self) -> Verdict:
        """Whether the model computes the same there.

        ``agree`` if it was run and its outputs compared, and nothing was found that counts; ``disagree`` if something
        was; otherwise ``not_established``, as where only rules were asked.
        """
        if self.severe or self.is_refused:
            return "disagree"
        return "agree" if self.is_compared else self.traced_verdict

    @property
    def traced_verdict(self) -> Verdict:
        """What the trace found."""
        return self.trace.verdict if self.trace is not None else "not_established"

    @property
    def error(self) -> float | None:
        """The largest error of an output as a part of its largest value; None where that was not measured."""
        if self.trace is None:
            return None
        return largest(output.relative for output in self.trace.outputs if output.status != "equal")

    @property
    def _verification(self) -> Comparison | None:
        """What was compared, or why nothing was; None where that found something that counts."""
        is_proof = self.comparison is not None and self.comparison.is_proof
        return None if is_proof and self.severe else self.comparison

    @property
    def is_refused(self) -> bool:
        """Whether the runtime was found not to run the model, or what it reads."""
        refused = any(finding.kind not in ("differs", "unintended", SPECIAL) for finding in self.severe)
        return refused or (self.trace is not None and self.trace.is_refused)

    @property
    def exit_code(self) -> ExitCode:
        """What the verdict comes to."""
        return EXIT_CODES[self.verdict]

    @property
    def summary(self) -> str:
        """The result in a line."""
        findings = f"{counted(len(self.severe), 'finding')}, " if self.severe else ""  # A trace has none of its own.
        return f"{self.target} {self.version}: {findings}{self._result}"

    @property
    def _result(self) -> str:
        """The verdict in words."""
        rest = self._of_outputs
        is_traced = self.trace is not None and (self.trace.verdict == "disagree" or self.trace.is_refused)
        source = "" if is_traced or any(one.is_seen for one in rest.severe) else "by rules alone, "
        if self.is_refused:
            return f"{source}{_NOT_RUN}"
        if rest.verdict == "disagree":
            return f"{source}{VERDICTS[rest.verdict]}"
        others = f", and {_UNINTENDED}" if any(one.kind == "unintended" for one in self.severe) else ""
        if special := self._on_special_values:
            others = f", {'except' if rest.verdict == 'agree' else 'and it does not'} {special}{others}"
        return VERDICTS[rest.verdict] + others

    @property
    def exception(self) -> str:
        """What makes the verdict ``disagree`` although the outputs agree; empty where the outputs do not."""
        is_right = self.verdict == "disagree" and self._of_outputs.verdict == "agree"
        return f"except {self._on_special_values}" if is_right and self._on_special_values else ""

    @property
    def _of_outputs(self) -> TargetReport:
        """The report without what was found beside the outputs."""
        return replace(self, findings=tuple(one for one in self.findings if one.kind not in ("unintended", SPECIAL)))

    @property
    def _on_special_values(self) -> str:
        """How severe the worst special value is; empty where none differs."""
        special = [one for one in self.findings if one.kind == SPECIAL]
        if not special:
            return ""
        worst = max(special, key=lambda one: level(one.severity))
        return f"on special values ({worst.severity}, which {'counts' if self._counts(worst) else 'does not count'})"

    def __str__(self) -> str:
        lines = list(self._of_trace())
        lines += _listed([one for one in self.findings if one in self.severe or one.kind == SPECIAL])
        lines += self._summaries()
        if self.special:
            lines.append(self.special)
        if self.note:
            lines.append(f"note: {self.note}")
        if self.trace is None:
            lines += verification_lines(self._verification)
        if self.version:
            wrong = sum(finding.is_of_site for finding in self.severe)
            standing = f": {self.checked - wrong} ok, {wrong} not ok" if self.checked else ""
            lines.append(f"{self.target} {self.version}: {counted(self.checked, 'node')} checked by rules{standing}")
        return as_lines([*lines, *self._to_do()])

    def _of_trace(self) -> list[str]:
        """What came of the whole model where it was compared with float64."""
        if self.trace is None:
            return []
        lines = [*(self.trace.comparison() if self.verdict == "agree" else self.trace.sentences()), *self.trace.notes]
        if self.sets:
            counts = ", ".join(f"{count} {_SET_VERDICTS[verdict]}" for verdict, count in self.sets)
            lines.append(f"{sum(count for _verdict, count in self.sets)} sets of inputs: {counts}; above is the worst")
        return lines

    def _to_do(self) -> Iterator[str]:
        """Whether the model computes the same, and at last what to do."""
        yield f"{self.target}: {self._result}"
        is_mended = any(one.verdict == "agree" for one in self.remedies)
        if self.switches is not None and self.switches.sentences and (self.switches.remedies or not is_mended):
            yield f"options: {self.switches}"
        yield from map(str, self.remedies)
        if self.verdict == "disagree" and self.is_tried and not is_mended:
            yield "no other option and no repair is known to help"

    @property
    def is_tried(self) -> bool:
        """Whether a repair or an option was tried."""
        return bool(self.remedies or (self.switches is not None and self.switches.trials))

    def _counts(self, finding: Finding) -> bool:
        return level(finding.severity) >= level(self.severity)

    def _summaries(self) -> Iterator[str]:
        """A line for what does not count, one for what was not seen, and one for what could not be checked."""
        below = Counter(
            finding.severity
            for finding in self.findings
            if not self._counts(finding) and finding.is_seen is not False and finding.kind != SPECIAL
        )
        if below:
            worst_first = sorted(below, key=level, reverse=True)
            parts = ", ".join(f"{severity} at {counted(below[severity], 'node')}" for severity in worst_first)
            yield f"less severe: {parts} (--severity {worst_first[-1].split()[0]} shows them)"
        invalid = [one for one in self.findings if one.is_seen is False and one.kind == INVALID]
        yield from (f"although it runs: {line}" for line in _listed(invalid))
        unseen = sum(finding.is_seen is False for finding in self.findings) - len(invalid)
        if unseen:
            yield f"not seen in the run: {counted(unseen, 'finding')} that the rules expect (--json lists them)"
        if self.not_checked:
            kinds = sorted(self.not_checked.items(), key=lambda item: -item[1])
            yield f"not checked by rules: {named([f'{count} {name}' for name, count in kinds], _MOST_GROUPS)}"
        if self.beside_others and not self.comparison:
            yield f"measured without what is around them: {counted(self.beside_others, 'node')} beside other operators"

    def annotations(self) -> list[Annotation]:
        """The findings that count and the wrong nodes of the trace, for CI; where there are none, the verdict."""
        results = [
            Annotation(finding.rule, _LEVELS[finding.severity], str(finding), finding.node) for finding in self.severe
        ]
        if self.trace is not None:
            nodes = {finding.node for finding in self.severe}
            results += [each for each in self.trace.annotations() if not results or each.node not in nodes | {""}]
        if results or self.is_good:
            return results
        return [Annotation(NOT_ESTABLISHED, "warning", self.summary)]

    def to_dict(self) -> dict[str, object]:
        """Everything as plain values, for programs that read it."""
        plain = {name: value for name, value in vars(self).items() if name not in ("comparison", "worst_run")}
        plain["trace"] = None if self.trace is None else self.trace.to_dict()
        plain["runtime_version"] = plain.pop("version")
        plain["sets"] = dict(self.sets)
        plain["remedies"] = [remedy.to_dict() for remedy in self.remedies]
        plain["switches"] = None if self.switches is None else self.switches.to_dict()
        findings = [finding.to_dict() for finding in self.findings]
        lists = {
            "verdict": self.verdict,
            "not_checked": dict(self.not_checked),
            "findings": findings,
        }
        return {**plain, **lists, **verification_fields(self._verification)}


def _grouped(findings: Sequence[Finding]) -> list[list[Finding]]:
    """The findings by cause, the most severe first, else in the model's order."""
    groups: dict[tuple[object, ...], list[Finding]] = {}
    for finding in findings:
        groups.setdefault(finding.cause, []).append(finding)
    return sorted(groups.values(), key=lambda group: -level(group[0].severity))


def _listed(findings: Sequence[Finding]) -> Iterator[str]:
    """A line for each cause, up to a number of them."""
    groups = _grouped(findings)
    yield from map(_sentence, groups[:_MOST_GROUPS])
    if rest := groups[_MOST_GROUPS:]:
        yield f"and {counted(len(rest), 'cause')} more, {counted(sum(map(len, rest)), 'node')} (--json lists all)"


def _sentence(group: Sequence[Finding]) -> str:
    first = group[0]
    typed = f" of {first.element_type}" if first.element_type else ""
    if len(group) == 1:
        described = f"{first.subject} node {first.node!r}{typed}" if first.node else f"{first.subject}{typed}"
    else:
        named = ", ".join(repr(finding.node) for finding in group[:_MOST_NODES])
        more = ", ..." if len(group) > _MOST_NODES else ""
        described = f"{first.subject}{typed} at {len(group)} nodes ({named}{more})"
    # A difference is said by how severe it is, a refusal by its kind.
    kind = first.severity if first.kind == "differs" else first.kind.replace("_", " ")
    reasons = f" ({', '.join(first.reasons)})" if first.reasons else ""
    message = f": {first.message}" if first.message else ""
    helps = f"; {first.helps}" if first.helps else ""
    return f"{described}: {kind}{reasons}{message}{helps}"
