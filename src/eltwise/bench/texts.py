"""A measurement as texts: the cells of the table and the lines around it, the same on the terminal and in the page."""

from __future__ import annotations

from eltwise.bench.results import Report, Row
from eltwise.bench.workloads import ANY_PEER

_QUIET = 0.5

COLUMNS = ("workload", "type", "eltwise ms", "best peer", "its ms", "ratio", "share of the limit")


def cells(row: Row) -> tuple[str, ...]:
    """The cells of a row, one for each of ``COLUMNS``; empty where there is nothing to quote."""
    ratio, share = row.ratio_to(ANY_PEER), row.share
    return (
        row.workload.name,
        row.workload.element_type.name,
        milliseconds(row.own_seconds),
        row.best_peer,
        milliseconds(row.seconds.get(row.best_peer)),
        "" if ratio is None else f"{ratio:.2f}",
        "" if share is None else f"{share:.2f}",
    )


def notes(row: Row) -> str:
    """What is to be said beside a row: why it is refused, or what it misses."""
    return f"refused: {row.refusal}" if row.refusal else "; ".join(row.misses)


def milliseconds(seconds: float | None) -> str:
    """Write a time with three digits that count.

    >>> milliseconds(0.0123), milliseconds(3.1e-7), milliseconds(0.2954), milliseconds(None)
    ('12.3', '0.00031', '295', '')
    """
    if seconds is None:
        return ""
    value = seconds * 1e3
    if value >= 100:
        return f"{value:.0f}"
    return f"{value:.3g}"


def summary_lines(report: Report) -> tuple[list[str], str]:
    """The lines above the table, and the one below it (empty where there is nothing to say)."""
    kind = "quick measurement" if report.quick else "measurement"
    threads = f"{report.threads} thread{'' if report.threads == 1 else 's'}"
    lines = [f"{report.machine}, {threads}, {report.date}, {kind}"]
    if report.load > _QUIET:
        lines.append(f"Others were at work here (a load of {report.load:.1f} before it began): the times are not safe.")
    if report.interrupted:
        lines.append("It was interrupted: the rest of the workloads is missing.")
    if report.refused:
        lines.append(f"{len(report.refused)} of {len(report.rows)} rows are refused: the result was not exact.")
    missing = [row for row in report.rows if row.misses and not row.refusal]
    lines.append(f"{len(missing)} of {len(report.rows)} rows miss a target.")
    first = report.first_call
    if first is None:
        return lines, ""
    cold, warm, loading = (milliseconds(seconds) for seconds in (first.cold, first.warm, first.in_process))
    return lines, (
        f"First call of a kernel: {cold} ms, with a warm disk cache {warm} ms (wanted: 80 and 15); "
        f"the first of a process, which loads LLVM: {loading} ms."
    )
