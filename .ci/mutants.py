"""Sample mutants of the source and run tests on each until one fails: what survives names a missing test.

Usage: python .ci/mutants.py [--count 20] [--seed 0] [--packages comparison tracing] [--workers 1]
       python .ci/mutants.py --lines src/eltwise/core/shapes.py:40

cosmic-ray finds the mutants. A module is drawn first, in every package as often, then a place in it, then a mutant;
what changes only docstrings, annotations or ``__all__`` is no mutant. The fast tests that name the module come first,
then the others of its package. A test that fails with a mutant is run without it, too: where it fails there as well, it
is left out and says nothing of any mutant. All share the kernel cache of the tests, since its keys have all that
kernels are made from; mutants of what reads and writes it have one of their own. ``limits.py`` ends tests that take
more processor time or memory than any does.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import cycle
from pathlib import Path
from queue import SimpleQueue

from cosmic_ray import commands, plugins
from cosmic_ray.mutating import mutate_code
from cosmic_ray.work_db import WorkDB
from cosmic_ray.work_item import MutationSpec

ROOT = Path(__file__).resolve().parents[1]
SOURCE = Path("src/eltwise")
TOP = "eltwise"
"""The modules of no package; their tests lie beside the packages' tests."""

PACKAGES = [TOP, *sorted(path.name for path in (ROOT / SOURCE).iterdir() if (ROOT / "tests" / path.name).is_dir())]
CACHING = {SOURCE / "kernels" / f"{name}.py" for name in ("disk_cache", "image", "jit", "linking")}
COLLECTION = "collection"
"""What failed where tests cannot be collected, since they import the mutant."""

DIGEST = "tests/kernels/test_disk_cache.py::test_the_key_changes_with_the_sources_that_decide_the_code"
"""Fails with every change of two modules, whatever it is."""


@dataclass(frozen=True)
class Mutant:
    """A changed module; its path is relative to the checkout."""

    package: str
    module: Path
    before: str
    after: str

    def __str__(self) -> str:
        lines = [*zip(self.before.splitlines(), self.after.splitlines(), strict=False)]
        number, (old, new) = next((each for each in enumerate(lines, 1) if len(set(each[1])) == 2), (1, lines[0]))
        return f"{self.module}:{number}\n    - {old.strip()}\n    + {new.strip()}"


