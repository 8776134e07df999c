"""Which tests execute which lines of the package, and how long each takes, as coverage.py records it.

Tests that start other processes execute what these do, too. As a plugin of pytest, this module tells coverage.py which
test runs. All modules are imported before the first test, so that none seems to execute what it only imports.
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
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from coverage import Coverage, CoverageData

SETTINGS = """[run]
source = {source}
data_file = {data}
parallel = true
sigterm = true
core = ctrace
context = ${{NAME_OF_TEST-}}
disable_warnings = no-data-collected, module-not-imported, module-not-measured, couldnt-parse, already-imported
"""
SECONDS: dict[str, float] = {}


@dataclass(frozen=True)
class Recording:
    """Tests with their seconds, and the lines that they execute."""

    seconds: dict[str, float]
    data: CoverageData

    def executing(self, module: Path, lines: range | None = None) -> set[str]:
        """The tests that execute a line of a module; "" stands for its import."""
        files = [file for file in self.data.measured_files() if Path(file).parts[-len(module.parts) :] == module.parts]
        by_line = self.data.contexts_by_lineno(files[0]) if files else {}
        return {test for line, tests in by_line.items() if lines is None or line in lines for test in tests}


def recorded(tests: list[str], copy: Path, folder: Path) -> Recording:
    """The recording of the fast tests of files and folders of a checkout; it is made where the folder has none."""
    data, seconds = folder / "coverage", folder / "seconds.json"
    if not (data.exists() and seconds.exists()):
        shutil.rmtree(folder, ignore_errors=True)  # What an interrupted recording has left.
        folder.mkdir(parents=True)
        settings = folder / "settings"
        settings.write_text(SETTINGS.format(source=copy / "src/eltwise", data=data), encoding="utf-8")
        environment = {name: value for name, value in os.environ.items() if name != "NAME_OF_TEST"}
        environment |= {"PYTHONPATH": f"{copy / 'src'}{os.pathsep}{Path(__file__).parent}"}
        environment |= {"COVERAGE_PROCESS_START": str(settings), "SECONDS_OF_TESTS": str(seconds)}
        environment |= {"PYTHONDONTWRITEBYTECODE": ""}
        command = [sys.executable, "-m", "pytest", "-q", "-m", "not slow", "-p", "no:cacheprovider"]
        command += ["--disable-plugin-autoload", *(f"-p{name}" for name in ("hypothesispytest", "pytest_eltwise"))]
        with Path(folder, "output").open("wb") as output:
            subprocess.run([*command, "-precording", *tests], cwd=copy, env=environment, stdout=output, check=False)
        Coverage(config_file=str(settings)).combine(strict=True)
    result = CoverageData(str(data))
    result.read()
    return Recording(json.loads(seconds.read_text(encoding="utf-8")), result)


def pytest_configure() -> None:
    """Import all modules but the one that is a script."""
    import eltwise

    for module in pkgutil.walk_packages(eltwise.__path__, "eltwise."):
        with suppress(ImportError, FileNotFoundError):
            importlib.import_module(module.name)


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
