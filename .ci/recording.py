"""Which tests execute which lines of the package, and how long each takes, as coverage.py records it.

Each file with tests has a recording of its own, which stays as it is until a module changes that these tests executed.
Tests that start other processes execute what these do, too. As a plugin of pytest, this module tells coverage.py which
test runs. All modules are imported before the first test, so that none seems to execute what it only imports. Of many
cases of one function a few are recorded; the others are taken to execute what any of these does, as slowly as any. Of
Hypothesis' examples a few are drawn.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import pkgutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from coverage import Coverage, CoverageData
from hypothesis import settings

SETTINGS = """[run]
source = {source}
data_file = {data}
parallel = true
sigterm = true
core = ctrace
context = ${{NAME_OF_TEST-}}
disable_warnings = no-data-collected, module-not-imported, module-not-measured, couldnt-parse, already-imported
"""
RECORDED_CASES = 3
EXAMPLES = 10
SECONDS: dict[str, float | None] = {}
"""How long each test took; None for one that was not recorded."""


class Recording:
    """Tests with their seconds, and the lines that they execute."""

    def __init__(self, files: list[dict[str, Any]]) -> None:
        self._lines = [file["lines"] for file in files]
        self._others: dict[str, list[str]] = {}
        longest: dict[str, float] = {}
        seconds: dict[str, float | None] = {test: each for file in files for test, each in file["seconds"].items()}
        for test, duration in seconds.items():
            function = function_of(test)
            longest[function] = max(longest.get(function, 0.0), duration or 0.0)
            if duration is None:
                self._others.setdefault(function, []).append(test)
        self.seconds = {test: longest[function_of(test)] if each is None else each for test, each in seconds.items()}

    def executing(self, module: Path, lines: range | None = None) -> set[str]:
        """The tests that execute a line of a module; "" stands for its import."""
        groups = [group for file in self._lines for group in file.get(str(module), ())]
        mask = -1 if lines is None else _mask(lines)
        recorded = {test for each, tests in groups if each & mask for test in tests}
        functions = {function_of(test) for test in recorded}
        return recorded.union(*(self._others.get(function, ()) for function in functions))


def function_of(test: str) -> str:
    """A test without the parameters of the case."""
    return test.partition("[")[0]


def file_of(test: str) -> str:
    """The file of a test."""
    return test.partition("::")[0]


def _mask(lines: Iterable[int]) -> int:
    """A bit for each line."""
    return sum(1 << line for line in lines)


def recorded(files: list[Path], copy: Path, folder: Path) -> Recording:
    """The recording of the fast tests of files of a checkout; those are run whose recording is missing or too old."""
    stale = [file for file in files if not _is_current(_recording_of(file, folder), copy)]
    if stale:
        print(f"recording which lines the tests of {len(stale)} files of {len(files)} execute", flush=True)
        with tempfile.TemporaryDirectory() as scratch:
            _record(stale, copy, folder, Path(scratch))
    return Recording([json.loads(_recording_of(file, folder).read_text(encoding="utf-8")) for file in files])


def _recording_of(file: Path, folder: Path) -> Path:
    return folder / f"{file}.json"


def _is_current(recording: Path, copy: Path) -> bool:
    if not recording.exists():
        return False
    digests: dict[str, str] = json.loads(recording.read_text(encoding="utf-8"))["digests"]
    return all(_digest(copy / name) == digest for name, digest in digests.items())


def _digest(file: Path) -> str:
    return hashlib.sha256(file.read_bytes()).hexdigest() if file.exists() else ""


def _record(files: list[Path], copy: Path, folder: Path, scratch: Path) -> None:
    """Run the fast tests of files, and write a recording for each file."""
    data, seconds, configuration = scratch / "coverage", scratch / "seconds.json", scratch / "settings"
    configuration.write_text(SETTINGS.format(source=f"{copy / 'src'},{copy / 'tests'}", data=data), encoding="utf-8")
    environment = {name: value for name, value in os.environ.items() if name != "NAME_OF_TEST"}
    environment |= {"PYTHONPATH": f"{copy / 'src'}{os.pathsep}{Path(__file__).parent}"}
    environment |= {"COVERAGE_PROCESS_START": str(configuration), "SECONDS_OF_TESTS": str(seconds)}
    environment |= {"PYTHONDONTWRITEBYTECODE": "", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "-m", "not slow", "-p", "no:cacheprovider"]
    command += ["--continue-on-collection-errors"]  # Of modules whose library is not installed.
    command += ["--disable-plugin-autoload", *(f"-p{name}" for name in ("hypothesispytest", "pytest_eltwise"))]
    command += ["-precording", *map(str, files)]
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "output").open("wb") as output:
        subprocess.run(command, cwd=copy, env=environment, stdout=output, check=False)
    Coverage(config_file=str(configuration)).combine(strict=True)
    measured = CoverageData(str(data))
    measured.read()
    durations: dict[str, float | None] = json.loads(seconds.read_text(encoding="utf-8"))
    by_file: dict[str, dict[str, Any]] = {
        str(file): {"digests": {str(file): _digest(copy / file)}, "seconds": {}, "lines": {}} for file in files
    }
    for test, duration in durations.items():
        by_file[file_of(test)]["seconds"][test] = duration
    for path in measured.measured_files():
        _add(measured, path, copy, by_file)
    for file, content in by_file.items():
        recording = _recording_of(Path(file), folder)
        recording.parent.mkdir(parents=True, exist_ok=True)
        recording.write_text(json.dumps(content), encoding="utf-8")


def _add(measured: CoverageData, path: str, copy: Path, by_file: dict[str, dict[str, Any]]) -> None:
    """Add the lines of a module to the recordings of those whose tests execute it; lines of the same tests are one."""
    groups: dict[tuple[str, ...], list[int]] = {}
    for line, tests in measured.contexts_by_lineno(path).items():
        groups.setdefault(tuple(sorted(tests)), []).append(line)
    module = str(Path(path).relative_to(copy))
    for tests, lines in groups.items():
        for file in {file_of(test) for test in tests}:
            for content in [by_file[file]] if file else by_file.values():
                chosen = [test for test in tests if file_of(test) == file]
                content["lines"].setdefault(module, []).append((_mask(lines), chosen))
                if file:
                    content["digests"][module] = _digest(copy / module)


def pytest_configure() -> None:
    """Import all modules but the one that is a script, and let processes of runtimes be recorded."""
    import eltwise

    for module in pkgutil.walk_packages(eltwise.__path__, "eltwise."):
        with suppress(ImportError, FileNotFoundError):
            importlib.import_module(module.name)
    from eltwise.runtimes import host

    host.kill = partial(_ended, host.kill)


def _ended(kill: Callable[[subprocess.Popen[bytes]], None], process: subprocess.Popen[bytes]) -> None:
    """Let the process of a runtime write down what it executed, before it is killed."""
    process.terminate()
    with suppress(subprocess.TimeoutExpired):
        process.wait(5)
    kill(process)


def pytest_sessionstart() -> None:
    """Draw few examples; tests take their number when they are collected."""
    settings.register_profile("recording", settings.get_profile("eltwise"), max_examples=EXAMPLES)
    settings.load_profile("recording")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave a few cases of each function, as far apart as there are."""
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        cases.setdefault(function_of(item.nodeid), []).append(item)
        SECONDS[item.nodeid] = None
    shares = [number / (RECORDED_CASES - 1) for number in range(RECORDED_CASES)]
    chosen = {each[int(share * (len(each) - 1))] for each in cases.values() for share in shares}
    items[:] = [item for item in items if item in chosen]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Record a test under its name, in this process and in those that it starts."""
    os.environ["NAME_OF_TEST"] = item.nodeid
    measured = Coverage.current()
    assert measured is not None
    measured.switch_context(item.nodeid)
    start = time.perf_counter()
    yield
    SECONDS[item.nodeid] = round(time.perf_counter() - start, 4)


def pytest_sessionfinish() -> None:
    """Write down how long the tests took."""
    Path(os.environ["SECONDS_OF_TESTS"]).write_text(json.dumps(SECONDS), encoding="utf-8")
