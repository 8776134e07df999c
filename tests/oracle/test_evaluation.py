"""The oracle's broadcasting and comparison against NumPy and hand-made tables; the engine has no part in it."""

from __future__ import annotations

import ast
import inspect
import itertools
import sys
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eltwise import oracle
from eltwise.core.dtypes import BFLOAT16, FLOAT16, FLOAT32, FLOAT64, INT8, INT64, ElementType
from eltwise.oracle import (
    OracleRefusal,
    array_of,
    bits_of,
    differences,
    evaluate,
    evaluation,
    numbers,
    place,
    same_bits,
)
from eltwise.oracle.hard_values import hard_pairs, random_bits

FORMULAS: list[str] = ["subtract", "squared_difference", "add", "multiply"]
Sizes = tuple[int, ...]


def test_the_oracle_shares_nothing_with_the_engine_but_the_types() -> None:
    imported = set()
    for module in (evaluation, numbers):
        for node in ast.walk(ast.parse(inspect.getsource(module))):
            if isinstance(node, ast.ImportFrom):
                imported.add(node.module)
            if isinstance(node, ast.Import):
                imported |= {name.name for name in node.names}
    foreign = {name for name in imported if name.split(".")[0] not in sys.stdlib_module_names}
    assert foreign == {"numpy", "numpy.typing", "eltwise.core.dtypes", "eltwise.oracle.numbers"}


# ---- broadcasting


def operands(a_shape: Sizes, b_shape: Sizes) -> tuple[np.ndarray, np.ndarray]:
    """A counts in thousands and B in ones, so that a difference tells both positions."""
    a = 1000 * np.arange(np.prod(a_shape, dtype=int), dtype=np.int64).reshape(a_shape)
    return a, np.arange(np.prod(b_shape, dtype=int), dtype=np.int64).reshape(b_shape)


def positions_of_b(a: np.ndarray, b: np.ndarray, rule: oracle.RuleName, axis: int = -1, enabled: bool = True) -> Any:
    """The flat positions in B that the result was made from, where the result has A's shape."""
    result = evaluate("subtract", a, b, rule=rule, axis=axis, enabled=enabled)
    assert result.shape == a.shape
    return (a - result).tolist()


@pytest.mark.parametrize("rule", ["none", "numpy", "pdpd", "legacy"])
@pytest.mark.parametrize("shape", [(), (1,), (0,), (3,), (2, 3), (2, 0, 3), (256, 56)], ids=str)
def test_equal_shapes_pair_equal_positions(rule: oracle.RuleName, shape: Sizes) -> None:
    a, b = operands(shape, shape)
    assert same_bits(evaluate("subtract", a, b, rule=rule), 999 * b)
    assert same_bits(evaluate("subtract", a, b, rule="legacy", enabled=False), 999 * b)


@pytest.mark.parametrize(
    ("a_shape", "b_shape", "axis", "expected"),
    [
        ((2, 3), (), -1, [[0, 0, 0], [0, 0, 0]]),
        ((2, 3), (1,), -1, [[0, 0, 0], [0, 0, 0]]),
        ((2, 3), (1, 1), -1, [[0, 0, 0], [0, 0, 0]]),
        ((2, 3), (3,), -1, [[0, 1, 2], [0, 1, 2]]),
        ((2, 3), (3,), 1, [[0, 1, 2], [0, 1, 2]]),
        ((2, 3), (2,), 0, [[0, 0, 0], [1, 1, 1]]),
        ((2, 3), (2, 1), 0, [[0, 0, 0], [1, 1, 1]]),
        ((2, 3), (1, 3), -1, [[0, 1, 2], [0, 1, 2]]),
        ((2, 2, 2), (2, 2), 0, [[[0, 0], [1, 1]], [[2, 2], [3, 3]]]),
        ((2, 2, 2), (2, 2), -1, [[[0, 1], [2, 3]], [[0, 1], [2, 3]]]),
        ((2, 2, 2), (2, 1), 0, [[[0, 0], [0, 0]], [[1, 1], [1, 1]]]),
        ((2, 2, 2), (1, 2), 0, [[[0, 0], [1, 1]], [[0, 0], [1, 1]]]),
        ((2, 2, 2), (1, 2, 1), -1, [[[0, 0], [1, 1]], [[0, 0], [1, 1]]]),
        ((2, 1, 2), (2, 1, 2), 0, [[[0, 1]], [[2, 3]]]),
    ],
)
@pytest.mark.parametrize("rule", ["pdpd", "legacy"])
def test_b_is_placed_by_axis(
    rule: oracle.RuleName, a_shape: Sizes, b_shape: Sizes, axis: int, expected: object
) -> None:
    assert positions_of_b(*operands(a_shape, b_shape), rule, axis) == expected


