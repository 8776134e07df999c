"""What a trace says of a node and of an output."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from eltwise.comparison.tensor_report import number
from eltwise.core.errors import counted, named
from eltwise.core.escaping import on_one_line
from eltwise.core.exit_codes import ExitCode
from eltwise.tracing.difference import Difference, largest

COLUMNS = ("node", "operator", "error in", "error out", "own error", "cause")
"""What ``TracedNode.columns`` gives."""

_FIELDS = (
    *("name", "op_type", "status", "error_in", "error_out", "own_error", "cause", "blame", "value", "max_ulp"),
    *("explanation", "message", "snr", "own_snr"),
)
"""What the JSON has of a node."""

STATUSES = ("equal", "within_tolerance", "differs", "failed", "not_compared")
"""What came of a node or an output: compared; not run by the tested runtime only; with nothing to compare it with."""

WITHIN = STATUSES[:2]
"""The statuses of what was compared and is within the tolerance."""

WRONG_THEMSELVES = ("own", "in_graph", "fused", "changed")
"""The blames of nodes whose difference does not come from what they read."""


@dataclass
class TracedNode:
    """The result of a trace for one node, which is completed as the trace goes on.

    Attributes:
        number: its number in the tested model, in topological order.
        name: its name, or the name of what it makes where it has none.
        op_type: its operator.
        out: the difference of its worst value; None if nothing of it was compared.
        value: the name of that value.
        error_in: the largest absolute difference of what it reads; None where it has no size.
        inputs_equal: whether all that it reads has the same bits in both runs.
        inputs_agree: whether all that it reads is within the tolerance.
        alone: the difference where it is run alone on what the reference reads; None if that was not needed.
        has_failed: whether the tested runtime did not run it, and the reference did.
        blame: of a node that differs, ``own`` where it is wrong alone too, ``inherited`` where it is not,
            ``in_graph`` where it is right alone, its inputs are equal and it is wrong in the model, ``fused`` where it
            and those before it are right one by one and wrong where only the last result is read, ``changed`` where
            the other model has another node in its place, and ``not_isolated`` where it could not be run without
            others, or its value need not be that of the other model.
        message: why it failed or could not be compared, or what its blame rests on.
        snr: the signal-to-noise ratio of what it makes, in decibels; None where that is within the tolerance, or it is
            not known.
        own_snr: that of the node run alone.
    """

    number: int
    name: str
    op_type: str
    out: Difference | None = None
    value: str = ""
    error_in: float | None = 0.0
    inputs_equal: bool = True
    inputs_agree: bool = True
    alone: Difference | None = None
    has_failed: bool = False
    blame: str | None = None
    message: str = ""
    snr: float | None = None
    own_snr: float | None = None

    def __str__(self) -> str:
        return on_one_line(f"{self.op_type} {self.name!r}")

    def to_dict(self) -> dict[str, object]:
        """Everything as plain values."""
        return {name: getattr(self, name) for name in _FIELDS}

    @property
    def status(self) -> str:
        """One of ``STATUSES``: ``failed`` or ``not_compared`` where there is no difference to speak of."""
        return "failed" if self.has_failed else "not_compared" if self.out is None else self.out.status

    @property
    def error_out(self) -> float | None:
        """The largest absolute difference of what it makes."""
        return None if self.out is None else self.out.error

    @property
    def own_error(self) -> float | None:
        """That of the node run alone; None where that was not needed."""
        return None if self.alone is None else self.alone.error

    @property
    def max_ulp(self) -> int | None:
        """The largest distance in units in the last place."""
        return None if self.out is None else self.out.max_ulp

    @property
    def _explained(self) -> Difference | None:
        return self.alone if self.blame == "own" else self.out

    @property
    def cause(self) -> str | None:
        """The cause of its own difference, or that of what it makes."""
        return None if self._explained is None else self._explained.cause

    @property
    def explanation(self) -> str:
        """The cause in words."""
        return "" if self._explained is None else self._explained.explanation

    @property
    def is_beyond(self) -> bool:
        """Whether what it makes is beyond the tolerance."""
        return self.out is not None and self.out.is_beyond

    @property
    def is_within(self) -> bool:
        """Whether what it makes was compared and is within the tolerance."""
        return self.status in WITHIN

    @property
    def is_wrong_itself(self) -> bool:
        """Whether its difference does not come from what it reads."""
        return self.blame in WRONG_THEMSELVES

    @property
    def standing(self) -> str:
        """Its status; of one that differs ``own`` or ``inherited``, whichever its difference is."""
        return ("own" if self.is_wrong_itself else "inherited") if self.status == "differs" else self.status

    def columns(self) -> tuple[str, ...]:
        """Its row of a table: its name, its operator, its errors and the cause."""
        cause = self.message or self.cause or ""
        if self.blame == "inherited":
            cause = "inherited"
        elif self.blame == "in_graph":
            cause = f"only in the model {cause}".rstrip()
        own_error = "within" if self.blame in ("inherited", "in_graph") else number(self.own_error)
        return (self.name, self.op_type, number(self.error_in), number(self.error_out), own_error, cause)


@dataclass(frozen=True)
class CauseGroup:
    """The nodes of one operator that are wrong themselves in one way.

    Attributes:
        op_type: their operator.
        cause: the cause of their own differences, else ``in_graph``, ``fused`` or ``changed``; None where none was
            looked for.
        nodes: their names, in order.
        own_error: the largest of their own errors, of those ``in_graph`` in the model; None where one has no size.
        explanation: the cause of the first in words.
    """

    op_type: str
    cause: str | None
    nodes: tuple[str, ...]
    own_error: float | None
    explanation: str

    def __str__(self) -> str:
        cause = "only in the model" if self.cause == "in_graph" else self.cause or "cause not looked for"
        by = "" if self.own_error is None else f", by {number(self.own_error)} at most"
        return on_one_line(f"{len(self.nodes)} {self.op_type}: {cause}{by}: {named(self.nodes, 3)}")

    def to_dict(self) -> dict[str, object]:
        """Everything as plain values."""
        return {**vars(self), "nodes": list(self.nodes)}


def _size(node: TracedNode) -> float | None:
    """How large the difference is that shows a node to be wrong itself."""
    return node.error_out if node.blame == "in_graph" or node.own_error is None else node.own_error


def grouped(nodes: Iterable[TracedNode]) -> list[CauseGroup]:
    """The nodes that are wrong themselves by operator and cause, in the order of the first of each."""
    groups: dict[tuple[str, str | None], list[TracedNode]] = {}
    for node in nodes:
        if node.is_wrong_itself:
            has_cause = node.blame == "own" or (node.blame == "in_graph" and node.cause)
            cause = node.cause if has_cause else node.blame
            groups.setdefault((node.op_type, cause), []).append(node)
    return [
        CauseGroup(
            op_type,
            cause,
            tuple(node.name for node in group),
            largest(_size(node) for node in group),
            group[0].explanation,
        )
        for (op_type, cause), group in groups.items()
    ]


Verdict = Literal["agree", "disagree", "not_established"]
"""Whether outputs were compared and are within the tolerance."""

VERDICTS: dict[Verdict, str] = {
    "agree": "the model computes the same",
    "disagree": "the model does not compute the same",
    "not_established": "whether the model computes the same is not established",
}
"""The verdicts in words."""

EXIT_CODES: dict[Verdict, ExitCode] = {
    "agree": ExitCode.GOOD,
    "disagree": ExitCode.FINDINGS,
    "not_established": ExitCode.NOT_ESTABLISHED,
}
"""What a verdict comes to."""


@dataclass(frozen=True)
class TracedOutput:
    """An output of the model that was run as a whole, compared with that of the reference.

    Attributes:
        name: its name.
        status: ``equal``, ``within_tolerance`` or ``differs``; ``failed`` where only the reference ran the
            model, and ``not_compared`` where there is nothing to compare it with.
        error: the largest absolute difference; None where it has no size or was not compared.
        relative: the same as a part of the largest value of the reference.
        message: why it was not compared, or how the arrays differ.
        differing: how many of its elements differ; None where it was not compared.
        beyond: how many of these are beyond the tolerance.
        total: how many elements it has.
        cause: the family of a fault that no node has by itself: another type than the model declares, or other results
            of a second run; empty for others.
    """

    name: str
    status: str
    error: float | None = None
    relative: float | None = None
    message: str = ""
    differing: int | None = None
    beyond: int | None = None
    total: int | None = None
    cause: str = ""

    @property
    def figures(self) -> str:
        """How many of its elements differ, and by how much."""
        if self.status == "equal":
            return "" if self.total is None else counted(self.total, "element")
        count = ""
        if self.total is not None and self.differing is not None:
            is_beyond = self.status == "differs" and self.beyond is not None
            what = " beyond the tolerance" if is_beyond else " differs" if self.differing == 1 else " differ"
            count = f"{(self.beyond if is_beyond else self.differing):,} of {counted(self.total, 'element')}{what}"
        error = "" if self.error is None else f"by {number(self.error)} at most"
        relative = "" if self.relative is None else f"{self.relative:.2g} of the largest value"
        return ", ".join(filter(None, (count, error, relative)))

    def __str__(self) -> str:
        figures = ", ".join(filter(None, (self.status.replace("_", " "), self.figures)))
        return on_one_line(f"output {self.name!r}: {figures}{f': {self.message}' if self.message else ''}")

    def to_dict(self) -> dict[str, object]:
        """Everything as plain values."""
        return dict(vars(self))
