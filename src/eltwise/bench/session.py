"""A whole measurement: every workload beside every installed peer, and what has to be said about the machine."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from eltwise.bench import peers
from eltwise.bench.contestants import Peer
from eltwise.bench.first_call import measure_first_call
from eltwise.bench.measuring import FULL, QUICK, measure_row
from eltwise.bench.results import OWN, FirstCall, Report, Row
from eltwise.bench.workloads import Workload, workloads
from eltwise.core.machine import cache_bytes, machine_name
from eltwise.kernels.threads import num_threads
from eltwise.version import VERSION

OnWorkload = Callable[[int, int, Workload], None]
"""Told before each workload: its number from 0, how many there are, and which it is."""


def run_session(quick: bool, on_workload: OnWorkload) -> Report:
    """Measure everything. A ``KeyboardInterrupt`` ends it with the rows that are there."""
    taking_part = peers.installed()
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    settings = QUICK if quick else FULL
    rows: list[Row] = []
    first_call: FirstCall | None = None
    interrupted = False
    try:
        chosen = workloads(quick)
        for number, workload in enumerate(chosen):
            on_workload(number, len(chosen), workload)
            rows.append(measure_row(workload, taking_part, settings))
        first_call = measure_first_call()
    except KeyboardInterrupt:
        interrupted = True
    return make_report(rows, taking_part, quick, load, first_call, interrupted)


def make_report(
    rows: Sequence[Row],
    taking_part: Sequence[Peer],
    quick: bool,
    load: float,
    first_call: FirstCall | None,
    interrupted: bool,
) -> Report:
    """Put rows together with what is known of the machine and the versions."""
    return Report(
        rows=tuple(rows),
        versions={OWN: VERSION, **{peer.name: peer.version() for peer in taking_part}},
        missing=peers.missing(),
        machine=machine_name(),
        threads=num_threads(),
        load=load,
        cache_bytes=cache_bytes(),
        date=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        quick=quick,
        first_call=first_call,
        interrupted=interrupted,
    )
