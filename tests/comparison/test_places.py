"""Where differences lie: the indices that are named are those, on every axis, and no difference lies elsewhere."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from eltwise.comparison.arrays import compare_arrays
from eltwise.comparison.places import Claim

SHAPE = (13, 16, 20)


def chosen(size: int) -> st.SearchStrategy[list[int]]:
    """Indices of an axis that have a name: all, one, a range, every n-th, both edges."""
    every, lengths = list(range(size)), st.integers(2, size - size // 4)
    ranges = st.tuples(st.integers(0, size - 1), lengths).map(lambda pair: every[pair[0] : pair[0] + pair[1]])
    steps = st.integers(2, 3).flatmap(lambda step: st.integers(0, step - 1).map(lambda first: every[first::step]))
    singles = st.sampled_from(every).map(lambda index: [index])
    return st.one_of(st.just(every), singles, ranges, steps, st.just([0, size - 1]))


def indices(claim: dict[str, Any]) -> list[int]:
    """Those that a claim is about."""
    first, last = claim["numbers"][0], claim["numbers"][-1]
    if claim["kind"] == "range":
        return list(range(first, last + 1))
    return list(range(last, claim["size"], first)) if claim["kind"] == "every" else list(claim["numbers"])


def check_claim(fields: dict[str, Any]) -> None:
    """What a claim covers, counts and says of itself are the same indices."""
    claim, expected = Claim(**{**fields, "numbers": tuple(fields["numbers"])}), indices(fields)
    assert np.flatnonzero(claim.covers(np.arange(claim.size))).tolist() == expected
    assert claim.count == len(expected)
    assert (claim.kind == "edges") == (expected == [0, claim.size - 1])
    shown, axis = ", ".join(map(str, expected)), f"of axis {claim.axis}"
    assert {
        "edges": f"the edges {axis} ({shown})",
        "range": f"indices {expected[0]} to {expected[-1]} {axis}, which has {claim.size}",
        "every": f"index {axis} from {expected[0]} on",
        "indices": f"{'index' if len(expected) == 1 else 'indices'} {shown} {axis}, which has {claim.size}",
    }[claim.kind] in str(claim)


@given(st.tuples(*map(chosen, SHAPE)), st.sampled_from([0, 1, 5]))
def test_what_is_said_of_differences_is_where_they_are(axes: tuple[list[int], ...], holes: int) -> None:
    """With and without elements in between that are equal."""
    mask = np.zeros(SHAPE, bool)
    mask[np.ix_(*axes)] = True
    assume(holes * 10 < mask.sum() and 3 < mask.sum() < mask.size)
    dropped = np.random.default_rng(holes).permutation(np.flatnonzero(mask))[:holes]
    mask.reshape(-1)[dropped] = False
    found = compare_arrays(np.zeros(SHAPE, np.float32), mask.astype(np.float32), causes=False)
    assert found.differing == mask.sum()
    claims: dict[int, list[int]] = {each["axis"]: indices(each) for each in found.where_details}  # type: ignore[misc]
    named = [claims.get(axis, list(range(size))) for axis, size in enumerate(SHAPE)]
    for each in found.where_details:
        check_claim(each)
    region = np.zeros(SHAPE, bool)
    region[np.ix_(*named)] = True
    assert not (mask & ~region).any()
    if not holes:
        assert named == list(axes)
    flat = np.flatnonzero(mask)
    is_run = flat[-1] - flat[0] + 1 == flat.size
    share = mask.sum() / region.sum()
    if is_run and (share < 1 or not claims):
        assert found.where == f"one run of {flat.size:,} elements in memory, from element {flat[0]:,} on"
    elif claims:
        text = "every element there" if share == 1 else f"{math.floor(share * 10000) / 100:g} % of the elements there"
        assert found.where.startswith("only on ")
        assert found.where.endswith(f": {text}")
    else:
        assert found.where == ""


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("size", [2, 3, 4, 9])
def test_signs_of_the_indices_of_a_short_axis_change_on_these_alone(axis: int, size: int, seed: int) -> None:
    """A range that has others in it would name where nothing differs."""
    rng = np.random.default_rng([seed, axis, size])
    shape = [30, 20, 10]
    shape[axis] = size
    a = rng.standard_normal(shape).astype(np.float32)
    for pattern in rng.permutation(range(1, (1 << size) - 1))[:14]:
        expected = [index for index in range(size) if pattern >> index & 1]
        signs = np.where(np.isin(np.arange(size), expected), np.float32(-1), np.float32(1))
        found = compare_arrays(a, a * np.expand_dims(signs, [each for each in range(3) if each != axis]))
        assert (found.cause, found.cause_share) == ("negated", 1.0), (expected, found.explanation)
        (claim,) = found.where_details
        assert (claim["axis"], indices(claim)) == (axis, expected)
