"""What was found of a model and a runtime: each node that does not run there as it is meant, and what helps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from eltwise.core.errors import counted
from eltwise.passes.report import Comparison, verification_fields, verification_lines
from eltwise.targets.table import Kind, Target


@dataclass(frozen=True)
class Finding:
    """One node, or the file as a whole, that a runtime does not load or does not compute as it is meant.

    Attributes:
        node: the node's name, or the name of what it makes; empty for the file.
        subject: what it is, for example ``Sub-14``, or which stamp of the file.
        element_type: of the operands; empty for the file.
        rule: the broadcast rule; empty for the file.
        kind: what happens.
        reasons: the deviations that explain wrong values, by name; what ``--allow`` takes.
        words: what happens, in words.
        helps: what to do about it.
        is_repairable: whether ``repair`` makes it exact.
    """

    node: str
    subject: str
    element_type: str
    rule: str
    kind: Kind
    reasons: tuple[str, ...]
    words: str
    helps: str
    is_repairable: bool

    def __str__(self) -> str:
        place = f"{self.subject} node {self.node!r}" if self.node else self.subject
        typed = f"{place} of {self.element_type}" if self.element_type else place
        named = f" ({', '.join(self.reasons)})" if self.reasons else ""
        words = f": {self.words}" if self.words else ""
        return f"{typed}: {self.kind}{named}{words}; {self.helps}"

    def fields(self) -> dict[str, object]:
        """Everything as plain values."""
        return {
            "node": self.node,
            "subject": self.subject,
            "element_type": self.element_type,
            "broadcast": self.rule,
            "kind": self.kind,
            "reasons": list(self.reasons),
            "words": self.words,
            "helps": self.helps,
            "repairable": self.is_repairable,
        }


@dataclass(frozen=True)
class TargetReport:
    """Whether a model loads on a runtime, and means the same there.

    Attributes:
        target: the runtime.
        version: the version that was measured.
        note: what must be known of it, for example that another version is installed here.
        findings: what does not, in the model's order; none where all that could be judged runs.
        judged: how many nodes were judged.
        right: how many of them run as they are; none where the model itself is not valid.
        beside_others: how many of them stand beside operators that they were not measured with.
        not_judged: the operators of the other nodes, with how many there are and why.
        comparison: what was compared there and here; None where that was not asked for, or found something.
    """

    target: Target
    version: str
    note: str = ""
    findings: tuple[Finding, ...] = ()
    judged: int = 0
    right: int = 0
    beside_others: int = 0
    not_judged: Mapping[str, int] = field(default_factory=dict)
    comparison: Comparison | None = None

    @property
    def is_good(self) -> bool:
        """Whether nothing was found."""
        return not self.findings

    def __str__(self) -> str:
        lines = [str(finding) for finding in self.findings]
        if self.not_judged:
            others = ", ".join(f"{count} {name}" for name, count in self.not_judged.items())
            lines.append(f"not judged: {others}")
        if self.note:
            lines.append(f"note: {self.note}")
        lines += verification_lines(self.comparison)
        if not self.version:
            return "\n".join(lines)
        standing = beside = ""
        if self.judged:
            standing = f", {self.right or 'none'} right as {'it is' if self.judged == 1 else 'they are'}"
        if self.beside_others:
            beside = f" ({self.beside_others} beside operators that were not measured with it)"
        lines.append(f"{self.target} {self.version}: {counted(self.judged, 'node')} judged{standing}{beside}")
        return "\n".join(lines)

    def fields(self) -> dict[str, object]:
        """Everything as plain values, for programs that read it."""
        return {
            "target": self.target,
            "version": self.version,
            "note": self.note,
            "good": self.is_good,
            "judged": self.judged,
            "right": self.right,
            "beside_others": self.beside_others,
            "not_judged": dict(self.not_judged),
            "findings": [finding.fields() for finding in self.findings],
            **verification_fields(self.comparison),
        }
