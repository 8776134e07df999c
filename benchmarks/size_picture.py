"""A picture of speed over size as SVG: the time for one element, one line a library, both axes logarithmic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from math import ceil, floor, log10, prod

from benchmarks.measure import OWN, Row

_LEFT, _TOP, _WIDTH, _HEIGHT, _BOTTOM, _RIGHT = 80, 40, 600, 300, 44, 60
_COLOURS = {
    "numpy": "#d1242f",
    "torch": "#bf8700",
    "onnxruntime": "#1a7f37",
    "openvino": "#8250df",
    "numexpr": "#0598bc",
    "jax": "#bc4c00",
}
_OTHER = "#6e7781"
_MARK, _LETTER = 42, 8
"""About how wide a line of the legend and a letter are."""

_STYLE = (
    "text{font:12px system-ui,sans-serif;fill:#57606a}.grid{stroke:#8c959f;stroke-opacity:.3}"
    "path{fill:none;stroke-width:1.5}.own{stroke:#3f51b5;stroke-width:3.5}.ownmark{fill:#3f51b5}"
    "@media(prefers-color-scheme:dark){text{fill:#9aa4b0}.own{stroke:#9fa8da}.ownmark{fill:#9fa8da}}"
)


def size_picture(rows: Sequence[Row]) -> str:
    """Draw the rows of two operands of one shape, sorted by size; the times are nanoseconds for an element."""
    lines = _lines(rows)
    points = [point for line in lines.values() for point in line]
    if not points:
        raise ValueError("no workload of some elements was measured")
    low_x, high_x = floor(log10(min(x for x, _y in points))), ceil(log10(max(x for x, _y in points)))
    low_y, high_y = floor(log10(min(y for _x, y in points))), ceil(log10(max(y for _x, y in points)))

    def place(x: float, y: float) -> tuple[float, float]:
        across = (log10(x) - low_x) / max(1, high_x - low_x)
        up = (log10(y) - low_y) / max(1, high_y - low_y)
        return _LEFT + _WIDTH * across, _TOP + _HEIGHT * (1 - up)

    width, height = _LEFT + _WIDTH + _RIGHT, _TOP + _HEIGHT + _BOTTOM
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img"><title>Time for one element over the number of elements, for each library</title>'
        f"<style>{_STYLE}</style>"
    ]
    for power in range(low_x, high_x + 1):
        x, bottom = place(10**power, 10**low_y)
        parts.append(f'<line class="grid" x1="{x:.1f}" y1="{_TOP}" x2="{x:.1f}" y2="{bottom:.1f}"/>')
        parts.append(f'<text x="{x:.1f}" y="{bottom + 18:.1f}" text-anchor="middle">{10**power:,}</text>')
    for power in range(low_y, high_y + 1):
        left, y = place(10**low_x, 10**power)
        parts.append(f'<line class="grid" x1="{left:.1f}" y1="{y:.1f}" x2="{_LEFT + _WIDTH}" y2="{y:.1f}"/>')
        parts.append(f'<text x="{left - 8:.1f}" y="{y + 4:.1f}" text-anchor="end">{10.0**power:g} ns</text>')
    parts.append(f'<text x="{_LEFT + _WIDTH / 2}" y="{height - 6}" text-anchor="middle">elements</text>')
    names = [*(name for name in lines if name != OWN), OWN]  # Its line is above the others.
    left = 10
    for name in reversed(names):
        parts.append(_legend(name, left))
        left += _MARK + _LETTER * len(name)
    parts += [_path(name, [place(*point) for point in lines[name]]) for name in names]
    return "\n".join([*parts, "</svg>"]) + "\n"


def _lines(rows: Sequence[Row]) -> Mapping[str, list[tuple[int, float]]]:
    """For each library its points: the number of elements and the nanoseconds for one."""
    found: dict[str, list[tuple[int, float]]] = {}
    for row in sorted(rows, key=lambda each: prod(each.workload.result_shape)):
        count = prod(row.workload.result_shape)
        for name in row.seconds.keys() & {OWN, *row.ratios}:
            found.setdefault(name, []).append((count, row.seconds[name] / count * 1e9))
    return {name: found[name] for name in sorted(found) if name != "memory limit"}


def _stroke(name: str) -> str:
    return 'class="own"' if name == OWN else f'stroke="{_COLOURS.get(name, _OTHER)}"'


def _legend(name: str, left: float) -> str:
    return f'<path {_stroke(name)} d="M{left:.0f} 18h18"/><text x="{left + 23:.0f}" y="22">{escape(name)}</text>'


def _path(name: str, points: Sequence[tuple[float, float]]) -> str:
    steps = "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
    mark = 'class="ownmark"' if name == OWN else f'fill="{_COLOURS.get(name, _OTHER)}"'
    dots = "".join(f'<circle {mark} cx="{x:.1f}" cy="{y:.1f}" r="{3 if name == OWN else 2}"/>' for x, y in points)
    return f'<path {_stroke(name)} d="M{steps}"/>{dots}'
