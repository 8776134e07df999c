"""Sample mutants of the source and run the tests of their package on each: what survives names a missing test.

Usage: python .ci/mutants.py [--count 20] [--seed 0] [--packages comparison tracing scale] [--workers 1]

cosmic-ray finds and makes the mutants, in a copy of the checkout; each has a kernel cache of its own. A place in the
source is drawn first, in every package as often, then one of its mutants; annotations are left out.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from itertools import cycle
from pathlib import Path

from cosmic_ray import commands, plugins
from cosmic_ray.mutating import use_mutation
from cosmic_ray.work_db import WorkDB
from cosmic_ray.work_item import MutationSpec

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = sorted(path.name for path in (ROOT / "src/eltwise").iterdir() if (ROOT / "tests" / path.name).is_dir())
SECONDS = 540
"""Tests that take longer count as failed: most such mutants loop forever."""

Place = tuple[Path, tuple[int, int]]


def main() -> int:
    """Print each mutant with its outcome, and the share that was killed; 1 if one survived."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--packages", nargs="+", choices=PACKAGES, default=PACKAGES)
    parser.add_argument("--workers", default="1", help="processes of pytest")
    options = parser.parse_args()
    survivors, draw = 0, random.Random(options.seed)
    with tempfile.TemporaryDirectory(prefix="eltwise-mutants-") as folder:
        copy = Path(folder)
        files = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
        for name in filter(None, files.decode().split("\0")):
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, copy / name)
        os.chdir(copy)
        for package in options.packages:
            if failure := failure_of(package, copy, options.workers):
                print(f"without any mutant the tests of {package} fail:\n{failure}")
                return 2
        for package, mutation in sampled(options.packages, options.count, draw):
            is_killed, change = tested(package, mutation, copy, options.workers)
            survivors += not is_killed
            print(f"{'killed  ' if is_killed else 'SURVIVED'} {change}", flush=True)
    killed = options.count - survivors
    print(f"{killed} of {options.count} killed ({killed / options.count:.0%})")
    return int(survivors > 0)


def sampled(packages: list[str], count: int, draw: random.Random) -> Iterator[tuple[str, MutationSpec]]:
    """Mutants of the packages in turn."""
    places = {package: list(by_place(package).values()) for package in packages}
    for package, _number in zip(cycle(packages), range(count)):
        yield package, draw.choice(draw.choice(places[package]))


def by_place(package: str) -> dict[Place, list[MutationSpec]]:
    """All mutants of a package by the place in the source that they change."""
    modules = sorted(Path("src/eltwise", package).rglob("*.py"))
    ignored = {module: list(annotations(ast.parse(module.read_text()))) for module in modules}
    places: dict[Place, list[MutationSpec]] = {}
    with closing(WorkDB(":memory:", WorkDB.Mode.create)) as database:
        commands.init(modules, database, {})
        for item in database.work_items:
            (mutation,) = item.mutations
            if not any(begin <= mutation.start_pos < end for begin, end in ignored[mutation.module_path]):
                places.setdefault((mutation.module_path, mutation.start_pos), []).append(mutation)
    return places


def annotations(tree: ast.AST) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
    """Where annotations begin and end; nothing reads most of them."""
    for node in ast.walk(tree):
        for found in (getattr(node, "annotation", None), getattr(node, "returns", None)):
            if found is not None:
                yield (found.lineno, found.col_offset), (found.end_lineno, found.end_col_offset)


def tested(package: str, mutation: MutationSpec, copy: Path, workers: str) -> tuple[bool, str]:
    """Whether a test of the package fails with a mutant, and the line before and after."""
    operator = plugins.get_operator(mutation.operator_name)(**mutation.operator_args)
    with use_mutation(mutation.module_path, operator, mutation.occurrence) as (before, after):
        is_killed = failure_of(package, copy, workers) is not None
    old, new = (text.splitlines() for text in (before, after))
    line = next((index for index, pair in enumerate(zip(old, new, strict=False)) if pair[0] != pair[1]), 0)
    return is_killed, f"{mutation.module_path}:{line + 1}\n    - {old[line].strip()}\n    + {new[line].strip()}"


def failure_of(package: str, copy: Path, workers: str) -> str | None:
    """The last lines of the fast tests of a package, where they fail or take too long; None where they pass."""
    python = os.environ.get("PYTHON", sys.executable)
    command = [python, "-m", "pytest", "-x", "-q", "-n", workers, "-m", "not slow", "-p", "no:cacheprovider"]
    with tempfile.TemporaryDirectory() as cache:
        environment = os.environ | {"PYTHONPATH": str(copy / "src"), "ELTWISE_CACHE": cache}
        try:
            command.append(f"tests/{package}")
            done = subprocess.run(command, env=environment, cwd=copy, timeout=SECONDS, capture_output=True, check=False)
        except subprocess.TimeoutExpired:
            return f"they took more than {SECONDS} seconds"
    return None if done.returncode == 0 else "\n".join(done.stdout.decode(errors="replace").splitlines()[-20:])


if __name__ == "__main__":
    sys.exit(main())
