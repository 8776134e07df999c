"""The oracle against witnesses that share nothing with it: NumPy, ml_dtypes, Python's floats, and hand-made tables."""

from __future__ import annotations

import ast
import inspect
import itertools
import sys
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eltwise import oracle, oracle_numbers
from eltwise.conformance.values import all_pairs_8bit, hard_pairs, hard_values, random_bits
from eltwise.dtypes import (
    BFLOAT16,
    BY_NAME,
    FLOAT8E4M3FN,
    FLOAT8E5M2,
    FLOAT16,
    FLOAT32,
    FLOAT64,
    INT8,
    INT64,
    TYPES,
)
from eltwise.oracle import (
    OracleRefusal,
    array_of,
    bits_of,
    differences,
    evaluate,
    place,
    same_bits,
    squared_difference,
    subtract,
)
from eltwise.oracle_numbers import FLOAT_LAYOUTS, Special, decode, encode, is_nan

NUMERIC = [row for row in TYPES if row.is_numeric]
FLOATS = list(FLOAT_LAYOUTS)
INTEGERS = [row for row in NUMERIC if row.is_integer]
SMALL_FLOATS = [FLOAT8E4M3FN, FLOAT8E5M2, FLOAT16, BFLOAT16]
FORMULAS = ["subtract", "squared_difference"]
PROPERTY = settings(deadline=None, derandomize=True, max_examples=100, database=None)


def witness(formula, a, b):
    """NumPy's and ml_dtypes' own arithmetic, each step in the element type."""
    with np.errstate(all="ignore"):
        difference = np.subtract(a, b)
        return difference if formula == "subtract" else np.multiply(difference, difference)


def assert_agrees(formula, a, b):
    expected = evaluate(formula, a, b, "none")
    wrong = differences(witness(formula, a, b), expected)
    shown = [[hex(bits_of(array)[at]) for array in (a, b, expected)] for at in wrong[:5]]
    assert not wrong, f"{len(wrong)} of {a.size} differ; a, b, oracle: {shown}"


def number_of(value):
    """A Python float as the oracle writes it."""
    if np.isnan(value):
        return Special.NAN
    if value in (np.inf, -np.inf):
        return Special.POSITIVE_INFINITY if value > 0 else Special.NEGATIVE_INFINITY
    return Special.NEGATIVE_ZERO if value == 0 and np.signbit(value) else Fraction(value)


def test_the_oracle_shares_nothing_with_the_engine_but_the_types():
    imported = set()
    for module in (oracle, oracle_numbers):
        for node in ast.walk(ast.parse(inspect.getsource(module))):
            if isinstance(node, ast.ImportFrom):
                imported.add(node.module)
            if isinstance(node, ast.Import):
                imported |= {name.name for name in node.names}
    foreign = {name for name in imported if name.split(".")[0] not in sys.stdlib_module_names}
    assert foreign == {"numpy", "numpy.typing", "eltwise.dtypes", "eltwise.oracle_numbers"}


# ---- numbers


def patterns_to_read(element_type):
    if element_type.bits <= 16:
        return array_of(element_type, range(1 << element_type.bits))
    return np.concatenate([hard_values(element_type), random_bits(element_type, 5000, seed=3)])


def test_there_are_sixteen_numeric_types():
    assert len(NUMERIC) == 16
    assert len(FLOATS) + len(INTEGERS) == 16


@pytest.mark.parametrize("element_type", NUMERIC, ids=str)
def test_every_pattern_is_read_as_numpy_reads_it(element_type):
    array = patterns_to_read(element_type)
    if element_type.is_integer:
        expected = [int(value) for value in array]
    else:
        with np.errstate(invalid="ignore"):
            expected = [number_of(value) for value in array.astype(np.float64).tolist()]
    assert [decode(element_type, bits) for bits in bits_of(array)] == expected


@pytest.mark.parametrize("element_type", NUMERIC, ids=str)
def test_every_number_is_written_as_the_pattern_it_was_read_from(element_type):
    for bits in bits_of(patterns_to_read(element_type)):
        written = encode(element_type, decode(element_type, bits))
        assert written == bits or (is_nan(element_type, bits) and is_nan(element_type, written))


