"""What all tests share: one seed, printed, and Hypothesis settings that give the same examples every time."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import settings

from eltwise.core.machine import processors
from support.seeds import SEED

if TYPE_CHECKING:
    from support.browser import Page

# Kernels of the tests, of half-edited sources among them, stay out of the user's own cache.
_CACHES = Path(os.environ.get("XDG_CACHE_HOME", "") or Path.home() / ".cache")
os.environ.setdefault("ELTWISE_CACHE", str(_CACHES / "eltwise-tests"))

# Idle threads of NumPy's OpenBLAS spin, and where processors are shared they take ten times what they compute.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# A shell lets what it starts in the background ignore interrupts, and so would all processes that the tests start.
signal.signal(signal.SIGINT, signal.default_int_handler)

sys.path.insert(0, str(Path(__file__).parent))
settings.register_profile("eltwise", deadline=None, derandomize=True)
settings.load_profile("eltwise")


def pytest_report_header() -> str:
    return f"eltwise: random data is drawn with ELTWISE_SEED={SEED}"


_MEMORY = Path("/dev/shm")  # noqa: S108 - a folder of random name is made in it
_LEAST_FREE = 8 << 30


def _is_roomy_memory() -> bool:
    """Whether the system has a file system in memory in which the tests can write and start programs."""
    if not os.access(_MEMORY, os.W_OK) or shutil.disk_usage(_MEMORY).free < _LEAST_FREE:
        return False
    return not os.statvfs(_MEMORY).f_flag & os.ST_NOEXEC


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """One more process than processors: some tests wait, for clusters, environments and runtimes."""
    return processors() + 1


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    # No test sees what a loss of power leaves, and the disk is waited for some thousand times.
    pytest.MonkeyPatch().setattr(os, "fsync", os.fstat)
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None:
        config.pluginmanager.register(_Failures(reporter))
    if not hasattr(config, "workerinput"):  # The processes of xdist inherit the variables.
        if "TMPDIR" not in os.environ and _is_roomy_memory():  # On a disk, a file takes longer than most of its tests.
            temporary = TemporaryDirectory(prefix="eltwise-tests-", dir=_MEMORY, ignore_cleanup_errors=True)
            os.environ["TMPDIR"] = tempfile.tempdir = temporary.name
            config.add_cleanup(temporary.cleanup)
        folder = TemporaryDirectory(prefix="eltwise-test-results-")
        os.environ["ELTWISE_TEST_RESULTS"] = folder.name
        config.add_cleanup(folder.cleanup)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """What is collected stays until the end: to look for cycles among 15,000 tests took a third of the time.

    Later, to look for them every 700 objects takes up to a tenth of what the tests of conversions take.
    So did what pytest makes of each assert: it is written down for the next run, also where Python writes nothing else.
    """
    gc.disable()
    writes_nothing, sys.dont_write_bytecode = sys.dont_write_bytecode, False
    try:
        return (yield)
    finally:
        sys.dont_write_bytecode = writes_nothing
        gc.freeze()
        gc.set_threshold(20_000, 20, 20)
        gc.enable()


class _Failures:
    """Says what failed at once: what a machine keeps of a long output may end before the summary."""

    def __init__(self, reporter: Any) -> None:
        self._reporter = reporter

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._reporter.ensure_newline()
            self._reporter.write_line(f"FAILED {report.nodeid} ({report.when}): {report.longreprtext[-400:]}")


@pytest.fixture
def seed() -> int:
    return SEED


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[int, str, str]]:
    """Call the command line; gives the exit code, what went to stdout and what to stderr."""
    from eltwise.cli import main

    def call(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["eltwise", *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            main()
        written = capsys.readouterr()
        assert "Traceback" not in written.err
        return int(stop.value.code or 0), written.out, written.err

    return call


@pytest.fixture
def local_hosts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let all that runs models, but for conformance, run the runtimes in this process."""
    from support.local_hosts import use_local_hosts

    use_local_hosts(monkeypatch)


@pytest.fixture
def no_joint_faults(monkeypatch: pytest.MonkeyPatch) -> None:
    """Look for no faults that act jointly: in tests that ask for no cause this is most of what a trace takes."""
    monkeypatch.setattr("eltwise.comparison.value_hypotheses.joint_faults", lambda *_: iter(()))


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """A tab of a browser, for the tests of one module."""
    from support.browser import find_browser, open_browser

    program = find_browser()
    if program is None:
        pytest.skip("no Chromium is installed (Debian's package is chromium)")
    with open_browser(program, tmp_path_factory.mktemp("profile")) as page:
        yield page
