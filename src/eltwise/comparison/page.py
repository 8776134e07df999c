"""The content of the page of a comparison: all tensors, the worst first, as HTML without script."""

from __future__ import annotations

import math
from collections.abc import Sequence

from eltwise.comparison.heat_map import HeatMap
from eltwise.comparison.roll_up import COLUMNS, PatternReport
from eltwise.comparison.tensor_report import STATUS_WORDS, Element, TensorReport, number
from eltwise.core.escaping import shortened
from eltwise.core.shares import percent
from eltwise.report.base import MOST_LISTED, filters, fold, head, items, more, section, table, text
from eltwise.report.pictures import Bar, bars

_MOST_OPEN = 3
_MOST_PICTURES = 400
_LABELLED = 5


def content(
    headline: Sequence[str],
    facts: Sequence[tuple[str, str]],
    patterns: Sequence[PatternReport],
    tensors: Sequence[TensorReport],
    names: Sequence[tuple[str, Sequence[str]]],
) -> str:
    """Make the content of a page.

    Args:
        headline: the result in some lines.
        facts: what was compared, and how.
        patterns: the tensors of all layers as one, in order.
        tensors: the pairs of tensors, the worst first.
        names: lists of what else there is to say, each with its title; the first two are shown open.
    """
    different = [each for each in tensors if each.status != "equal"]
    equal = [
        f"{each.label}: {each.explanation}" if each.explanation else each.label
        for each in tensors
        if each.status == "equal"
    ]
    parts = [head("Tensors compared", headline, facts)]
    if len(patterns) < len(tensors) and different:
        rows = table((each.cells for each in patterns), COLUMNS)
        parts.append(f'<h2>By the pattern of names</h2><div class="inside">{rows}</div>')
    if different:
        parts.append("<h2>Differences, the worst first</h2>")
        parts.append(filters({status: STATUS_WORDS[status] for status in sorted({each.status for each in different})}))
        parts += [_card(each, number) for number, each in enumerate(different[:MOST_LISTED])]
        parts.append(more(len(different)))
    for title, listed in (*names, ("Equal", equal)):
        if listed:
            is_open = title in [first for first, _listed in names[:2]]
            parts.append(section(title, len(listed), items(listed), is_open=is_open))
    return "\n".join(parts)


def _card(each: TensorReport, number: int) -> str:
    kind = " / ".join(dict.fromkeys((each.dtype, each.other_dtype)))
    shape = " / ".join(dict.fromkeys(str(list(one)) for one in (each.shape, each.other_shape)))
    share = "" if each.cause_share in (None, 0.0, 1.0) else f" ({percent(each.cause_share)})"
    summary = (
        f'<span class="status {each.status}">{STATUS_WORDS[each.status]}</span><b>{text(each.label)}</b>'
        f'<span class="soft">{text(kind)} {shape}</span><code>{text(each.cause)}{share}</code>'
        f'<span class="why">{text(each.explanation)}</span>'
    )
    parts = [_figures(each)]
    if each.heat_map is not None and number < _MOST_PICTURES:
        parts.append(_picture(each, each.heat_map))
    if any(each.ulp_histogram):
        parts.append(f"<div><h3>Distances in units of the last place</h3>{histogram(each.ulp_histogram)}</div>")
    parts += [_element("Worst", each.worst)] if each.worst else []
    parts += [_element("First", each.first)] if each.first and each.first != each.worst else []
    return fold(summary, "".join(parts), is_open=number < _MOST_OPEN, kind=each.status)


def _figures(each: TensorReport) -> str:
    if each.differing is None:
        return f'<p class="soft">{each.total:,} elements in A; their differences are not measured.</p>'
    shown = percent(each.differing / max(each.total, 1))
    rows = [("differing", f"{each.differing:,} of {each.total:,} ({shown})")]
    if each.tolerance:
        rows.append(("tolerance", f"{each.tolerance}: {each.forgiven:,} forgiven, {each.beyond_tolerance:,} beyond"))
    rows += [] if each.relative_norm is None else [("relative norm", number(each.relative_norm))]
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
    rows += [(name.replace("_", " "), shortened(str(value), 200)) for name, value in details.items()]
    return f"<div><h3>Figures</h3>{table(rows)}</div>"


def _largest(most: float | None, mean: float | None) -> str:
    name = "mean" if most is None or math.isfinite(most) else "mean of the finite ones"
    return f"largest {number(most)}, {name} {number(mean)}"


def _picture(each: TensorReport, heat: HeatMap) -> str:
    down, right = heat.axes
    is_line = down < 0
    what = f"axis {right} to the right" if is_line else f"axis {down} downwards, axis {right} to the right"
    if is_line and len([size for size in each.shape if size > 1]) != 1:
        what = "all elements"
    seen = "" if heat.seen == each.differing else f", from {heat.seen:,} of the elements that differ"
    low, high = map(number, heat.limits)
    scale = f"; the largest difference of each cell, from {low} to {high}, by its logarithm" if any(heat.limits) else ""
    caption = text(f"{what}{scale}{seen}")
    kind = "map line" if is_line else "map"
    picture = f'<img class="{kind}" src="{heat.url()}" alt="{caption}"><p class="caption">{caption}</p>'
    return f"<div><h3>Where</h3>{picture}</div>"


def histogram(counts: tuple[int, ...]) -> str:
    """Draw how many elements have a distance of 0, 1, 2 to 3, and so on, each bar by the digits of its count.

    >>> histogram((0, 3)).count("<rect")
    1
    """
    most, step = max(len(str(count)) for count in counts), max(len(counts) // _LABELLED, 1)
    shown = [
        Bar(
            (len(str(count)) - 1 + int(str(count)[0]) / 10) / most if count else 0.0,
            f"{_distance(bucket)} ULP: {count:,}",
            "" if bucket % step else _distance(bucket),
        )
        for bucket, count in enumerate(counts)
    ]
    return bars(shown, f"number of elements, by its logarithm; at most {max(counts):,}")


def _distance(bucket: int) -> str:
    if bucket < 2:
        return str(bucket)
    return f"{1 << (bucket - 1)}+" if bucket <= 10 else f"2^{bucket - 1}+"


def _element(title: str, one: Element) -> str:
    rows = [(name, *side) for name, side in zip("AB", one.sides, strict=True)]
    shown = table([("index", list(one.index), ""), *rows])
    return f'<div><h3>{title} place</h3><div class="number">{shown}</div></div>'
