"""The report of a comparison as one HTML page without script, which asks the network for nothing."""

from __future__ import annotations

import math
from collections.abc import Iterable
from html import escape
from importlib.resources import files as package_files

from eltwise.comparison.heat_map import HeatMap
from eltwise.comparison.report import Element, Report, TensorReport, number
from eltwise.core.errors import on_one_line
from eltwise.report.page import policy

_MOST_OPEN = 3
_MOST_PICTURES = 400
_MOST_LISTED = 5000
_STATUS = {"differs": "different", "within_tolerance": "within tolerance", "equal": "equal"}
_HEIGHT, _WIDTH, _LABELS = 90, 300, 14


def page(report: Report) -> str:
    """Make the page of a report."""
    return document(report.summary, "Tensors compared", _content(report))


def document(title: str, heading: str, content: str) -> str:
    """Make a page of some content: without script, and with no address in it that a browser would ask."""
    style = _style()
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy(style)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{escape(title)}</title>\n"
        f'<link rel="icon" href="data:,">\n<style>{style}</style>\n</head>\n'
        f'<body class="eltwise">\n<main>\n<h1>{escape(heading)}</h1>\n{content}\n</main>\n</body>\n</html>\n'
    )


def fragment(report: Report) -> str:
    """Make what a notebook shows of a report."""
    return part(_content(report))


def part(content: str) -> str:
    """Make a part of a page, with its style."""
    return f'<div class="eltwise"><style>{_style()}</style>{content}</div>'


def _style() -> str:
    return (package_files("eltwise.comparison") / "assets" / "compare.css").read_text(encoding="utf-8")


def _content(report: Report) -> str:
    different = [each for each in report.by_badness if each.status != "equal"]
    equal = [each for each in report.tensors if each.status == "equal"]
    facts = [("A", report.sources[0]), ("B", report.sources[1])]
    facts += [("tolerance", str(one)) for one in report.tolerances] or [("tolerance", "none: every bit counts")]
    listed_facts = "".join(f"<div><dt>{name}</dt><dd>{escape(text)}</dd></div>" for name, text in facts)
    parts = [f'<p class="lead">{escape(report.summary)}.</p>', f'<dl class="facts">{listed_facts}</dl>']
    if different:
        parts.append("<h2>Differences, the worst first</h2>")
        parts += [_card(each, place) for place, each in enumerate(different[:_MOST_LISTED])]
        parts += _more(len(different))
    names = [each.label + (f": {each.explanation}" if each.explanation else "") for each in equal]
    for title, listed in (("Missing in B", report.missing), ("Extra in B", report.extra), ("Equal", names)):
        if listed:
            parts.append(f"<details><summary><b>{title}</b> {len(listed):,}</summary>{_list(listed)}</details>")
    if report.unreadable:
        parts.append(f"<h2>Could not be read</h2>{_list(report.unreadable)}")
    return "\n".join(parts)


def _list(texts: Iterable[str]) -> str:
    known = list(texts)
    items = "".join(f"<li>{escape(on_one_line(text))}</li>" for text in known[:_MOST_LISTED])
    return f"<ul>{items}</ul>{''.join(_more(len(known)))}"


def _more(count: int) -> list[str]:
    return [f'<p class="soft">... and {count - _MOST_LISTED:,} more</p>'] if count > _MOST_LISTED else []


def _card(each: TensorReport, place: int) -> str:
    kind = " / ".join(dict.fromkeys((each.dtype, each.other_dtype)))
    shape = " / ".join(dict.fromkeys(str(list(one)) for one in (each.shape, each.other_shape)))
    share = "" if each.cause_share in (None, 0.0, 1.0) else f" ({each.cause_share:.1%})"
    head = (
        f'<span class="status {each.status}">{_STATUS[each.status]}</span><b>{escape(each.label)}</b>'
        f'<span class="soft">{escape(kind)} {shape}</span><code>{escape(each.cause)}{share}</code>'
        f'<span class="why">{escape(each.explanation)}</span>'
    )
    parts = [_figures(each)]
    if each.heat_map is not None and place < _MOST_PICTURES:
        parts.append(_picture(each, each.heat_map))
    if any(each.histogram):
        parts.append(f"<div><h3>Distances in units of the last place</h3>{histogram(each.histogram)}</div>")
    parts += [_element(title, one) for title, one in (("Worst", each.worst), ("First", each.first)) if one is not None]
    opened = " open" if place < _MOST_OPEN else ""
    return f'<details{opened}><summary>{head}</summary><div class="inside">{"".join(parts)}</div></details>'


