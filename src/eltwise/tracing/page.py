"""The report of a trace as one HTML page without script: the first node, a picture of the errors, and every node."""

from __future__ import annotations

import math
from html import escape
from typing import TYPE_CHECKING

from eltwise.comparison.page import document, part

if TYPE_CHECKING:
    from eltwise.tracing.report import TracedNode, TraceReport

_MOST_LISTED = 5000
_MOST_BARS = 600
_HEIGHT, _WIDTH = 90, 900
_DIGITS = 12
"""How many decimal digits below the largest error a bar can show."""


def page(report: TraceReport) -> str:
    """Make the page of a report."""
    return document(f"{report.first or 'nothing'}: {report.runtime}", "Two runs of a model", _content(report))


def fragment(report: TraceReport) -> str:
    """Make what a notebook shows of a report."""
    return part(_content(report))


def _content(report: TraceReport) -> str:
    summary, _inputs, *found = report.summary()
    facts = [("tested", report.runtime), ("reference", report.against)]
    facts += [("inputs", report.inputs), ("tolerance", report.tolerance)]
    listed = "".join(f"<div><dt>{name}</dt><dd>{escape(text)}</dd></div>" for name, text in facts)
    parts = [f'<p class="lead">{escape(line)}.</p>' for line in found or [summary]]
    parts += [f'<dl class="facts">{listed}</dl>', *(f"<p>{escape(note)}</p>" for note in report.notes)]
    parts += ["<h2>Errors, node after node</h2>", _picture(report.nodes)]
    different = [node for node in report.nodes if node.status not in ("equal", "within_tolerance")]
    rest = [node for node in report.nodes if node.status in ("equal", "within_tolerance")]
    for title, nodes, is_open in (("Beyond the tolerance, or not run", different, True), ("Others", rest, False)):
        if nodes:
            summary = f"<summary><b>{title}</b> {len(nodes):,}</summary>"
            opened = " open" if is_open else ""
            parts.append(f'<details{opened}>{summary}<div class="inside">{_table(nodes)}</div></details>')
    return "\n".join(parts)


def _table(nodes: list[TracedNode]) -> str:
    head = "".join(f"<th>{name}</th>" for name in ("node", "operator", "error in", "error out", "own error", "cause"))
    rows = "".join(
        "<tr>" + "".join(f"<td>{escape(text)}</td>" for text in node.cells()) + "</tr>" for node in nodes[:_MOST_LISTED]
    )
    more = f"<p>... and {len(nodes) - _MOST_LISTED:,} more</p>" if len(nodes) > _MOST_LISTED else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{more}"


def _picture(nodes: tuple[TracedNode, ...]) -> str:
    """Draw the error of what each node makes, by its digits; of many nodes, the worst of those beside each other."""
    step = max(1, -(-len(nodes) // _MOST_BARS))
    groups = [nodes[start : start + step] for start in range(0, len(nodes), step)]
    worst = [max(group, key=_size) for group in groups]
    largest = max(map(_size, worst), default=0.0)
    width = _WIDTH / max(len(worst), 40)
    bars = []
    for number, node in enumerate(worst):
        height = _HEIGHT * _part(_size(node), largest)
        if height:
            place = f'x="{number * width:.1f}" y="{_HEIGHT - height:.1f}" width="{max(width - 1, 0.5):.1f}"'
            name = escape(f"{node}: {node.error_out}")
            bars.append(f'<rect {place} height="{height:.1f}"><title>{name}</title></rect>')
    box = f"0 0 {_WIDTH} {_HEIGHT}"
    caption = f"error of what each node makes, by its logarithm; the largest is {largest:.4g}"
    return (
        f'<svg class="histogram" viewBox="{box}" role="img" aria-label="{caption}">{"".join(bars)}</svg>'
        f'<p class="caption">{caption}</p>'
    )


def _size(node: TracedNode) -> float:
    error = node.error_out
    return 0.0 if error is None or math.isnan(error) else min(error, 1e300)


def _part(error: float, largest: float) -> float:
    """How high a bar is, from 0 to 1."""
    return max(0.02, 1 + math.log10(error / largest) / _DIGITS) if error else 0.0
