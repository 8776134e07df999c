"""The run of a selection of tests: several processes at a time, through interrupts, on from earlier results."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from queue import SimpleQueue

from eltwise.conformance.asking import CaseRunner, separated
from eltwise.conformance.compare import References
from eltwise.conformance.contexts import CALL, SOURCES, sources_of
from eltwise.conformance.fault_models.explain import Explainer
from eltwise.conformance.results import Extent, Results, TestResult
from eltwise.conformance.smallest import Shrinker
from eltwise.conformance.suite import Variant, groups, variants
from eltwise.conformance.summary import summarized
from eltwise.core.errors import FileFormatError, UnsupportedError
from eltwise.core.machine import machine_name, processors
from eltwise.runtimes import Host, Runtime, StoppedError
from eltwise.runtimes.host import LIMIT
from eltwise.version import VERSION

_MOST_PROCESSES = 4

OnProgress = Callable[[int, int, str], None]
"""Called before each test: how many are done, how many there are, and which it is."""


@dataclass(frozen=True)
class Selection:
    """Which tests are run on which runtimes; an empty field means all.

    Attributes:
        runtimes: the runtimes.
        ops: versioned names.
        types: element types by their NumPy names.
        rules: broadcast rules.
        sources: operand sources.
    """

    runtimes: tuple[Runtime, ...]
    ops: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()

    def jobs(self) -> Iterator[Job]:
        """The work, in the order in which its results are shown."""
        for runtime in self.runtimes:
            for variant in variants():
                if self._takes(variant) and _has(runtime, variant):
                    sources = tuple(
                        source
                        for source in sources_of(variant.count)
                        if source in (self.sources or (*SOURCES, CALL)) and _has_source(runtime, variant, source)
                    )
                    yield Job(runtime, variant, sources)

    def _takes(self, variant: Variant) -> bool:
        wanted = (
            (self.ops, str(variant.schema)),
            (self.types, variant.element_type.name),
            (self.rules, variant.rule),
        )
        return all(name in names for names, name in wanted if names)


def _has(runtime: Runtime, variant: Variant) -> bool:
    """Whether a runtime has the operator, the rule and, as a library, functions for it."""
    if variant.schema.domain not in runtime.domains or (variant.rule not in runtime.rules and variant.count > 1):
        return False
    steps = variant.schema.expression().steps if runtime.library else ()
    try:
        return all(step.definition.library_name(runtime.library, variant.element_type) for step in steps)
    except LookupError:
        return False


def _has_source(runtime: Runtime, variant: Variant, source: str) -> bool:
    if runtime.only and source not in runtime.only:
        return False
    if source == CALL:
        return runtime.calls
    return runtime.loads_models and (not SOURCES[source].has_neutral or variant.has_neutral)


@dataclass(frozen=True)
class Job:
    """A runtime and a variant, with some operand sources."""

    runtime: Runtime
    variant: Variant
    sources: tuple[str, ...]

    @property
    def keys(self) -> list[str]:
        """The keys of its tests."""
        return [f"{self.runtime.name}/{self.variant}/{source}" for source in self.sources]


@dataclass(frozen=True)
class Settings:
    """How the tests are run.

    Attributes:
        extent: how much is tested.
        seed: the seed of the random values.
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


def run_tests(
    selection: Selection, settings: Settings, on_progress: OnProgress, known: Results | None = None
) -> Outcome:
    """Run tests; a ``KeyboardInterrupt`` ends the run with the results that are there.

    Args:
        selection: which tests, on which runtimes.
        settings: how.
        on_progress: called by several threads, one at a time.
        known: earlier results: what they have is not run again.

    Raises:
        FileFormatError: if the earlier results were made with another version, seed or extent.
    """
    jobs = list(selection.jobs())
    session = _Session(settings, on_progress, _kept(known, settings))
    session.check_versions(selection.runtimes)
    session.add(jobs)
    interrupted = session.run(settings.processes or max(1, min(_MOST_PROCESSES, processors())))
    order = {key: index for index, key in enumerate(key for job in jobs for key in job.keys)}
    tests = sorted(session.tests.values(), key=lambda test: order.get(test.key, -1))
    results = Results(
        tuple(tests),
        machine=machine_name(),
        date=datetime.now(UTC).strftime("%Y-%m-%d"),
        seed=settings.seed,
        extent=settings.extent,
        interrupted=interrupted,
        versions={"conformance suite": VERSION, **{test.runtime: test.version for test in tests if test.version}},
    )
    return Outcome(results, session.not_started)