def _figures(each: TensorReport) -> str:
    if each.differing is None:
        return f'<p class="soft">{each.total:,} elements in A; their differences are not measured.</p>'
    rows = [("differing", f"{each.differing:,} of {each.total:,} ({_percent(each.differing, each.total)})")]
    if each.tolerance:
        rows.append(("tolerance", f"{each.tolerance}: {each.forgiven:,} forgiven, {each.beyond_tolerance:,} beyond"))
    rows += [
        ("absolute", _largest(each.max_abs, each.mean_abs)),
        ("relative", _largest(each.max_rel, each.mean_rel)),
        ("in ULP", f"largest {number(each.max_ulp)}"),
    ]
    odd = [("NaN", each.nan_mismatches), ("infinities", each.infinity_mismatches)]
    odd += [("zero signs", each.zero_sign_mismatches)]
    rows += [(f"{name} not matched", f"{count:,}") for name, count in odd if count]
    rows += [("where", each.where)] if each.where else []
    details = {name: value for name, value in each.explanation_details.items() if name != "where"}
    rows += [(name.replace("_", " "), str(value)[:200]) for name, value in details.items()]
    return f"<div><h3>Figures</h3>{_table(rows)}</div>"


def _largest(most: float | None, mean: float | None) -> str:
    name = "mean" if most is None or math.isfinite(most) else "mean of the finite ones"
    return f"largest {number(most)}, {name} {number(mean)}"


def _percent(count: int, total: int) -> str:
    share = count / max(total, 1)
    return f"{share:.3%}" if share < 0.1 else f"{share:.1%}"


def _table(rows: Iterable[tuple[str, str]]) -> str:
    lines = (f"<tr><th>{escape(name)}</th><td>{escape(text)}</td></tr>" for name, text in rows)
    return f"<table>{''.join(lines)}</table>"


def _picture(each: TensorReport, heat: HeatMap) -> str:
    down, right = heat.axes
    is_line = down < 0
    what = f"axis {right} to the right" if is_line else f"axis {down} downwards, axis {right} to the right"
    if is_line and len([size for size in each.shape if size > 1]) != 1:
        what = "all elements"
    seen = "" if heat.seen == each.differing else f", from {heat.seen:,} of the elements that differ"
    low, high = map(number, heat.limits)
    caption = f"{what}; the largest difference of each cell, from {low} to {high}, by its logarithm{seen}"
    return (
        f'<div><h3>Where</h3><img class="map{" line" if is_line else ""}" src="{heat.url()}" '
        f'alt="{escape(caption)}"><p class="caption">{escape(caption)}</p></div>'
    )


def histogram(counts: tuple[int, ...]) -> str:
    """Draw how many elements have a distance of 0, 1, 2 to 3, and so on, each bar by the digits of its count.

    >>> histogram((0, 3)).count("<rect")
    1
    """
    width = _WIDTH / max(len(counts), 8)
    most = max(len(str(count)) for count in counts)
    parts = []
    for bucket, count in enumerate(counts):
        name = f"{_distance(bucket)} ULP: {count:,}"
        if count:
            height = _HEIGHT * (len(str(count)) - 1 + int(str(count)[0]) / 10) / most
            size = f'width="{width - 2:.1f}" height="{height:.1f}"'
            place = f'x="{bucket * width + 1:.1f}" y="{_HEIGHT - height:.1f}" {size}'
            parts.append(f"<rect {place}><title>{name}</title></rect>")
        if bucket % max(len(counts) // 6, 1) == 0:
            parts.append(f'<text x="{bucket * width + 1:.1f}" y="{_HEIGHT + 11}">{_distance(bucket)}</text>')
    label = ", ".join(f"{_distance(bucket)}: {count:,}" for bucket, count in enumerate(counts) if count)
    box = f"0 0 {_WIDTH + 40} {_HEIGHT + _LABELS}"
    return (
        f'<svg class="histogram" viewBox="{box}" role="img" aria-label="Histogram: {label}">{"".join(parts)}</svg>'
        f'<p class="caption">number of elements, by its logarithm; at most {max(counts):,}</p>'
    )


def _distance(bucket: int) -> str:
    if bucket < 2:
        return str(bucket)
    return f"{1 << (bucket - 1)}+" if bucket <= 10 else f"2^{bucket - 1}+"


def _element(title: str, one: Element) -> str:
    rows = [("index", str(list(one.index)))]
    for side, value, bits in (("A", one.a, one.a_bits), ("B", one.b, one.b_bits)):
        rows.append((side, f"{value:.9g}  {bits}" if isinstance(value, float) else f"{value}  {bits}"))
    return f'<div class="number"><h3>{title} place</h3>{_table(rows)}</div>'
