"""The content of the page of measured functions: a table for each function, and pictures of where the errors lie."""

from __future__ import annotations

import math
from collections.abc import Sequence

from eltwise.accuracy.results import COLUMNS, FunctionAccuracy
from eltwise.report.base import fold, head, table
from eltwise.report.pictures import Bar, bars

_HIGHEST = 20.0
"""The binary logarithm of the error that the highest bar stands for; half a unit in the last place has none."""


def content(summary: str, facts: Sequence[tuple[str, str]], functions: Sequence[FunctionAccuracy]) -> str:
    """Make the content of the page of a report."""
    parts = [head("Accuracy of functions", [summary], facts)]
    by_name: dict[str, list[FunctionAccuracy]] = {}
    for each in functions:
        by_name.setdefault(each.function, []).append(each)
    for name, measured in by_name.items():
        rows = table((each.cells[1:] for each in measured), COLUMNS[1:])
        pictures = "".join(_picture(each) for each in measured if each.largest_error > 1)
        largest = max(each.largest_error for each in measured)
        parts.append(fold(f"<b>{name}</b> {largest:.4g} ULP at most", f"<div>{rows}{pictures}</div>"))
    return "\n".join(parts)


def _picture(each: FunctionAccuracy) -> str:
    """Draw the largest error along the line of numbers, by its logarithm."""
    shown = [Bar(_height(error), f"{error:.3g} ULP" if error > 0.5 else "") for error in each.profile]
    half = len(shown) // 2
    labels = {0: "-inf", half: "0", len(shown) - 1: "inf"}
    shown = [Bar(bar.height, bar.title, labels.get(number, "")) for number, bar in enumerate(shown)]
    caption = f"{each.dtype}, {each.runtime}: errors above 0.5 ULP along the line of numbers, by their logarithm"
    return bars(shown, caption)


def _height(error: float) -> float:
    return min(max(math.log2(error / 0.5) / _HIGHEST, 0.02), 1.0) if error > 0.5 else 0.0
