"""The results as a Markdown document: a table for each type, a row for each function, a column for each runtime."""

from __future__ import annotations

from collections.abc import Iterator

from eltwise.accuracy.report import AccuracyReport
from eltwise.accuracy.results import FunctionAccuracy
from eltwise.core.errors import counted
from eltwise.report.markdown import literal, markdown_table

_HEAD = """# Accuracy of functions

How far the functions of runtimes are from the real values. Written by `eltwise accuracy --document`.

A cell has the largest error in units in the last place (ULP), and how many results are the float nearest to the real
value. The nearest float has an error of 0.5 at most. `s` counts results that are NaN, infinite or finite where the
nearest float is not, `f` those that are 0 where it is subnormal; neither is part of the error. A dash: the runtime has
no such function, or not of this type. The real values are enclosed by ball arithmetic (Arb) until the rounding is
decided ([semantics.md](semantics.md)).
"""


def document(report: AccuracyReport) -> str:
    """The document of a report."""
    facts = (f"- {literal(name)}: {literal(fact)}" for name, fact in report.facts)
    return "\n".join([_HEAD, *facts, "", *_tables(report), *_worst(report)])


def _tables(report: AccuracyReport) -> Iterator[str]:
    cells = {(each.dtype, each.function, each.runtime): each for each in report.shown}
    for dtype in dict.fromkeys(each.dtype for each in report.shown):
        runtimes = [name for name in report.versions if any(_is_of(each, dtype, name) for each in report.shown)]
        yield f"## {literal(dtype)}\n"
        functions = dict.fromkeys(each.function for each in report.shown if each.dtype == dtype)
        rows = ((name, *(_cell(cells.get((dtype, name, runtime))) for runtime in runtimes)) for name in functions)
        yield from markdown_table(("function", *map(literal, runtimes)), ((literal(one), *rest) for one, *rest in rows))
        yield ""


def _is_of(each: FunctionAccuracy, dtype: str, runtime: str) -> bool:
    return (each.dtype, each.runtime) == (dtype, runtime)


def _cell(measured: FunctionAccuracy | None) -> str:
    if measured is None:
        return "-"
    if not measured.count:
        return "failed"
    share = min(measured.share, 0.9999) if measured.nearest < measured.count else 1.0
    text = f"{measured.largest_error:.4g} ({share:.4g})" if share < 1 else "nearest"
    marks = [f"{mark} {count:,}" for mark, count in (("s", measured.special), ("f", measured.flushed)) if count]
    return ", ".join([text, *marks, *(["failed"] if measured.failed else [])])


def _worst(report: AccuracyReport) -> Iterator[str]:
    yield "## The largest errors\n"
    yield f"{counted(len(report.beyond), 'function')} beyond {report.bound:g} ULP, or wrong at special values.\n"
    rows = []
    for each in report.beyond:
        for example, error in ((each.worst, f"{each.largest_error:.4g}"), (each.first_special, "special")):
            if example is not None and (error == "special" or each.largest_error > report.bound):
                values = map(repr, (example.x, example.actual, example.expected))
                rows.append(tuple(map(literal, (each.function, each.dtype, each.runtime, error, *values))))
    yield from markdown_table(("function", "type", "runtime", "ULP", "argument", "result", "nearest float"), rows)
    yield ""
