"""The oracle's broadcasting and comparison against NumPy and hand-made tables; the engine has no part in it."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from pathlib import Path

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
    place,
    same_bits,
)
from eltwise.oracle.hard_values import hard_values, random_bits
from support.cases import all_pairs

FORMULAS: list[str] = ["subtract", "squared_difference", "add", "multiply"]
Sizes = tuple[int, ...]


def test_the_oracle_shares_nothing_with_the_engine_but_the_types() -> None:
    imported = set()
    for path in Path(oracle.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom):
                imported.add(node.module)
            if isinstance(node, ast.Import):
                imported |= {name.name for name in node.names}
    foreign = {name for name in imported if name and name.split(".")[0] not in sys.stdlib_module_names}
    outside = {name for name in foreign if not name.startswith("eltwise.oracle")}
    assert outside == {"numpy", "numpy.typing", "flint", "eltwise.core.dtypes"}


# ---- broadcasting


def operands(a_shape: Sizes, b_shape: Sizes) -> tuple[np.ndarray, np.ndarray]:
    """A counts in thousands and B in ones, so that a difference tells both positions."""
    a = 1000 * np.arange(np.prod(a_shape, dtype=int), dtype=np.int64).reshape(a_shape)
    return a, np.arange(np.prod(b_shape, dtype=int), dtype=np.int64).reshape(b_shape)


def test_legacy_ignores_the_axis_for_one_element_and_for_equal_shapes() -> None:
    for axis in (-7, 0, 1, 9):
        assert place("legacy", [(2, 3), (1, 1)], axis)[0] == (2, 3)
        assert place("legacy", [(2, 3), (2, 3)], axis) == ((2, 3), (0, 0))
        assert place("legacy", [(2, 3), (2, 3)], axis, enabled=False)[0] == (2, 3)
        assert place("legacy", [(0, 3), ()], axis)[0] == (0, 3)


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


def test_refused_types_and_names() -> None:
    zeros = {name: np.zeros(2, name) for name in ("int32", "int64", "bool", "complex64", "str", "object", "float32")}
    with pytest.raises(OracleRefusal, match="operands are int32 and int64"):
        evaluate("subtract", zeros["int32"], zeros["int64"], rule="numpy")
    for name in ("bool", "complex64", "str", "object"):
        with pytest.raises(OracleRefusal):
            evaluate("subtract", zeros[name], zeros[name], rule="numpy")
    with pytest.raises(ValueError, match="no function 'tetrate'"):
        evaluate("tetrate", zeros["float32"], zeros["float32"], rule="numpy")
    with pytest.raises(ValueError, match="negative does not take 2 operands"):
        evaluate("negative", zeros["float32"], zeros["float32"], rule="numpy")
    with pytest.raises(ValueError, match="subtract does not take 3 operands"):
        evaluate("subtract", *[zeros["float32"]] * 3, rule="numpy")
    with pytest.raises(ValueError, match="legacy broadcasts two operands, not 3"):
        evaluate("maximum", *[zeros["float32"]] * 3, rule="legacy")
    with pytest.raises(OracleRefusal, match="divided by 0"):
        evaluate("divide", zeros["int32"], zeros["int32"], rule="none")
    with pytest.raises(ValueError, match="no broadcast rule 'explicit'"):
        evaluate("subtract", zeros["float32"], zeros["float32"], rule="explicit")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="no broadcast rule 'explicit'"):
        evaluate("negative", zeros["float32"], rule="explicit")  # type: ignore[arg-type]


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
    border, trailing = data.draw(st.integers(0, len(run))), data.draw(st.booleans())
    b_shape = tuple(1 if (position >= border) == trailing else size for position, size in enumerate(run))
    a, b = operands(a_shape, b_shape)
    expected = a - b.reshape((1,) * start + b_shape + (1,) * (len(a_shape) - end))
    for rule in ("legacy", "pdpd"):
        assert same_bits(evaluate("subtract", a, b, rule=rule, axis=start), expected)
        if end == len(a_shape):
            assert same_bits(evaluate("subtract", a, b, rule=rule), expected)


def test_any_number_of_operands_of_any_ranks() -> None:
    a, b, c = np.array([[1], [5]], np.int8), np.array([3, 4, -1], np.int8), np.int8(2)
    assert evaluate("maximum", a, b, c, rule="numpy").tolist() == [[3, 4, 2], [5, 5, 5]]  # type: ignore[arg-type]
    assert evaluate("minimum", a, b, c, rule="numpy").tolist() == [[1, 1, -1], [2, 2, -1]]  # type: ignore[arg-type]
    assert evaluate("maximum", a, rule="none").tolist() == [[1], [5]]
    assert evaluate("negative", a, rule="none").tolist() == [[-1], [-5]]
    with pytest.raises(OracleRefusal, match="must be equal"):
        evaluate("maximum", a, b, rule="none")


def test_three_operands_are_broadcast_onto_one() -> None:
    a, b = operands((2, 3, 4), (3, 1))
    condition = np.array([[True], [False], [True]])
    expected = np.where(condition, a, b)
    assert same_bits(evaluate("where", condition, a, b, rule="pdpd", axis=1), expected)
    assert same_bits(evaluate("where", condition, a, b, rule="numpy"), expected)
    limits = np.array([0, 5], np.int64)
    clipped = evaluate("clip", a, *(each[:, None, None] for each in (limits, limits + 9)), rule="pdpd", axis=0)
    assert same_bits(clipped, np.clip(a, limits[:, None, None], limits[:, None, None] + 9))
    with pytest.raises(OracleRefusal, match="rank 3 is larger"):
        evaluate("where", a > 0, b, b, rule="pdpd")


def test_comparisons_give_booleans() -> None:
    a, b = np.array([1, np.nan, -0.0, np.inf], np.float32), np.array([2, np.nan, 0.0, np.inf], np.float32)
    wanted = {
        "equal": [False, False, True, True],
        "less": [True, False, False, False],
        "less_equal": [True, False, True, True],
        "greater": [False, False, False, False],
        "greater_equal": [False, False, True, True],
    }
    for function, expected in wanted.items():
        result = evaluate(function, a, b, rule="none")
        assert result.dtype == np.bool_
        assert result.tolist() == expected
    booleans = np.array([True, False])
    assert evaluate("equal", booleans, booleans[::-1], rule="none").tolist() == [False, False]
    with pytest.raises(OracleRefusal, match="bool is no numeric type"):
        evaluate("less", booleans, booleans, rule="none")


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
    a, b = all_pairs(hard_values(element_type))
    with np.errstate(all="ignore"):
        got = runtime(a, b)
    assert got.dtype == element_type.storage
    assert not same_bits(got, evaluate("subtract", a, b, rule="none"))


@pytest.mark.parametrize("element_type", [FLOAT16, BFLOAT16], ids=str)
def test_a_square_that_is_rounded_only_once_is_rejected(element_type: ElementType) -> None:
    a, b = all_pairs(hard_values(element_type))
    with np.errstate(all="ignore"):
        wide = a.astype(np.float32) - b.astype(np.float32)
        got = (wide * wide).astype(element_type.storage)
    assert not same_bits(got, evaluate("squared_difference", a, b, rule="none"))
