"""A rule said in another dialect means the same: for every choice of sizes, by the oracle's own index arithmetic."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from eltwise import oracle
from eltwise.core.broadcasting import Rule
from eltwise.core.errors import EltwiseError
from eltwise.core.shapes import Shape, parse
from eltwise.ops.schema import Broadcasting
from eltwise.passes.align_broadcast import Alignment, align

Sizes = tuple[int, ...]
DIMENSIONS = ["1", "2", "3", "?", "N", "1..2", "2..", "0"]
SHAPES = st.lists(st.sampled_from(DIMENSIONS), max_size=3).map(",".join)
RULES = st.one_of(
    st.sampled_from([Rule("none"), Rule("numpy"), Rule("legacy", -1, enabled=False), Rule("channel", 1)]),
    st.builds(Rule, st.sampled_from(["legacy", "pdpd"]), st.integers(-1, 3), base=st.just(0)),
)
TARGETS = st.sampled_from(["numpy", "legacy", "auto_broadcast", "none", "channel"])


@pytest.mark.parametrize(
    ("rule", "a", "b", "target", "expected"),
    [
        (Rule("legacy", 1), "2,3,4,5", "3,4", "numpy", Alignment((), 1)),
        (Rule("legacy", 0), "N,?,4,5", "N", "auto_broadcast", Alignment((), 3)),
        (Rule("legacy", -1), "2,3,4,5", "4,5", "numpy", Alignment()),
        (Rule("legacy", -1), "...", "4,5", "numpy", None),
        (Rule("legacy", 7), "3,3", "1,1", "numpy", Alignment()),
        (Rule("legacy", 0), "...", "", "numpy", None),
        (Rule("legacy", -1, enabled=False), "2,3", "2,3", "numpy", Alignment()),
        (Rule("legacy", -1, enabled=False), "?", "?", "auto_broadcast", Alignment((("auto_broadcast", "none"),))),
        (Rule("none"), "N,3", "N,3", "numpy", Alignment()),
        (Rule("none"), "2..,3", "2..,3", "numpy", Alignment()),
        (Rule("none"), "?", "?", "legacy", Alignment()),
        (Rule("pdpd", 0), "3,3,3", "3", "numpy", Alignment((), 2)),
        (Rule("pdpd", 0), "2,3,4,5", "2,3", "legacy", Alignment((("axis", 0), ("broadcast", 1)))),
        (Rule("numpy"), "?,?", "...", "auto_broadcast", Alignment()),
        (Rule("numpy"), "N,3", "3", "legacy", Alignment((("broadcast", 1),))),
        (Rule("numpy"), "2,3", "2,3", "legacy", Alignment()),
        (Rule("numpy"), "N,3", "N,3", "none", Alignment()),
        (Rule("none"), "?", "?", "none", Alignment()),
        (Rule("channel", 1), "N,3,4,4", "3", "numpy", Alignment((), 2)),
        (Rule("channel", 1), "N,3,?,4", "4", "numpy", Alignment()),
        (Rule("axis", 1), "...", "", "channel", Alignment()),
    ],
)
def test_what_can_be_said(rule: Rule, a: str, b: str, target: Broadcasting, expected: Alignment | None) -> None:
    found = align(rule, parse(a), parse(b), target)
    if expected is not None:
        assert (found.attributes, found.trailing) == (expected.attributes, expected.trailing)
        assert says_what_is_dropped(found)
        assert bool(found.reason) == bool(found.trailing or (target == "legacy" and found.attributes))
    else:
        assert (found.attributes, found.trailing) == ((), 0)


@pytest.mark.parametrize(
    ("rule", "a", "b", "target", "words"),
    [
        (Rule("none"), "?,3", "?,3", "numpy", "demands equal shapes.*dimension 0 is ? in A and ? in B"),
        (Rule("none"), "...", "3", "numpy", "a rank is not known"),
        (Rule("legacy", -1, enabled=False), "N", "M", "numpy", "dimension 0 is N in A and M in B"),
        (Rule("legacy", 1), "...", "3,4", "numpy", "rank of operand A is not known, and axis=1"),
        (Rule("pdpd", 0), "3,4", "...", "numpy", "rank of operand B is not known, and axis=0"),
        (Rule("numpy"), "3", "2,3", "legacy", "not known to broadcast as this version does"),
        (Rule("numpy"), "?", "3", "legacy", "not known to broadcast as this version does"),
        (Rule("numpy"), "1,3", "2,3", "legacy", "not known to broadcast"),
        (Rule("numpy"), "?,3", "?,3", "none", "demands equal shapes"),
        (Rule("pdpd", 0), "2,3", "2", "none", "demands equal shapes"),
        (Rule("pdpd", 0), "2,3,4", "2,1,4", "legacy", "not known to broadcast"),
    ],
)
def test_what_cannot(rule: Rule, a: str, b: str, target: Broadcasting, words: str) -> None:
    with pytest.raises(EltwiseError, match=words.replace("?", r"\?")):
        align(rule, parse(a), parse(b), target)


@settings(max_examples=400, deadline=None)
@given(RULES, SHAPES, SHAPES, TARGETS)
def test_every_choice_of_sizes_gives_the_same(rule: Rule, a: str, b: str, target: Broadcasting) -> None:
    if target == "legacy" and rule.name == "legacy":
        return
    try:
        alignment = align(rule, parse(a), parse(b), target)
    except EltwiseError:
        event("refused")
        return
    event("with assumptions" if alignment.assumptions else "exact")
    assert says_what_is_dropped(alignment)
    assert_same(rule, parse(a), parse(b), alignment, target)


def assert_same(rule: Rule, a: Shape, b: Shape, alignment: Alignment, target: Broadcasting) -> None:
    for a_sizes, b_sizes in choices(a, b):
        right = outcome(rule, a_sizes, b_sizes)
        found = outcome(said(alignment, target), a_sizes, (*b_sizes, *(1,) * alignment.trailing))
        if right is None:
            # What is assumed is said: only then may the other rule take what this one refuses.
            assert found is None or alignment.assumptions, (a_sizes, b_sizes)
        elif target != "channel" or right.shape == a_sizes:  # Operators with this rule keep A's shape.
            assert found is not None, (a_sizes, b_sizes)
            assert found.shape == right.shape
            assert (found == right).all(), (a_sizes, b_sizes)


def says_what_is_dropped(alignment: Alignment) -> bool:
    """Whether the reason names dropped dimensions where there are some, and only there."""
    return ("are dropped" in alignment.reason) == (alignment.leading > 0 or alignment.trailing < 0)


def said(alignment: Alignment, target: Broadcasting) -> Rule:
    """The rule that a reader of the new node applies."""
    given = dict(alignment.attributes)
    if target == "legacy":
        axis = given.get("axis", -1)
        assert isinstance(axis, int)
        return Rule("legacy", axis, given.get("broadcast") == 1)
    if target == "channel":
        return Rule("channel", 1)
    return Rule("none") if "none" in (given.get("auto_broadcast"), target) else Rule("numpy")


def outcome(rule: Rule, a: Sizes, b: Sizes) -> np.ndarray | None:
    """Which elements of A and B meet where, None where the rule refuses the shapes."""
    first = 1000 * np.arange(np.prod(a, dtype=int), dtype=np.int64).reshape(a)
    second = np.arange(np.prod(b, dtype=int), dtype=np.int64).reshape(b)
    try:
        return oracle.evaluate("subtract", first, second, rule=rule.name, axis=rule.axis, enabled=rule.enabled)
    except oracle.OracleRefusal:
        return None


def choices(a: Shape, b: Shape) -> Iterator[tuple[Sizes, Sizes]]:
    """Every choice of small sizes for two declared shapes; a symbol is one size."""
    assert a.dimensions is not None
    assert b.dimensions is not None
    dimensions = [*a.dimensions, *b.dimensions]
    for sizes in itertools.product(*([size for size in range(4) if found.may_be(size)] for found in dimensions)):
        symbols = {size for size, found in zip(sizes, dimensions, strict=True) if found.symbol}
        if len(symbols) <= 1:
            yield sizes[: len(a.dimensions)], sizes[len(a.dimensions) :]


def test_the_comparison_finds_what_ignores_the_axis() -> None:
    rule, a, b = Rule("legacy", 0), parse("3,3,3"), parse("3")
    assert_same(rule, a, b, align(rule, a, b, "numpy"), "numpy")
    with pytest.raises(AssertionError):
        assert_same(rule, a, b, Alignment(), "numpy")
    with pytest.raises(AssertionError):
        assert_same(Rule("none"), parse("?"), parse("?"), Alignment(), "numpy")