def _kept(known: Results | None, settings: Settings) -> dict[str, TestResult]:
    """The results to continue from."""
    if known is None:
        return {}
    for name in ("seed", "extent"):
        was, now = getattr(known, name), getattr(settings, name)
        if was != now:
            raise FileFormatError(
                f"the results to continue from were made with another {name}",
                got=str(was),
                allowed=str(now),
                hint=f"give the same {name}, or start anew",
            )
    return {test.key: test for test in known.tests}


class _Session:
    """The jobs, the threads that work on them, and what they found."""

    def __init__(self, settings: Settings, on_progress: OnProgress, tests: dict[str, TestResult]) -> None:
        self.tests = tests
        self.not_started: dict[str, str] = {}
        self._settings = settings
        self._on_progress = on_progress
        self._versions = {test.runtime: test.version for test in tests.values()}
        self._jobs: deque[Job] = deque()
        self._total = 0
        self._done = 0
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._ended: SimpleQueue[BaseException | None] = SimpleQueue()
        self._references = References()
        self._explainer = Explainer()
        self._shrinker = Shrinker()
        self._hosts: set[Host] = set()

    def check_versions(self, runtimes: Sequence[Runtime]) -> None:
        """Check that the known results are of the runtimes that are here.

        Raises:
            FileFormatError: if they were made with another version of one.
        """
        for runtime in runtimes:
            if runtime.name not in self._versions:
                continue
            with Host(runtime, self._settings.limit) as host:
                try:
                    self._check_version(runtime.name, host.version())
                except UnsupportedError as error:
                    self.not_started[runtime.name] = str(error)

    def add(self, jobs: Sequence[Job]) -> None:
        """Take jobs on, without the tests whose results are known."""
        for job in jobs:
            sources = tuple(source for source, key in zip(job.sources, job.keys, strict=True) if key not in self.tests)
            if sources:
                self._jobs.append(Job(job.runtime, job.variant, sources))
                self._total += len(sources)

    def run(self, count: int) -> bool:
        """Work with so many threads; whether it was interrupted."""
        threads = [threading.Thread(target=self._work, daemon=True) for _number in range(count)]
        interrupted = False
        try:
            for thread in threads:
                thread.start()
            # Not by join: before Python 3.13 an interrupted one takes its thread for ended.
            for _thread in threads:
                if (error := self._ended.get()) is not None:
                    raise error
        except KeyboardInterrupt:
            interrupted = True
        finally:
            self._stop.set()
            for host in list(self._hosts):
                host.stop()
            for thread in threads:
                thread.join()
        return interrupted

    def _work(self) -> None:
        host: Host | None = None
        ended: BaseException | None = None
        try:
            while not self._stop.is_set() and (job := self._next()) is not None:
                if host is None or host.runtime is not job.runtime:
                    self._end(host)
                    host = Host(job.runtime, self._settings.limit)
                    self._hosts.add(host)
                self._run_job(host, job)
        except StoppedError:
            pass
        except BaseException as error:  # noqa: BLE001 - raised again by the thread that waits
            ended = error
        finally:
            self._end(host)
            self._ended.put(ended)

    def _next(self) -> Job | None:
        with self._lock:
            while self._jobs and self._jobs[0].runtime.name in self.not_started:
                self._jobs.popleft()
            return self._jobs.popleft() if self._jobs else None

    def _end(self, host: Host | None) -> None:
        if host is not None:
            host.end()
            self._hosts.discard(host)

    def _run_job(self, host: Host, job: Job) -> None:
        for source in job.sources:
            if self._stop.is_set():
                return
            with self._lock:
                self._on_progress(self._done, self._total, f"{job.runtime.name} {job.variant}/{source}")
            try:
                test = self._test(host, job, source)
            except UnsupportedError as error:
                self.not_started[job.runtime.name] = str(error)
                return
            if self._stop.is_set():
                return  # What came while the processes were ended is not a result.
            with self._lock:
                self.tests[test.key] = test
                self._done += 1

    def _test(self, host: Host, job: Job, source: str) -> TestResult:
        version = host.version()
        self._check_version(job.runtime.name, version)
        extent = self._settings.extent
        made = groups(job.variant, source, extent, self._settings.seed, job.runtime.checks)
        tester = CaseRunner(host, source, self._references, thrifty=extent == "quick")
        done = tester.run(made)
        results = done.results if source == CALL else separated(done.results, made, tester, self._explainer)
        shrink = partial(self._shrinker.smallest, key=(job.runtime.name, source), run_alone=tester.alone)
        runtime = job.runtime.name, version
        return summarized(runtime, job.variant, source, results, done.not_run, self._explainer, shrink)

    def _check_version(self, name: str, version: str) -> None:
        known = self._versions.setdefault(name, version)
        if known != version:
            raise FileFormatError(
                f"the results to continue from were made with another version of {name}",
                got=known,
                allowed=version,
                hint="start anew",
            )
