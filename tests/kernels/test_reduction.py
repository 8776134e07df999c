"""Reductions by blocks: the elements of an output side by side or the outputs, of every size around a vector."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import eltwise
from eltwise.core.dtypes import BFLOAT16, FLOAT16, FLOAT32, FLOAT64, INT16, INT64, ElementType
from eltwise.kernels import dispatch, exact_sum, reduction
from support.reduction_ways import computed, share

MOST_LANES = 16
SEGMENT = 64 * MOST_LANES
"""More elements of a row than any loop adds at once."""

SHAPES = [
    *[(outputs, row) for outputs in (1, 3, MOST_LANES + 1) for row in (1, MOST_LANES - 1, MOST_LANES, MOST_LANES + 1)],
    *[(outputs, row) for outputs in (1, 5, 40) for row in (63, 64, 65, SEGMENT - 1, SEGMENT, SEGMENT + 1)],
    *[(outputs, 70) for outputs in (reduction.MOST_COLUMNS - 1, reduction.MOST_COLUMNS + 1)],
    *[(outputs, 3) for outputs in (exact_sum.MOST_OUTPUTS - 1, 2 * exact_sum.MOST_OUTPUTS + 1)],
    *[(outputs, row) for outputs in (133, 200) for row in (17, 64, 65, 1000)],  # Rows that are finished together.
    (2, 70_001),
]


SUMMED = (FLOAT16, BFLOAT16, FLOAT32, FLOAT64, INT16, INT64)
WAYS = ("words", 1 << 12, "kernel")


@pytest.fixture(params=WAYS, ids=["words", "small blocks", "kernel"])
def way(request: pytest.FixtureRequest) -> str | int:
    way: str | int = request.param
    return way


@pytest.fixture
def _ways(way: str | int, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    if isinstance(way, int):
        monkeypatch.setattr(reduction, "BLOCK_BYTES", way)
    monkeypatch.setattr(reduction, "LEAST_ELEMENTS_PER_THREAD", 1 << 12)
    share(monkeypatch, 1 << 12)
    with computed("numpy" if isinstance(way, int) else way):
        yield


def elements(element_type: ElementType, shape: tuple[int, int], seed: int) -> np.ndarray:
    """Rows of values of many exponents, some of which are not finite, huge, subnormal or cancel."""
    generator = np.random.default_rng(seed)
    if element_type.is_integer:
        return generator.integers(*element_type.limits, shape, element_type.storage, endpoint=True)
    values = generator.standard_normal(shape) * np.exp2(generator.integers(-12, 3, shape))
    if element_type is FLOAT64:
        values[:: max(1, shape[0] // 5)] *= np.exp2(generator.integers(-500, 500, shape[1]))
        values[shape[0] // 3, shape[1] // 2] = 2.0**1010
    storage = element_type.storage
    found = values.astype(storage)
    found[shape[0] // 2, shape[1] // 3] = np.array(1, f"u{storage.itemsize}").view(storage)  # The least subnormal.
    found[-1, -1] = -found[-1, 0] if shape[1] > 1 else 0
    for place, special in ((shape[0] // 7, math.inf), (shape[0] // 5, -math.inf), (shape[0] // 4, math.nan)):
        if shape[0] > MOST_LANES:
            found[place, shape[1] // 5] = special
    return found


def total(values: list[float]) -> float:
    if math.inf in values and -math.inf in values:
        return math.nan
    return math.fsum(values)


@pytest.mark.usefixtures("_ways")
@pytest.mark.parametrize("element_type", SUMMED, ids=str)
def test_rows_and_columns_of_every_size(element_type: ElementType, way: str | int, seed: int) -> None:
    """Each type with each shape, and both in each way: a shape is summed in one way for a type."""
    first = (WAYS.index(way) + SUMMED.index(element_type)) % len(WAYS)
    for shape in SHAPES[first :: len(WAYS)]:
        values = elements(element_type, shape, seed)
        if element_type.is_integer:
            exact_type, options = values.dtype, {"dtype": "float64"}
            expected = {"Max-13": [float(sum(row)) for row in values.tolist()]}
        else:
            wide, exact_type, options = values.astype(np.float64), np.dtype(np.float64), {}
            every = {"Max-13": wide, "openvino.Abs-1": abs(wide)}  # The latter is never negative.
            expected = {name: [total(row) for row in exact.tolist()] for name, exact in every.items()}
        for axis, given in ((1, values), (0, np.ascontiguousarray(values.T))):
            for name, sums in expected.items():
                np.testing.assert_array_equal(eltwise.reduce("sum", name, given, axis=axis, **options), sums)
            for kind, function in (("max", np.max), ("min", np.min)):
                extremes = eltwise.reduce(kind, "Max-13", given, axis=axis)
                np.testing.assert_array_equal(extremes.astype(exact_type), function(values.astype(exact_type), axis=1))


@pytest.mark.usefixtures("_ways")
@pytest.mark.parametrize("axes", [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)], ids=str)
@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1), (1, 2, 0)], ids=str)
def test_axes_in_any_order_in_memory(axes: tuple[int, ...], order: tuple[int, ...], seed: int) -> None:
    values = elements(FLOAT32, (33 * 34, 35), seed).reshape(33, 34, 35)
    stored = np.ascontiguousarray(values.transpose(order)).transpose(np.argsort(order))
    sums = eltwise.reduce("sum", "Subtract-1", stored[::-1], np.float32(0), axis=axes)
    rows = np.moveaxis(values[::-1], axes, range(-len(axes), 0)).reshape(*sums.shape, -1)
    expected = np.array([total(row) for row in rows.reshape(-1, rows.shape[-1]).tolist()])
    np.testing.assert_array_equal(sums, expected.reshape(sums.shape))


@pytest.mark.usefixtures("_ways")
@pytest.mark.parametrize("shape", [(40, 3000), (3000, 40), (2, 70_001)], ids=str)
@pytest.mark.parametrize("axis", [0, 1])
def test_booleans(shape: tuple[int, int], axis: int, seed: int) -> None:
    values = np.random.default_rng(seed).standard_normal(shape).astype(np.float32)
    values[:, :5], values[:5] = 1, 1
    is_less = values < -3
    for kind, expected in (("max", is_less.max(axis)), ("min", is_less.min(axis)), ("sum", is_less.sum(axis))):
        found = eltwise.reduce(kind, "Less-13", values, np.float32(-3), axis=axis)  # type: ignore[arg-type]
        assert found.tolist() == expected.tolist()


@pytest.mark.usefixtures("_ways")
@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("shape", [(1, 300_000), (20, 9_000)], ids=str)
@pytest.mark.parametrize("element_type", [BFLOAT16, FLOAT32, FLOAT64], ids=str)
def test_elements_just_below_a_power_of_two_fill_the_parts(
    element_type: ElementType, shape: tuple[int, int], sign: int
) -> None:
    value = np.array((2.0 - 2.0 ** (1 - element_type.digits)) * sign).astype(element_type.storage)
    exact = float(Fraction(float(value)) * shape[1])
    for axis, values in ((1, np.full(shape, value)), (0, np.full(shape[::-1], value))):
        assert set(eltwise.reduce("sum", "Max-13", values, axis=axis).tolist()) == {exact}


@pytest.mark.usefixtures("_ways")
def test_the_largest_float16_lose_nothing_of_the_smallest() -> None:
    """One float64 holds thousands of them, and no more."""
    half = 140_000
    row = np.concatenate([np.full(half, 65504), [2.0**-24], np.full(half, -65504)]).astype(np.float16)
    for axis, values in ((1, np.stack([row, -row])), (0, np.stack([row, -row] * 10, axis=1))):
        sums = eltwise.reduce("sum", "Max-13", values, axis=axis)
        assert {*sums.tolist()} == {2.0**-24, -(2.0**-24)}


@pytest.mark.usefixtures("_ways")
@pytest.mark.parametrize("shape", [(1, 3000), (150, 200)], ids=str)
@pytest.mark.parametrize("element_type", [FLOAT16, FLOAT32, FLOAT64], ids=str)
def test_a_nan_or_an_infinity_anywhere_in_a_sum_of_squares(element_type: ElementType, shape: tuple[int, int]) -> None:
    places = [0, 1, 15, 16, 17, shape[1] // 2, shape[1] - 1]
    for first, special in product(places, (math.nan, math.inf)):
        values = np.ones(shape, element_type.storage)
        values[:, first] = special
        values[:, (first + 40) % shape[1]] = math.inf
        means = eltwise.reduce("mean", "SquaredDifference-1", values, np.zeros((), values.dtype), axis=1)
        assert np.array_equal(means, np.full(shape[0], special), equal_nan=True)


@pytest.mark.parametrize("axis", [None, 0, 1])
def test_small_reductions_compile_nothing(axis: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatch, "why_no_kernel", lambda *_arguments: pytest.fail("a kernel was looked for"))
    ones = np.ones((100, 100), np.float32)
    assert np.all(eltwise.mean_squared_difference(ones, 3 * ones, axis) == 4)
