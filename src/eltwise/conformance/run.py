"""The run of a selection of tests: several processes at a time, through interrupts, on from earlier results."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from eltwise.conformance.cases import CALL, Case
from eltwise.conformance.compare import CaseResult, References
from eltwise.conformance.explain import Explainer, internal_error
from eltwise.conformance.report import ConformanceReport
from eltwise.conformance.results import Extent, TestResult
from eltwise.conformance.runner import CaseRunner
from eltwise.conformance.selection import Job, Selection
from eltwise.conformance.suite import cases_of
from eltwise.conformance.summary import smaller_cases, summary
from eltwise.core.dtypes import ElementType
from eltwise.core.errors import FileFormatError, UnsupportedError
from eltwise.core.machine import machine_name, processors, today
from eltwise.core.progress import Progress
from eltwise.runtimes import Host, Runtime, StoppedError
from eltwise.runtimes.environments import interpreter
from eltwise.runtimes.host import LIMIT, changed
from eltwise.version import VERSION

_MOST_PROCESSES = 4
_SUITE = "conformance suite"

_MOST_TOGETHER: dict[Extent, int] = {"quick": 512, "usual": 64, "thorough": 1}
"""So many cases are put into one model, which costs more than its nodes."""


@dataclass(frozen=True)
class RunSettings:
    """How the tests are run."""

    extent: Extent = "usual"  # How much is tested.
    seed: int = 0  # The seed of the random values.
    limit: float = LIMIT  # How many seconds one answer may take.
    processes: int = 0  # How many run at a time; 0: as many as there are processors, up to 4.
    keep_every: float = 300.0  # After how many seconds the results so far are kept again.


def run_tests(
    selection: Selection,
    settings: RunSettings,
    progress: Progress,
    known: ConformanceReport | None = None,
    keep: Callable[[ConformanceReport], object] | None = None,
) -> ConformanceReport:
    """Run tests; a ``KeyboardInterrupt`` ends the run with the results that are there.

    Args:
        selection: the tests.
        settings: how they are run.
        progress: several threads call it, one at a time.
        known: earlier results; what is in them is not run again.
        keep: receives the results so far, as those of an interrupted run, from time to time.

    Returns:
        The results. A test in which eltwise itself fails has none but an internal error, and the others are run.

    Raises:
        FileFormatError: if the earlier results were made with another version, seed or extent, or on another machine.
    """
    jobs = list(selection.jobs(settings.extent))
    if known is not None:
        _check_origin(known, settings)
    session = _Session(settings, progress, known)
    session.check_versions(selection.runtimes)
    interrupted = session.run(jobs, keep)
    return session.results(jobs, interrupted=interrupted)


def _check_origin(known: ConformanceReport, settings: RunSettings) -> None:
    """Refuse earlier results that another run would not have, whatever the runtimes."""
    for name, was, now, hint in (
        ("version of eltwise", known.versions.get(_SUITE, VERSION), VERSION, ""),
        ("machine", known.machine or machine_name(), machine_name(), ""),
        ("seed", str(known.seed), str(settings.seed), "give the same seed, or "),
        ("extent", known.extent, settings.extent, "give the same extent, or "),
    ):
        if was != now:
            raise _other(name, was, now, hint)


def _other(what: str, was: str, now: str, hint: str = "") -> FileFormatError:
    text = f"the results to continue from were made with another {what}"
    return FileFormatError(text, got=was, allowed=now, hint=f"{hint}start anew")


class _Session:
    """The jobs, the threads that work on them, and what they found."""

    def __init__(self, settings: RunSettings, progress: Progress, known: ConformanceReport | None) -> None:
        tests = known.tests if known is not None else ()
        self.tests = {test.key: test for test in tests}
        self.internal_errors = dict(known.internal_errors) if known is not None else {}
        self.not_started: dict[str, str] = {}
        self._settings = settings
        self._progress = progress
        self._versions = {test.runtime: test.version for test in tests}
        self._total = self._done = 0
        self._lock = threading.Lock()
        self._is_stopped = False
        self._references = References()
        self._explainer = Explainer()
        self._hosts: dict[int, Host] = {}  # One for each thread.
        self._refused_types: dict[str, set[ElementType]] = {}

    def check_versions(self, runtimes: Sequence[Runtime]) -> None:
        """Check that the known results are of the runtimes that are here, and make environments of other versions.

        Raises:
            FileFormatError: if they were made with another version of one.
        """
        for runtime in runtimes:
            with self._starting(runtime):
                interpreter(runtime, self._progress)
                known = self._versions.get(runtime.name)
                if known is not None:
                    with Host(runtime, self._settings.limit) as host:
                        version = host.version()
                    if version != known:
                        raise _other(f"version of {runtime.name}", known, version)

    def results(self, jobs: Sequence[Job], *, interrupted: bool) -> ConformanceReport:
        """The results so far, in the order of the jobs."""
        order = {job.key: index for index, job in enumerate(jobs)}
        with self._lock:
            tests = sorted(self.tests.values(), key=lambda test: order.get(test.key, -1))
            versions = {test.runtime: test.version for test in tests if test.version}
            return ConformanceReport(
                tuple(tests),
                machine=machine_name(),
                date=today(),
                seed=self._settings.seed,
                extent=self._settings.extent,
                interrupted=interrupted,
                versions={_SUITE: VERSION, **versions},
                internal_errors=dict(self.internal_errors),
                not_started=dict(self.not_started),
            )

    def run(self, jobs: Sequence[Job], keep: Callable[[ConformanceReport], object] | None) -> bool:
        """Work on what is not known, with several threads; whether it was interrupted."""
        left = [job for job in jobs if job.key not in self.tests]
        self._total = len(left)
        groups: dict[object, list[Job]] = {}
        for job in left:
            is_call = job.source == CALL
            shares_models = self._settings.extent == "quick" and not is_call
            together = job.variant.schema if shares_models else job.variant
            groups.setdefault((job.runtime.name, together, is_call), []).append(job)
        pool = ThreadPoolExecutor(self._settings.processes or max(1, min(_MOST_PROCESSES, processors())))
        last = time.monotonic()
        try:
            for future in as_completed([pool.submit(self._run_jobs, group) for group in groups.values()]):
                future.result()
                if keep is not None and time.monotonic() - last > self._settings.keep_every:
                    keep(self.results(jobs, interrupted=True))
                    last = time.monotonic()
        except KeyboardInterrupt:
            return True
        finally:
            self._is_stopped = True
            pool.shutdown(wait=False, cancel_futures=True)
            for host in list(self._hosts.values()):
                host.stop()
            pool.shutdown()
            for host in self._hosts.values():
                host.end()
        return False

    def _host(self, runtime: Runtime) -> Host:
        """The process of this thread, which is kept while its runtime goes on."""
        thread = threading.get_ident()
        host = self._hosts.get(thread)
        if host is None or host.runtime is not runtime:
            if host is not None:
                host.end()
            host = self._hosts[thread] = Host(runtime, self._settings.limit)
        if self._is_stopped:
            host.stop()
        return host

    def _run_jobs(self, jobs: Sequence[Job]) -> None:
        """Run the tests of some jobs of one runtime and operator version, unless it cannot be started."""
        runtime = jobs[0].runtime
        if runtime.name in self.not_started:
            return
        with suppress(StoppedError), self._starting(runtime):
            host = self._host(runtime)
            version = self._version(host)
            with self._lock:
                self._progress(self._done, self._total, f"{runtime.name} {jobs[0].variant}/{jobs[0].source}")
            error = self._run_tests(host, version, jobs)
            missing = [job for job in jobs if job.key not in self.tests] if error else []
            for job in missing:  # One of several tests ended all of them.
                error = self._run_tests(host, version, [job]) if len(jobs) > 1 else error
                if error:
                    self._note(job.key, error)

    def _run_tests(self, host: Host, version: str, jobs: Sequence[Job]) -> str:
        """Run some tests; the internal error that ended them, or an empty text.

        Raises:
            StoppedError: after the host was stopped.
            UnsupportedError: if the runtime cannot be started again.
        """
        try:
            for test in self._results(host, version, jobs):
                self._note(test.key, test)
        except StoppedError:
            raise
        except Exception as error:
            if isinstance(error, UnsupportedError) and not host.is_running:
                raise
            host.end()  # It may be in the middle of an answer.
            return internal_error(error, jobs[0].key)
        return ""

    def _note(self, key: str, outcome: TestResult | str) -> None:
        """Note the result of a test, or the internal error instead of one."""
        with self._lock:
            if self._is_stopped:  # What came while the processes were ended is not a result.
                return
            self.internal_errors.pop(key, "")
            if isinstance(outcome, str):
                self.internal_errors[key] = outcome
            else:
                self.tests[key] = outcome
            self._done += 1

    def _results(self, host: Host, version: str, jobs: Sequence[Job]) -> Iterator[TestResult]:
        """Run tests of one operator version; their cases share models."""
        runtime, extent, seed = (host.runtime.name, version), self._settings.extent, self._settings.seed
        tests = {job: cases_of(job.variant, job.source, extent, seed, job.runtime.checks, job.is_thin) for job in jobs}

        def new_runner() -> CaseRunner:
            return CaseRunner(
                host,
                self._references,
                is_call=jobs[0].source == CALL,
                most_together=_MOST_TOGETHER[extent],
                is_thrifty=extent == "quick",
                refused_types=self._refused_types.setdefault(host.runtime.name, set()),
            )

        runner, results, smaller = new_runner(), dict[Job, list[CaseResult]](), dict[Job, list[Case]]()
        runner.run([case for cases in tests.values() for case in cases])
        for job, cases in tests.items():
            runner.separate(cases, self._explainer)
            pairs = ((runner.results.get(case), runner.co_resident.get(case)) for case in cases)
            results[job] = [item for items in pairs for item in items if item is not None]
            smaller[job] = smaller_cases(results[job])
        alone = new_runner().run([case for cases in smaller.values() for case in cases])
        for job, cases in tests.items():
            variant = job.variant
            names = (*runtime, str(variant.schema), variant.element_type.name, variant.rule, job.source)
            not_run = sum(case not in runner.results for case in cases)
            shown = [alone[case] for case in smaller[job] if case in alone]
            yield summary(names, results[job], not_run, shown, self._explainer)

    @contextmanager
    def _starting(self, runtime: Runtime) -> Iterator[None]:
        """Note a runtime that cannot be started."""
        try:
            yield
        except UnsupportedError as error:
            self.not_started[runtime.name] = str(error)

    def _version(self, host: Host) -> str:
        """The version of a runtime, which must be that of its other results.

        Raises:
            UnsupportedError: if it is another one, or the runtime cannot be started.
        """
        version = host.version()
        known = self._versions.setdefault(host.runtime.name, version)
        if known != version:
            raise changed(host.runtime, known, version)
        return version
