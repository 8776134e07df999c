"""The compiled kernel and NumPy give the same figures, for every type, and they are those of plain expressions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from eltwise.comparison import records
from eltwise.comparison.numbers import distances
from eltwise.comparison.tolerance import Tolerance
from eltwise.core.dtypes import BFLOAT16, BOOL, FLOAT8E5M2, FLOAT16, FLOAT32, FLOAT64, INTEGERS, UINT8, ElementType
from eltwise.kernels import jit
from eltwise.kernels.differences import FIELDS
from support.difference_cases import random_bits

TOLERANCE = Tolerance(ulp=3, rtol=1e-3, atol=0.5)
COMPILED = (FLOAT32, FLOAT64, FLOAT16, BFLOAT16, *INTEGERS, BOOL)


@pytest.mark.parametrize("size", [1, 63, 64, 1000, 70_001])
@pytest.mark.parametrize("element_type", COMPILED, ids=str)
def test_the_kernel_and_numpy_give_the_same_figures(element_type: ElementType, size: int, seed: int) -> None:
    kind = UINT8 if element_type is BOOL else element_type
    if not jit.target().compiles(kind):
        pytest.skip("this processor does not convert the type")
    a, b = random_bits(element_type, size, seed)
    compiled, histogram = records._compiled_records(a, b, kind, TOLERANCE)
    expected, expected_histogram = records.numpy_records(a, b, element_type, TOLERANCE)
    assert histogram.tolist() == expected_histogram.tolist()
    for name in FIELDS:
        if name.startswith("sum"):
            np.testing.assert_allclose(compiled[name], expected[name], rtol=1e-12)
        else:
            np.testing.assert_array_equal(compiled[name], expected[name], name)


def test_the_figures_are_those_of_plain_expressions(seed: int) -> None:
    rng = np.random.default_rng(seed)
    a = rng.standard_normal(100_000).astype(np.float32)
    b = a + rng.standard_normal(a.size).astype(np.float32) * np.float32(1e-4)
    found, histogram = records.measure(a, b, FLOAT32, Tolerance(rtol=1e-4, atol=1e-5))
    gap = np.abs(a - b)
    assert found["differing"].sum() == (a != b).sum()
    assert found["max_abs"].max() == gap.max()
    assert found["max_rel"].max() == (gap / np.abs(a)).max()
    assert found["sum_abs"].sum() == pytest.approx(gap.sum(dtype=np.float64), rel=1e-12)
    wide = a.astype(np.float64), b.astype(np.float64)
    assert found["beyond"].sum() == (np.abs(wide[0] - wide[1]) > 1e-5 + 1e-4 * np.abs(wide[0])).sum()
    ulps = np.abs(
        np.where(a < 0, -1, 1) * (a.view(np.int32) & 0x7FFFFFFF)
        - np.where(b < 0, -1, 1) * (b.view(np.int32) & 0x7FFFFFFF).astype(np.int64)
    )
    assert found["max_ulp"].max() == ulps.max()
    assert histogram[1] == (ulps == 1).sum()
    assert histogram[3] == ((ulps >= 4) & (ulps < 8)).sum()


def test_what_has_no_kernel_is_measured(seed: int) -> None:
    a, b = random_bits(FLOAT8E5M2, 5000, seed)
    found, _histogram = records.measure(a, b, FLOAT8E5M2, TOLERANCE)
    x, y = a.astype(np.float32), b.astype(np.float32)
    assert found["nan"].sum() == (np.isnan(x) ^ np.isnan(y)).sum() > 0
    assert found["zero_sign"].sum() == ((x == 0) & (y == 0) & (a.view(np.uint8) != b.view(np.uint8))).sum()


@pytest.mark.parametrize(
    ("a", "b", "distance"),
    [(1.0, np.nextafter(1, 2), 1), (0.0, -0.0, 0), (5e-324, -5e-324, 2), (np.inf, np.finfo(float).max, 1)],
)
def test_distances_count_the_numbers_between(a: float, b: float, distance: int) -> None:
    assert distances(np.array([a]), np.array([b]), FLOAT64)[0] == distance


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("element_type", [FLOAT32, FLOAT16, BFLOAT16], ids=str)
def test_the_tolerance_is_not_rounded_to_the_type(element_type: ElementType, compiled: bool, seed: int) -> None:
    """Elements at the very limit of a tolerance, which has more digits than the type, beside exact fractions."""
    if compiled and not jit.target().compiles(element_type):
        pytest.skip("this processor does not convert the type")
    rng = np.random.default_rng(seed)
    limits = [Fraction(1 / 7), Fraction(1 / 3)]

    def allowed(one: np.generic) -> Fraction:
        return limits[0] + limits[1] * abs(Fraction(float(one)))

    a = (rng.standard_normal(2000) * 8).astype(element_type.storage)
    b = np.array([float(one) + float(allowed(one)) for one in a]).astype(element_type.storage)
    gaps = (abs(Fraction(float(one)) - Fraction(float(two))) for one, two in zip(a, b, strict=True))
    expected = sum(gap > allowed(one) for gap, one in zip(gaps, a, strict=True))
    measure = records._compiled_records if compiled else records.numpy_records
    found, _histogram = measure(a, b, element_type, Tolerance(rtol=1 / 3, atol=1 / 7))
    assert found["beyond"].sum() == expected
    assert 0 < expected < a.size
