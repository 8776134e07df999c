"""The roofline as SVG: bytes moved along the x axis, gigabytes a second up the y axis, the measured limit as a line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, log10
from statistics import median

from eltwise.bench.results import OWN, Report, Row

_UNITS = ("B", "kB", "MB", "GB", "TB")
_LEFT, _RIGHT, _TOP, _BOTTOM = 46, 16, 26, 46
_LABEL_WIDTH = 64.0


@dataclass(frozen=True)
class Numbered:
    """A row with its number in the table."""

    number: int
    row: Row


@dataclass(frozen=True)
class Frame:
    """Where values lie in a picture of so many units; the x axis is logarithmic, the y axis where it says so.

    Attributes:
        width: of the whole picture.
        height: of the whole picture.
        x: the least and the greatest number of bytes.
        y: the least and the greatest rate.
        is_logarithmic: whether the y axis is.
    """

    width: int
    height: int
    x: tuple[float, float]
    y: tuple[float, float]
    is_logarithmic: bool

    @property
    def bottom(self) -> float:
        """The place of the x axis."""
        return self.height - _BOTTOM

    @property
    def end(self) -> float:
        """The place where the x axis ends."""
        return self.width - _RIGHT

    def place_x(self, value: float) -> float:
        """The place of a number of bytes."""
        low, high = (log10(end) for end in self.x)
        return _LEFT + (log10(value) - low) / (high - low) * (self.end - _LEFT)

    def place_y(self, value: float) -> float:
        """The place of a rate."""
        low, high = self.y
        part = (log10(value) - log10(low)) / (log10(high) - log10(low)) if self.is_logarithmic else value / high
        return self.bottom - part * (self.bottom - _TOP)


def pictures(report: Report, width: int) -> str:
    """Draw two pictures of a width in pixels: all sizes, and side by side the workloads that no cache holds."""
    quoted = [Numbered(number, row) for number, row in enumerate(report.rows, 1) if row.own_seconds]
    if not quoted:
        return "<p>There is nothing to draw.</p>"
    beyond = [item for item in quoted if not item.row.in_cache]
    drawn = [_all_sizes(quoted, report, width)]
    if beyond:
        drawn.append(_beyond_caches(beyond, width))
    return "\n".join(drawn)


def _all_sizes(items: Sequence[Numbered], report: Report, width: int) -> str:
    rates = [rate for item in items for rate in _rates(item.row)]
    sizes = [item.row.workload.moved_bytes for item in items]
    frame = Frame(
        width,
        300,
        (10 ** floor(log10(min(sizes))), 10 ** ceil(log10(max(sizes) + 1))),
        (10 ** floor(log10(min(rates))), 10 ** ceil(log10(max(rates)))),
        is_logarithmic=True,
    )
    border = 2 * report.cache_bytes
    shade = ""
    if frame.x[0] < border < frame.x[1]:
        at = frame.place_x(border)
        shade = (
            f'<rect class="caches" x="{_LEFT}" y="{_TOP}" width="{at - _LEFT:.1f}" height="{frame.bottom - _TOP:.1f}"/>'
            f'<text class="small" x="{_LEFT + 6}" y="{frame.bottom - 8:.1f}">the caches hold it</text>'
        )
    marks = [_mark(item, frame, frame.place_x(item.row.workload.moved_bytes)) for item in items]
    return _svg("Every workload by size", frame, [shade, _axes(frame), _limit_line(items, frame), *marks])


def _beyond_caches(items: Sequence[Numbered], width: int) -> str:
    """The large workloads; those of about one size stand side by side, with their numbers below."""
    rates = [rate for item in items for rate in _rates(item.row)]
    sizes = [item.row.workload.moved_bytes for item in items]
    # Even steps: a logarithmic axis over one decade would pile the workloads of one size up in one place.
    ordered = sorted(items, key=lambda item: (item.row.workload.moved_bytes, item.number))
    frame = Frame(width, 320, (min(sizes), max(sizes) + 1), (0, ceil(max(rates) / 10) * 10), is_logarithmic=False)
    step = (frame.end - _LEFT) / len(ordered)
    parts = [_rate_axis(frame), _limit_line(items, frame)]
    labelled = -_LABEL_WIDTH
    for index, item in enumerate(ordered):
        at = _LEFT + step * (index + 0.5)
        down = frame.bottom + 12 + (index % 2) * 10
        parts.append(_mark(item, frame, at))
        parts.append(f'<text class="number" x="{at:.1f}" y="{down:.1f}">{item.number}</text>')
        if at - labelled >= _LABEL_WIDTH and at + _LABEL_WIDTH / 2 <= frame.width:
            size = _bytes_text(item.row.workload.moved_bytes)
            parts.append(f'<text class="middle" x="{at:.1f}" y="{frame.bottom + 38:.1f}">{size}</text>')
            labelled = at
    return _svg("Beyond the caches, from the smallest to the largest, with the numbers of the table", frame, parts)


def _rates(row: Row) -> list[float]:
    found = [
        row.gigabytes_per_second(OWN),
        row.gigabytes_per_second(row.best_peer),
        row.limit_gigabytes_per_second,
    ]
    return [rate for rate in found if rate]


def _svg(title: str, frame: Frame, parts: Sequence[str]) -> str:
    size = f'viewBox="0 0 {frame.width} {frame.height}" width="{frame.width}" height="{frame.height}"'
    name = escape(title)
    return (
        f'<figure><figcaption>{name}</figcaption><svg {size} role="img" aria-label="{name}">\n'
        + "\n".join(part for part in parts if part)
        + "\n</svg></figure>"
    )


def _axes(frame: Frame) -> str:
    parts = [_rate_axis(frame)]
    low, high = (round(log10(end)) for end in frame.x)
    every = 1 if (frame.end - _LEFT) / (high - low) > 44 else 2
    for power in range(low, high + 1, every):
        at = frame.place_x(10**power)
        parts.append(f'<line class="grid" x1="{at:.1f}" y1="{_TOP}" x2="{at:.1f}" y2="{frame.bottom:.1f}"/>')
        parts.append(f'<text class="middle" x="{at:.1f}" y="{frame.bottom + 16:.1f}">{_bytes_text(10**power)}</text>')
    parts.append(f'<text class="end" x="{frame.end:.1f}" y="{frame.bottom + 34:.1f}">bytes moved</text>')
    return "\n".join(parts)


def _rate_axis(frame: Frame) -> str:
    parts = [f'<text class="small" x="4" y="{_TOP - 12}">GB/s</text>']
    for value in _ticks(frame):
        at = frame.place_y(value)
        parts.append(f'<line class="grid" x1="{_LEFT}" y1="{at:.1f}" x2="{frame.end:.1f}" y2="{at:.1f}"/>')
        parts.append(f'<text class="end" x="{_LEFT - 6}" y="{at + 4:.1f}">{value:g}</text>')
    return "\n".join(parts)


def _ticks(frame: Frame) -> list[float]:
    low, high = frame.y
    if frame.is_logarithmic:
        return [10.0**power for power in range(round(log10(low)), round(log10(high)) + 1)]
    step = 10 if high <= 60 else 20 if high <= 150 else 50
    return [float(value) for value in range(0, int(high) + 1, step)]


def _limit_line(items: Sequence[Numbered], frame: Frame) -> str:
    limits = [rate for item in items if (rate := item.row.limit_gigabytes_per_second)]
    if not limits:
        return ""
    middle = median(limits)
    at = frame.place_y(middle)
    return (
        f'<line class="limit" x1="{_LEFT}" y1="{at:.1f}" x2="{frame.end:.1f}" y2="{at:.1f}"/>'
        f'<text class="end limit-text" x="{frame.end:.1f}" y="{_TOP - 12}">'
        f"memory limit {middle:.0f} GB/s (median)</text>"
    )


def _mark(item: Numbered, frame: Frame, at: float) -> str:
    row = item.row
    own, peer = row.gigabytes_per_second(OWN), row.gigabytes_per_second(row.best_peer)
    assert own is not None
    own_at = frame.place_y(own)
    parts = [f"<title>{escape(_told(item))}</title>"]
    if peer is not None:
        peer_at = frame.place_y(peer)
        parts.append(f'<line class="stem" x1="{at:.1f}" y1="{own_at:.1f}" x2="{at:.1f}" y2="{peer_at:.1f}"/>')
        parts.append(f'<rect class="peer" x="{at - 3.5:.1f}" y="{peer_at - 3.5:.1f}" width="7" height="7"/>')
    limit = row.limit_gigabytes_per_second
    if limit is not None:
        limit_at = frame.place_y(limit)
        parts.append(
            f'<line class="tick" x1="{at - 5:.1f}" y1="{limit_at:.1f}" x2="{at + 5:.1f}" y2="{limit_at:.1f}"/>'
        )
    parts.append(f'<circle class="own" cx="{at:.1f}" cy="{own_at:.1f}" r="4"/>')
    return f"<g>{''.join(parts)}</g>"


def _told(item: Numbered) -> str:
    row = item.row
    text = f"{item.number}: {row.workload.name}, {row.workload.element_type}: {row.gigabytes_per_second(OWN):.3g} GB/s"
    peer = row.gigabytes_per_second(row.best_peer)
    return text if peer is None else f"{text}; {row.best_peer} {peer:.3g} GB/s"


def _bytes_text(count: float) -> str:
    """Write a number of bytes in the largest unit that leaves one digit before the point.

    >>> _bytes_text(1000), _bytes_text(251_658_240)
    ('1 kB', '252 MB')
    """
    power = min(int(log10(count)) // 3, len(_UNITS) - 1)
    return f"{count / 1000**power:.0f} {_UNITS[power]}"
