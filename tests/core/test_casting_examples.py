"""Casts by example: double roundings, overflow, saturation, wrapping, refusals, and arrays that lie oddly in memory."""

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
    BFLOAT16,
    BOOL,
    FLOAT8E4M3FN,
    FLOAT8E5M2,
    FLOAT16,
    FLOAT32,
    FLOAT64,
    INT4,
    INT8,
    INT32,
    INT64,
    TYPES,
    UINT4,
    UINT8,
    UINT64,
    ElementType,
)
from eltwise.core.errors import ValueRangeError
from eltwise.oracle import differences
from layouts import layouts, view
from onnx_models import model, node, value

ALL = [each for each in TYPES if each.runs]


@pytest.mark.parametrize(
    ("value", "target", "right", "twice"),
    [
        (np.float64(1 + 2**-8 + 2**-40), ml_dtypes.bfloat16, 1 + 2**-7, 1),
        (np.float64(1 + 2**-8 - 2**-40), ml_dtypes.bfloat16, 1, 1),
        (np.int64(2**60 + 2**52 + 1), ml_dtypes.bfloat16, 2**60 + 2**53, 2**60),
        (np.uint64(2**63 + 2**55 + 1), ml_dtypes.bfloat16, 2**63 + 2**56, 2**63),
        (np.int64(2**60 + 2**36 + 1), np.float32, 2**60 + 2**37, 2**60),
        (np.float64(1.0625 + 2**-40), ml_dtypes.float8_e4m3fn, 1.125, 1),
        (np.float64(1.125 + 2**-40), ml_dtypes.float8_e5m2, 1.25, 1),
        (np.float64(2**-10 + 2**-60), ml_dtypes.float8_e4m3fn, 2**-9, 0),
        (np.int32(2**24 + 2**16 + 1), ml_dtypes.bfloat16, 2**24 + 2**17, 2**24),
    ],
)
def test_well_known_double_roundings(value: np.generic, target: type, right: float, twice: float) -> None:
    array = np.asarray(value)
    names = {row.storage: row for row in ALL}
    source_type, target_type = names[array.dtype], names[np.dtype(target)]
    assert float(cast(array, source_type, target_type)) == right
    if target is not np.float32:
        assert float(array.astype(np.float32).astype(target)) == twice


LIMITS = f"{-(2**63)} to {2**63 - 1}"
NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("target", "saturate", "numbers", "results"),
    [
        (FLOAT8E4M3FN, True, [448, 463, 464, 465, 1e9, INF, -INF, NAN], [448, 448, 448, 448, 448, 448, -448, NAN]),
        (FLOAT8E4M3FN, False, [448, 463, 464, 465, 1e9, INF, -INF, NAN], [448, 448, 448, NAN, NAN, NAN, NAN, NAN]),
        (
            FLOAT8E5M2,
            True,
            [57344, 61439, 61440, 1e9, INF, -INF, NAN],
            [57344, 57344, 57344, 57344, 57344, -57344, NAN],
        ),
        (FLOAT8E5M2, False, [57344, 61439, 61440, 1e9, INF, -INF, NAN], [57344, 57344, INF, INF, INF, -INF, NAN]),
        (FLOAT16, True, [65504, 65519, 65520, INF, -INF, NAN], [65504, 65504, INF, INF, -INF, NAN]),
        (BFLOAT16, True, [3.4e38, 1e39, INF, NAN], [float(ml_dtypes.bfloat16(3.4e38)), INF, INF, NAN]),
        (BOOL, True, [0.0, -0.0, 1e-300, NAN, INF, -2], [False, False, True, True, True, True]),
    ],
)
def test_overflow_infinities_and_nan(
    target: ElementType, saturate: bool, numbers: list[float], results: list[float]
) -> None:
    got = cast(np.array(numbers, np.float64), FLOAT64, target, saturate)
    np.testing.assert_array_equal(got.astype(np.float64), results)


