"""What a conversion did, node by node, and what the new model no longer says."""

from __future__ import annotations

from dataclasses import dataclass

NOTHING_COMPARED = "nothing could be compared"
"""How the sentence on a comparison begins that compared nothing."""


@dataclass(frozen=True)
class Change:
    """What one node became.

    Attributes:
        node: the node's name, or the name of what it makes where it has none; empty for the model as a whole.
        before: its versioned name, for example ``Sub-6``; what was changed where it is no node.
        after: the versioned names of the nodes that stand in its place, in their order.
        reason: why, in one sentence without a full stop.
    """

    node: str
    before: str
    after: tuple[str, ...]
    reason: str = ""

    def __str__(self) -> str:
        place = f"{self.before} node {self.node!r}" if self.node else self.before
        became = f" became {', '.join(self.after)}" if self.after else ""
        return f"{place}{became}: {self.reason}" if self.reason else f"{place}{became}"


@dataclass(frozen=True)
class Report:
    """What a conversion did.

    Attributes:
        before: what the model was, for example ``ONNX opset 6``.
        after: what it is now, for example ``OpenVINO IR 11``.
        changes: the nodes that are other nodes now, in the model's order.
        dropped: what the model said before and cannot say now, a sentence each; none of it changes a result.
        assumptions: what must hold at run time for the new model to mean the same, where nothing could prove it, a
            sentence each.
        unchanged: whether the model was right already, so that it came back byte for byte.
        verified: what was compared before and after, or why nothing was; empty where that was not asked for.
    """

    before: str
    after: str
    changes: tuple[Change, ...] = ()
    dropped: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()
    unchanged: bool = False
    verified: str = ""

    def __str__(self) -> str:
        done = "unchanged, byte for byte" if self.unchanged else counted(len(self.changes), "change")
        head = f"{self.before} -> {self.after}: {done}"
        lines = [head, *map(str, self.changes)]
        lines += [f"dropped: {sentence}" for sentence in self.dropped]
        lines += [f"assumed: {sentence}" for sentence in self.assumptions]
        lines += [f"{'verified' if self.is_verified else 'not verified'}: {self.verified}"] if self.verified else []
        return "\n".join(lines)

    @property
    def is_verified(self) -> bool:
        """Whether both models were run and at least one element was compared."""
        return bool(self.verified) and not self.verified.startswith(NOTHING_COMPARED)

    def fields(self) -> dict[str, object]:
        """Everything as plain values, for programs that read it."""
        return {
            "before": self.before,
            "after": self.after,
            "unchanged": self.unchanged,
            "changes": [
                {"node": change.node, "before": change.before, "after": list(change.after), "reason": change.reason}
                for change in self.changes
            ],
            "dropped": list(self.dropped),
            "assumptions": list(self.assumptions),
            "is_verified": self.is_verified,
            "verified": self.verified,
        }


def counted(count: int, thing: str) -> str:
    """A number of things in words.

    >>> counted(0, "change"), counted(1, "node"), counted(2, "layer")
    ('no changes', '1 node', '2 layers')
    """
    return f"{count or 'no'} {thing}{'' if count == 1 else 's'}"
