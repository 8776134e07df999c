"""Names in the code name what they hold: none is a word that means whatever stands near it."""

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


def test_no_package_has_a_name_that_says_nothing() -> None:
    assert counts(packages()) == {}


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
