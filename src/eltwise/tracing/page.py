"""The content of the page of a trace: the first node, a picture of the errors, and every node, without script."""

from __future__ import annotations

import math
from collections.abc import Sequence

from eltwise.report.base import fold, head, table, text
from eltwise.report.pictures import Bar, bars
from eltwise.tracing.records import COLUMNS, TracedNode

_MOST_BARS = 600
_WIDTH = 900
_DIGITS = 12
"""How many decimal digits below the largest error a bar can show."""


def content(
    findings: Sequence[str], facts: Sequence[tuple[str, str]], notes: Sequence[str], nodes: Sequence[TracedNode]
) -> str:
    """Make the content of the page of a report.

    Args:
        findings: the result in sentences.
        facts: what was traced, by name.
        notes: what else is to be said.
        nodes: all nodes, in order.
    """
    parts = [head("Two runs of a model", findings, facts)]
    parts += [f"<p>{text(note)}</p>" for note in notes]
    parts += ["<h2>Errors, node after node</h2>", _picture(nodes)]
    different = [node for node in nodes if node.status not in ("equal", "within_tolerance")]
    rest = [node for node in nodes if node.status in ("equal", "within_tolerance")]
    for title, group, is_open in (("Beyond the tolerance, or not run", different, True), ("Others", rest, False)):
        if group:
            shown = f"<div>{table((node.columns() for node in group), COLUMNS)}</div>"
            parts.append(fold(f"<b>{title}</b> {len(group):,}", shown, is_open=is_open))
    return "\n".join(parts)


def _picture(nodes: Sequence[TracedNode]) -> str:
    """Draw the error of what each node makes, by its digits; of many nodes, the worst of those beside each other."""
    step = max(1, -(-len(nodes) // _MOST_BARS))
    worst = [max(nodes[start : start + step], key=_size) for start in range(0, len(nodes), step)]
    largest = max(map(_size, worst), default=0.0)
    shown = [Bar(_part(_size(node), largest), f"{node}: {node.error_out}") for node in worst]
    return bars(shown, f"error of what each node makes, by its logarithm; the largest is {largest:.4g}", width=_WIDTH)


def _size(node: TracedNode) -> float:
    error = node.error_out
    return 0.0 if error is None or math.isnan(error) else min(error, 1e300)


def _part(error: float, largest: float) -> float:
    """How high a bar is, from 0 to 1."""
    return max(0.02, 1 + math.log10(error / largest) / _DIGITS) if error else 0.0
