"""Mutants of the source, as cosmic-ray finds them: a sample of a package, or all of some lines."""

from __future__ import annotations

import ast
import random
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path

from cosmic_ray import commands, plugins
from cosmic_ray.mutating import mutate_code
from cosmic_ray.work_db import WorkDB
from cosmic_ray.work_item import MutationSpec

ROOT = Path(__file__).resolve().parents[1]
SOURCE = Path("src/eltwise")
TOP = "eltwise"
"""The modules of no package; their tests lie beside the packages' tests."""

PACKAGES = [TOP, *sorted(path.parent.name for path in (ROOT / SOURCE).glob("*/__init__.py"))]


@dataclass(frozen=True)
class Mutant:
    """A module, relative to the checkout, that is changed at a line."""

    package: str
    module: Path
    line: int
    before: str
    after: str

    def __str__(self) -> str:
        lines = zip(self.before.splitlines(), self.after.splitlines(), strict=False)
        old, new = next((each for each in lines if len(set(each)) == 2), ("", ""))
        return f"{self.module}:{self.line}\n    - {old.strip()}\n    + {new.strip()}"


def sample(packages: list[str], count: int, seed: int) -> Iterator[Mutant]:
    """As many mutants, of each package in turn; the same ones for the same seed."""
    for number, package in zip(range(count), cycle(packages), strict=False):
        yield drawn(package, random.Random(f"{seed} {number}"))


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
    plugins = (ROOT / "src").glob("*.py") if package == "testing" else ()
    return sorted(path.relative_to(ROOT) for path in (*paths, *plugins))


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
            path = Path(mutation.module_path).relative_to(ROOT)
            return Mutant(package, path, mutation.start_pos[0], before, after)
    return None


def executed(source: str) -> str:
    """What a module computes: its syntax tree without docstrings, annotations, ``__all__``, ``frozen``, ``kw_only``."""
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

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        for decorator in node.decorator_list:
            if isinstance(decorator, ast.Call):  # As with annotations, the type checker sees it.
                decorator.keywords = [each for each in decorator.keywords if each.arg not in ("frozen", "kw_only")]
        return self.generic_visit(node)

    def visit_If(self, node: ast.If) -> ast.AST | None:
        is_for_types = isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        return None if is_for_types else self.generic_visit(node)