@pytest.mark.parametrize("element_type", SMALL_FLOATS, ids=str)
def test_rounding_of_midpoints_and_their_neighbours_is_that_of_a_cast_from_float32(element_type):
    layout = FLOAT_LAYOUTS[element_type]
    stride = 1 if element_type.bits == 8 else 13
    lows = [decode(element_type, bits) for bits in range(0, layout.largest_finite, stride)]
    highs = [decode(element_type, bits + 1) for bits in range(0, layout.largest_finite, stride)]
    middles = np.array([float((low + high) / 2) for low, high in zip(lows, highs, strict=True)], np.float32)
    inputs = np.concatenate([middles, np.nextafter(middles, np.float32(0)), np.nextafter(middles, np.float32(np.inf))])
    inputs = np.concatenate([inputs, -inputs])
    with np.errstate(all="ignore"):
        cast = inputs.astype(element_type.storage)
    written = [encode(element_type, number_of(value)) for value in inputs.tolist()]
    assert differences(cast, array_of(element_type, written)) == []


@pytest.mark.parametrize(
    ("value", "bits"),
    [(448, 0x7E), (463.5, 0x7E), (464, 0x7E), (464.0001, 0x7F), (480, 0x7F), (10**9, 0x7F), (-464, 0xFE), (-465, 0xFF)],
)
def test_float8_e4m3fn_overflows_to_nan_beyond_464_as_ml_dtypes_does(value, bits):
    cast = np.array([value], np.float32).astype(ml_dtypes.float8_e4m3fn)
    written = encode(FLOAT8E4M3FN, Fraction(float(np.float32(value))))
    assert written == bits
    assert same_bits(cast, array_of(FLOAT8E4M3FN, [written]))


@pytest.mark.parametrize(
    ("element_type", "limit", "largest"),
    [(FLOAT16, 65520, 0x7BFF), (BFLOAT16, (2**9 - 1) * 2**119, 0x7F7F), (FLOAT8E5M2, 61440, 0x7B)],
    ids=str,
)
def test_overflow_starts_half_a_step_beyond_the_largest_finite(element_type, limit, largest):
    assert encode(element_type, Fraction(limit)) == largest + 1
    assert encode(element_type, Fraction(limit) - Fraction(1, 1000)) == largest
    assert encode(element_type, -Fraction(limit)) == FLOAT_LAYOUTS[element_type].sign | (largest + 1)


@PROPERTY
@given(st.fractions(), st.integers(-1100, 1000))
def test_float64_rounds_as_pythons_own_division(fraction, exponent):
    exact = fraction * Fraction(2) ** exponent
    expected = np.array([float(exact)])
    assert encode(FLOAT64, exact) == bits_of(np.abs(expected) if exact == 0 else expected)[0]


@PROPERTY
@given(st.sampled_from(FLOATS), st.fractions(-100, 100), st.integers(-160, 20))
def test_no_neighbour_is_nearer_than_the_rounded_number(element_type, fraction, exponent):
    exact = fraction * Fraction(2) ** exponent
    bits = encode(element_type, exact)
    rounded = decode(element_type, bits)
    if not isinstance(rounded, Fraction):
        return
    for neighbour in (bits - 1, bits + 1):
        other = decode(element_type, neighbour % (1 << element_type.bits))
        if isinstance(other, Fraction):
            near, far = abs(exact - rounded), abs(exact - other)
            assert near < far or (near == far and bits % 2 == 0)


def test_numbers_that_no_type_holds_are_refused():
    for element_type, bits in [(INT8, 256), (INT8, -1), (FLOAT16, 1 << 16), (BY_NAME["uint4"], 16)]:
        with pytest.raises(ValueError, match="no pattern"):
            decode(element_type, bits)
    with pytest.raises(ValueError, match="no numeric type"):
        decode(BY_NAME["bool"], 1)
    with pytest.raises(ValueError, match="no value of the integer type"):
        encode(INT8, Fraction(1, 2))


# ---- formulas


