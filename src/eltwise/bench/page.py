"""A measurement as one HTML page that needs nothing else: the pictures, the table, every time, and what was run."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from string import Template

from eltwise.bench.results import OWN, Report, Row
from eltwise.bench.roofline import pictures
from eltwise.bench.texts import COLUMNS, cells, milliseconds, notes, summary_lines

_WIDTHS = (1200, 640, 320)
"""The pictures are drawn for three widths of the window, so that their letters keep their size."""

_TEXT_COLUMNS = ("#", "workload", "type", "best peer", "notes")

_STYLE = """
:root { color-scheme: light dark; --back: #fbfbfa; --text: #1d1f21; --soft: #5d6368; --line: #dcdfe2; --own: #0b62c4;
  --peer: #b3560a; --limit: #8a1c1c; --shade: #eef1f4; --bad: #9a1b1b; }
@media (prefers-color-scheme: dark) { :root { --back: #15181b; --text: #e6e8ea; --soft: #a2a9b0; --line: #343a40;
  --own: #6cb0ff; --peer: #f0a35e; --limit: #ff8f8f; --shade: #1e2328; --bad: #ff9b9b; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.25rem clamp(0.75rem, 3vw, 2.5rem) 3rem; max-width: 1240px; background: var(--back);
  color: var(--text); font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.5rem; margin: 0 0 0.25rem; } h2 { font-size: 1.1rem; margin: 2rem 0 0.5rem; }
p { margin: 0.25rem 0; max-width: 80ch; } .soft { color: var(--soft); } .bad { color: var(--bad); }
figure { margin: 0.75rem 0; } figcaption { font-weight: 600; margin-bottom: 0.25rem; }
svg { display: block; max-width: 100%; height: auto; } svg text { fill: var(--soft); font: 11px system-ui, sans-serif; }
svg .end { text-anchor: end; } svg .middle, svg .number { text-anchor: middle; } svg .number { font-size: 9px; }
svg .limit-text { fill: var(--limit); }
.grid { stroke: var(--line); } .caches { fill: var(--shade); } .stem { stroke: var(--soft); stroke-width: 1; }
.limit { stroke: var(--limit); stroke-width: 1.5; stroke-dasharray: 6 4; }
.tick { stroke: var(--limit); stroke-width: 2; }
.own { fill: var(--own); } .peer { fill: var(--back); stroke: var(--peer); stroke-width: 1.75; }
.width640, .width320 { display: none; }
@media (max-width: 1239px) { .width1200, .width320 { display: none; } .width640 { display: block; } }
@media (max-width: 699px) { .width1200, .width640 { display: none; } .width320 { display: block; } }
.legend span { margin-right: 1.25rem; white-space: nowrap; }
.legend svg { display: inline-block; vertical-align: middle; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: 0.3rem 0.75rem 0.3rem 0; vertical-align: top;
  border-bottom: 1px solid var(--line); }
th { font-weight: 600; white-space: nowrap; } .figure { text-align: right; white-space: nowrap; }
.every td, .every th { white-space: nowrap; } summary { cursor: pointer; font-weight: 600; margin-top: 2rem; }
@media (max-width: 760px) {
  .cards thead { display: none; } .cards tr { display: grid; grid-template-columns: auto 1fr; padding: 0.5rem 0;
    border-bottom: 1px solid var(--line); }
  .cards td { display: flex; justify-content: space-between; gap: 1rem; border: 0; padding: 0.1rem 0;
    text-align: right; }
  .cards td::before { content: attr(data-label); color: var(--soft); text-align: left; white-space: nowrap; }
  .cards td:nth-child(n+3) { grid-column: 1 / 3; }
  .cards td:nth-child(-n+2) { font-weight: 600; padding-right: 0.5rem; }
  .cards td:nth-child(-n+2)::before { content: none; }
  .cards td:empty { display: none; }
}
"""

_PAGE = Template("""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>eltwise bench</title>
<style>$style</style>
</head>
<body>
<h1>eltwise bench</h1>
$summary
<h2>Roofline</h2>
<p class="legend">$legend</p>
$pictures
<h2>Against the best peer and the memory limit</h2>
<table class="cards">$table</table>
$first_call
<details><summary>Every time in milliseconds</summary>
<div class="scroll"><table class="every">$every</table></div></details>
<h2>What was run</h2>
$versions
</body>
</html>
""")

_LEGEND = (
    ('<circle class="own" cx="7" cy="7" r="4"/>', "eltwise"),
    ('<rect class="peer" x="3.5" y="3.5" width="7" height="7"/>', "the best peer"),
    ('<line class="tick" x1="2" y1="7" x2="12" y2="7"/>', "the memory limit of the workload"),
)


def page(report: Report) -> str:
    """Write the page. Every text that comes from outside is escaped."""
    legend = "".join(
        f'<span><svg width="14" height="14" aria-hidden="true">{mark}</svg> {escape(text)}</span>'
        for mark, text in _LEGEND
    )
    first_lines, last_line = summary_lines(report)
    return _PAGE.substitute(
        style=_STYLE,
        summary="\n".join(f'<p class="soft">{escape(line)}</p>' for line in first_lines),
        legend=legend,
        pictures="\n".join(f'<div class="width{width}">{pictures(report, width)}</div>' for width in _WIDTHS),
        table=_table(report.rows),
        first_call=f"<p>{escape(last_line)}</p>" if last_line else "",
        every=_every_time(report),
        versions=_versions(report),
    )


def _table(rows: Sequence[Row]) -> str:
    names = ("#", *COLUMNS, "notes")
    head = "".join(f"<th{_figure(name)}>{escape(name)}</th>" for name in names)
    lines = [f"<thead><tr>{head}</tr></thead>", "<tbody>"]
    for number, row in enumerate(rows, 1):
        values = cells(row)
        made = [f'<td data-label="#">{number}</td>']
        for name, value in zip(COLUMNS, values, strict=True):
            made.append(f'<td data-label="{escape(name)}"{_figure(name)}>{escape(value)}</td>')
        made.append(f'<td data-label="notes" class="bad">{escape(notes(row))}</td>')
        lines.append(f"<tr>{''.join(made)}</tr>")
    return "\n".join([*lines, "</tbody>"])


def _figure(column: str) -> str:
    """Numbers stand at the right of their column."""
    return "" if column in _TEXT_COLUMNS else ' class="figure"'


def _every_time(report: Report) -> str:
    names = list(dict.fromkeys(name for row in report.rows for name in (*row.seconds, *row.remarks)))
    head = "".join(f"<th>{escape(name)}</th>" for name in ("#", "workload", "type", *names, "memory limit"))
    lines = [f"<thead><tr>{head}</tr></thead>", "<tbody>"]
    for number, row in enumerate(report.rows, 1):
        made = [
            f"<td>{number}</td><td>{escape(row.workload.name)}</td><td>{escape(str(row.workload.element_type))}</td>"
        ]
        made += [f'<td class="figure"{_reason(row, name)}>{_entry(row, name)}</td>' for name in names]
        made.append(f'<td class="figure">{milliseconds(row.limit_seconds)}</td>')
        lines.append(f"<tr>{''.join(made)}</tr>")
    return "\n".join([*lines, "</tbody>"])


def _entry(row: Row, name: str) -> str:
    if name in row.remarks:
        return escape(row.remarks[name].partition(":")[0])
    return milliseconds(row.seconds.get(name))


def _reason(row: Row, name: str) -> str:
    return f' title="{escape(row.remarks[name])}"' if name in row.remarks else ""


def _versions(report: Report) -> str:
    texts = [f"{name} {version}" for name, version in report.versions.items()]
    lines = [f"<p>{escape(', '.join(texts))}.</p>"]
    if report.missing:
        lines.append(f'<p class="soft">Not installed: {escape(", ".join(report.missing))}.</p>')
    lines.append(
        '<p class="soft">Medians of runs that took turns in one process, in a new order each round; a ratio is the '
        "median of the ratios within each round, and so is the share of the memory limit. "
        f"{escape(OWN)} is quoted only where every bit of the result is right, and so is every peer.</p>"
    )
    return "\n".join(lines)
