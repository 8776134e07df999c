"""The broadcast rules on shapes that are known or not, rule by rule: what docs/semantics.md says, every sentence."""

from __future__ import annotations

import pytest

from eltwise.core.broadcasting import Rule, broadcast
from eltwise.core.errors import AttributeValueError, ShapeError
from eltwise.core.shapes import parse

NONE, NUMPY, PDPD, LEGACY = Rule("none"), Rule("numpy"), Rule("pdpd"), Rule("legacy")
CHANNEL = Rule("channel", 1)
EQUAL = Rule("legacy", enabled=False)


def pdpd(axis: int) -> Rule:
    return Rule("pdpd", axis)


def legacy(axis: int) -> Rule:
    return Rule("legacy", axis)


# A rule, A, B, the result, and whether something has to be assumed.
RESULTS = [
    # none: same rank, each pair agrees, the unknown rank takes the other side's shape.
    (NONE, "N,3", "N,3", "N,3", False),
    (NONE, "?,3", "2,3", "2,3", True),
    (NONE, "2,3", "?,N", "2,3", True),
    (NONE, "2..5,..4", "4..,1..", "4..5,1..4", True),
    (NONE, "N,M", "M,?", "N,M", True),
    (NONE, "N", "2..5", "2..5", True),
    (NONE, "...", "2,N", "2,N", True),
    (NONE, "2,N", "...", "2,N", True),
    (NONE, "...", "...", "...", True),
    # numpy: align right, pad with 1, and per pair by which intervals contain 1.
    (NUMPY, "?", "5", "5", True),
    (NUMPY, "5", "?", "5", True),
    (NUMPY, "1..5", "1..8", "1..8", True),
    (NUMPY, "2..8", "1", "2..8", False),
    (NUMPY, "2..8", "3..5", "3..5", True),
    (NUMPY, "..5", "3..", "3..", True),
    (NUMPY, "0", "?", "0", True),
    (NUMPY, "?", "1", "?", False),
    (NUMPY, "?", "?", "?", True),
    (NUMPY, "?", "2..", "2..", True),
    (NUMPY, "..1", "..1", "..1", True),
    (NUMPY, "N", "N", "N", False),
    (NUMPY, "N", "1", "N", False),
    (NUMPY, "1", "N", "N", False),
    (NUMPY, "N", "4", "4", True),
    (NUMPY, "4", "N", "4", True),
    (NUMPY, "N", "M", "?", True),
    (NUMPY, "N", "0", "0", True),
    (NUMPY, "?,4,1", "1..6,1,5", "?,4,5", True),
    (NUMPY, "N,3", "M,N,1", "M,N,3", False),
    (NUMPY, "...", "2,3", "...", True),
    (NUMPY, "2,3", "...", "...", True),
    # legacy: one direction only, the result has A's shape.
    (EQUAL, "N,3", "N,3", "N,3", False),
    (EQUAL, "N,3", "2,?", "N,3", True),
    (EQUAL, "...", "2,3", "...", True),
    (EQUAL, "2,3", "...", "2,3", True),
    (legacy(7), "N,3", "N,3", "N,3", False),
    (legacy(7), "2,3", "?", "2,3", True),
    (legacy(7), "2,3", "?,3", "2,3", True),
    (LEGACY, "?,3", "3", "?,3", False),
    (LEGACY, "N,M", "M", "N,M", False),
    (LEGACY, "N,M", "N", "N,M", True),
    (LEGACY, "2,3", "?", "2,3", True),
    (LEGACY, "2,?,4", "2,1,4", "2,?,4", True),
    (LEGACY, "N,4,3", "N,1,3", "N,4,3", True),
    (LEGACY, "...", "2,3", "...", True),
    (LEGACY, "2,3", "...", "2,3", True),
    # pdpd: one direction only, the result has A's rank; any 1 in B expands, and B is never the larger one.
    (PDPD, "N,3", "N,1", "N,3", False),
    (PDPD, "2..,3", "1,3", "2..,3", False),
    (PDPD, "?,3", "1,3", "?,3", True),
    (PDPD, "?,3", "2,3", "2,3", True),
    (PDPD, "3", "?", "3", True),
    (PDPD, "1", "?", "?", True),
    (PDPD, "N", "M", "?", True),
    (PDPD, "2..8", "3..9", "3..8", True),
    (PDPD, "...", "2", "...", True),
    (PDPD, "2", "...", "...", True),
]