@pytest.mark.parametrize("formula", FORMULAS)
@pytest.mark.parametrize("element_type", NUMERIC, ids=str)
def test_hard_and_random_pairs_agree_with_numpy_and_ml_dtypes(element_type, formula):
    assert_agrees(formula, *hard_pairs(element_type))
    assert_agrees(formula, random_bits(element_type, 4000, seed=1), random_bits(element_type, 4000, seed=2))


@pytest.mark.parametrize("formula", FORMULAS)
@pytest.mark.parametrize("element_type", [row for row in NUMERIC if row.bits <= 8], ids=str)
def test_all_pairs_of_the_small_types_agree_with_numpy_and_ml_dtypes(element_type, formula):
    assert_agrees(formula, *all_pairs_8bit(element_type))


@pytest.mark.parametrize("element_type", INTEGERS, ids=str)
def test_integers_wrap(element_type):
    low, high = element_type.limits
    modulus = 1 << element_type.bits
    values = [(low, 1), (low, high), (high, low), (0, low), (high, -1), (3, 5), (low, low)]
    for a, b in values:
        a_bits, b_bits = a % modulus, b % modulus
        difference = subtract(element_type, a_bits, b_bits)
        assert difference == (a - b) % modulus
        assert squared_difference(element_type, a_bits, b_bits) == (a - b) ** 2 % modulus
    assert decode(element_type, subtract(element_type, low % modulus, 1)) == high


@pytest.mark.parametrize("element_type", FLOATS, ids=str)
def test_zeros_infinities_and_nan_follow_the_standard(element_type):
    layout = FLOAT_LAYOUTS[element_type]
    zero, negative_zero, one = 0, layout.sign, encode(element_type, Fraction(1))
    table = {
        (zero, zero): zero,
        (zero, negative_zero): zero,
        (negative_zero, zero): negative_zero,
        (negative_zero, negative_zero): zero,
        (one, one): zero,
        (layout.sign | one, layout.sign | one): zero,
        (one, negative_zero): one,
        (negative_zero, one): layout.sign | one,
        (1, 2): layout.sign | 1,
    }
    if layout.has_infinity:
        infinity = layout.largest_finite + 1
        opposite = layout.sign | infinity
        largest = layout.largest_finite
        table |= {
            (infinity, infinity): layout.nan,
            (opposite, opposite): layout.nan,
            (infinity, opposite): infinity,
            (opposite, infinity): opposite,
            (one, infinity): opposite,
            (negative_zero, opposite): infinity,
            (infinity, one): infinity,
            (largest, layout.sign | largest): infinity,
            (layout.nan, infinity): layout.nan,
        }
    table |= {(layout.nan, one): layout.nan, (one, layout.sign | layout.nan): layout.nan}
    assert {pair: subtract(element_type, *pair) for pair in table} == table
    assert squared_difference(element_type, negative_zero, zero) == zero
    assert is_nan(element_type, squared_difference(element_type, layout.nan, one))
    overflow = squared_difference(element_type, layout.largest_finite, layout.sign | layout.largest_finite)
    assert overflow == layout.largest_finite + 1


@pytest.mark.parametrize("element_type", FLOATS, ids=str)
def test_squared_difference_rounds_after_each_step(element_type):
    step = Fraction(1, 1 << FLOAT_LAYOUTS[element_type].mantissa_bits)
    one, minus_half_step = encode(element_type, Fraction(1)), encode(element_type, -step / 2)
    assert squared_difference(element_type, one, minus_half_step) == one
    assert encode(element_type, (1 + step / 2) ** 2) == one + 1


@PROPERTY
@given(st.sampled_from(FLOATS), st.integers(0, 2**64 - 1), st.integers(0, 2**64 - 1))
def test_swapped_operands_give_the_opposite_and_the_same_square(element_type, a, b):
    a, b = a % (1 << element_type.bits), b % (1 << element_type.bits)
    one, other = subtract(element_type, a, b), subtract(element_type, b, a)
    if not is_nan(element_type, one) and decode(element_type, one) not in (0, Special.NEGATIVE_ZERO):
        assert one ^ other == FLOAT_LAYOUTS[element_type].sign
    assert squared_difference(element_type, a, b) == squared_difference(element_type, b, a)


# ---- broadcasting


