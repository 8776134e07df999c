"""The content of the page of a trace: outputs and causes, a picture of the errors, and the nodes with a filter."""

from __future__ import annotations

import math
from collections.abc import Sequence

from eltwise.comparison.tensor_report import number
from eltwise.core.errors import named
from eltwise.report.base import filters, head, section, table, text
from eltwise.report.pictures import Bar, bars
from eltwise.tracing.records import COLUMNS, CauseGroup, TracedNode, TracedOutput

_MOST_BARS = 600
_WIDTH = 900
_DIGITS = 12
"""How many decimal digits below the largest error a bar can show."""

_KINDS = {
    "own": "wrong by itself",
    "inherited": "inherits what is wrong",
    "within_tolerance": "within the tolerance",
    "equal": "equal",
    "failed": "failed",
    "not_compared": "not compared",
}
"""The classes of nodes, with their names."""

_OUTPUTS = ("output", "result", "elements and errors", "remark")
_CAUSES = ("cause", "operator", "nodes", "largest own error", "first nodes", "explanation")


def content(
    title: str,
    findings: Sequence[str],
    facts: Sequence[tuple[str, str]],
    outputs: Sequence[TracedOutput],
    causes: Sequence[CauseGroup],
    notes: Sequence[str],
    nodes: Sequence[TracedNode],
) -> str:
    """Make the content of the page of a report."""
    parts = [head(title, findings, facts), *(f"<p>{text(note)}</p>" for note in notes)]
    rows = ((one.name, one.status.replace("_", " "), one.figures, one.message) for one in outputs)
    parts.append(section("Outputs", len(outputs), table(rows, _OUTPUTS), is_open=True))
    if causes:
        parts.append(section("Causes", len(causes), table(map(_cause_row, causes), _CAUSES), is_open=True))
    parts += ["<h2>Errors, node after node</h2>", _picture(nodes)]
    present = {node.standing for node in nodes}
    parts.append(filters({kind: name for kind, name in _KINDS.items() if kind in present}))
    different, rest = ([node for node in nodes if node.is_within is is_within] for is_within in (False, True))
    for name, group, is_open in (("Beyond the tolerance, or not compared", different, True), ("Others", rest, False)):
        if group:
            shown = table((node.columns() for node in group), COLUMNS, (node.standing for node in group))
            parts.append(section(name, len(group), shown, is_open=is_open))
    return "\n".join(parts)


def _cause_row(cause: CauseGroup) -> tuple[object, ...]:
    name = cause.cause or "not looked for"
    return (name, cause.op_type, len(cause.nodes), number(cause.own_error), named(cause.nodes), cause.explanation)


def _picture(nodes: Sequence[TracedNode]) -> str:
    """Draw the error of what each node makes, by its digits; of many nodes, the worst of those beside each other."""
    step = max(1, -(-len(nodes) // _MOST_BARS))
    worst = [max(nodes[start : start + step], key=_rank) for start in range(0, len(nodes), step)]
    largest = max(map(_size, worst), default=0.0)
    kinds = [node.standing if node.status == "differs" else "other" for node in worst]
    shown = [
        Bar(_part(_size(node), largest), f"{node}: {number(node.error_out)}", kind=kind)
        for node, kind in zip(worst, kinds, strict=True)
    ]
    keys = (("own", _KINDS["own"]), ("inherited", _KINDS["inherited"]), ("other", _KINDS["within_tolerance"]))
    legend = " ".join(f'<span class="key {kind}"></span> {name}' for kind, name in keys)
    caption = f"error of what each node makes, by its logarithm; the largest is {number(largest)}"
    return f'{bars(shown, caption, width=_WIDTH)}<p class="caption">{legend}</p>'


def _rank(node: TracedNode) -> tuple[bool, float]:
    return node.standing == "own", _size(node)


def _size(node: TracedNode) -> float:
    error = node.error_out
    return 0.0 if error is None or math.isnan(error) else min(error, 1e300)


def _part(error: float, largest: float) -> float:
    """How high a bar is, from 0 to 1."""
    return max(0.02, 1 + math.log10(error / largest) / _DIGITS) if error else 0.0