@pytest.mark.parametrize(("rule", "a", "b", "result", "assumes"), RESULTS)
def test_results(rule: Rule, a: str, b: str, result: str, assumes: bool) -> None:
    found = broadcast(rule, parse(a), parse(b))
    assert str(found.shape) == result
    assert bool(found.assumptions) == assumes, found.assumptions


@pytest.mark.parametrize(
    ("rule", "a", "b", "assumptions"),
    [
        (NUMPY, "N,3", "4,1", ["in dimension 0, A's N is 1 or 4"]),
        (NUMPY, "2,4,?", "N,3", ["in dimension 1, B's N is 1 or 4", "in dimension 2, A's ? is 1 or 3"]),
        (NUMPY, "N", "M", ["in dimension 0, A's N and B's M are equal or one of them is 1"]),
        (NUMPY, "2..8", "3..", ["in dimension 0, A's 2..8 is B's 3.."]),
        (NUMPY, "...", "3", ["the ranks and sizes of A and B broadcast"]),
        (NONE, "N,?", "2,3", ["in dimension 0, A's N is B's 2", "in dimension 1, A's ? is B's 3"]),
        (NONE, "...", "3", ["A and B have the same shape"]),
        (EQUAL, "...", "3", ["A and B have the same shape"]),
        (EQUAL, "2,N", "2,3", ["in dimension 1, A's N is B's 3"]),
        (LEGACY, "...", "3", ["B broadcasts onto A"]),
        (LEGACY, "2,3", "N", ["in dimension 1, B's N is 1 or A's 3"]),
        (
            LEGACY,
            "N,4,3",
            "N,1,3",
            ["in dimension 1, B's 1 is A's 4, or a 1 that has only 1s before it or only 1s after it"],
        ),
        (legacy(5), "2,3", "?,?", ["B has one element or A and B have the same shape, since axis 5 is out of range"]),
        (PDPD, "4,?", "?,1", ["in dimension 0, B's ? is 1 or 4", "in dimension 1, B's 1 is not larger than A's ?"]),
        (PDPD, "1", "N", ["in dimension 0, B's N is not larger than A's 1"]),
        (PDPD, "?", "3", ["in dimension 0, A's ? is 1 or 3, and B's 3 is not larger than A's ?"]),
        (PDPD, "...", "3", ["the rank and sizes of B fit into those of A"]),
        (CHANNEL, "...", "3", ["B broadcasts onto A"]),
        (CHANNEL, "2,?,4", "3", ["B's 3 is A's ? in dimension 1"]),
        (CHANNEL, "2,N,3", "3", ["B's 3 is A's N in dimension 1, or broadcasts onto A's 3 in dimension 2"]),
        (CHANNEL, "2,3,4", "N", ["B's N is A's 3 in dimension 1, or broadcasts onto A's 4 in dimension 2"]),
    ],
)
def test_assumptions_say_what_must_hold(rule: Rule, a: str, b: str, assumptions: list[str]) -> None:
    assert list(broadcast(rule, parse(a), parse(b)).assumptions) == assumptions


ONE_OR_EQUAL = "equal sizes, or a 1 in one of them"
WITHOUT = "without broadcasting both sizes must be equal"
NEVER_LARGER = "B's size must be A's size or 1, and never larger"
RUN = "B as a run of A's shape from axis"
BETWEEN = "; a 1 between B's other dimensions does not expand in this version (1s at B's ends do)"
SWITCHED_OFF = "broadcast is 0 or absent, so the shapes must be equal; set broadcast=1 to broadcast B onto A"