def operands(a_shape, b_shape):
    """A counts in thousands and B in ones, so that a difference tells both positions."""
    a = 1000 * np.arange(np.prod(a_shape, dtype=int), dtype=np.int64).reshape(a_shape)
    return a, np.arange(np.prod(b_shape, dtype=int), dtype=np.int64).reshape(b_shape)


def positions_of_b(a, b, rule, axis=-1, enabled=True):
    """The flat positions in B that the result was made from, where the result has A's shape."""
    result = evaluate("subtract", a, b, rule, axis, enabled)
    assert result.shape == a.shape
    return (a - result).tolist()


@pytest.mark.parametrize("rule", ["none", "numpy", "pdpd", "legacy"])
@pytest.mark.parametrize("shape", [(), (1,), (0,), (3,), (2, 3), (2, 0, 3), (256, 56)], ids=str)
def test_equal_shapes_pair_equal_positions(rule, shape):
    a, b = operands(shape, shape)
    assert same_bits(evaluate("subtract", a, b, rule), 999 * b)
    assert same_bits(evaluate("subtract", a, b, "legacy", enabled=False), 999 * b)


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
def test_b_is_placed_by_axis(rule, a_shape, b_shape, axis, expected):
    assert positions_of_b(*operands(a_shape, b_shape), rule, axis) == expected


@pytest.mark.parametrize("rule", ["pdpd", "legacy"])
@pytest.mark.parametrize(("axis", "moving"), [(0, 0), (1, 1), (2, 2), (-1, 2)])
def test_a_vector_of_three_in_a_cube_of_three_follows_the_axis(rule, axis, moving):
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
def test_the_examples_of_sub_6(rule, b_shape, axis, strides):
    found = positions_of_b(*operands((2, 3, 4, 5), b_shape), rule, axis)
    for i, j, k, m in itertools.product(range(2), range(3), range(4), range(5)):
        assert found[i][j][k][m] == i * strides[0] + j * strides[1] + k * strides[2] + m * strides[3]


def test_legacy_ignores_the_axis_for_one_element_and_for_equal_shapes():
    for axis in (-7, 0, 1, 9):
        assert place("legacy", (2, 3), (1, 1), axis).shape == (2, 3)
        assert place("legacy", (2, 3), (2, 3), axis).b_start == 0
        assert place("legacy", (2, 3), (2, 3), axis, enabled=False).shape == (2, 3)
        assert place("legacy", (0, 3), (), axis).shape == (0, 3)


def test_the_example_of_subtract_1():
    a, b = operands((8, 1, 6, 1), (7, 1, 5))
    result = evaluate("subtract", a, b, "numpy")
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
def test_result_shapes(rule, a_shape, b_shape, shape):
    assert evaluate("subtract", *operands(a_shape, b_shape), rule).shape == shape


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
def test_refused_shapes_and_axes(rule, a_shape, b_shape, axis, reason):
    with pytest.raises(OracleRefusal, match=reason):
        evaluate("subtract", *operands(a_shape, b_shape), rule, axis)


@pytest.mark.parametrize(("a_shape", "b_shape"), [((2, 3), ()), ((2, 3), (3,)), ((2, 3), (1, 3)), ((1,), ())])
def test_legacy_without_broadcast_demands_equal_shapes(a_shape, b_shape):
    with pytest.raises(OracleRefusal, match="must be equal"):
        evaluate("subtract", *operands(a_shape, b_shape), "legacy", enabled=False)


def test_refused_types_and_names():
    zeros = {name: np.zeros(2, name) for name in ("int32", "int64", "bool", "complex64", "str", "object", "float32")}
    with pytest.raises(OracleRefusal, match="A is int32 and B is int64"):
        evaluate("subtract", zeros["int32"], zeros["int64"], "numpy")
    for name in ("bool", "complex64", "str", "object"):
        with pytest.raises(OracleRefusal):
            evaluate("subtract", zeros[name], zeros[name], "numpy")
    with pytest.raises(ValueError, match="no formula 'add'"):
        evaluate("add", zeros["float32"], zeros["float32"], "numpy")
    with pytest.raises(ValueError, match="no broadcast rule 'explicit'"):
        evaluate("subtract", zeros["float32"], zeros["float32"], "explicit")


