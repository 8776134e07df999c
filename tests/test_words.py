"""Names in the code name what they hold: words that mean whatever stands near them only become fewer."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import eltwise

ROOT = Path(eltwise.__file__).parent

WORDS = {
    "found",
    "wanted",
    "words",
    "said",
    "told",
    "place",
    "kept",
    "made",
    "own",
    "given",
    "taken",
    "there",
    "beside",
}
"""Better are result, match, expected, message, index, path, cached, producer, or the noun of the field."""

LEFT = {"core": 3, "ir": 1, "kernels": 1, "ops": 3, "runtimes": 1}
"""How often variables, arguments and fields of a package still have such a name. Every other package has none."""


def bindings(tree: ast.AST) -> Iterator[str]:
    """The names that a module gives to variables, arguments and fields."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.MatchAs | ast.MatchStar) and node.name:
            yield node.name


def counts(sources: Iterator[tuple[str, str]]) -> Counter[str]:
    """How often each package gives such a name."""
    result = Counter[str]()
    for package, source in sources:
        result[package] += sum(name in WORDS for name in bindings(ast.parse(source)))
    return +result


def packages() -> Iterator[tuple[str, str]]:
    for path in ROOT.rglob("*.py"):
        yield path.relative_to(ROOT).parts[0].removesuffix(".py"), path.read_text(encoding="utf-8")


def test_no_package_gains_a_name_that_says_nothing() -> None:
    present = counts(packages())
    assert {package: count for package, count in present.items() if count > LEFT.get(package, 0)} == {}


def test_the_table_shrinks_with_the_code() -> None:
    """A package that has fewer than the table says is entered with what it has, so that no new ones come in."""
    present = counts(packages())
    assert {package: present[package] for package, count in LEFT.items() if present[package] < count} == {}


@pytest.mark.parametrize(
    "source",
    [
        "found = 1",
        "def f(wanted): pass",
        "def f(*, given=1): pass",
        "lambda place: place",
        "[made for made in ()]",
        "for own, (kept, _) in (): pass",
        "class A:\n    words: str",
        "with x() as there: pass",
        "match x:\n    case [beside]: pass",
        "(said := 1)",
    ],
)
def test_every_form_of_binding_counts(source: str) -> None:
    assert counts(iter([("p", source)]))["p"] >= 1
    assert not counts(iter([("p", "x.found = y.given(wanted=1, said=there)")]))