@pytest.mark.parametrize("rule", ["pdpd", "legacy"])
@pytest.mark.parametrize(("axis", "moving"), [(0, 0), (1, 1), (2, 2), (-1, 2)])
def test_a_vector_of_three_in_a_cube_of_three_follows_the_axis(rule: oracle.RuleName, axis: int, moving: int) -> None:
    found = positions_of_b(*operands((3, 3, 3), (3,)), rule, axis)
    for index in itertools.product(range(3), repeat=3):
        assert found[index[0]][index[1]][index[2]] == index[moving]


@pytest.mark.parametrize(
    ("b_shape", "axis", "strides"),
    [
        ((), -1, (0, 0, 0, 0)),
        ((1, 1), -1, (0, 0, 0, 0)),
        ((5,), -1, (0, 0, 0, 1)),
        ((4, 5), -1, (0, 0, 5, 1)),
        ((3, 4), 1, (0, 4, 1, 0)),
        ((2,), 0, (1, 0, 0, 0)),
    ],
)
@pytest.mark.parametrize("rule", ["pdpd", "legacy"])
def test_the_examples_of_sub_6(rule: oracle.RuleName, b_shape: Sizes, axis: int, strides: tuple[int, ...]) -> None:
    found = positions_of_b(*operands((2, 3, 4, 5), b_shape), rule, axis)
    for i, j, k, m in itertools.product(range(2), range(3), range(4), range(5)):
        assert found[i][j][k][m] == i * strides[0] + j * strides[1] + k * strides[2] + m * strides[3]


def test_legacy_ignores_the_axis_for_one_element_and_for_equal_shapes() -> None:
    for axis in (-7, 0, 1, 9):
        assert place("legacy", (2, 3), (1, 1), axis).shape == (2, 3)
        assert place("legacy", (2, 3), (2, 3), axis).b_start == 0
        assert place("legacy", (2, 3), (2, 3), axis, enabled=False).shape == (2, 3)
        assert place("legacy", (0, 3), (), axis).shape == (0, 3)


def test_the_example_of_subtract_1() -> None:
    a, b = operands((8, 1, 6, 1), (7, 1, 5))
    result = evaluate("subtract", a, b, rule="numpy")
    assert result.shape == (8, 7, 6, 5)
    for i, j, k, m in [(0, 0, 0, 0), (7, 6, 5, 4), (3, 2, 1, 0), (1, 6, 0, 4)]:
        assert result[i, j, k, m] == 1000 * (i * 6 + k) - (j * 5 + m)


@pytest.mark.parametrize(
    ("rule", "a_shape", "b_shape", "shape"),
    [
        ("numpy", (), (2, 3), (2, 3)),
        ("numpy", (1,), (0,), (0,)),
        ("numpy", (0,), (1,), (0,)),
        ("numpy", (2, 0), (1, 1), (2, 0)),
        ("numpy", (3, 4, 5), (5,), (3, 4, 5)),
        ("pdpd", (1, 3), (0, 3), (0, 3)),
        ("pdpd", (2, 0), (2, 0), (2, 0)),
        ("legacy", (0, 3), (1, 3), (0, 3)),
        ("legacy", (2, 1, 3), (2, 1, 3), (2, 1, 3)),
        ("legacy", (4, 2, 1, 3), (2, 1, 3), (4, 2, 1, 3)),
    ],
)
def test_result_shapes(rule: oracle.RuleName, a_shape: Sizes, b_shape: Sizes, shape: Sizes) -> None:
    assert evaluate("subtract", *operands(a_shape, b_shape), rule=rule).shape == shape


