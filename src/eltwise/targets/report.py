"""What was found of a model and a runtime: grouped by cause for people, all of it for programs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from eltwise.core.errors import counted
from eltwise.core.escaping import as_lines, on_one_line
from eltwise.passes.report import Comparison, verification_fields, verification_lines
from eltwise.targets.rules import DEFAULT_SEVERITY, Severity, level

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
        kind: ``differs`` if a runtime gives other values; ``refused``, ``refused_in_part``, ``hangs`` or ``crashes``.
        reasons: the faults that explain other values, by name; what ``--allow`` takes.
        words: what happens, in words.
        helps: what to do about it.
        is_repairable: whether ``repair`` makes it exact.
        is_seen: whether it was seen when the model was run there; None if the model was not run, or not compared.
    """

    node: str
    subject: str
    element_type: str = ""
    broadcast: str = ""
    severity: Severity = "refused"
    kind: str = "refused"
    reasons: tuple[str, ...] = ()
    words: str = ""
    helps: str = ""
    is_repairable: bool = False
    is_seen: bool | None = None

    def __str__(self) -> str:
        return on_one_line(_sentence([self]))

    @property
    def cause(self) -> tuple[object, ...]:
        """What findings of one cause have in common."""
        words = "" if self.reasons else self.words
        return (self.severity, self.subject, self.element_type, self.kind, self.reasons, words, self.helps)

    def fields(self) -> dict[str, object]:
        """Everything as plain values."""
        plain = {name: value for name, value in vars(self).items() if not name.startswith("is_")}
        return {**plain, "reasons": list(self.reasons), "repairable": self.is_repairable, "seen": self.is_seen}


@dataclass(frozen=True)
class TargetReport:
    """Whether a model loads on a runtime, and means the same there.

    Attributes:
        target: the runtime.
        version: the version that was run, or else the one that was measured.
        note: what must be known of it, for example that the installed version was not measured.
        findings: everything that was found, of every severity, in the model's order.
        checked: how many nodes were checked by rules.
        right: how many of them run as they are.
        beside_others: how many of them are beside operators that they were not measured with.
        not_checked: the operators of the other nodes, with how many there are and why.
        comparison: what was compared there and here; None if it was not run, or differs.
        severity: the least severity that counts.
    """

    target: str
    version: str
    note: str = ""
    findings: tuple[Finding, ...] = ()
    checked: int = 0
    right: int = 0
    beside_others: int = 0
    not_checked: Mapping[str, int] = field(default_factory=dict)
    comparison: Comparison | None = None
    severity: Severity = DEFAULT_SEVERITY

    @property
    def counting(self) -> tuple[Finding, ...]:
        """The findings that count: severe enough, and not refuted by running the model."""
        return tuple(found for found in self.findings if self._counts(found) and found.is_seen is not False)

    @property
    def is_good(self) -> bool:
        """Whether nothing was found that counts."""
        return not self.counting

    def __str__(self) -> str:
        groups = _grouped(self.counting)
        lines = [_sentence(group) for group in groups[:_MOST_GROUPS]]
        if len(groups) > _MOST_GROUPS:
            nodes = sum(map(len, groups[_MOST_GROUPS:]))
            lines.append(
                f"and {counted(len(groups) - _MOST_GROUPS, 'cause')} more, {counted(nodes, 'node')} (--json lists all)"
            )
        lines += self._summaries()
        if self.note:
            lines.append(f"note: {self.note}")
        lines += verification_lines(self.comparison)
        if self.version:
            found = len({finding.node for finding in self.counting if finding.node})
            standing = f": {self.checked - found} ok, {found} not ok" if self.checked else ""
            lines.append(f"{self.target} {self.version}: {counted(self.checked, 'node')} checked{standing}")
        return as_lines(lines)

    def _counts(self, found: Finding) -> bool:
        return level(found.severity) >= level(self.severity)

    def _summaries(self) -> Iterator[str]:
        """A line for what does not count, one for what was not seen, and one for what could not be checked."""
        below = Counter(
            found.severity for found in self.findings if not self._counts(found) and found.is_seen is not False
        )
        if below:
            worst_first = sorted(below, key=level, reverse=True)
            parts = ", ".join(f"{severity} at {counted(below[severity], 'node')}" for severity in worst_first)
            yield f"less severe: {parts} (--severity {worst_first[-1].split()[0]} shows them)"
        unseen = sum(1 for found in self.findings if found.is_seen is False)
        if unseen:
            yield f"not seen in the run: {counted(unseen, 'finding')} that the rules expect (--json lists them)"
        if self.not_checked:
            kinds = sorted(self.not_checked.items(), key=lambda item: -item[1])
            named = ", ".join(f"{count} {name}" for name, count in kinds[:_MOST_GROUPS])
            more = f" and {len(kinds) - _MOST_GROUPS} kinds more" if len(kinds) > _MOST_GROUPS else ""
            yield f"not checked by rules: {named}{more}"
        if self.beside_others and not self.comparison:
            yield f"measured without what is around them: {counted(self.beside_others, 'node')} beside other operators"

    def fields(self) -> dict[str, object]:
        """Everything as plain values, for programs that read it."""
        plain = {name: value for name, value in vars(self).items() if name != "comparison"}
        findings = [finding.fields() for finding in self.findings]
        lists = {"good": self.is_good, "not_checked": dict(self.not_checked), "findings": findings}
        return {**plain, **lists, **verification_fields(self.comparison)}


def _grouped(findings: Sequence[Finding]) -> list[list[Finding]]:
    """The findings by cause, the most severe first, else in the model's order."""
    groups: dict[tuple[object, ...], list[Finding]] = {}
    for finding in findings:
        groups.setdefault(finding.cause, []).append(finding)
    return sorted(groups.values(), key=lambda group: -level(group[0].severity))


def _sentence(group: Sequence[Finding]) -> str:
    first = group[0]
    typed = f" of {first.element_type}" if first.element_type else ""
    if len(group) == 1:
        place = f"{first.subject} node {first.node!r}{typed}" if first.node else f"{first.subject}{typed}"
    else:
        named = ", ".join(repr(finding.node) for finding in group[:_MOST_NODES])
        more = ", ..." if len(group) > _MOST_NODES else ""
        place = f"{first.subject}{typed} at {len(group)} nodes ({named}{more})"
    # A difference is said by how severe it is, a refusal by its kind.
    kind = first.severity if first.kind == "differs" else first.kind
    reasons = f" ({', '.join(first.reasons)})" if first.reasons else ""
    words = f": {first.words}" if first.words else ""
    helps = f"; {first.helps}" if first.helps else ""
    return f"{place}: {kind}{reasons}{words}{helps}"
