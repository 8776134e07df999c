"""Sample mutants of the source and run tests on each until one fails: what survives names a missing test.

Usage: python .ci/mutants.py [--count 20] [--seed 0] [--packages comparison tracing] [--recordings FOLDER]
       python .ci/mutants.py --lines src/eltwise/core/shapes.py:40

cosmic-ray finds the mutants. A module is drawn first, in every package as often, then a place in it, then a mutant;
what changes only docstrings, annotations, ``__all__`` or the ``frozen`` or ``kw_only`` of a dataclass is no mutant.
``recording.py`` records which of the fast tests of a package execute which lines, once until these modules change.
Those that execute the line of a mutant are run in one process, a case of each function before the second of any, the
shortest first; then those that execute another line of its module, since results that are cached hide who needs them;
then the tests of other packages that execute the line. Where no test of its package is known to execute the module, or
only its import executes the line, as of a table, all of them are run; where none executes the line, so are the slow
ones that name the module. ``limits.py`` limits time and memory.

A test that fails with a mutant is run without it, too: where it fails there as well, it is left out and says nothing of
any mutant. All share the kernel cache of the tests, since its keys have all that kernels are made from; mutants of what
reads and writes it have one of their own.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from recording import Recording, function_of, recorded
from sampling import PACKAGES, ROOT, SOURCE, TOP, Mutant, modules, of_lines, sample

CACHING = {SOURCE / "kernels" / f"{name}.py" for name in ("disk_cache", "image", "jit", "linking")}
COLLECTION = "collection"
"""What failed where tests cannot be collected, since they import the mutant."""

DIGEST = "tests/kernels/test_disk_cache.py::test_the_key_changes_with_the_sources_that_decide_the_code"
"""Fails with every change of two modules, whatever it is."""


def main() -> int:
    """Print each mutant with its outcome, and the share that was killed; 1 if one survived."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--packages", nargs="+", choices=PACKAGES, default=PACKAGES)
    parser.add_argument("--lines", nargs="+", metavar="PATH:LINE", help="all mutants of these lines, and no sample")
    parser.add_argument("--recordings", type=Path, metavar="FOLDER", default=Path.home() / ".cache/eltwise-mutants")
    options = parser.parse_args()
    mutants = [*(of_lines(options.lines) if options.lines else sample(options.packages, options.count, options.seed))]
    killed, total = Counter[str](), Counter[str]()
    with tempfile.TemporaryDirectory(prefix="eltwise-mutants-") as folder:
        copy = Copy(Path(folder).resolve(), options.recordings.resolve())
        for mutant in mutants:
            start, test = time.monotonic(), copy.killed_by(mutant)
            total[mutant.package] += 1
            killed[mutant.package] += test is not None
            outcome = "SURVIVED" if test is None else f"killed by {test}"
            print(f"{mutant}\n    {outcome}, {time.monotonic() - start:.0f} s", flush=True)
    for package, count in sorted(total.items()):
        print(f"{package}: {killed[package]} of {count}")
    print(f"{killed.total()} of {total.total()} killed ({killed.total() / max(total.total(), 1):.0%})")
    return int(killed != total)


def in_turns(seconds: dict[str, float]) -> list[str]:
    """One case of each test function, then the second of each, and so on; the shortest first."""
    cases, turn = Counter[str](), dict[str, int]()
    for test in sorted(seconds, key=lambda test: seconds[test]):
        turn[test] = cases[function_of(test)]
        cases[function_of(test)] += 1
    return sorted(seconds, key=lambda test: (turn[test], seconds[test]))


def statement(source: str, line: int) -> range:
    """The lines of the innermost statement of a line, without those of its body."""
    lines = range(line, line + 1)
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or line):
            body = getattr(node, "body", None)
            end = body[0].lineno if body else (node.end_lineno or line) + 1
            lines = range(node.lineno, end) if line < end else range(line, line + 1)
    return lines