@pytest.mark.parametrize(
    ("rule", "a_shape", "b_shape", "axis", "reason"),
    [
        ("none", (2, 3), (3,), -1, "must be equal"),
        ("none", (2, 3), (2, 1), -1, "must be equal"),
        ("none", (2,), (0,), -1, "must be equal"),
        ("none", (1,), (), -1, "must be equal"),
        ("numpy", (2, 3), (2,), -1, "sizes 3 and 2"),
        ("numpy", (0,), (2,), -1, "sizes 0 and 2"),
        ("pdpd", (3,), (2, 3), -1, "rank 2 is larger"),
        ("pdpd", (), (1,), -1, "rank 1 is larger"),
        ("pdpd", (1, 3), (2, 3), -1, "B's 2 is larger than A's 1"),
        ("pdpd", (0, 3), (1, 3), -1, "B's 1 is larger than A's 0"),
        ("pdpd", (4, 3), (2, 3), -1, "sizes 4 and 2"),
        ("pdpd", (2, 3), (3,), -2, "axis -2 is out of range"),
        ("pdpd", (2, 3), (3,), 2, "axis 2 is out of range"),
        ("pdpd", (2, 3), (2, 3), 1, "axis 1 is out of range"),
        ("pdpd", (2, 3), (3, 1), 1, "axis 1 is out of range"),
        ("pdpd", (2, 3), (), 3, "axis 3 is out of range"),
        ("legacy", (2, 3), (2,), -1, "A has 3 and B 2"),
        ("legacy", (1, 3), (2, 3), -1, "A has 1 and B 2"),
        ("legacy", (1, 3), (0, 3), -1, "A has 1 and B 0"),
        ("legacy", (2, 3), (3,), -2, "axis -2 is out of range"),
        ("legacy", (2, 3), (3,), 2, "axis 2 is out of range"),
        ("legacy", (2, 3, 4), (3, 4), 2, "axis 2 is out of range"),
        ("legacy", (3,), (2, 3), -1, "rank 2 is larger"),
        ("legacy", (3,), (1, 1), -1, "rank 2 is larger"),
        ("legacy", (), (1,), -1, "rank 1 is larger"),
        ("legacy", (2, 3, 4), (2, 1, 4), -1, "between B's other dimensions"),
        ("legacy", (5, 2, 3, 4), (2, 1, 4), 1, "between B's other dimensions"),
        ("legacy", (2, 0, 4), (2, 1, 4), -1, "between B's other dimensions"),
    ],
)
def test_refused_shapes_and_axes(rule: oracle.RuleName, a_shape: Sizes, b_shape: Sizes, axis: int, reason: str) -> None:
    with pytest.raises(OracleRefusal, match=reason):
        evaluate("subtract", *operands(a_shape, b_shape), rule=rule, axis=axis)


@pytest.mark.parametrize(("a_shape", "b_shape"), [((2, 3), ()), ((2, 3), (3,)), ((2, 3), (1, 3)), ((1,), ())])
def test_legacy_without_broadcast_demands_equal_shapes(a_shape: Sizes, b_shape: Sizes) -> None:
    with pytest.raises(OracleRefusal, match="must be equal"):
        evaluate("subtract", *operands(a_shape, b_shape), rule="legacy", enabled=False)


def test_refused_types_and_names() -> None:
    zeros = {name: np.zeros(2, name) for name in ("int32", "int64", "bool", "complex64", "str", "object", "float32")}
    with pytest.raises(OracleRefusal, match="A is int32 and B is int64"):
        evaluate("subtract", zeros["int32"], zeros["int64"], rule="numpy")
    for name in ("bool", "complex64", "str", "object"):
        with pytest.raises(OracleRefusal):
            evaluate("subtract", zeros[name], zeros[name], rule="numpy")
    with pytest.raises(ValueError, match="no formula 'divide'"):
        evaluate("divide", zeros["float32"], zeros["float32"], rule="numpy")
    with pytest.raises(ValueError, match="no broadcast rule 'explicit'"):
        evaluate("subtract", zeros["float32"], zeros["float32"], rule="explicit")


SHAPES = st.lists(st.integers(0, 4), max_size=4).map(tuple)


@given(SHAPES, SHAPES)
def test_the_numpy_rule_is_numpys(a_shape: Sizes, b_shape: Sizes) -> None:
    a, b = operands(a_shape, b_shape)
    try:
        expected = a - b
    except ValueError:
        with pytest.raises(OracleRefusal):
            evaluate("subtract", a, b, rule="numpy")
    else:
        assert same_bits(evaluate("subtract", a, b, rule="numpy"), np.asarray(expected))


@given(st.data())
def test_one_directional_rules_are_numpys_with_b_padded_on_both_sides(data: st.DataObject) -> None:
    a_shape = data.draw(st.lists(st.integers(1, 3), min_size=1, max_size=4).map(tuple))
    start = data.draw(st.integers(0, len(a_shape)))
    end = data.draw(st.integers(start, len(a_shape)))
    run = a_shape[start:end]
    leading = data.draw(st.integers(0, len(run)))
    b_shape = tuple(1 if position < leading else size for position, size in enumerate(run))
    a, b = operands(a_shape, b_shape)
    expected = a - b.reshape((1,) * start + b_shape + (1,) * (len(a_shape) - end))
    for rule in ("legacy", "pdpd"):
        assert same_bits(evaluate("subtract", a, b, rule=rule, axis=start), expected)


