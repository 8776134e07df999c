"""What NumPy's functions do, the functions here do: the place of out, scalars, and the order in memory."""

from __future__ import annotations

import ctypes
import itertools
from array import array
from collections.abc import Iterator

import dask.array as da
import numpy as np
import pytest
import xarray

import eltwise
from eltwise.core.dtypes import TYPES
from eltwise.engine.functions import FUNCTIONS
from eltwise.errors import AttributeValueError, UnsupportedError
from eltwise.testing import assert_same

OFTEN = 120
"""After so many calls the native entry answers."""


def permuted(shape: tuple[int, ...], rng: np.random.Generator) -> Iterator[np.ndarray]:
    """Arrays of a shape in every order of the axes."""
    for axes in itertools.permutations(range(len(shape))):
        values = rng.integers(1, 9, [shape[axis] for axis in axes]).astype(np.float32)
        yield values.transpose(np.argsort(axes))


@pytest.mark.parametrize("shape", [(3, 4), (2, 3, 4), (4, 1, 3), (2, 0, 3), (300, 500), (40, 50, 60)], ids=str)
def test_the_result_has_the_order_of_the_operands(shape: tuple[int, ...], seed: int) -> None:
    rng = np.random.default_rng(seed)
    for a, b in itertools.product(list(permuted(shape, rng)), repeat=2):
        for other in (b, b[:1], b[..., :1], b[0]):
            expected = np.subtract(a, other)
            for _ in range(OFTEN if a.size < 1000 else 1):
                result = eltwise.subtract(a, other)
            assert result.strides == expected.strides
            assert (result == expected).all()


def test_an_array_of_another_order_may_take_the_result() -> None:
    a = np.arange(12, dtype=np.float32).reshape(3, 4)
    for out in (np.empty((3, 4), np.float32), np.empty((4, 3), np.float32).T):
        for _ in range(OFTEN):
            assert eltwise.subtract(a.T.copy().T, a, out) is out
        assert (out == 0).all()
    assert eltwise.subtract(a, a).flags.c_contiguous


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_argument_after_the_operands_is_out(name: str) -> None:
    function = getattr(eltwise, name)
    operands = [np.float32([1, 2, 3])] * (1 if name in ("negative", "absolute") else 2)
    for _ in range(OFTEN):
        out = np.empty_like(function(*operands))
        assert function(*operands, out) is out
        assert (out == function(*operands)).all()
    with pytest.raises(TypeError, match="positional argument"):
        function(*operands, out, "numpy")


@pytest.mark.parametrize("element_type", [each for each in TYPES if each.is_numeric], ids=str)
def test_an_out_of_any_class_is_the_result(element_type: object) -> None:
    storage = element_type.storage  # type: ignore[attr-defined]
    operand = np.ones(3).astype(storage)
    for name in ("subtract", "divide", "maximum", "squared_difference"):
        out = np.empty(3, storage).view(type("Class", (np.ndarray,), {}))
        assert getattr(eltwise, name)(operand, operand, out) is out
        assert_same(np.asarray(out), getattr(eltwise, name)(operand, operand))


@pytest.mark.parametrize("element_type", [each for each in TYPES if each.is_numeric], ids=str)
def test_scalars_and_arrays_of_rank_0_give_scalars(element_type: object) -> None:
    storage = element_type.storage  # type: ignore[attr-defined]
    zero_d, one = np.array(2).astype(storage), np.ones(1).astype(storage)
    for operands in ((zero_d, zero_d), (zero_d[()], zero_d), (zero_d[()], zero_d[()])):
        for function in (eltwise.subtract, eltwise.divide, eltwise.operator("Subtract-1")):
            for _ in range(OFTEN):
                result = function(*operands)
            assert type(result) is storage.type
            out = np.empty((), storage)
            assert function(*operands, out=out) is out
            assert out[()] == result
    assert type(eltwise.less(zero_d, zero_d)) is np.bool_
    assert eltwise.subtract(one, zero_d).shape == (1,)


def test_a_model_gives_arrays() -> None:
    from support.onnx_models import model, node, value

    loaded = eltwise.load(
        model([node("Sub", ["x", "y"], ["z"])], [value("x", []), value("y", [])], [value("z", [])], 14)
    )
    for _ in range(OFTEN):
        result = loaded.run({"x": np.array(3, np.float32), "y": np.array(1, np.float32)})["z"]
        assert (type(result), result.shape) == (np.ndarray, ())


@pytest.mark.parametrize("axis", [None, 0, -1, (0, 2), (1,), ()])
@pytest.mark.parametrize("shapes", [((2, 3, 4), (2, 3, 4)), ((2, 3, 4), (4,)), ((2, 1, 4), (3, 1))], ids=str)
def test_reduced_axes_stay_where_that_is_asked_for(
    shapes: tuple[tuple[int, ...], ...], axis: object, seed: int
) -> None:
    a, b = (np.random.default_rng(seed).standard_normal(shape) for shape in shapes)
    expected = ((a - b) ** 2).mean(axis=axis, keepdims=True)
    for given in ({"axis": axis}, {"dim": axis}):
        for result in (
            eltwise.mean_squared_difference(a, b, **given, keepdims=True),
            eltwise.reduce("mean", "SquaredDifference-1", a, b, **given, keepdims=True),
            eltwise.mean_squared_difference(da.from_array(a, 2), b, **given, keepdims=True).compute(),
        ):
            assert result.shape == expected.shape
            assert np.allclose(result, expected)
            assert (result.reshape(-1) == np.ravel(eltwise.mean_squared_difference(a, b, **given))).all()


@pytest.mark.parametrize("axis", [None, 0, -1, ()])
def test_reduced_axes_of_what_does_not_say_its_rank_stay(axis: object) -> None:
    a = array("d", [1, 2, 4])
    expected = np.asarray(a).sum(axis=axis, keepdims=True)  # type: ignore[call-overload]
    for operands in ((a,), ((ctypes.c_double * 3)(*a),), (memoryview(a),), (1.0, a)):
        name = "Max-13" if len(operands) == 1 else "Mul-14"
        assert_same(eltwise.reduce("sum", name, *operands, axis=axis, keepdims=True), expected)


def test_dim_is_another_name_of_axis() -> None:
    a, b = xarray.DataArray(np.ones((2, 3)), dims=("x", "y")), np.zeros((2, 3))
    assert eltwise.max_absolute_difference(a, b, dim="y").dims == ("x",)
    with pytest.raises(AttributeValueError, match="axis and dim are two names of the same argument"):
        eltwise.mean_squared_difference(a, b, axis=0, dim=0)
    with pytest.raises(UnsupportedError, match="keepdims is for arrays without labels"):
        eltwise.mean_squared_difference(a, b, keepdims=True)
