"""The command ``python -m benchmarks.run operators``: a table on the terminal, JSON, or a picture."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from rich.progress import track
from rich.table import Table

from benchmarks.measure import OWN, Row, measure
from benchmarks.peers import PEERS, installed, versions
from benchmarks.picture import picture
from benchmarks.size_picture import size_picture
from benchmarks.tables import cells, markdown
from benchmarks.timing import neighbour
from benchmarks.workloads import SIZES, workloads
from eltwise.core.machine import machine_name
from eltwise.formats import files
from eltwise.kernels.threads import num_threads

_COLUMNS = ("workload", "expression", "type", "eltwise ms", "best peer", "its ms", "ratio", "share of limit", "remarks")
_BUSY = 0.5
_MILLISECONDS = 1e3


def main(arguments: Sequence[str]) -> int:
    """Measure every workload; 1 if a result of eltwise is not exact, 130 after Ctrl-C."""
    parser = argparse.ArgumentParser(prog="benchmarks.run operators", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer and smaller workloads: about a minute")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--only", metavar="TEXT", default="", help="the workloads whose name contains TEXT")
    parser.add_argument(
        "--neighbour",
        metavar="PERCENT",
        type=int,
        choices=range(100),
        default=0,
        help="let another process use so much of one processor meanwhile",
    )
    parser.add_argument("--markdown", metavar="FILE", type=Path, help="write tables of all ratios, and of the goals")
    parser.add_argument("--picture", metavar="FILE", type=Path, help="write an SVG")
    parser.add_argument("--size-picture", metavar="FILE", type=Path, help="write an SVG of the time over the size")
    options = parser.parse_args(arguments)
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    chosen = [workload for workload in workloads(options.quick) if options.only in str(workload)]
    rounds, seconds = (15, 0.8) if options.quick else (31, 10.0)
    rows: list[Row] = []
    console, interrupted = Console(stderr=True), False
    try:
        with neighbour(options.neighbour):
            for workload in track(chosen, "measuring", console=console, disable=not console.is_terminal):
                rows.append(measure(workload, installed(), num_threads(), rounds, seconds))
    except KeyboardInterrupt:
        interrupted = True
    if options.json:
        print(
            json.dumps(
                _fields(rows, load, quick=options.quick, interrupted=interrupted, neighbour=options.neighbour), indent=2
            )
        )
    else:
        _show(rows, load, quick=options.quick)
    if options.markdown is not None:
        files.write_text(options.markdown, markdown(rows))
    if options.picture is not None:
        files.write_text(options.picture, picture(rows))
    if options.size_picture is not None:
        sizes = [row for row in rows if row.workload in SIZES]
        files.write_text(options.size_picture, size_picture(sizes))
    if interrupted:
        return 130
    return 1 if any(OWN in row.remarks for row in rows) else 0


def _fields(rows: Sequence[Row], load: float, **options: int) -> dict[str, object]:
    return {
        "commit": _commit(),
        "machine": machine_name(),
        "threads": num_threads(),
        "load": load,
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        **options,
        "versions": versions(),
        "not_installed": [name for name in PEERS if name not in installed()],
        "rows": [row.fields() for row in rows],
    }


def _commit() -> str:
    """The commit that was measured; empty outside of a checkout."""
    git = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty"]
    try:
        return subprocess.run(git, capture_output=True, text=True, check=True).stdout.strip()  # noqa: S603
    except (OSError, subprocess.CalledProcessError):
        return ""


def _show(rows: Sequence[Row], load: float, *, quick: bool) -> None:
    console = Console(markup=False, highlight=False)
    console = console if console.is_terminal else Console(markup=False, highlight=False, width=200)
    kind = "quick measurement" if quick else "measurement"
    console.print(f"{machine_name()}, {num_threads()} threads, {datetime.now(UTC):%Y-%m-%d}, {kind}")
    if load > _BUSY:
        console.print(f"The machine was busy before the measurement (load {load:.1f}); do not trust these times.")
    table = Table(box=None, pad_edge=False)
    for column in _COLUMNS:
        table.add_column(column, no_wrap=column != "remarks", overflow="fold")
    for row in rows:
        table.add_row(*cells(row, _MILLISECONDS), _remarks(row))
    console.print(table)
    console.print(", ".join(f"{name} {version}" for name, version in versions().items()))


def _remarks(row: Row) -> str:
    return "; ".join(f"{name} {remark}" for name, remark in row.remarks.items() if remark.startswith("differs"))
