"""Casts by example: double roundings, overflow, saturation, wrapping, and arrays that lie oddly in memory."""

from __future__ import annotations

from math import prod

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto

import eltwise
from eltwise.core.casting import cast
from eltwise.core.dtypes import (
    FLOAT64,
    INT4,
    INT32,
    INT64,
    TYPES,
    UINT8,
    ElementType,
)
from eltwise.oracle import differences
from support.layouts import layouts, view
from support.onnx_models import model, node, value

ALL = [each for each in TYPES if each.runs]


LIMITS = f"{-(2**63)} to {2**63 - 1}"
NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize("saturate", [0, 1])
def test_a_model_saturates_on_the_way_to_the_same_type(saturate: int) -> None:
    nodes = [node("Cast", ["x"], ["y"], to=TensorProto.FLOAT8E5M2, saturate=saturate)]
    ports = [[value(name, (2,), TensorProto.FLOAT8E5M2)] for name in "xy"]
    given = np.array([INF, -INF], ml_dtypes.float8_e5m2)
    result = eltwise.load(model(nodes, *ports, opset=19, ir_version=9)).run({"x": given})["y"]  # type: ignore[arg-type, misc]
    assert result.astype(float).tolist() == ([57344, -57344] if saturate else [INF, -INF])


@pytest.mark.parametrize(
    ("values", "target", "expected"),
    [
        ([INF, -INF, NAN, 2.5, -0.9], INT32, [2**31 - 1, -(2**31), 0, 2, 0]),
        ([1e30, -1e30, 2.0**63, 2.0**62], INT64, [2**63 - 1, -(2**63), 2**63 - 1, 2**62]),
        ([-1.0, 256.0, 255.9], UINT8, [0, 255, 255]),
        ([7.0, 8.0, -9.0], INT4, [7, 7, -8]),
    ],
)
def test_a_float_beyond_the_integers_saturates(values: list[float], target: ElementType, expected: list[int]) -> None:
    assert cast(np.array(values), FLOAT64, target).astype(object).tolist() == expected


@settings(max_examples=200)
@given(st.sampled_from(ALL), st.sampled_from(ALL), st.data())
def test_how_the_values_lie_in_memory_does_not_matter(
    source: ElementType, target: ElementType, data: st.DataObject
) -> None:
    shape = tuple(data.draw(st.lists(st.sampled_from([0, 1, 2, 3]), max_size=3)))
    plain = (np.arange(prod(shape)).reshape(shape) % 7).astype(source.storage)
    memory = np.zeros(600, np.uint8)
    array = view(memory, source, shape, data.draw(layouts(shape, source.storage.itemsize)))
    array[...] = plain
    array.flags.writeable = False
    got, expected = cast(array, source, target), cast(plain, source, target)
    assert got.shape == shape
    assert got.dtype == expected.dtype == target.storage
    assert differences(got, expected) == []
    assert not np.shares_memory(got, memory)
    assert type(got) is np.ndarray


@pytest.mark.parametrize("rank", [0, 33, 64])
def test_every_rank(rank: int) -> None:
    for source in ALL:
        for target in ALL:
            got = cast(np.ones((1,) * rank).astype(source.storage), source, target)
            assert got.shape == (1,) * rank
            assert float(got.reshape(-1).astype(np.float64)[0]) == 1