# ---- arrays


@pytest.mark.parametrize("formula", FORMULAS)
def test_strides_and_byte_order_do_not_matter_and_results_are_plain(formula: str) -> None:
    a, b = random_bits(FLOAT32, 24, seed=5).reshape(4, 6), random_bits(FLOAT32, 24, seed=6).reshape(6, 4).T
    expected = evaluate(formula, np.ascontiguousarray(a), np.ascontiguousarray(b), rule="none")
    swapped = a.astype(">f4").view(">f4")[::-1, ::-2]
    got = evaluate(formula, swapped, np.asfortranarray(b)[::-1, ::-2], rule="none")
    assert same_bits(got, np.ascontiguousarray(expected[::-1, ::-2]))
    assert got.flags.c_contiguous
    assert got.dtype.isnative
    assert got.flags.writeable


def test_four_bit_types_use_only_the_low_half_of_a_byte() -> None:
    dirty = np.array([0xF1, 0x2F], np.uint8).view(ml_dtypes.int4)
    assert bits_of(dirty) == [0x1, 0xF]
    assert evaluate("subtract", dirty, dirty[::-1], rule="none").view(np.uint8).tolist() == [0x2, 0xE]
    assert same_bits(dirty, np.array([1, -1], ml_dtypes.int4))


def test_comparison_tells_zeros_apart_and_no_nan() -> None:
    nans = array_of(FLOAT16, [0x7E00, 0xFE01, 0x0000])
    assert same_bits(nans, array_of(FLOAT16, [0x7C01, 0x7FFF, 0x0000]))
    assert differences(nans, array_of(FLOAT16, [0x7E00, 0x7C00, 0x8000])) == [1, 2]
    assert differences(np.array([[1, 2], [3, 4]]), np.array([[1, 0], [3, 5]])) == [1, 3]
    assert same_bits(np.array([True]), np.array([True]))
    assert not same_bits(np.array([True]), np.array([False]))


def test_comparison_demands_equal_types_and_shapes() -> None:
    floats = np.zeros((2, 3), np.float32)
    for other in (floats.astype(np.float64), floats.reshape(3, 2), floats.view(np.int32), floats.astype(">f4")):
        assert not same_bits(other, floats)
        with pytest.raises(ValueError, match="expected float32"):
            differences(other, floats)


def saturated(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.clip(a.astype(np.int64) - b.astype(np.int64), -128, 127).astype(np.int8)


def flushed(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        result = a - b
    return np.where(np.abs(result.astype(np.float32)) < 2.0**-126, np.zeros_like(result), result)


@pytest.mark.parametrize(
    ("element_type", "runtime"),
    [
        (INT8, saturated),
        (BFLOAT16, flushed),
        (INT64, lambda a, b: (a.astype(np.int32) - b.astype(np.int32)).astype(np.int64)),
        (FLOAT64, lambda a, b: (a.astype(np.float32) - b.astype(np.float32)).astype(np.float64)),
        (FLOAT32, lambda a, b: b - a),
        (FLOAT32, lambda a, b: -(b - a)),
        (FLOAT16, lambda a, b: a + (0 - b)),
    ],
    ids=["saturates", "flushes", "computes in 32 bits", "computes in float32", "swaps", "negates", "adds"],
)
def test_wrong_runtimes_are_rejected(
    element_type: ElementType, runtime: Callable[[np.ndarray, np.ndarray], np.ndarray]
) -> None:
    a, b = hard_pairs(element_type)
    with np.errstate(all="ignore"):
        got = runtime(a, b)
    assert got.dtype == element_type.storage
    assert not same_bits(got, evaluate("subtract", a, b, rule="none"))


@pytest.mark.parametrize("element_type", [FLOAT16, BFLOAT16], ids=str)
def test_a_square_that_is_rounded_only_once_is_rejected(element_type: ElementType) -> None:
    a, b = hard_pairs(element_type)
    with np.errstate(all="ignore"):
        wide = a.astype(np.float32) - b.astype(np.float32)
        got = (wide * wide).astype(element_type.storage)
    assert not same_bits(got, evaluate("squared_difference", a, b, rule="none"))