SHAPES = st.lists(st.integers(0, 4), max_size=4).map(tuple)


@PROPERTY
@given(SHAPES, SHAPES)
def test_the_numpy_rule_is_numpys(a_shape, b_shape):
    a, b = operands(a_shape, b_shape)
    try:
        expected = a - b
    except ValueError:
        with pytest.raises(OracleRefusal):
            evaluate("subtract", a, b, "numpy")
    else:
        assert same_bits(evaluate("subtract", a, b, "numpy"), np.asarray(expected))


@PROPERTY
@given(st.data())
def test_one_directional_rules_are_numpys_with_b_padded_on_both_sides(data):
    a_shape = data.draw(st.lists(st.integers(1, 3), min_size=1, max_size=4).map(tuple))
    start = data.draw(st.integers(0, len(a_shape)))
    end = data.draw(st.integers(start, len(a_shape)))
    run = a_shape[start:end]
    leading = data.draw(st.integers(0, len(run)))
    b_shape = tuple(1 if position < leading else size for position, size in enumerate(run))
    a, b = operands(a_shape, b_shape)
    expected = a - b.reshape((1,) * start + b_shape + (1,) * (len(a_shape) - end))
    for rule in ("legacy", "pdpd"):
        assert same_bits(evaluate("subtract", a, b, rule, start), expected)


# ---- arrays


@pytest.mark.parametrize("formula", FORMULAS)
def test_strides_and_byte_order_do_not_matter_and_results_are_plain(formula):
    a, b = random_bits(FLOAT32, 24, seed=5).reshape(4, 6), random_bits(FLOAT32, 24, seed=6).reshape(6, 4).T
    expected = evaluate(formula, np.ascontiguousarray(a), np.ascontiguousarray(b), "none")
    swapped = a.astype(">f4").view(">f4")[::-1, ::-2]
    got = evaluate(formula, swapped, np.asfortranarray(b)[::-1, ::-2], "none")
    assert same_bits(got, np.ascontiguousarray(expected[::-1, ::-2]))
    assert got.flags.c_contiguous
    assert got.dtype.isnative
    assert got.flags.writeable


def test_four_bit_types_use_only_the_low_half_of_a_byte():
    dirty = np.array([0xF1, 0x2F], np.uint8).view(ml_dtypes.int4)
    assert bits_of(dirty) == [0x1, 0xF]
    assert evaluate("subtract", dirty, dirty[::-1], "none").view(np.uint8).tolist() == [0x2, 0xE]
    assert same_bits(dirty, np.array([1, -1], ml_dtypes.int4))


def test_comparison_tells_zeros_apart_and_no_nan():
    nans = array_of(FLOAT16, [0x7E00, 0xFE01, 0x0000])
    assert same_bits(nans, array_of(FLOAT16, [0x7C01, 0x7FFF, 0x0000]))
    assert differences(nans, array_of(FLOAT16, [0x7E00, 0x7C00, 0x8000])) == [1, 2]
    assert differences(np.array([[1, 2], [3, 4]]), np.array([[1, 0], [3, 5]])) == [1, 3]
    assert same_bits(np.array([True]), np.array([True]))
    assert not same_bits(np.array([True]), np.array([False]))


def test_comparison_demands_equal_types_and_shapes():
    floats = np.zeros((2, 3), np.float32)
    for other in (floats.astype(np.float64), floats.reshape(3, 2), floats.view(np.int32), floats.astype(">f4")):
        assert not same_bits(other, floats)
        with pytest.raises(ValueError, match="expected float32"):
            differences(other, floats)


def saturated(a, b):
    return np.clip(a.astype(np.int64) - b.astype(np.int64), -128, 127).astype(np.int8)


def flushed(a, b):
    result = witness("subtract", a, b)
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
def test_wrong_runtimes_are_rejected(element_type, runtime):
    a, b = hard_pairs(element_type)
    with np.errstate(all="ignore"):
        got = runtime(a, b)
    assert got.dtype == element_type.storage
    assert not same_bits(got, evaluate("subtract", a, b, "none"))


