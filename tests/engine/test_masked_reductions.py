"""``where`` and ``initial`` of reductions: NumPy's meaning, in exact numbers."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import eltwise
from eltwise.core.dtypes import by_name
from eltwise.core.errors import EltwiseError

TYPES = ("float16", "bfloat16", "float32", "float64", "int8", "uint8", "int64", "uint64")
SHAPES = ((3, 4), (5,), (2, 1, 3), ())


def rounded(value: Fraction, dtype: Any) -> Any:
    return dtype.type(value) if dtype.kind in "iu" else np.float64(value.numerator / value.denominator)


@given(data=st.data())
def test_reductions_of_some_elements_are_those_of_the_elements_alone(data: st.DataObject) -> None:
    """The exact sums and means by fractions, and the extremes by NumPy, output by output."""
    name, shape = data.draw(st.sampled_from(TYPES)), data.draw(st.sampled_from(SHAPES))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    a, b = (rng.integers(0, 100, shape).astype(by_name(name).storage) for _operand in range(2))
    axes = tuple(axis for axis in range(len(shape)) if data.draw(st.booleans()))
    mask = rng.random([size if data.draw(st.booleans()) else 1 for size in shape]) < 0.6
    reduction = data.draw(st.sampled_from(["sum", "mean", "min", "max"]))
    initial = None if reduction == "mean" else data.draw(st.integers(0, 100))
    elements = np.moveaxis(np.asarray(eltwise.maximum(a, b)), axes, range(len(axes)))
    whole = np.moveaxis(np.broadcast_to(mask, shape), axes, range(len(axes)))
    outputs = elements.shape[len(axes) :]
    expected: list[Any] = []
    for place in np.ndindex(outputs):
        chosen = elements[(..., *place)][whole[(..., *place)]].reshape(-1)
        numbers = [Fraction(float(each)) for each in chosen.tolist()] + ([] if initial is None else [Fraction(initial)])
        if not numbers:
            with pytest.raises(EltwiseError, match="the mean of no elements is undefined"):
                eltwise.reduce("mean", "Maximum-1", a, b, axis=axes, where=mask)
            return
        value = {"sum": sum, "min": min, "max": max, "mean": lambda each: sum(each) / len(each)}[reduction](numbers)  # type: ignore[operator]
        expected.append(float(value))
    options: dict[str, Any] = {"axis": axes, "where": mask} | ({} if initial is None else {"initial": initial})
    result = eltwise.reduce(reduction, "Maximum-1", a, b, **options)  # type: ignore[arg-type]
    assert np.shape(result) == outputs
    assert result.dtype == eltwise.reduce(reduction, "Maximum-1", a, b).dtype
    assert np.asarray(result).astype(np.float64).reshape(-1).tolist() == expected
    kept = eltwise.reduce(reduction, "Maximum-1", a, b, keepdims=True, **options)  # type: ignore[arg-type]
    assert kept.shape == tuple(1 if axis in axes else size for axis, size in enumerate(shape))


@pytest.mark.parametrize("dtype", ["float32", "int8", "uint8", "uint64"])
@pytest.mark.parametrize("axis", [None, 0, 1])
def test_the_named_differences_take_a_mask(dtype: str, axis: Any) -> None:
    rng = np.random.default_rng(3)
    a, b = (rng.integers(0, 100, (4, 6)).astype(dtype) for _operand in range(2))
    mask, wide = rng.random((4, 6)) < 0.7, (np.abs(a.astype(float) - b), axis)
    mask[0], mask[:, 0] = True, True
    for chosen in (mask, True, np.True_):
        mean = eltwise.mean_squared_difference(a, b, axis=axis, where=chosen)
        assert np.array_equal(mean, np.mean(wide[0] ** 2, axis=axis, where=chosen))
        assert np.array_equal(
            eltwise.mean_absolute_difference(a, b, axis=axis, where=chosen), np.mean(wide[0], axis=axis, where=chosen)
        )
        most = eltwise.max_absolute_difference(a, b, axis=axis, where=chosen, initial=1)
        assert np.array_equal(most, np.max(wide[0], axis=axis, where=chosen, initial=1))
        assert most.dtype == eltwise.max_absolute_difference(a, b, axis=axis).dtype


def test_what_is_masked_does_not_count() -> None:
    x, mask = np.float32([np.nan, np.inf, 1e30, 1, -1e30]), np.array([False, False, True, True, True])
    assert eltwise.reduce("sum", "Max-13", x, where=mask) == 1.0
    assert np.isnan(eltwise.reduce("sum", "Max-13", x))
    assert eltwise.reduce("sum", "Max-13", x[2:], initial=2.0**-1000) == 1.0
    assert eltwise.reduce("sum", "Max-13", np.float32([1e30, -1e30]), initial=2.0**-1000) == 2.0**-1000
    assert eltwise.reduce("sum", "Max-13", np.int8([127, 127]), initial=2**62) == 2**62 + 254
    assert eltwise.reduce("max", "Max-13", np.float32([]), initial=-3) == -3
    assert (
        eltwise.reduce("sum", "openvino.Less-1", np.int8([1, 2]), np.int8([2, 3]), where=np.array([True, False])) == 1
    )
    assert eltwise.reduce("max", "openvino.Less-1", np.int8([1]), np.int8([1]), initial=True) is np.True_


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"where": np.ones(2, bool)}, r"max .* needs an initial value"),
        ({"where": np.ones(3, bool), "initial": 0}, r"where: the mask does not broadcast .*\(3,\); allowed: \(2,\)"),
        ({"where": np.ones((2, 2), bool), "initial": 0}, "the mask does not broadcast"),
        ({"where": np.ones(2), "initial": 0}, "a mask has booleans, got float64"),
        ({"where": [True, False], "initial": 0}, "not an array, got list"),
        ({"initial": 1000}, "int8 does not hold this number, got 1000; allowed: integers from -128 to 127"),
        ({"initial": "1"}, "not a number, got '1'"),
        ({"initial": np.int8([1, 2])}, "not a number"),
    ],
)
def test_what_has_no_meaning_is_refused(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(EltwiseError, match=sentence):
        eltwise.reduce("max", "Max-13", np.int8([1, 2]), **options)


def test_a_type_that_no_result_has_is_refused_before_the_mask() -> None:
    with pytest.raises(EltwiseError, match="dtype: the max of float32 elements is no int8"):
        eltwise.max_absolute_difference(np.float32([1]), np.float32([2]), dtype="int8", where=np.ones(2, bool))


def test_a_mean_has_no_initial_value_and_lazy_arrays_no_mask() -> None:
    with pytest.raises(TypeError, match="a mean has no initial value"):
        eltwise.reduce("mean", "Max-13", np.int8([1, 2]), initial=1)
    lazy = pytest.importorskip("dask.array").ones(3)
    with pytest.raises(NotImplementedError, match="not for dask objects; give the arrays, computed"):
        eltwise.mean_squared_difference(lazy, lazy, where=np.ones(3, bool))


def test_tensors_take_masks_of_tensors() -> None:
    torch = pytest.importorskip("torch")
    x, mask = torch.arange(6.0).reshape(2, 3), torch.tensor([True, False, True])
    result = eltwise.reduce("sum", "Max-13", x, axis=1, where=mask, initial=10)
    assert isinstance(result, torch.Tensor)
    assert result.tolist() == [12, 18]
