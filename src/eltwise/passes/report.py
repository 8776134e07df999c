"""What a pass changed, node by node, and what the new model no longer states."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace

from eltwise.core.errors import counted
from eltwise.core.escaping import as_lines, on_one_line
from eltwise.core.exit_codes import ExitCode, exit_code
from eltwise.core.fields import plain
from eltwise.formats.reports import BaseReport


@dataclass(frozen=True)
class Comparison:
    """What was compared of a model before and after a pass, all of it equal.

    Attributes:
        runs: how often both were run.
        elements: how many elements of outputs were compared.
        refusal: why there was no run, where there was none.
        inputs: what they were run on.
        outcome: what is true of these elements.
    """

    runs: int
    elements: int
    refusal: str = ""
    inputs: str = "hard and random values"
    outcome: str = "have the same bits"

    @property
    def is_proof(self) -> bool:
        """Whether at least one element was compared."""
        return self.elements > 0

    def __str__(self) -> str:
        if self.is_proof:
            runs = counted(self.runs, "run")
            return f"{counted(self.elements, 'element')} of {runs} on {self.inputs} {self.outcome}"
        reason = self.refusal or f"all outputs of {counted(self.runs, 'run')} are empty"
        return f"nothing could be compared: {reason}"


@dataclass(frozen=True)
class Change:
    """What one node became.

    Attributes:
        node: the node's name, or the name of its output where it has none; empty for the model as a whole.
        before: its versioned name, for example ``Sub-6``; what was changed where it is not a node.
        after: the versioned names of the nodes that replace it, in order.
        reason: why, in one sentence without a full stop.
    """

    node: str
    before: str
    after: tuple[str, ...]
    reason: str = ""

    def __str__(self) -> str:
        site = f"{self.before} node {self.node!r}" if self.node else self.before
        became = f" became {', '.join(self.after)}" if self.after else ""
        return on_one_line(site + became + (f": {self.reason}" if self.reason else ""))

    def to_dict(self) -> dict[str, object]:
        """Everything as plain values."""
        return {**vars(self), "after": list(self.after)}


@dataclass(frozen=True, repr=False)
class PassReport(BaseReport[Change]):
    """What a pass did.

    Attributes:
        before: what the model was, for example ``ONNX opset 6``.
        after: what it is now, for example ``OpenVINO IR 11``.
        changes: the nodes that were replaced, in the model's order.
        dropped: metadata that is not preserved, a phrase each; none of it changes a result.
        assumptions: what the model before demands of sizes that only a run knows, and what a repair leaves as it is, a
            sentence each. They are no findings: on all inputs that the model before accepts the new one means the same.
        unchanged: whether nothing had to change, so that the model is the same byte for byte.
        comparison: what was compared before and after; None without verification.
    """

    json_kind = "changes"
    records_field = "changes"
    record_names = ("node",)

    before: str
    after: str
    changes: tuple[Change, ...] = ()
    dropped: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()
    unchanged: bool = False
    comparison: Comparison | None = None

    def __str__(self) -> str:
        done = "unchanged, byte for byte" if self.unchanged else counted(len(self.changes), "change")
        head = f"{self.before} -> {self.after}: {done}"
        lines = [head, *map(str, self.changes)]
        lines += [f"dropped: {sentence}" for sentence in self.dropped]
        lines += [f"assumed: {sentence}" for sentence in self.assumptions]
        lines += verification_lines(self.comparison)
        return as_lines(lines)

    @property
    def exit_code(self) -> ExitCode:
        """Not established where the models were to be compared, and nothing could be."""
        return exit_code(findings=False, is_established=self.comparison is None or self.is_verified)

    @property
    def is_verified(self) -> bool:
        """Whether both models were run and at least one element was compared."""
        return self.comparison is not None and self.comparison.is_proof

    @property
    def verified(self) -> str:
        """What was compared before and after, or why nothing was; empty without verification."""
        return "" if self.comparison is None else str(self.comparison)

    def to_dict(self) -> dict[str, object]:
        """Everything as plain values, for programs that read it."""
        return {**plain(replace(self, comparison=None)), **verification_fields(self.comparison)}


def verification_lines(comparison: Comparison | None) -> list[str]:
    """A comparison as the last line of a report; none without verification."""
    if comparison is None:
        return []
    return [f"{'verified' if comparison.is_proof else 'not verified'}: {comparison}"]


def verification_fields(comparison: Comparison | None) -> dict[str, object]:
    """The same as plain values."""
    return {
        "is_verified": comparison is not None and comparison.is_proof,
        "verified": "" if comparison is None else str(comparison),
        "compared": None if comparison is None else asdict(comparison),
    }
