"""What was measured as Markdown: how each group does against its goal, the rows below it, and all ratios."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import exp, log

from benchmarks.measure import LIMIT, OWN, Row
from benchmarks.workloads import GOALS, Group

_MICROSECONDS = 1e6


def markdown(rows: Sequence[Row]) -> str:
    """Write the tables; rows without another library to compare with are left out."""
    measured = [row for row in rows if row.best_peer]
    middle = [row for row in measured if row.workload.group == "middle"]
    others = [row for row in measured if row.workload.group != "middle"]
    return "\n".join([*_goals(measured), "", *_middle(middle), "", *_all(others)]) + "\n"


def _ratio(row: Row) -> float:
    return row.ratios[row.best_peer]


def _is_below(row: Row) -> bool:
    """Whether a row misses its goal."""
    group, elements = row.workload.group, row.workload.elements
    return _ratio(row) < (1.0 if group == "model" and elements > 1_000 else GOALS[group][1])


def _line(cells: Iterable[object]) -> str:
    return f"| {' | '.join(map(str, cells))} |"


def _head(*names: str) -> Iterator[str]:
    yield from (_line(names), _line(["---"] * len(names)))


def _goals(rows: Sequence[Row]) -> Iterator[str]:
    yield from _head("group", "goal", "rows", "geometric mean of the ratios", "below the goal")
    for group, (goal, _least) in GOALS.items():
        found = [row for row in rows if row.workload.group == group]
        if found:
            mean = exp(sum(log(_ratio(row)) for row in found) / len(found))
            below = sorted(filter(_is_below, found), key=_ratio)
            named = "; ".join(f"{row.workload} of {row.workload.element_type} {_ratio(row):.2f}" for row in below)
            yield _line((group, goal, len(found), f"{mean:.2f}", named or "none"))


def _middle(rows: Sequence[Row]) -> Iterator[str]:
    """A line for each pattern, type and call, a column for each size."""
    sizes = sorted({row.workload.elements for row in rows})
    yield from _head("middle sizes", "type", "result", *(f"{size:,}" for size in sizes))
    lines: dict[tuple[object, ...], dict[int, float]] = {}
    for row in rows:
        key = row.workload.name, row.workload.element_type, _RESULTS[row.workload.call]
        lines.setdefault(key, {})[row.workload.elements] = _ratio(row)
    for kind, ratios in lines.items():
        yield _line((*kind, *(f"{ratios[size]:.2f}" if size in ratios else "" for size in sizes)))


_RESULTS = {"out": "given", "allocate": "new"}


def _all(rows: Sequence[Row]) -> Iterator[str]:
    yield from _head(
        "workload", "expression", "type", "eltwise, µs", "best other", "its µs", "ratio", "share of the memory limit"
    )
    order: list[Group] = list(GOALS)
    for row in sorted(rows, key=lambda row: order.index(row.workload.group)):
        name, expression, *others = cells(row, _MICROSECONDS)
        yield _line((name, "ten steps" if row.workload.function == "chain" else expression, *others))


def cells(row: Row, unit: float) -> tuple[str, ...]:
    """What a table says of a row, with times in a unit, so many of which are a second; empty where there is nothing."""
    best = row.best_peer
    return (
        str(row.workload),
        row.workload.written,
        row.workload.element_type.name,
        _time(row.seconds.get(OWN), unit),
        best,
        _time(row.seconds.get(best), unit),
        f"{_ratio(row):.2f}" if best else "",
        f"{row.ratios[LIMIT]:.2f}" if LIMIT in row.ratios else "",
    )


def _time(seconds: float | None, unit: float) -> str:
    return "" if seconds is None else f"{seconds * unit:.3g}"