@pytest.mark.parametrize("source", [FLOAT8E5M2, FLOAT16, BFLOAT16, FLOAT32, FLOAT64], ids=str)
@pytest.mark.parametrize(("target", "largest"), [(FLOAT8E5M2, 57344), (FLOAT8E4M3FN, 448)])
def test_infinities_saturate_from_every_float(source: ElementType, target: ElementType, largest: float) -> None:
    numbers = np.array([INF, -INF, 0.5, -0.5]).astype(source.storage)
    for shape in ((4,), (2, 2)):
        got = cast(numbers.reshape(shape), source, target, saturate=True)
        assert got.shape == shape
        assert got.astype(float).ravel().tolist() == [largest, -largest, 0.5, -0.5]
    assert float(cast(numbers[1], source, target, saturate=True)) == -largest
    kept = cast(numbers, source, target, saturate=False).astype(float)
    np.testing.assert_array_equal(kept[:2], [INF, -INF] if target is FLOAT8E5M2 else [NAN, NAN])


@pytest.mark.parametrize("saturate", [0, 1])
def test_a_model_saturates_on_the_way_to_the_same_type(saturate: int) -> None:
    nodes = [node("Cast", ["x"], ["y"], to=TensorProto.FLOAT8E5M2, saturate=saturate)]
    ports = [[value(name, (2,), TensorProto.FLOAT8E5M2)] for name in "xy"]
    given = np.array([INF, -INF], ml_dtypes.float8_e5m2)
    result = eltwise.load(model(nodes, *ports, opset=19, ir_version=9)).run({"x": given})["y"]
    assert result.astype(float).tolist() == ([57344, -57344] if saturate else [INF, -INF])


def test_integers_wrap() -> None:
    assert cast(np.array([300, -1, -129, 256]), INT64, UINT8).tolist() == [44, 255, 127, 0]
    assert cast(np.array([300, -1, -129, 256]), INT64, INT8).tolist() == [44, -1, 127, 0]
    assert cast(np.array([8, -9, 17, 255]), INT64, INT4).astype(int).tolist() == [-8, 7, 1, -1]
    assert cast(np.array([8, -9, 17, 255]), INT64, UINT4).astype(int).tolist() == [8, 7, 1, 15]
    assert cast(np.array([2**64 - 1], np.uint64), UINT64, INT32).tolist() == [-1]


@pytest.mark.parametrize(
    ("values", "target", "sentence"),
    [
        (
            [[0, 1], [INF, 3]],
            INT32,
            "element 2 cannot become int32: UNDEF, got inf; allowed: -2147483648 to 2147483647",
        ),
        (
            [NAN],
            INT64,
            f"element 0 cannot become int64: UNDEF, got nan; allowed: {LIMITS}",
        ),
        (
            [2.0**63],
            INT64,
            f"element 0 cannot become int64: UNDEF, got 9.223372036854776e+18; allowed: {LIMITS}",
        ),
        (
            [-1.0],
            UINT8,
            "element 0 cannot become uint8: UNDEF, got -1.0; allowed: 0 to 255",
        ),
        (
            [7.0, 8.0],
            INT4,
            "element 1 cannot become int4: UNDEF, got 8.0; allowed: -8 to 7",
        ),
    ],
)
def test_a_float_beyond_the_integers_is_refused(values: list[float], target: ElementType, sentence: str) -> None:
    with pytest.raises(ValueRangeError) as caught:
        cast(np.array(values), FLOAT64, target)
    assert str(caught.value) == sentence.replace("UNDEF", "the specification leaves the result undefined")


def test_floats_are_truncated_toward_zero_up_to_the_limits() -> None:
    assert cast(np.array([-0.9, 0.9, -8.9, 7.9]), FLOAT64, INT4).astype(int).tolist() == [0, 0, -8, 7]
    assert cast(np.array([-0.9, 255.9]), FLOAT64, UINT8).tolist() == [0, 255]
    below = np.nextafter(2.0**63, 0)
    assert cast(np.array([-(2.0**63), below]), FLOAT64, INT64).tolist() == [-(2**63), int(below)]
    assert cast(np.array([np.nextafter(2.0**64, 0)]), FLOAT64, UINT64).tolist() == [2**64 - 2048]


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
