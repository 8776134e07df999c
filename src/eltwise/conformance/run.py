"""The referee: every chosen runtime asked about every chosen subject on every path, several processes at a time."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from queue import SimpleQueue

from eltwise.conformance.asking_cells import ask_again, ask_cell, ask_together
from eltwise.conformance.cells import Cell
from eltwise.conformance.companions import apart
from eltwise.conformance.explainer import Explainer
from eltwise.conformance.paths import MODEL_PATHS, PATHS, Path
from eltwise.conformance.process import Process, StoppedError
from eltwise.conformance.questions import Subject, groups, subjects
from eltwise.conformance.results import Extent, Results
from eltwise.conformance.runtimes import Runtime
from eltwise.conformance.smallest import smallest_failure
from eltwise.conformance.summing import cell_of
from eltwise.conformance.verdicts import Truth
from eltwise.core.errors import FileFormatError, UnsupportedError
from eltwise.core.machine import machine_name
from eltwise.version import VERSION

LIMIT = 30.0
"""How many seconds one answer may take, unless told otherwise."""

_MOST_PROCESSES = 4

Tell = Callable[[int, int, str], None]
"""Told before each cell: how many are done, how many there are, and which it is."""


@dataclass(frozen=True)
class Selection:
    """What is asked of whom; an empty field means everything.

    Attributes:
        runtimes: the runtimes.
        ops: versioned names.
        types: element types by their NumPy names.
        rules: broadcast rules.
        paths: paths.
    """

    runtimes: tuple[Runtime, ...]
    ops: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()

    def jobs(self) -> Iterator[Job]:
        """The work, in the order in which its results are shown."""
        for runtime in self.runtimes:
            for subject in subjects():
                if self._takes(subject) and subject.schema.domain in runtime.domains and subject.rule in runtime.rules:
                    paths = tuple(path for path in PATHS if path in runtime.paths and path in (self.paths or PATHS))
                    yield Job(runtime, subject, paths)

    def _takes(self, subject: Subject) -> bool:
        asked = ((self.ops, str(subject.schema)), (self.types, subject.element_type.name), (self.rules, subject.rule))
        return all(name in names for names, name in asked if names)


@dataclass(frozen=True)
class Job:
    """A runtime and a subject, on some paths."""

    runtime: Runtime
    subject: Subject
    paths: tuple[Path, ...]

    @property
    def cell_keys(self) -> list[str]:
        """The keys of its cells."""
        return [f"{self.runtime.name}/{self.subject}/{path}" for path in self.paths]


@dataclass(frozen=True)
class Settings:
    """How it is asked.

    Attributes:
        extent: how much.
        seed: what random values are drawn with.
        limit: how many seconds one answer may take.
        processes: how many run at a time; 0: as many as there are processors, up to 4.
    """

    extent: Extent = "usual"
    seed: int = 0
    limit: float = LIMIT
    processes: int = 0


@dataclass(frozen=True)
class Outcome:
    """The results, and the runtimes that could not be started, each with its reason."""

    results: Results
    not_started: dict[str, str] = field(default_factory=dict)


def judge_all(selection: Selection, settings: Settings, tell: Tell, known: Results | None = None) -> Outcome:
    """Ask everything; a ``KeyboardInterrupt`` ends it with the cells that are there.

    Args:
        selection: what is asked of whom.
        settings: how.
        tell: is told of the progress, by several threads one at a time.
        known: results to go on from: what they hold is not asked again.

    Raises:
        FileFormatError: where known results were made with another version, seed or extent.
    """
    jobs = list(selection.jobs())
    session = _Session(settings, tell, _kept(known, settings))
    session.check_versions(selection.runtimes)
    session.add(jobs)
    count = settings.processes or max(1, min(_MOST_PROCESSES, len(os.sched_getaffinity(0))))
    interrupted = session.run(count)
    order = {key: place for place, key in enumerate(key for job in jobs for key in job.cell_keys)}
    cells = sorted(session.cells.values(), key=lambda cell: order.get(cell.key, -1))
    results = Results(
        tuple(cells),
        machine=machine_name(),
        date=datetime.now(UTC).strftime("%Y-%m-%d"),
        seed=settings.seed,
        extent=settings.extent,
        interrupted=interrupted,
        versions={"the referee": VERSION, **{cell.runtime: cell.version for cell in cells if cell.version}},
    )
    return Outcome(results, session.not_started)


def _kept(known: Results | None, settings: Settings) -> dict[str, Cell]:
    """The cells to go on from."""
    if known is None:
        return {}
    for name in ("seed", "extent"):
        was, now = getattr(known, name), getattr(settings, name)
        if was != now:
            raise FileFormatError(
                f"the results to go on from were made with another {name}",
                got=str(was),
                allowed=str(now),
                hint=f"give the same {name}, or start anew",
            )
    return {cell.key: cell for cell in known.cells}


class _Session:
    """The jobs, the threads that work on them, and what they found."""

    def __init__(self, settings: Settings, tell: Tell, cells: dict[str, Cell]) -> None:
        self.cells = cells
        self.not_started: dict[str, str] = {}
        self._settings = settings
        self._tell = tell
        self._versions = {cell.runtime: cell.version for cell in cells.values()}
        self._jobs: deque[Job] = deque()
        self._total = 0
        self._done = 0
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._ended: SimpleQueue[BaseException | None] = SimpleQueue()
        self._truth = Truth()
        self._explainer = Explainer()
        self._processes: set[Process] = set()

    def check_versions(self, runtimes: Sequence[Runtime]) -> None:
        """Check that the cells that are known are of the runtimes that are here.

        Raises:
            FileFormatError: where they were made with another version of one.
        """
        for runtime in runtimes:
            if runtime.name not in self._versions:
                continue
            with Process(runtime, self._settings.limit) as process:
                try:
                    self._check_version(runtime.name, process.version())
                except UnsupportedError as error:
                    self.not_started[runtime.name] = str(error)

    def add(self, jobs: Sequence[Job]) -> None:
        """Take jobs on, without the cells that are known."""
        for job in jobs:
            paths = tuple(path for path, key in zip(job.paths, job.cell_keys, strict=True) if key not in self.cells)
            if paths:
                self._jobs.append(Job(job.runtime, job.subject, paths))
                self._total += len(paths)

    def run(self, count: int) -> bool:
        """Work with so many threads; whether it was interrupted."""
        threads = [threading.Thread(target=self._work, daemon=True) for _number in range(count)]
        interrupted = False
        try:
            for thread in threads:
                thread.start()
            # Not by join: before Python 3.13 one that is interrupted takes its thread for ended.
            for _thread in threads:
                if (error := self._ended.get()) is not None:
                    raise error
        except KeyboardInterrupt:
            interrupted = True
        finally:
            self._stop.set()
            for process in list(self._processes):
                process.stop()
            for thread in threads:
                thread.join()
        return interrupted

    def _work(self) -> None:
        process: Process | None = None
        ended: BaseException | None = None
        try:
            while not self._stop.is_set() and (job := self._next()) is not None:
                if process is None or process.runtime is not job.runtime:
                    self._end(process)
                    process = Process(job.runtime, self._settings.limit)
                    self._processes.add(process)
                self._ask_job(process, job)
        except StoppedError:
            pass
        except BaseException as error:  # noqa: BLE001 - raised again by the thread that waits
            ended = error
        finally:
            self._end(process)
            self._ended.put(ended)

    def _next(self) -> Job | None:
        with self._lock:
            while self._jobs and self._jobs[0].runtime.name in self.not_started:
                self._jobs.popleft()
            return self._jobs.popleft() if self._jobs else None

    def _end(self, process: Process | None) -> None:
        if process is not None:
            process.end()
            self._processes.discard(process)

    def _ask_job(self, process: Process, job: Job) -> None:
        for path in job.paths:
            if self._stop.is_set():
                return
            with self._lock:
                self._tell(self._done, self._total, f"{job.runtime.name} {job.subject}/{path}")
            try:
                cell = self._cell(process, job, path)
            except UnsupportedError as error:
                self.not_started[job.runtime.name] = str(error)
                return
            if self._stop.is_set():
                return  # What came while the processes were ended is no verdict.
            with self._lock:
                self.cells[cell.key] = cell
                self._done += 1

    def _cell(self, process: Process, job: Job, path: Path) -> Cell:
        version = process.version()
        self._check_version(job.runtime.name, version)
        subject, settings = job.subject, self._settings
        asked_groups = groups(subject, path, settings.extent, settings.seed, job.runtime.checks)
        asked = ask_cell(process, path, asked_groups, self._truth, thrifty=settings.extent == "quick")
        again = partial(ask_again, process, path, truth=self._truth)
        judged = asked.judged
        if path in MODEL_PATHS:
            together = partial(ask_together, process, path, truth=self._truth)
            judged = apart(judged, asked_groups, together, self._explainer)
        return cell_of(
            job.runtime.name,
            version,
            subject,
            path,
            judged,
            asked.not_asked,
            self._explainer,
            partial(smallest_failure, ask=again),
        )

    def _check_version(self, name: str, version: str) -> None:
        known = self._versions.setdefault(name, version)
        if known != version:
            raise FileFormatError(
                f"the results to go on from were made with another version of {name}",
                got=known,
                allowed=version,
                hint="start anew",
            )
