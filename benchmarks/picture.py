"""A picture of speed as SVG: for each large workload the throughput of eltwise and of the best other library."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from benchmarks.measure import LIMIT, Row

_LEFT, _RIGHT, _SCALE, _LINE, _TOP = 190, 110, 440, 20, 44
_STYLE = (
    "text{font:12px system-ui,sans-serif;fill:#57606a}.own{fill:#3f51b5}.peer{fill:#afb8c1}.axis{stroke:#8c959f}"
    "@media(prefers-color-scheme:dark){text{fill:#9aa4b0}.own{fill:#7986cb}.peer{fill:#57606a}}"
)


def picture(rows: Sequence[Row]) -> str:
    """Draw every large row that has a memory limit; the length of a bar is its share of that, the longest fits."""
    drawn = [row for row in rows if LIMIT in row.ratios and row.best_peer and row.workload.group == "large"]
    shares = [row.ratios[LIMIT] / min(1, row.ratios[row.best_peer]) for row in drawn]
    limit = _SCALE / max([1 / 0.9, *shares])
    width, height = _LEFT + _SCALE + _RIGHT, _TOP + _LINE * len(drawn) + 10
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img"><title>Throughput of eltwise and of the best other library, as a share of the memory limit'
        f"</title><style>{_STYLE}</style>",
        _legend(limit),
    ]
    parts += [_bars(row, _TOP + _LINE * number, limit) for number, row in enumerate(drawn)]
    parts.append(f'<path class="axis" d="M{_LEFT + limit:.0f} {_TOP - 4}V{height - 6}" stroke-dasharray="3 3"/></svg>')
    return "\n".join(parts) + "\n"


def _legend(limit: float) -> str:
    return (
        f'<rect class="own" x="{_LEFT}" y="10" width="12" height="10"/><text x="{_LEFT + 18}" y="19">eltwise</text>'
        f'<rect class="peer" x="{_LEFT + 90}" y="10" width="12" height="10"/>'
        f'<text x="{_LEFT + 108}" y="19">best other library</text>'
        f'<text x="{_LEFT + limit:.0f}" y="36" text-anchor="middle">memory limit</text>'
    )


def _bars(row: Row, top: int, limit: float) -> str:
    own = limit * row.ratios[LIMIT]
    peer = own / row.ratios[row.best_peer]
    what = row.workload.name.partition("(")[0].strip().replace("same shape", str(row.workload.element_type))
    name = f"{row.workload.expression}, {what}"
    return (
        f'<text x="{_LEFT - 8}" y="{top + 13}" text-anchor="end">{escape(name)}</text>'
        f'<rect class="own" x="{_LEFT}" y="{top + 1}" width="{own:.0f}" height="8"/>'
        f'<rect class="peer" x="{_LEFT}" y="{top + 10}" width="{peer:.0f}" height="7"/>'
        f'<text x="{_LEFT + _SCALE + 8}" y="{top + 13}">{escape(row.best_peer)}</text>'
    )