@pytest.mark.parametrize("element_type", [FLOAT16, BFLOAT16], ids=str)
def test_a_square_that_is_rounded_only_once_is_rejected(element_type):
    a, b = hard_pairs(element_type)
    with np.errstate(all="ignore"):
        wide = a.astype(np.float32) - b.astype(np.float32)
        got = (wide * wide).astype(element_type.storage)
    assert not same_bits(got, evaluate("squared_difference", a, b, "none"))


# ---- hard values


@pytest.mark.parametrize("element_type", NUMERIC, ids=str)
def test_hard_values_are_distinct_and_paired_completely(element_type):
    values = hard_values(element_type)
    patterns = bits_of(values)
    assert values.dtype == element_type.storage
    assert len(set(patterns)) == len(patterns)
    a, b = hard_pairs(element_type)
    assert set(zip(bits_of(a), bits_of(b), strict=True)) == set(itertools.product(patterns, repeat=2))
    assert same_bits(random_bits(element_type, 9, seed=4), random_bits(element_type, 9, seed=4))


@pytest.mark.parametrize("element_type", INTEGERS, ids=str)
def test_hard_integers_hold_the_limits_and_the_widths_of_other_types(element_type):
    low, high = element_type.limits
    wanted = {low, low + 1, high - 1, high, -1, 0, 1, 2}
    wanted |= {sign * 2**width + step for sign in (1, -1) for width in (31, 32, 53) for step in (-1, 0, 1)}
    found = {decode(element_type, bits) for bits in bits_of(hard_values(element_type))}
    assert {value for value in wanted if low <= value <= high} <= found
    assert {int("0x" + digit * (element_type.bits // 4), 16) for digit in "5a"} <= set(
        bits_of(hard_values(element_type))
    )


@pytest.mark.parametrize("element_type", FLOATS, ids=str)
def test_hard_floats_meet_every_way_of_rounding(element_type):
    layout = FLOAT_LAYOUTS[element_type]
    patterns = bits_of(hard_values(element_type))
    normal = 1 << layout.mantissa_bits
    assert {0, 1, normal - 1, normal, layout.largest_finite, layout.largest_finite + 1, layout.nan} <= set(patterns)
    numbers = [value for value in (decode(element_type, bits) for bits in patterns) if isinstance(value, Fraction)]
    seen = set()
    for a, b in itertools.product(numbers, repeat=2):
        seen |= {("difference", kind) for kind in kinds_of_rounding(element_type, a - b)}
    for a in numbers:
        seen |= {("square", kind) for kind in kinds_of_rounding(element_type, a * a)}
    kinds = ["exact", "tie to even below", "tie to even above", "near a tie", "subnormal", "overflow"]
    assert {("difference", kind) for kind in kinds} <= seen
    # The square of an odd number leaves the remainder 1 by 8, so a tie of squares always goes down.
    kinds = [kind for kind in kinds if kind != "tie to even above"] + ["vanishes"]
    assert {("square", kind) for kind in kinds} <= seen


def kinds_of_rounding(element_type, exact):
    layout = FLOAT_LAYOUTS[element_type]
    bits = encode(element_type, abs(exact))
    if bits > layout.largest_finite:
        return {"overflow"}
    rounded = decode(element_type, bits)
    found = {"exact"} if rounded == abs(exact) else set()
    found |= {"subnormal"} if 0 < bits < 1 << layout.mantissa_bits else set()
    found |= {"vanishes"} if bits == 0 and exact != 0 else set()
    if abs(exact) == rounded or bits in (0, layout.largest_finite):
        return found
    other = decode(element_type, bits + 1 if abs(exact) > rounded else bits - 1)
    share = abs(exact - (rounded if exact > 0 else -rounded)) / abs(other - rounded)
    if share == Fraction(1, 2):
        found.add("tie to even below" if other > rounded else "tie to even above")
    elif share > Fraction(3, 8):
        found.add("near a tie")
    return found


def test_all_pairs_are_refused_beyond_eight_bits():
    assert all_pairs_8bit(BY_NAME["int4"])[0].size == 256
    with pytest.raises(ValueError, match="16 bits"):
        all_pairs_8bit(FLOAT16)
