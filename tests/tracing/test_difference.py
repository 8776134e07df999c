"""The default tolerance: what is within it does not depend on the size of the values."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from eltwise.tracing.difference import OVERFLOW, Difference, measure, with_overflow
from eltwise.tracing.precision import of_rounded_operands


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
    ("actual", "expected", "cause"),
    [
        (np.float32([np.inf, 1]), np.float32([2, 1]), OVERFLOW),
        (np.float32([2, 1]), np.float32([np.inf, 1]), OVERFLOW),
        (np.float32([np.inf, 1]), np.float64([2, 1]), OVERFLOW),
        (np.float32([-3e38, 1]), np.float64([-np.inf, 1]), None),
    ],
)
def test_a_reference_in_a_wider_type_overflows_nowhere(
    actual: np.ndarray, expected: np.ndarray, cause: str | None
) -> None:
    difference = Difference("differs")
    assert with_overflow(difference, actual, expected, [actual[1:]]).cause == cause
    assert with_overflow(difference, actual, expected, [np.array([np.inf], np.float32)]).cause is None


@pytest.mark.parametrize("largest", [1.0, 3.0e38, np.inf])
@pytest.mark.parametrize("is_rounding", [False, True])
def test_rounded_operands_explain_only_what_the_operands_as_they_are_do_not(
    largest: float, is_rounding: bool, seed: int
) -> None:
    """A number beside which all others are small predicts nothing; nor does what is the same with exact operands."""
    x = np.append(np.random.default_rng(seed).standard_normal(200), largest).astype(np.float32)

    def predict(narrow: type | None) -> np.ndarray:
        with np.errstate(over="ignore"):
            return np.append(x[:-1] if narrow is None else x[:-1].astype(narrow).astype(np.float32), x[-1:])

    result = predict(ml_dtypes.bfloat16) if is_rounding else x * np.float32(1.01)
    found = of_rounded_operands(Difference("differs"), predict, result, "other", ["bfloat16", "float16"])
    is_shown = is_rounding and largest != 3.0e38
    assert (found.cause, found.share) == (("bfloat16_operands", 1.0) if is_shown else (None, 0.0))


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
