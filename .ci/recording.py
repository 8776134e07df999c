"""Which tests execute which lines of the package, and how long each takes, as coverage.py records it.

Tests that start other processes execute what these do, too. As a plugin of pytest, this module tells coverage.py which
test runs. All modules are imported before the first test, so that none seems to execute what it only imports. Of many
cases of one function a few are recorded; the others are taken to execute what any of these does, as slowly as any. Of
Hypothesis' examples a few are drawn.
"""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

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

    def __init__(self, seconds: dict[str, float | None], data: CoverageData) -> None:
        self._data = data
        self._others: dict[str, list[str]] = {}
        longest: dict[str, float] = {}
        for test, duration in seconds.items():
            function = function_of(test)
            longest[function] = max(longest.get(function, 0.0), duration or 0.0)
            if duration is None:
                self._others.setdefault(function, []).append(test)
        self.seconds = {test: longest[function_of(test)] if each is None else each for test, each in seconds.items()}

    def executing(self, module: Path, lines: range | None = None) -> set[str]:
        """The tests that execute a line of a module; "" stands for its import."""
        files = [file for file in self._data.measured_files() if Path(file).parts[-len(module.parts) :] == module.parts]
        by_line = self._data.contexts_by_lineno(files[0]) if files else {}
        recorded = {test for line, tests in by_line.items() if lines is None or line in lines for test in tests}
        functions = {function_of(test) for test in recorded}
        return recorded.union(*(self._others.get(function, ()) for function in functions))


def function_of(test: str) -> str:
    """A test without the parameters of the case."""
    return test.partition("[")[0]


def recorded(tests: list[str], copy: Path, folder: Path) -> Recording:
    """The recording of the fast tests of files and folders of a checkout; it is made where the folder has none."""
    data, seconds = folder / "coverage", folder / "seconds.json"
    if not (data.exists() and seconds.exists()):
        print(f"recording which tests of {folder.name} execute which lines", flush=True)
        shutil.rmtree(folder, ignore_errors=True)  # What an interrupted recording has left.
        folder.mkdir(parents=True)
        configuration = folder / "settings"
        configuration.write_text(SETTINGS.format(source=copy / "src", data=data), encoding="utf-8")
        environment = {name: value for name, value in os.environ.items() if name != "NAME_OF_TEST"}
        environment |= {"PYTHONPATH": f"{copy / 'src'}{os.pathsep}{Path(__file__).parent}"}
        environment |= {"COVERAGE_PROCESS_START": str(configuration), "SECONDS_OF_TESTS": str(seconds)}
        environment |= {"PYTHONDONTWRITEBYTECODE": "", "OPENBLAS_NUM_THREADS": "1"}
        command = [sys.executable, "-m", "pytest", "-q", "-m", "not slow", "-p", "no:cacheprovider"]
        command += ["--continue-on-collection-errors"]  # Of modules whose library is not installed.
        command += ["--disable-plugin-autoload", *(f"-p{name}" for name in ("hypothesispytest", "pytest_eltwise"))]
        with Path(folder, "output").open("wb") as output:
            subprocess.run([*command, "-precording", *tests], cwd=copy, env=environment, stdout=output, check=False)
        Coverage(config_file=str(configuration)).combine(strict=True)
    result = CoverageData(str(data))
    result.read()
    return Recording(json.loads(seconds.read_text(encoding="utf-8")), result)


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