@dataclass
class Copy:
    """A copy of the checkout in which one mutant at a time is tested."""

    folder: Path
    recordings: Path
    by_package: dict[str, Recording] = field(default_factory=dict)
    sound: set[str] = field(default_factory=set)
    broken: set[str] = field(default_factory=lambda: {DIGEST})
    """Tests that were run without a mutant, and passed or failed."""

    def __post_init__(self) -> None:
        files = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
        for name in filter(None, files.decode().split("\0")):
            (self.folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, self.folder / name)
        for compiled in [*ROOT.glob("src/**/__pycache__"), *ROOT.glob("tests/**/__pycache__")]:
            shutil.copytree(compiled, self.folder / compiled.relative_to(ROOT))

    def killed_by(self, mutant: Mutant) -> str | None:
        """The test that fails with a mutant and passes without; None where there is none."""
        others = [package for package in PACKAGES if package != mutant.package]
        is_executed = False
        for packages in ([mutant.package], others):
            executing, tests = self._tests(mutant, packages)
            is_executed |= bool(executing)
            if test := self._killed_by(mutant, dict.fromkeys(test.partition("::")[0] for test in tests), tests):
                return test
        return None if is_executed else self._killed_by(mutant, naming(mutant), [])

    def _killed_by(self, mutant: Mutant, files: Iterable[str], tests: list[str]) -> str | None:
        arguments = [*files]
        while arguments and (test := self._first_failure(mutant, arguments, tests)):
            if self._is_sound(test, arguments):
                return test
        return None

    def _tests(self, mutant: Mutant, packages: list[str]) -> tuple[set[str], list[str]]:
        """The tests that are known to execute the line, and those to run, in order.

        Of other packages than the mutant's, these are only those that execute its line, unless its import does.
        """
        recordings = [self._recording(package) for package in packages]

        def executing(lines: range | None) -> set[str]:
            return {test for recording in recordings for test in recording.executing(mutant.module, lines)}

        seconds = {test: duration for recording in recordings for test, duration in recording.seconds.items()}
        of_line = executing(range(mutant.line, mutant.line + 1)) or executing(statement(mutant.before, mutant.line))
        is_own, is_imported = packages == [mutant.package], of_line == {""}
        others = (executing(None) - {""} or {*seconds}) - of_line if is_own or is_imported else set[str]()
        readers = {*seconds} - of_line - others if is_own and is_imported else set[str]()
        steps = ({test: seconds[test] for test in seconds.keys() & step} for step in (of_line, others, readers))
        return of_line, [test for step in steps for test in in_turns(step)]

    def _recording(self, package: str) -> Recording:
        if package not in self.by_package:
            files = [*test_files(package), *modules(package)]
            self.by_package[package] = recorded(files, self.folder, self.recordings)
        return self.by_package[package]

    def _first_failure(self, mutant: Mutant, arguments: list[str], tests: list[str]) -> str | None:
        file = self.folder / mutant.module
        times = file.stat().st_atime_ns, file.stat().st_mtime_ns
        file.write_text(mutant.after, encoding="utf-8")
        try:
            with tempfile.TemporaryDirectory() as kernels:
                variables = {"ELTWISE_CACHE": kernels} if mutant.module in CACHING else {}
                return self._run(["-m", "not slow" if tests else "slow", *arguments], tests, variables)
        finally:
            file.write_text(mutant.before, encoding="utf-8")  # The checkout may have been edited meanwhile.
            os.utime(file, ns=times)  # What was compiled is of this time.

    def _is_sound(self, test: str, arguments: list[str]) -> bool:
        """Whether a test, or the collection of files, succeeds without any mutant."""
        if test not in self.sound | self.broken:
            alone = [*arguments, "--collect-only"] if test == COLLECTION else [test]
            (self.broken if self._run(alone, [], {}) else self.sound).add(test)
            if test in self.broken:
                print(f"left out, since it fails without any mutant: {test}", flush=True)
        if COLLECTION in self.broken:
            raise SystemExit(f"not all tests can be collected: {', '.join(arguments)}")
        return test in self.sound

    def _run(self, arguments: list[str], order: list[str], variables: dict[str, str]) -> str | None:
        """The first test that fails or exceeds a limit; None where there is none."""
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "--disable-plugin-autoload"]
        command += [f"-p{plugin}" for plugin in ("hypothesispytest", "pytest_eltwise", "limits")]
        command += [*(f"--deselect={test}" for test in self.broken), *arguments]
        with tempfile.TemporaryDirectory() as folder:
            current, listed = Path(folder, "test"), Path(folder, "order")
            listed.write_text(json.dumps(order), encoding="utf-8")
            environment = os.environ | {"PYTHONPATH": f"{self.folder / 'src'}{os.pathsep}{ROOT / '.ci'}"}
            environment |= {"CURRENT_TEST": str(current), "ORDER_OF_TESTS": str(listed)}
            environment |= {"PYTHONDONTWRITEBYTECODE": ""} | variables
            quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
            process = subprocess.Popen(command, env=environment, cwd=self.folder, start_new_session=True, **quiet)
            try:
                code = process.wait()
            finally:
                with suppress(ProcessLookupError):  # Also what a test that was ended has started.
                    os.killpg(process.pid, signal.SIGKILL)
            if code in (0, 5):  # 5: no test was selected
                return None
            return current.read_text(encoding="utf-8") if current.exists() else COLLECTION


def test_files(package: str) -> list[Path]:
    """The files with the tests of a package, relative to the checkout."""
    files = ROOT.glob("tests/test_*.py") if package == TOP else (ROOT / "tests" / package).rglob("test_*.py")
    return sorted(file.relative_to(ROOT) for file in files)


def naming(mutant: Mutant) -> list[str]:
    """The files with tests of a package that name a module."""
    dotted = ".".join(mutant.module.relative_to("src").with_suffix("").parts)
    pattern = (
        rf"{re.escape(dotted)}\b|from {re.escape(dotted.rpartition('.')[0])} import [^\n]*\b{mutant.module.stem}\b"
    )
    files = test_files(mutant.package)
    return [
        str(file) for file in files if mutant.module.stem in file.stem or re.search(pattern, (ROOT / file).read_text())
    ]


if __name__ == "__main__":
    sys.exit(main())
