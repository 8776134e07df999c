"""Each cause is found where it is the truth, refused where one element is another, and never found by chance."""

from __future__ import annotations

import numpy as np
import pytest

from difference_cases import CASES, spoiled, unrelated
from eltwise.comparison.arrays import compare_arrays

CHANCE = {"unexplained", "zero_sign", "other_shape", "last_bit", ""}
"""What may be said of arrays that have nothing to do with each other: the last two where it can be counted."""


def rng_of(seed: int, *more: object) -> np.random.Generator:
    return np.random.default_rng([seed, *map(hash_of, more)])


def hash_of(text: object) -> int:
    return int.from_bytes(str(text).encode()[:16].ljust(16), "little") % (1 << 31)


@pytest.mark.parametrize("number", range(4))
@pytest.mark.parametrize("cause", CASES)
def test_the_truth_is_found(cause: str, number: int, seed: int) -> None:
    a, b = CASES[cause](rng_of(seed, cause, number))
    found = compare_arrays(a, b)
    assert (found.cause, found.cause_share) == (cause, 1.0), found.explanation


@pytest.mark.parametrize("number", range(4))
@pytest.mark.parametrize("cause", CASES)
def test_a_near_miss_is_refused(cause: str, number: int, seed: int) -> None:
    rng = rng_of(seed, cause, number)
    a, b = CASES[cause](rng)
    found = compare_arrays(a, spoiled(b, rng))
    assert found.cause != cause or (found.cause_share or 1) < 1, found.explanation


@pytest.mark.parametrize("part", range(4))
def test_no_cause_is_found_by_chance(part: int, seed: int) -> None:
    check_unrelated(100, seed, part)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_no_cause_is_found_by_chance_in_many(part: int, seed: int) -> None:
    check_unrelated(1000, seed, 1000 + part)


def check_unrelated(count: int, seed: int, part: int) -> None:
    for number in range(count):
        a, b = unrelated(rng_of(seed, part, number))
        found = compare_arrays(a, b)
        assert found.cause in CHANCE, (number, found.explanation, a, b)
        if found.cause == "last_bit":
            assert found.max_ulp == 1
