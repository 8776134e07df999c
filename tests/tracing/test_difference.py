"""The default tolerance: what is within it does not depend on the size of the values."""

from __future__ import annotations

import numpy as np
import pytest

from eltwise.tracing.difference import OVERFLOW, measure


@pytest.mark.parametrize(("narrow", "wide"), [(np.float32, np.float64), (np.float16, np.float32)])
@pytest.mark.parametrize("is_swapped", [False, True])
def test_only_finite_numbers_leave_the_range_of_a_type(narrow: type, wide: type, is_swapped: bool) -> None:
    largest = float(np.finfo(narrow).max)
    for number, other, cause in (
        (np.inf, 2 * largest, OVERFLOW),
        (largest, 2 * largest, OVERFLOW),
        (np.inf, 1.0, OVERFLOW),
        (-largest, -np.inf, None),
        (1.0, np.inf, None),
        (1.0, np.nan, None),
    ):
        pair = np.array([1, number], narrow), np.array([1, other], wide)
        result = measure("x", *(pair[::-1] if is_swapped else pair), ())
        assert (result.is_beyond, result.cause) == (True, cause), (number, other, result)


@pytest.mark.parametrize(
    ("kind", "exponent"), [(np.float64, 990), (np.float64, -990), (np.float32, 90), (np.float32, -90)]
)
@pytest.mark.parametrize("error", [0.0, 1e-12, 1e-8, 1e-6, 1e-4, 1e-2, 1.0])
def test_the_default_tolerance_scales_with_the_values(kind: type, exponent: int, error: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    expected = rng.standard_normal(200).astype(kind)
    got = (expected * (1 + error * rng.standard_normal(200))).astype(kind)
    scale = kind(2.0**exponent)
    alone, scaled = (measure("x", got * one, expected * one, ()) for one in (kind(1), scale))
    assert scaled.status == alone.status
    assert scaled.error == (alone.error or 0.0) * float(scale)
    assert (alone.status == "differs") == (error >= 1e-2 or (error >= 1e-8 and kind is np.float64))
