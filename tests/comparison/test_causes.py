"""Each cause is found where it is the truth, refused where one element is another, and never found by chance."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import eltwise
from eltwise.comparison.arrays import compare_arrays
from eltwise.comparison.fitted_hypotheses import candidates
from eltwise.comparison.value_hypotheses import narrower, neighbours
from eltwise.core.dtypes import BFLOAT16, FLOAT16, FLOAT32, FLOAT64, INTEGERS, ElementType
from eltwise.core.shares import percent
from eltwise.faults.families import FAMILIES
from support.difference_cases import BF16, CASES, spoiled, unrelated, upper

CHANCE = {"unexplained", "zero_sign", "other_shape", "last_bit", ""}
"""What may be said of arrays that have nothing to do with each other: the last two where it can be counted."""


def rng_of(seed: int, *more: object) -> np.random.Generator:
    return np.random.default_rng([seed, *map(hash_of, more)])


def hash_of(text: object) -> int:
    return int.from_bytes(str(text).encode()[:16].ljust(16), "little") % (1 << 31)


@pytest.mark.parametrize("cause", CASES)
def test_the_truth_is_found(cause: str, seed: int) -> None:
    for number in range(4):
        a, b = CASES[cause](rng_of(seed, cause, number))
        found = compare_arrays(a, b)
        assert (found.cause, found.cause_share) == (cause, 1.0), found.explanation


@pytest.mark.parametrize("cause", CASES)
def test_a_near_miss_is_refused(cause: str, seed: int) -> None:
    for number in range(4):
        rng = rng_of(seed, cause, number)
        a, b = CASES[cause](rng)
        found = compare_arrays(a, spoiled(b, rng))
        is_other = found.cause != cause or found.explanation_details.get("mode") == "other elements"
        assert is_other or (found.cause_share or 1) < 1, found.explanation


@pytest.mark.parametrize("cause", CASES)
def test_the_order_of_the_sides_changes_neither_the_verdict_nor_the_distance(cause: str, seed: int) -> None:
    a, b = CASES[cause](rng_of(seed, cause, "order"))
    one, other = compare_arrays(a, b), compare_arrays(b, a)
    assert (one.status, one.differing, one.max_ulp) == (other.status, other.differing, other.max_ulp)
    assert other.cause not in {"noise", "low_rank"} or one.cause == other.cause


NAMED_OF_B = frozenset({"quantized", "unrelated_tail", "zeroed"})
"""Causes that may be told from the side alone that has them."""


@pytest.mark.parametrize("cause", sorted(CASES.keys() - NAMED_OF_B))
def test_the_truth_is_found_of_a_as_well(cause: str, seed: int) -> None:
    for number in range(4):
        a, b = CASES[cause](rng_of(seed, cause, number))
        found = compare_arrays(b, a)
        assert (found.cause, found.cause_share) == (cause, 1.0), found.explanation


BIJECTIONS = ("byte_order", "transposed", "inverted", "negated", "zero_sign", "flipped", "reordered", "reshaped")
"""Of these A comes from B as B comes from A."""


@pytest.mark.parametrize("cause", BIJECTIONS)
def test_what_loses_nothing_is_found_from_either_side(cause: str, seed: int) -> None:
    for number in range(8):
        a, b = CASES[cause](rng_of(seed, cause, number))
        if cause == "transposed" and number % 2:
            b = np.ascontiguousarray(b).reshape(a.shape)  # As if it were not transposed.
        found = [compare_arrays(*sides).cause for sides in ((a, b), (b, a))]
        assert found[0] == found[1], number
        assert found[0] == cause or cause in ("transposed", "reordered"), number  # Which may be a shift, or nothing.


KEYS: dict[str, set[str]] = {
    "cancellation": {"scale"},
    "constant": {"value"},
    "expanded": {"shape"},
    "flipped": {"axis"},
    "offset": {"offset"},
    "padded": {"mode", "pads"},
    "quantized": {"rounding", "scale", "type", "zero_point"},
    "reordered": {"axis", "order"},
    "reshaped": {"shape"},
    "saturation": {"high", "low"},
    "scaled": {"factor", "power_of_two"},
    "shifted": {"axis", "fill", "shift"},
    "small_values_zeroed": {"limit"},
    "subnormals_flushed": {"keeps_sign"},
    "transposed": {"axes"},
    "unrelated_tail": {"elements", "from"},
    "wraparound": {"type"},
}
"""What the details of each cause have in the JSON; those of other causes are empty."""

MORE_KEYS = {
    "saturation": {"type"},
    "offset": {"computed_in"},
    "scaled": {"arithmetic", "computed_in", "divisor"},
    "unrelated_tail": {"pattern"},
    "transposed": {"layout"},
}
"""What they may have."""


@pytest.mark.parametrize("cause", CASES)
def test_the_details_of_a_cause_have_the_same_keys_in_every_case(cause: str, seed: int) -> None:
    for number in range(8):
        found = compare_arrays(*CASES[cause](rng_of(seed, cause, number)))
        if found.cause != cause:  # A simpler cause predicts the same.
            continue
        details, expected = found.explanation_details, KEYS.get(cause, set())
        if "axis" in details and cause == "quantized":
            expected = expected - {"scale"} | {"axis", "scales"}
        assert expected <= details.keys() <= expected | MORE_KEYS.get(cause, set())


@pytest.mark.parametrize("cause", CASES)
def test_two_comparisons_of_the_same_arrays_are_equal_reports(cause: str, seed: int) -> None:
    a, b = CASES[cause](rng_of(seed, cause))
    if a.dtype.kind == "f" and a.size:
        a = a.copy()
        a.reshape(-1)[-1] = np.nan  # Which is not equal to itself.
    first, second = (eltwise.compare({"x": a.copy()}, {"x": b.copy()}) for _turn in range(2))
    assert first.to_json() == second.to_json()
    assert first == second
    assert first["x"] != eltwise.compare({"x": a}, {"x": a})["x"]
    assert cause in FAMILIES


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.float16, np.int8, np.uint8, np.int32])
def test_unrelated_sparse_or_few_valued_tensors_have_no_cause(kind: type, seed: int) -> None:
    """Most elements agree, and what differs has few values: any clamp, mask or order predicts some of it."""
    rng = rng_of(seed, kind.__name__)
    for number in range(40):
        shape = tuple(rng.integers(8, 40, rng.integers(1, 3)))
        values = rng.integers(0, int(rng.integers(2, 6)), (2, *shape))
        if number % 2:
            values = rng.integers(1, 100, (2, *shape)) * (rng.random((2, *shape)) < rng.choice([0.02, 0.1, 0.3]))
        a, b = values.astype(kind)
        found = compare_arrays(a, b)
        assert found.cause in CHANCE, (number, found.explanation)


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.float16])
def test_zeros_beside_fractions_are_no_integers(kind: type, seed: int) -> None:
    rng = rng_of(seed, kind.__name__)
    sparse = np.where(rng.random(2000) < 0.9, 0, rng.standard_normal(2000)).astype(kind)
    other = rng.random(2000).astype(kind)
    for a, b in ((sparse, other), (other, sparse)):
        assert compare_arrays(a, b).cause != "quantized"


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_coins_that_agree_by_chance_are_no_integers(kind: type, seed: int) -> None:
    """Numbers around 1 are cut to 0 and 1, and half of unrelated zeros and ones are the same."""
    for number in range(20):
        rng = rng_of(seed, kind.__name__, number)
        a = (1 + rng.standard_normal(256) * 1e-3).astype(kind)
        b = rng.integers(0, 2, 256).astype(kind)
        for one, other in ((a, b), (b, a)):
            assert compare_arrays(one, other).cause != "quantized"
        cut = np.where(rng.random(256) < 0.05, b, np.trunc(a))
        assert compare_arrays(a, cut).cause == "quantized"


def test_the_share_of_a_cause_is_of_what_it_changes_too(seed: int) -> None:
    """All that differ are negated, and the others are not."""
    rng = np.random.default_rng(seed)
    a = rng.standard_normal(4000).astype(np.float32)
    found = compare_arrays(a, np.where(rng.random(a.size) < 0.6, -a, a))
    share = found.differing / a.size
    assert (found.cause, found.cause_share) == ("negated", share)
    assert found.explanation == f"B is -A; that predicts {percent(share)} of what differs, or should"


@pytest.mark.parametrize(
    ("kind", "number"),
    [
        *((np.int32, number) for number in (2**31 - 1, -(2**31))),
        *((np.uint64, number) for number in (2**64 - 1, 2**64 - 5, 0)),
        *((np.int64, number) for number in (2**53 + 1, -(2**63))),
        *((np.float32, number) for number in (1234567.8, -0.123456789, 16777216.0)),
        *((np.float64, number) for number in (0.1234567890123, 1e300)),
    ],
)
def test_a_number_of_a_cause_is_that_of_the_elements(kind: type, number: float, seed: int) -> None:
    """Rounded to six digits, it would be in no element."""
    rng = np.random.default_rng(seed)
    a = rng.integers(2, 100, 500).astype(kind)
    value = np.full_like(a, number)
    for b in (value, np.where(rng.random(a.size) < 0.3, value, a), np.minimum(a, value), np.maximum(a, value)):
        found = compare_arrays(a, b)
        texts = re.findall(r"(?: is| below| above) (-?\d[-+.e0-9]*)", found.explanation)
        assert all(
            np.array(int(text) if text.lstrip("-").isdigit() else float(text)).astype(kind) in b for text in texts
        )
        assert texts or (b == a).all() or found.cause == "unexplained"


TAILS: dict[str, Callable[[np.random.Generator, np.ndarray], np.ndarray]] = {
    "relu": lambda rng, a: np.maximum(rng.standard_normal(a.size), 0),
    "dropout": lambda rng, a: np.where(rng.random(a.size) < 0.4, 0, rng.standard_normal(a.size)),
    "mask": lambda rng, a: np.where(rng.random(a.size) < 0.4, -np.inf, rng.standard_normal(a.size)),
    "failed": lambda rng, a: np.where(rng.random(a.size) < 0.4, np.nan, rng.standard_normal(a.size)),
    "many sizes": lambda rng, a: 2.0 ** rng.uniform(-60, 60, a.size),
}
"""What a tail may hold that was written; the last one where A has numbers of many sizes, too."""


@pytest.mark.parametrize("tail", TAILS)
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_a_tail_of_other_values_was_written(kind: type, tail: str, seed: int) -> None:
    rng = rng_of(seed, tail)
    a = (TAILS[tail] if tail == "many sizes" else lambda rng, a: rng.standard_normal(a.size))(rng, np.zeros(4000))
    a = a.astype(kind)
    b = a.copy()
    b[1000:] = TAILS[tail](rng, a[1000:]).astype(kind)
    assert compare_arrays(a, b).cause != "unrelated_tail"


@pytest.mark.parametrize("shape", [(9,), (1, 3, 3), (3, 1, 3)])
@pytest.mark.parametrize("kind", [np.float32, BF16, np.int8, bool])
def test_the_same_elements_in_another_shape_need_no_more_evidence(shape: tuple[int, ...], kind: type) -> None:
    """Such as the counters of a checkpoint, which some writers make arrays of rank 1."""
    for a, b in ((np.ones((3, 3)), np.ones(shape)), (np.ones(()), np.ones(1)), (np.zeros((1, 1)), np.zeros(()))):
        result = compare_arrays(a.astype(kind), b.astype(kind))
        assert (result.status, result.cause, result.cause_share) == ("differs", "reshaped", 1)
    other = compare_arrays(np.ones(1).astype(kind), np.zeros(()).astype(kind))
    assert (other.cause, other.explanation) == (
        "other_shape",
        "the shape is [] instead of [1], and no hypothesis explains it",
    )


@pytest.mark.parametrize("kind", [np.float32, BF16, np.int8])
def test_a_part_of_a_larger_tensor_is_found_and_a_near_miss_is_not(kind: type, seed: int) -> None:
    """Such as the vocabulary of a model, to which words were added."""
    rng = rng_of(seed, np.dtype(kind).name)
    for _number in range(10):
        shape, pads = rng.integers(8, 30, 2), rng.integers(0, 3, (2, 2))
        pads[:, 0] *= pads[:, 1] == 0  # At one end of each axis.
        pads[0, 1] += not pads.any()
        a = (rng.standard_normal(shape) * 50).astype(kind)
        b = (rng.standard_normal(shape + pads.sum(axis=1)) * 50).astype(kind)
        inside = tuple(slice(low, low + size) for low, size in zip(pads[:, 0], shape, strict=True))
        b[inside] = a
        for sides, is_reversed in (((a, b), False), ((b, a), True)):
            result = compare_arrays(*sides)
            assert (result.cause, result.explanation_details["pads"]) == ("padded", pads.tolist()), result.explanation
            assert ("reversed" in result.explanation_details) is is_reversed
        b[inside][0, 0] += np.dtype(kind).type(7)
        assert compare_arrays(a, b).cause == "other_shape"
    few = rng.integers(0, 2, (2, 3, 3))
    assert compare_arrays(few[0].astype(kind), np.concatenate([few[0], few[1]]).astype(kind)).cause == "other_shape"


def test_nothing_is_denied_that_few_elements_do_not_tell(seed: int) -> None:
    """Zeros of a type without negative numbers may have been set."""
    rng = np.random.default_rng(seed)
    a = rng.integers(1, 255, 1000).astype(np.uint8)
    assert compare_arrays(a, np.where(rng.random(1000) < 0.3, 0, a)).explanation.endswith(", or zeros that were set")


@pytest.mark.parametrize("kind", [np.float32, np.float16, BF16, np.int16, np.int64])
def test_numbers_of_another_type_saturate_only_beyond_its_limits(kind: type, seed: int) -> None:
    """Ones that are quantized with the scale 1/127, as the weights of a norm are, become 127."""
    rng = rng_of(seed, np.dtype(kind).name)
    for _number in range(8):
        a, b = rng.integers(0, 3, (12, 12)).astype(kind), np.full((12, 12), 127, np.int8)
        b[tuple(rng.integers(0, 12, 2))] = rng.integers(0, 4)
        assert compare_arrays(a, b).cause not in {"saturation", "low_rank"}
    a = rng.integers(0, 256, (40, 40)).astype(kind)
    assert compare_arrays(a, np.minimum(a, np.array(127).astype(kind)).astype(np.int8)).cause == "saturation"


def test_a_lower_limit_lies_below_the_upper_one(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _number in range(20):
        a = rng.standard_normal(500).astype(np.float32)
        high, low = np.sort(rng.choice([-1, 0, 1, 2], 2, replace=False)).astype(np.float32)
        b = np.where(a < 0, low, high)
        found = compare_arrays(a, b)
        assert found.cause != "saturation" or (found.cause_share or 0) < 1, found.explanation
        limits = [found.explanation_details.get(name) for name in ("low", "high")]
        assert None in limits or limits[0] < limits[1], found.explanation  # type: ignore[operator]


@pytest.mark.parametrize("kind", [np.float32, BF16, np.int32])
def test_a_constant_with_other_elements_is_no_tail(kind: type, seed: int) -> None:
    rng = rng_of(seed, np.dtype(kind).name)
    a = rng.integers(1, 100, 3000).astype(kind)
    b = np.full_like(a, a[0])
    b[rng.integers(1000, 3000, 3)] = 0
    assert compare_arrays(a, b).cause != "unrelated_tail"
    b[:1000] = a[:1000]
    tail = compare_arrays(a, b)
    assert tail.cause == "unrelated_tail"
    assert re.match(r"from element 1000 on, B holds only 0x[0-9a-f]+; that predicts", tail.explanation)  # Not why.


def test_every_limit_that_is_reached_is_named(seed: int) -> None:
    """One element of many thousands is at the other limit: it is in no sample."""
    rng = np.random.default_rng(seed)
    a = rng.integers(1, 255, 400_000).astype(np.uint8)
    b = a.copy()
    b[::2] = 0
    b[int(rng.integers(200_000)) * 2 + 1] = 255
    found = compare_arrays(a, b)
    assert found.cause == "saturation"
    assert found.explanation.startswith("B is 0, 255 wherever it differs")


@pytest.mark.parametrize("kind", [np.float16, BF16, np.float32, np.float64])
@pytest.mark.parametrize(("cause", "change"), [("offset", np.add), ("scaled", np.multiply), ("scaled", np.divide)])
def test_a_number_that_predicts_every_element_is_named_before_one_that_predicts_most(
    cause: str, change: Callable[[Any, Any], Any], kind: type, seed: int
) -> None:
    """A sum that is a tie allows the numbers on one side of that one alone, which is the end of an interval then."""
    rng = rng_of(seed, cause, change.__name__, np.dtype(kind).name)
    for _number in range(60):
        a = rng.standard_normal(int(rng.integers(50, 500))).astype(kind)
        b = change(a, np.dtype(kind).type(10 ** rng.uniform(-3, 0)))
        result = compare_arrays(a, b)
        assert (result.cause, result.cause_share) == (cause, 1.0) or not result.cause_share, result.explanation


@pytest.mark.parametrize("factor", [2, 3, -2, -8, 1024, 0.25, 0.1, -0.5, 3.7, 2.0**-20, 1 / 255])
@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64, np.int16, np.int64])
def test_the_sentence_says_the_factor_of_the_details(kind: type, factor: float, seed: int) -> None:
    if np.dtype(kind).kind == "i" and factor != int(factor):
        pytest.skip("integers have whole factors")
    rng = rng_of(seed, kind, factor)
    a = (rng.standard_normal((40, 50)) * 9).astype(kind)
    found = compare_arrays(a, a * np.dtype(kind).type(factor))
    said = re.search(r"is A (times|divided by) (2\^)?([^\s;]+)", found.explanation)
    assert said, found.explanation
    number = 2.0 ** int(said[3]) if said[2] else float(said[3])
    if said[1] != "times":
        assert number == pytest.approx(found.explanation_details["divisor"], rel=1e-6)
        number = 1 / number
    assert number == pytest.approx(found.explanation_details["factor"], rel=1e-6)
    assert number == pytest.approx(factor, rel=1e-3)
    assert bool(said[2]) == (np.dtype(kind).kind == "f" and factor > 0 and np.log2(factor) % 1 == 0)


MOVED: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "transposed": lambda a: a.T,
    "flipped": lambda a: a[:, ::-1],
    "shifted": lambda a: np.roll(a, 7, axis=0),
    "reordered": lambda a: a.reshape(2, 2, -1, a.shape[1]).swapaxes(0, 1).reshape(a.shape),
}


@pytest.mark.parametrize("cause", MOVED)
@pytest.mark.parametrize("size", [20, 300])
@pytest.mark.parametrize("kind", [np.float16, BF16])
def test_elements_that_are_moved_and_rounded_are_found(cause: str, size: int, kind: type, seed: int) -> None:
    """As converters do: some store queries and keys with their rows in another order, in a type of 16 bits."""
    a = np.random.default_rng(seed).standard_normal((size, size)).astype(np.float32)
    b = np.ascontiguousarray(MOVED[cause](a).astype(kind))
    result = compare_arrays(a, b)
    assert (result.cause, result.cause_share) == (cause, 1.0)
    types = f"{np.dtype(kind)} instead of float32"
    assert f"A / B: different ({cause}), {types}\n" in str(eltwise.compare(a, b))
    near = compare_arrays(a, spoiled(b, np.random.default_rng(seed)))
    assert (near.cause, near.cause_share) != (cause, 1.0)


def test_one_other_element_of_many_is_said(seed: int) -> None:
    a = np.random.default_rng(seed).standard_normal((300, 400)).astype(np.float32)
    b = a.astype(np.float16).astype(np.float32)
    b[123, 321] += 1  # Where no sample is likely to look.
    found = compare_arrays(a, b)
    assert (found.cause, 0.9999 < found.cause_share < 1) == ("float16_rounding", True)
    assert found.explanation == "B is A rounded to float16; that predicts 99.99 % of what differs, or should"


@pytest.mark.parametrize("part", range(4))
def test_no_cause_is_found_by_chance(part: int, seed: int) -> None:
    check_unrelated(100, seed, part)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_no_cause_is_found_by_chance_in_many(part: int, seed: int) -> None:
    check_unrelated(1000, seed, 1000 + part)


def check_unrelated(count: int, seed: int, part: int) -> None:
    for number in range(count):
        a, b = unrelated(rng_of(seed, part, number))
        found = compare_arrays(a, b)
        assert found.cause in CHANCE, (number, found.explanation, a, b)
        if found.cause == "last_bit":
            assert found.max_ulp == 1


def upper_half(a: np.ndarray) -> np.ndarray:
    return upper(np.ascontiguousarray(a), 16)


Change = Callable[[np.ndarray], np.ndarray]


@pytest.mark.parametrize(
    ("change", "cause", "words"),
    [
        (lambda a: a + np.float32(0.25), "offset", "on index 7 of axis 1, which has 30, B is A plus 0.25"),
        (lambda a: -a, "negated", "on index 7 of axis 1, which has 30, B is -A"),
        (lambda a: a * 0, "constant", "on index 7 of axis 1, which has 30, every element of B is 0"),
        (upper_half, "bfloat16_truncation", "B is A truncated to bfloat16 instead of rounded"),
    ],
)
def test_a_cause_that_acts_on_a_part_is_found(
    change: Callable[[np.ndarray], np.ndarray], cause: str, words: str
) -> None:
    a = np.random.default_rng(4).standard_normal((40, 30)).astype(np.float32)
    b = a.copy()
    b[:, 7] = np.abs(change(a[:, 7])) if cause == "constant" else change(a[:, 7])
    found = compare_arrays(a, b)
    assert (found.cause, found.cause_share) == (cause, 1.0)
    assert words in found.explanation
    b[3, 4] = 9
    assert compare_arrays(a, b).cause_share < 1


def test_saturation_of_integers_is_seen_in_the_results(seed: int) -> None:
    x, y = np.random.default_rng(seed).integers(0, 256, (2, 40), np.uint8)
    found = compare_arrays(x - y, np.where(x < y, np.uint8(0), x - y))
    assert (found.cause, found.cause_share) == ("saturation", 1.0)
    near = np.where(x < y, np.uint8(0), x - y)
    near[np.argmax(x < y)] = 1
    assert compare_arrays(x - y, near).cause == "unexplained"


def test_zeros_are_said(seed: int) -> None:
    rng = np.random.default_rng(seed)
    a = rng.standard_normal(2000).astype(np.float32)
    found = compare_arrays(a, np.where(rng.random(2000) < 0.3, np.float32(0), a))
    assert (found.cause, found.explanation) == ("zeroed", "B is 0 wherever it differs")


@pytest.mark.parametrize("sign", [1, -1])
def test_zeros_are_named_by_all_their_signs(sign: int) -> None:
    a = np.float32(sign) * np.where(np.arange(64) % 2, 1, -1) * np.arange(1, 65, dtype=np.float32)
    found = compare_arrays(a.astype(np.float32), (a * 0).astype(np.float32))
    assert (found.cause, found.explanation) == ("zeroed", "B is -0, 0 wherever it differs")


def test_dequantized_integers_are_found(seed: int) -> None:
    whole = np.random.default_rng(seed).integers(-128, 128, (20, 30)).astype(np.int8)
    b = (whole.astype(np.float32) - np.float32(7)) * np.float32(0.03)
    found = compare_arrays(whole, b)
    assert (found.cause, found.explanation) == ("quantized", "B is A dequantized with scale 0.03 and zero point 7")
    b[3, 4] += np.float32(0.05)
    assert compare_arrays(whole, b).cause_share < 1


@pytest.mark.parametrize("kind", [bool, np.uint8, np.int64])
def test_masks_and_labels_that_differ_have_no_cause(kind: type, seed: int) -> None:
    generator = np.random.default_rng(seed)
    a, b = (generator.integers(0, 2, 4000).astype(kind) for _side in "ab")
    assert compare_arrays(a, b).cause == "unexplained"


def test_what_predicts_each_element_is_named_before_noise(seed: int) -> None:
    """All differences are far below a rounding step of the largest element."""
    a = (rng_of(seed).standard_normal(1000) * 1e-8).astype(np.float32)
    a[0] = 5
    changes: list[tuple[str, Change]] = [
        ("float16_rounding", lambda a: a.astype(np.float16).astype(np.float32)),
        ("negated", lambda a: np.where(a == 5, a, -a)),
        ("noise", lambda a: np.where(a == 5, a, rng_of(seed, "b").standard_normal(1000) * 1e-8)),
    ]
    for cause, change in changes:
        found = compare_arrays(a, change(a).astype(np.float32))
        assert (found.cause, (found.cause_share or 0) > 0.99) == (cause, True), found.explanation
    few = np.array([1e-40, 1, 2] * 20, np.float32)
    assert compare_arrays(few, np.where(few < 1, np.float32(0), few)).cause == "subnormals_flushed"


@pytest.mark.parametrize("keeps_sign", [True, False])
@pytest.mark.parametrize("element_type", [FLOAT16, BFLOAT16, FLOAT32, FLOAT64], ids=str)
def test_zeros_that_were_subnormal_have_the_sign_that_is_named(
    element_type: ElementType, keeps_sign: bool, seed: int
) -> None:
    generator, storage = rng_of(seed, str(element_type)), element_type.storage
    patterns = generator.integers(1, 1 << element_type.digits - 1, 1000).astype(f"u{storage.itemsize}")
    subnormal, sign = patterns.view(storage), generator.choice([-1, 1], 1000).astype(storage)
    a = np.where(generator.random(1000) < 0.3, subnormal * sign, generator.standard_normal(1000).astype(storage))
    zero = np.copysign(0, a).astype(storage) if keeps_sign else storage.type(0)
    found = compare_arrays(a, np.where(np.abs(a) < element_type.least_normal, zero, a))
    assert (found.cause, found.cause_share) == ("subnormals_flushed", 1), found.explanation
    assert found.explanation_details["keeps_sign"] is keeps_sign


@pytest.mark.parametrize("count", [2, 5, 30])
def test_noise_of_the_last_bits_is_no_factor_and_no_offset(count: int, seed: int) -> None:
    generator = np.random.default_rng([seed, count])
    for _turn in range(60):
        a = (1 + generator.random(count)).astype(np.float32)
        b = (a * (1 + 1e-7 * generator.standard_normal(count))).astype(np.float32)
        if (a != b).any():
            assert compare_arrays(a, b).cause in ("last_bit", "noise", "unexplained")


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int32])
def test_a_limit_that_nothing_reaches_is_not_claimed(dtype: type, seed: int) -> None:
    x = (np.random.default_rng(seed).standard_normal((40, 30)) * 3).astype(dtype)
    for b, words in ((np.maximum(x, 0), "below 0"), (np.minimum(x, 0), "above 0")):
        found = compare_arrays(x, b)
        assert (found.cause, found.cause_share) == ("saturation", 1.0)
        assert words in found.explanation
        assert sorted(found.explanation_details) == ["high", "low"]
    wide = (x * 200).astype(dtype)
    assert compare_arrays(wide, np.clip(wide, 0, 255)).explanation_details["type"] == "uint8"


@pytest.mark.parametrize("share", [0.5, 0.2])
@pytest.mark.parametrize("kind", [bool, np.int8, np.float32])
def test_what_chance_predicts_of_few_values_is_no_cause(kind: type, share: float, seed: int) -> None:
    rng = np.random.default_rng([seed, int(10 * share)])
    a, b = (rng.random((2, 60, 60)) < share).astype(kind)
    assert compare_arrays(a, b).cause == "unexplained"
    half = np.where(rng.random(a.shape) < 0.9, a.T, b)
    assert compare_arrays(a, half).cause == "transposed"
    if kind is bool:
        assert compare_arrays(a, ~a).cause == "inverted"


@pytest.mark.parametrize("source", [np.float32, np.float64, np.float16])
@pytest.mark.parametrize("target", [None, np.int32, np.int16, np.uint8])
@pytest.mark.parametrize(
    ("change", "words"), [(np.trunc, "truncated to"), (np.floor, "floored to"), (np.rint, "rounded to")]
)
def test_conversions_to_integers_are_found(
    source: type, target: type | None, change: Change, words: str, seed: int
) -> None:
    a = (np.random.default_rng(seed).standard_normal((40, 30)) * 20).astype(source)
    b = change(np.abs(a) if target is np.uint8 else a).astype(target or source)
    found = compare_arrays(np.abs(a) if target is np.uint8 else a, b)
    assert (found.cause, found.cause_share) == ("quantized", 1.0)
    assert words in found.explanation or (words, target) == ("floored to", np.uint8)
    b[3, 4] += 3
    assert compare_arrays(a, b).cause_share < 1


@pytest.mark.parametrize("shape", [(40, 30), (64, 256)])
@pytest.mark.parametrize("axis", [0, 1])
def test_integers_with_a_scale_for_each_channel_are_found(shape: tuple[int, int], axis: int, seed: int) -> None:
    a = np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
    b = np.clip(np.rint(a / (np.abs(a).max(axis, keepdims=True) / np.float32(127))), -127, 127).astype(np.int8)
    found = compare_arrays(a, b)
    assert (found.cause, found.cause_share) == ("quantized", 1.0)
    assert found.explanation == f"B is A quantized to int8 with a scale for each index of axis {1 - axis}"
    b[3, 4] ^= 12
    assert (compare_arrays(a, b).cause_share or 0) < 1


@given(data=st.data())
def test_integers_at_the_limits_of_their_types_are_compared(data: st.DataObject) -> None:
    """The largest float64 of 64 bits is no such integer: it was an OverflowError."""
    types = [data.draw(st.sampled_from(INTEGERS)) for _operand in "ab"]
    a, b = (
        np.array(
            data.draw(st.lists(st.sampled_from([low, low + 1, 0, 5, high - 1, high]), min_size=9, max_size=9)),
            each.storage,
        )
        for each in types
        for low, high in [each.limits]
    )
    found = compare_arrays(a, b)
    assert (found.status == "equal") == (types[0] == types[1] and (a == b).all())


@pytest.mark.parametrize("element_type", INTEGERS, ids=str)
def test_limits_of_saturated_integers_are_exact(element_type: ElementType, seed: int) -> None:
    least, most = element_type.limits
    low, high = least + (most - least) // 4 + 1, most - (most - least) // 4 - 1
    a = rng_of(seed).integers(least, most, 500, element_type.storage, endpoint=True)
    found = compare_arrays(a, np.clip(a, low, high))
    assert (found.cause, found.cause_share) == ("saturation", 1.0), found.explanation
    assert (found.explanation_details["low"], found.explanation_details["high"]) == (low, high)


@pytest.mark.parametrize("narrow", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("element_type", INTEGERS, ids=str)
def test_integers_that_were_rounded_to_floats_are_found_at_their_limits_too(
    element_type: ElementType, narrow: type, seed: int
) -> None:
    """What is rounded beyond a limit is the limit."""
    least, most = element_type.limits
    if np.finfo(narrow).nmant + 1 >= element_type.bits:
        pytest.skip("the type holds all of them")
    low, high = (
        int(min(max(one, -float(np.finfo(narrow).max)), float(np.finfo(narrow).max))) // 2 for one in (least, most)
    )
    a = rng_of(seed).integers(low, high, 500, element_type.storage)
    a[:4] = least, least + 1, most - 1, most
    with np.errstate(over="ignore"):
        floats = [float(one) for one in a.astype(narrow)]
    b = [least if one <= least else most if one >= most else int(one) for one in floats]
    found = compare_arrays(a, np.array(b, element_type.storage))
    assert (found.cause, found.cause_share) == (f"{np.dtype(narrow).name}_rounding", 1.0), found.explanation


@pytest.mark.parametrize("number", [5e-324, 1e-323, -5e-324, 1.7e308, 1.0])
def test_an_interval_of_one_number_has_that_candidate(number: float) -> None:
    assert list(candidates(number, number)) == [number]


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize(
    ("factor", "is_named"), [(2, True), (1 << 20, True), ((1 << 20) + 16, False), (1 << 21, False)]
)
def test_integers_are_scaled_by_factors_up_to_a_limit(factor: int, is_named: bool, sign: int, seed: int) -> None:
    """By larger ones pairs of integers are too easily explained."""
    a = np.random.default_rng(seed).integers(-1000, 1000, 200)
    (tensor,) = eltwise.compare({"x": a}, {"x": a * factor * sign}).tensors
    assert (tensor.cause == "scaled") == is_named
    assert not is_named or tensor.explanation.startswith(f"B is A times {factor * sign}")


@pytest.mark.parametrize("number", [100, -100, 3, -5])
@pytest.mark.parametrize("element_type", [each for each in INTEGERS if each.bits >= 8], ids=str)
def test_a_number_of_integers_that_wrap_around_is_the_smallest_that_gives_the_same(
    element_type: ElementType, number: int, seed: int
) -> None:
    low, high = element_type.limits
    a = rng_of(seed, element_type).integers(low, high, 900, element_type.storage, endpoint=True)
    a[:2] = low, high
    bits = np.array(number).astype(a.dtype)
    added, multiplied = compare_arrays(a, a + bits), compare_arrays(a, a * bits)
    assert added.explanation == f"B is A plus {number}, wrapping around in {element_type}"
    assert added.explanation_details == {"offset": number}
    assert multiplied.explanation == f"B is A times {number}, wrapping around in {element_type}"
    few = rng_of(seed).integers(1, 20, 900).astype(a.dtype)
    assert compare_arrays(few, few + a.dtype.type(7)).explanation == "B is A plus 7"
    assert compare_arrays(few, few * a.dtype.type(5)).explanation == "B is A times 5"


FLOATS = (np.float64, np.float32, np.float16, BF16, np.dtype(ml_dtypes.float8_e4m3fn), np.dtype(ml_dtypes.float8_e5m2))


@pytest.mark.parametrize("arithmetic", [np.float64, np.float32])
@pytest.mark.parametrize("target", FLOATS, ids=str)
@pytest.mark.parametrize("source", FLOATS[:-2], ids=str)
def test_a_number_is_found_whatever_type_it_is_computed_and_stored_in(
    source: type, target: type, arithmetic: type, seed: int
) -> None:
    """Such as the scale of a checkpoint in float8, and a factor of Python that made an array float64."""
    is_small = target in FLOATS[-2:]  # Of so few digits ties are common, on either side of which the number lies.
    if target is np.float64 is not source and arithmetic is np.float32:
        pytest.skip("less was kept than the type holds")
    for number in range(6):
        rng = rng_of(seed, np.dtype(source), np.dtype(target), number)
        a = rng.standard_normal(800).astype(source)
        factor, one = map(arithmetic, (rng.choice([30, -0.01]) * rng.uniform(1, 2), rng.uniform(0.5, 1)))
        wide = a.astype(np.promote_types(source, arithmetic) if source is np.float64 else arithmetic)
        results = {"scaled": wide * factor, "negated": -wide} | ({} if is_small else {"offset": wide + one})
        for cause, exact in results.items():
            found = compare_arrays(a, exact.astype(target))
            assert (found.cause, (found.cause_share or 0) >= (0.99 if is_small else 1)) == (cause, True), found


ROUNDINGS = [
    (wide, narrow) for wide in (FLOAT64, FLOAT32, FLOAT16, BFLOAT16) for narrow in narrower(wide) if wide.holds(narrow)
]


@pytest.mark.parametrize(("wide", "narrow"), ROUNDINGS, ids=str)
def test_roundings_that_agree_by_chance_are_not_told_from_each_other(
    wide: ElementType, narrow: ElementType, seed: int
) -> None:
    """Stochastic rounding agrees with truncation on half of the elements, and with rounding to nearest on more."""
    rng = rng_of(seed, wide, narrow)
    a = rng.standard_normal((30, 40)).astype(wide.storage)
    lower, upper = neighbours(a, wide, narrow)
    x, low, high = (each.astype(np.float64) for each in (a, lower, upper))
    assert ((np.abs(low) <= np.abs(x)) & (np.abs(x) <= np.abs(high))).all()
    steps = np.where(high == low, 1, high - low)
    coins = {
        "evenly": rng.random(a.shape) < 0.5,
        "stochastically": rng.random(a.shape) < (x - low) / steps,
        "down": x < 0,
        "away": np.ones(a.shape, bool),
    }
    for how, is_upper in coins.items():
        b = np.where(is_upper, upper, lower)
        for sides in ((a, b), (b, a)):
            found = compare_arrays(*sides)
            assert (found.cause, found.cause_share) == (f"{narrow}_rounding", 1.0), (how, found.explanation)
            assert "neither always to nearest nor always toward zero" in found.explanation
        other = b.copy()
        other[3, 4] = other[3, 4] * 4 + 1
        assert (compare_arrays(a, other).cause_share or 0) < 1
    near = compare_arrays(a, np.where(rng.random(a.shape) < 0.01, b, np.where(2 * (x - low) / steps > 1, upper, lower)))
    assert (near.cause, (near.cause_share or 0) > 0.97) == (f"{narrow}_rounding", True)


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.float16, BF16], ids=str)
@pytest.mark.parametrize("size", [600, 30_000])
def test_a_limit_up_to_which_numbers_are_zero_is_that_of_all_elements(size: int, kind: type, seed: int) -> None:
    """As of pruned weights: of many that are retained few are in a sample, and hardly the smallest."""
    for number in range(4):
        a = rng_of(seed, size, np.dtype(kind), number).standard_normal(size).astype(kind)
        sizes = np.abs(a.astype(np.float64))
        sizes[7] = np.inf
        limit, a[7] = np.quantile(sizes, 0.4), np.nan
        found = compare_arrays(a, np.where(sizes <= limit, np.zeros(1, kind), a))
        assert (found.cause, found.cause_share) == ("small_values_zeroed", 1.0), found.explanation
        assert found.explanation_details == {"limit": sizes[sizes <= limit].max()}


@pytest.mark.parametrize("narrow", narrower(FLOAT32), ids=str)
def test_a_rounding_of_some_elements_is_named_with_its_share(narrow: ElementType, seed: int) -> None:
    """It predicts all that differ, which chance does not, though others should differ as well."""
    rng = rng_of(seed, narrow)
    a = rng.standard_normal(4000).astype(np.float32)
    lower, upper = neighbours(a, FLOAT32, narrow)
    is_rounded = rng.random(a.size) < 0.7
    found = compare_arrays(a, np.where(is_rounded, lower, a))
    assert (found.cause, round(found.cause_share or 0, 1)) == (f"{narrow}_truncation", 0.7), found.explanation
    either = np.where(rng.random(a.size) < 0.5, lower, upper)
    assert compare_arrays(a, np.where(is_rounded, either, a)).cause == "unexplained"


@pytest.mark.parametrize("kind", [np.float32, np.float16, np.int32, np.uint8])
def test_of_differences_that_nothing_predicts_the_largest_is_shown(kind: type, seed: int) -> None:
    """The first one may be a rounding error, which tells nothing of the others."""
    generator = rng_of(seed, kind)
    a, index = generator.integers(20, 90, 100).astype(kind), int(generator.integers(100))
    b = (a + generator.integers(1, 9, 100)).astype(kind)
    b[index] = a[index] + 50
    record = compare_arrays(a, b)
    assert record.cause == "unexplained"
    assert f"the largest at [{index}]: {a[index]!s} and {b[index]!s}, 0x" in record.explanation