@pytest.mark.parametrize(
    ("rule", "a", "b", "sentence"),
    [
        (NUMPY, "0", "2", f"dimension 0 is 0 in A and 2 in B; allowed: {ONE_OR_EQUAL}"),
        (NUMPY, "2,3,4", "3,5", f"dimension 2 is 4 in A and 5 in B; allowed: {ONE_OR_EQUAL}"),
        (NUMPY, "5,3", "2,3,3", f"dimension 1 is 5 in A and 3 in B; allowed: {ONE_OR_EQUAL}"),
        (NUMPY, "N,2..3", "4..5", f"dimension 1 is 2..3 in A and 4..5 in B; allowed: {ONE_OR_EQUAL}"),
        (NONE, "2,3", "2,1", f"dimension 1 is 3 in A and 1 in B; allowed: {WITHOUT}"),
        (NONE, "2..3", "4..5", f"dimension 0 is 2..3 in A and 4..5 in B; allowed: {WITHOUT}"),
        (NONE, "2,3", "3", "without broadcasting both ranks must be equal"),
        (NONE, "", "1", "without broadcasting both ranks must be equal"),
        (EQUAL, "2,3", "2,1", f"dimension 1 is 3 in A and 1 in B; allowed: equal sizes; {SWITCHED_OFF}"),
        (EQUAL, "2,3", "3", f"the ranks differ; {SWITCHED_OFF}"),
        (EQUAL, "2,3", "", f"the ranks differ; {SWITCHED_OFF}"),
        (LEGACY, "3", "2,3", "B has the larger rank and is broadcast onto A only"),
        (LEGACY, "3", "1,1", "B has the larger rank and is broadcast onto A only"),
        (LEGACY, "", "1", "B has the larger rank and is broadcast onto A only"),
        (LEGACY, "2,3", "2", f"dimension 1 is 3 in A and 2 in B; allowed: {RUN} 1; axis=0 would fit"),
        (legacy(0), "2,3", "3", f"dimension 0 is 2 in A and 3 in B; allowed: {RUN} 0; axis=1 would fit"),
        (LEGACY, "1,3", "2,3", f"dimension 0 is 1 in A and 2 in B; allowed: {RUN} 0"),
        (LEGACY, "2,3,4", "2,1,4", f"dimension 1 is 3 in A and 1 in B; allowed: {RUN} 0{BETWEEN}"),
        (legacy(1), "5,2,3,4", "2,1,4", f"dimension 2 is 3 in A and 1 in B; allowed: {RUN} 1{BETWEEN}"),
        (PDPD, "3", "2,3", "B has the larger rank and is broadcast onto A only"),
        (PDPD, "1,3", "2,3", f"dimension 0 is 1 in A and 2 in B; allowed: {NEVER_LARGER}"),
        (PDPD, "0", "1", f"dimension 0 is 0 in A and 1 in B; allowed: {NEVER_LARGER}"),
        (PDPD, "4,3", "2,3", f"dimension 0 is 4 in A and 2 in B; allowed: {NEVER_LARGER}"),
        (PDPD, "..3", "4..", f"dimension 0 is ..3 in A and 4.. in B; allowed: {NEVER_LARGER}"),
        (pdpd(1), "2,3,4", "2,4", f"dimension 1 is 3 in A and 2 in B; allowed: {NEVER_LARGER}"),
    ],
)
def test_shapes_that_do_not_broadcast_are_named_with_dimension_and_both_sizes(
    rule: Rule, a: str, b: str, sentence: str
) -> None:
    with pytest.raises(ShapeError) as caught:
        broadcast(rule, parse(a), parse(b))
    assert str(caught.value) == f"shapes ({a}) and ({b}) do not broadcast: {sentence}"


@pytest.mark.parametrize(
    ("rule", "a", "b", "got", "allowed"),
    [
        (pdpd(-2), "2,3", "3", "-2", "-1 (align the ends), 0 to 1"),
        (pdpd(2), "2,3", "3", "2", "-1 (align the ends), 0 to 1"),
        (pdpd(1), "2,3", "2,3", "1", "-1 (align the ends), 0 to 0"),
        (pdpd(3), "2,3", "", "3", "-1 (align the ends), 0 to 2"),
        (pdpd(1), "2,3", "3,1", "1", "-1 (align the ends), 0 to 0"),
        (pdpd(-2), "...", "3", "-2", "-1 or more"),
        (legacy(-2), "2,3", "3", "-2", "-1 (align the ends), 0 to 1"),
        (legacy(2), "2,3", "3", "2", "-1 (align the ends), 0 to 1"),
        (legacy(2), "2,3,4", "3,4", "2", "-1 (align the ends), 0 to 1"),
        (legacy(1), "2,3", "2..,1", "1", "-1 (align the ends), 0 to 0"),
    ],
)
def test_an_axis_out_of_range_is_named_with_the_range(rule: Rule, a: str, b: str, got: str, allowed: str) -> None:
    with pytest.raises(AttributeValueError) as caught:
        broadcast(rule, parse(a), parse(b))
    assert (caught.value.operand, caught.value.got, caught.value.allowed) == ("attribute axis", got, allowed)
    assert str(caught.value).startswith("attribute axis: axis is out of range")


def test_three_operands_are_counted_not_lettered() -> None:
    with pytest.raises(ShapeError, match=r"the shapes \(2,3\), \(3\), \(4\) do not broadcast: operand 2 does not fit"):
        broadcast(NUMPY, parse("2,3"), parse("3"), parse("4"))