def main() -> int:
    """Print each mutant with its outcome, and the share that was killed; 1 if one survived."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--packages", nargs="+", choices=PACKAGES, default=PACKAGES)
    parser.add_argument("--lines", nargs="+", metavar="PATH:LINE", help="all mutants of these lines, and no sample")
    parser.add_argument("--workers", type=int, default=1, help="copies of the checkout that are tested at a time")
    options = parser.parse_args()
    if options.lines:
        sample = [lambda mutant=mutant: mutant for mutant in of_lines(options.lines)]
    else:
        in_turn = zip(range(options.count), cycle(options.packages), strict=False)
        sample = [partial(drawn, package, random.Random(f"{options.seed} {number}")) for number, package in in_turn]
    killed, total = Counter[str](), Counter[str]()
    with tempfile.TemporaryDirectory(prefix="eltwise-mutants-") as folder:
        copies: SimpleQueue[Copy] = SimpleQueue()
        for number in range(options.workers):
            copies.put(Copy(Path(folder, str(number))))
        with ThreadPoolExecutor(options.workers) as executor:
            for mutant, reason in executor.map(lambda make: tested(make(), copies), sample):
                total[mutant.package] += 1
                killed[mutant.package] += reason is not None
                print(f"{'SURVIVED' if reason is None else 'killed  '} {mutant}", flush=True)
                print(f"    by {reason}" * (reason is not None), flush=True)
    for package, count in sorted(total.items()):
        print(f"{package}: {killed[package]} of {count}")
    print(f"{killed.total()} of {total.total()} killed ({killed.total() / max(total.total(), 1):.0%})")
    return int(killed != total)


def drawn(package: str, draw: random.Random) -> Mutant:
    """A mutant of a package."""
    paths = modules(package)
    while True:
        (path,) = draw.choices(paths, [(ROOT / path).stat().st_size for path in paths])
        places = [*by_place(path).values()]
        mutant = made(package, draw.choice(draw.choice(places))) if places else None
        if mutant is not None:
            return mutant


def of_lines(lines: list[str]) -> Iterator[Mutant]:
    """All mutants of lines, each of which is named as ``path:number``."""
    for line in lines:
        path, number = line.rsplit(":", 1)
        package = Path(path).relative_to(SOURCE).parts[0]
        for (first, _column), mutations in by_place(Path(path)).items():
            mutants = (made(package if package in PACKAGES else TOP, mutation) for mutation in mutations)
            yield from (mutant for mutant in mutants if mutant is not None and first == int(number))


def modules(package: str) -> list[Path]:
    """The modules of a package, relative to the checkout."""
    folder = ROOT / SOURCE
    paths = folder.glob("*.py") if package == TOP else (folder / package).rglob("*.py")
    return sorted(path.relative_to(ROOT) for path in paths)


def by_place(path: Path) -> dict[tuple[int, int], list[MutationSpec]]:
    """All mutations of a module by the line and column that they change."""
    places: dict[tuple[int, int], list[MutationSpec]] = {}
    with closing(WorkDB(":memory:", WorkDB.Mode.create)) as database:
        commands.init([ROOT / path], database, {})
        for item in database.work_items:
            (mutation,) = item.mutations
            places.setdefault(mutation.start_pos, []).append(mutation)
    return places


def made(package: str, mutation: MutationSpec) -> Mutant | None:
    """The changed module; None where it computes the same, and where it is no Python, as where stars are replaced."""
    operator = plugins.get_operator(mutation.operator_name)(**mutation.operator_args)
    before = Path(mutation.module_path).read_text(encoding="utf-8")
    after = mutate_code(before, operator, mutation.occurrence)
    with suppress(SyntaxError):
        if after is not None and executed(before) != executed(after):
            return Mutant(package, Path(mutation.module_path).relative_to(ROOT), before, after)
    return None


def executed(source: str) -> str:
    """What a module computes: its syntax tree without docstrings, annotations and ``__all__``."""
    return ast.dump(_Executed().visit(ast.parse(source)))


class _Executed(ast.NodeTransformer):
    """Leaves out of a module what decides nothing that it computes."""

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        return None if isinstance(node.value, ast.Constant) else self.generic_visit(node)

    def visit_Assign(self, node: ast.Assign) -> ast.AST | None:
        is_list_of_names = isinstance(node.targets[0], ast.Name) and node.targets[0].id == "__all__"
        return None if is_list_of_names else self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        node.annotation = ast.Constant(None)
        return self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns = None
        return self.generic_visit(node)

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.annotation = None
        return node

    def visit_If(self, node: ast.If) -> ast.AST | None:
        is_for_types = isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        return None if is_for_types else self.generic_visit(node)


def tests_of(mutant: Mutant) -> list[list[str]]:
    """The tests to run, in steps: those that name the module, the others of its package, and all that call a command.

    The last ones are run for the command line only; most of its tests lie with what the commands are for.
    """
    package, name = mutant.package, mutant.module.stem
    dotted = ".".join(mutant.module.relative_to("src").with_suffix("").parts)
    pattern = rf"{re.escape(dotted)}\b|from {re.escape(dotted.rpartition('.')[0])} import [^\n]*\b{name}\b"
    named = re.compile(rf'{pattern}|\bcli\("{name}"' if package == "cli" else pattern)
    texts = {file.relative_to(ROOT): file.read_text(encoding="utf-8") for file in ROOT.glob("tests/**/test_*.py")}
    home = Path("tests") if package == TOP else Path("tests", package)
    of_package = {file for file in texts if (file.parent == home if package == TOP else home in file.parents)}
    naming = {file for file in texts if named.search(texts[file]) or (file in of_package and name in file.stem)}
    calling = {file for file in texts if "cli(" in texts[file]} if package == "cli" else set[Path]()
    steps = [naming, of_package - naming, calling - of_package - naming]
    return [[str(mutant.module), *map(str, sorted(naming))], *(sorted(map(str, step)) for step in steps[1:])]


@dataclass
class Copy:
    """A copy of the checkout in which one mutant at a time is tested."""

    folder: Path
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
        for files in filter(None, tests_of(mutant)):
            while test := self._first_failure(mutant, files):
                if self._is_sound(test, files):
                    return test
        return None

    def _first_failure(self, mutant: Mutant, files: list[str]) -> str | None:
        file = self.folder / mutant.module
        file.write_text(mutant.after, encoding="utf-8")
        try:
            with tempfile.TemporaryDirectory() as kernels:
                return self._run(files, {"ELTWISE_CACHE": kernels} if mutant.module in CACHING else {})
        finally:
            file.write_text(mutant.before, encoding="utf-8")

    def _is_sound(self, test: str, files: list[str]) -> bool:
        """Whether a test, or the collection of files, succeeds without any mutant."""
        if test not in self.sound | self.broken:
            alone = [*files, "--collect-only"] if test == COLLECTION else [test]
            (self.broken if self._run(alone, {}) else self.sound).add(test)
            if test in self.broken:
                print(f"left out, since it fails without any mutant: {test}", flush=True)
        if COLLECTION in self.broken:
            raise SystemExit(f"not all tests can be collected: {', '.join(files)}")
        return test in self.sound

    def _run(self, tests: list[str], variables: dict[str, str]) -> str | None:
        """The first test that fails or exceeds a limit; None where there is none."""
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-m", "not slow", "-p", "no:cacheprovider"]
        command += [f"-p{plugin}" for plugin in ("_hypothesis_pytestplugin", "pytest_eltwise", "limits")]
        command += [*(f"--deselect={test}" for test in self.broken), *tests]
        with tempfile.TemporaryDirectory() as folder:
            current = Path(folder, "test")
            environment = os.environ | {"PYTHONPATH": f"{self.folder / 'src'}{os.pathsep}{self.folder / '.ci'}"}
            environment |= {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # Some take a second to load.
            environment |= {"PYTHONDONTWRITEBYTECODE": "1", "CURRENT_TEST": str(current)} | variables
            done = subprocess.run(command, env=environment, cwd=self.folder, capture_output=True, check=False)
            if done.returncode in (0, 5):  # 5: no test was selected
                return None
            return current.read_text(encoding="utf-8") if current.exists() else COLLECTION


def tested(mutant: Mutant, copies: SimpleQueue[Copy]) -> tuple[Mutant, str | None]:
    """A mutant and the test that kills it."""
    copy = copies.get()
    try:
        return mutant, copy.killed_by(mutant)
    finally:
        copies.put(copy)


if __name__ == "__main__":
    sys.exit(main())
