"""What a measurement gives: a row a workload, and around them the machine, the versions and the date. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field

from eltwise.bench.workloads import ANY_PEER, OWN_OUT, Workload

OWN = "eltwise"
"""The name of this project among the contestants."""

LIMIT = "memory limit"
"""The name of the plain loop among them."""


@dataclass(frozen=True)
class Row:
    """What was measured of one workload.

    Attributes:
        workload: the workload.
        seconds: the median of each contestant that was right, by name; this project's is called ``OWN``.
        ratios: for each other contestant the median, over the rounds, of its time over this project's in that round.
            The speed of a shared machine's memory changes from second to second; within a round it hardly does.
        limit_seconds: the median of the loop that moves the same bytes; None where it was not measured.
        in_cache: whether the caches hold the arrays, so that the memory limit says nothing.
        remarks: for each peer that is not quoted, the reason.
        refusal: why the row is not quoted at all: this project's result was not exact. Then there are no times.
    """

    workload: Workload
    seconds: dict[str, float] = field(default_factory=dict)
    ratios: dict[str, float] = field(default_factory=dict)
    limit_seconds: float | None = None
    in_cache: bool = False
    remarks: dict[str, str] = field(default_factory=dict)
    refusal: str = ""

    @property
    def own_seconds(self) -> float | None:
        """This project's median."""
        return self.seconds.get(OWN)

    @property
    def best_peer(self) -> str:
        """The peer that comes nearest to this project or passes it; empty where there is none."""
        peers = {name: ratio for name, ratio in self.ratios.items() if name in self.seconds and name != OWN_OUT}
        return min(peers, key=peers.__getitem__) if peers else ""

    def ratio_to(self, name: str) -> float | None:
        """How many times faster this project is than another contestant, or than the best peer."""
        return self.ratios.get(self.best_peer if name == ANY_PEER else name)

    @property
    def share(self) -> float | None:
        """The share of the memory limit that this project reaches, found as the ratios to others are."""
        return None if self.in_cache else self.ratios.get(LIMIT)

    def gigabytes_per_second(self, name: str) -> float | None:
        """At what rate a contestant moved the bytes of the workload."""
        seconds = self.seconds.get(name)
        return self.workload.moved_bytes / seconds / 1e9 if seconds else None

    @property
    def limit_gigabytes_per_second(self) -> float | None:
        """At what rate the plain loop moved them; None where the caches hold them."""
        if not self.limit_seconds or self.in_cache:
            return None
        return self.workload.moved_bytes / self.limit_seconds / 1e9

    @property
    def misses(self) -> tuple[str, ...]:
        """The targets that were measured and not reached, a text each."""
        if self.refusal:
            return ("not exact",)
        found = []
        for target in self.workload.targets:
            ratio = self.ratio_to(target.than)
            if ratio is not None and ratio < target.ratio:
                found.append(f"{ratio:.2f} x {target.than}, wanted {target.ratio:.2f}")
        wanted = self.workload.least_share
        if wanted is not None and self.share is not None and self.share < wanted:
            found.append(f"{self.share:.2f} of the limit, wanted {wanted:.2f}")
        return tuple(found)

    def fields(self) -> dict[str, object]:
        """Everything as plain values, times in milliseconds."""
        workload = self.workload
        return {
            "workload": workload.name,
            "type": workload.element_type.name,
            "shapes": [list(shape) for shape in workload.shapes],
            "formula": workload.formula,
            "call": workload.call,
            "bytes": workload.moved_bytes,
            "milliseconds": {name: seconds * 1e3 for name, seconds in self.seconds.items()},
            "best_peer": self.best_peer or None,
            "ratio": self.ratio_to(ANY_PEER),
            "ratios": self.ratios,
            "limit_milliseconds": None if self.limit_seconds is None else self.limit_seconds * 1e3,
            "share_of_limit": self.share,
            "in_cache": self.in_cache,
            "not_quoted": self.remarks,
            "refusal": self.refusal or None,
            "misses": list(self.misses),
        }


@dataclass(frozen=True)
class FirstCall:
    """How long the first call of a kernel takes, in seconds, beyond a later call.

    Attributes:
        cold: with an empty disk cache.
        warm: with the kernel in the disk cache.
        in_process: the very first call of a process, with a warm disk cache: it loads LLVM too.
    """

    cold: float
    warm: float
    in_process: float

    def fields(self) -> dict[str, float]:
        """The times in milliseconds."""
        return {"cold": self.cold * 1e3, "warm": self.warm * 1e3, "first_in_process": self.in_process * 1e3}


@dataclass(frozen=True)
class Report:
    """A whole measurement.

    Attributes:
        rows: what was measured, in the order of the workloads.
        versions: of this project and every peer that took part.
        missing: the peers that are not installed.
        machine: the processor, in its own words.
        threads: how many threads every contestant was given.
        load: how many processes wanted a processor just before; above 0 the times are not this measurement's alone.
        cache_bytes: the size of the largest cache.
        date: when, as text.
        quick: whether it was the short measurement.
        first_call: the first call of a kernel; None where it was not measured.
        interrupted: whether it was stopped before its end.
    """

    rows: tuple[Row, ...]
    versions: dict[str, str]
    missing: tuple[str, ...]
    machine: str
    threads: int
    load: float
    cache_bytes: int
    date: str
    quick: bool
    first_call: FirstCall | None = None
    interrupted: bool = False

    @property
    def refused(self) -> tuple[Row, ...]:
        """The rows that are not quoted because this project's result was not exact."""
        return tuple(row for row in self.rows if row.refusal)

    def fields(self) -> dict[str, object]:
        """Everything as plain values."""
        first = self.first_call
        return {
            "machine": self.machine,
            "threads": self.threads,
            "load": self.load,
            "cache_bytes": self.cache_bytes,
            "date": self.date,
            "quick": self.quick,
            "interrupted": self.interrupted,
            "versions": self.versions,
            "not_installed": list(self.missing),
            "first_call_milliseconds": None if first is None else first.fields(),
            "rows": [row.fields() for row in self.rows],
        }
