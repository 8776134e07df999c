"""Inference on symbols, intervals and unknowns never contradicts what a run does, under every rule.

For each instantiation (every symbol one size, every interval any of its sizes) the oracle says what a run gives.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eltwise import oracle
from eltwise.core.broadcasting import Broadcast, Rule, broadcast
from eltwise.core.errors import EltwiseError
from eltwise.core.shapes import Shape, parse
from support.instances import holds, instances

Infer = Callable[[Rule, Shape, Shape], Broadcast]


RULES = [
    *(Rule("none"), Rule("numpy"), Rule("legacy", enabled=False), Rule("legacy", 0, enabled=False)),
    *(Rule(name, axis) for name in ("legacy", "pdpd") for axis in (-2, -1, 0, 1, 2)),
    Rule("channel", 1),
]
DIMENSIONS = ["0", "1", "2", "3", "?", "N", "M", "..1", "1..3", "2..", "2..3", "1.."]


@st.composite
def shape_pairs(draw: st.DrawFn) -> tuple[str, str]:
    """A and B in the text notation; B is often a changed run of A."""
    a = draw(st.lists(st.sampled_from(DIMENSIONS), max_size=3))
    start = draw(st.integers(0, len(a)))
    run = a[start : draw(st.integers(start, len(a)))]
    changes = st.sampled_from(["same", "same", "1", "any"])
    changed = [{"same": one, "1": "1", "any": draw(st.sampled_from(DIMENSIONS))}[draw(changes)] for one in run]
    b = draw(st.just(changed) | st.lists(st.sampled_from(DIMENSIONS), max_size=3))
    unknown = draw(st.sampled_from(["neither"] * 10 + ["A", "B"]))
    return "..." if unknown == "A" else ",".join(a), "..." if unknown == "B" else ",".join(b)


def contradiction(rule: Rule, a: Shape, b: Shape, infer: Infer = broadcast) -> str:
    """The first instantiation that shows inference wrong, in words; empty where there is none."""
    try:
        found = infer(rule, a, b)
    except EltwiseError:
        found = None
    for bound, (a_sizes, b_sizes) in instances(a, b):
        try:
            shape, placed = oracle.place(rule.name, [a_sizes, b_sizes], rule.axis, rule.enabled)
        except oracle.OracleRefusal:
            if found is not None and not found.assumptions:
                return f"{a_sizes} {b_sizes} is refused, but nothing was assumed"
            continue
        if found is None:
            return f"{a_sizes} {b_sizes} gives {shape}, but inference raises"
        if not holds(found.shape, bound, shape):
            return f"{a_sizes} {b_sizes} gives {shape}, which is not ({found.shape}) with {bound}"
        starts = found.starts
        if a.is_known and b.is_known and starts != placed:
            return f"{a_sizes} {b_sizes} lie at {placed[0]}, {placed[1]}, not at {starts}"
        if a.is_known and b.is_known and found.assumptions:
            return f"{found.assumptions} was assumed of known sizes"
    return ""


@pytest.mark.parametrize("rule", RULES, ids=str)
@settings(max_examples=250)
@given(pair=shape_pairs())
def test_inference_never_contradicts_a_run(rule: Rule, pair: tuple[str, str]) -> None:
    a, b = map(parse, pair)
    assert contradiction(rule, a, b) == "", f"{rule}: ({a}) and ({b})"


@pytest.mark.parametrize("rule", RULES, ids=str)
def test_inference_never_contradicts_a_run_on_any_pair_of_single_dimensions(rule: Rule) -> None:
    for a, b in itertools.product(map(parse, DIMENSIONS), repeat=2):
        assert contradiction(rule, a, b) == "", f"{rule}: ({a}) and ({b})"


@pytest.mark.parametrize(
    ("rule", "a", "b"),
    [
        (Rule("legacy"), "N,4,3", "N,1,3"),
        (Rule("legacy"), "2,4,N", "2,1,N"),
        (Rule("legacy"), "?,M,?", "?,1,?"),
        (Rule("legacy"), "2,4,3", "?,?,?"),
        (Rule("legacy", 0), "2,N,3", "2,1,..1"),
        (Rule("pdpd"), "?,3", "1,3"),
        (Rule("pdpd"), "1,3", "N,3"),
        (Rule("pdpd"), "..1,3", "..1,3"),
    ],
)
def test_inference_never_contradicts_a_run_where_it_is_easily_forgotten(rule: Rule, a: str, b: str) -> None:
    assert contradiction(rule, parse(a), parse(b)) == ""


# Wrong inferences, each of which must be found.


def forgetting_assumptions(rule: Rule, a: Shape, b: Shape) -> Broadcast:
    return Broadcast(broadcast(rule, a, b).shape, (None, None))


def refusing_symbols(rule: Rule, a: Shape, b: Shape) -> Broadcast:
    if not (a.is_known and b.is_known):
        raise EltwiseError("only sizes here")
    return broadcast(rule, a, b)


def taking_as_shape(rule: Rule, a: Shape, b: Shape) -> Broadcast:
    return Broadcast(a, (0, 0), broadcast(rule, a, b).assumptions)


def aligning_the_starts(rule: Rule, a: Shape, b: Shape) -> Broadcast:
    found = broadcast(rule, a, b)
    return Broadcast(found.shape, (0, 0), found.assumptions)


@pytest.mark.parametrize(
    ("wrong", "a", "b", "detail"),
    [
        (forgetting_assumptions, "N", "4", "(0,) (4,) is refused, but nothing was assumed"),
        (refusing_symbols, "N", "4", "(1,) (4,) gives (4,), but inference raises"),
        (taking_as_shape, "N", "M", "(1,) (0,) gives (0,), which is not (N) with {'M': 0, 'N': 1}"),
        (taking_as_shape, "3", "2,3", "(3,) (2, 3) gives (2, 3), which is not (3) with {}"),
        (aligning_the_starts, "3,3", "3", "(3, 3) (3,) lie at 0, 1, not at (0, 0)"),
    ],
)
def test_wrong_inference_is_found(wrong: Infer, a: str, b: str, detail: str) -> None:
    assert contradiction(Rule("numpy"), parse(a), parse(b)) == ""
    assert contradiction(Rule("numpy"), parse(a), parse(b), wrong) == detail
