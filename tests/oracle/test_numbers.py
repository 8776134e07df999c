"""The oracle's numbers and formulas against NumPy, ml_dtypes, Python's floats, and hand-made tables."""

from __future__ import annotations

from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eltwise.core.dtypes import BFLOAT16, BY_NAME, FLOAT8E4M3FN, FLOAT8E5M2, FLOAT16, FLOAT64, INT8, TYPES, ElementType
from eltwise.oracle import array_of, bits_of, differences, evaluate, same_bits
from eltwise.oracle.hard_values import hard_values, random_bits
from eltwise.oracle.numbers import FLOAT_LAYOUTS, Number, Special, decode, encode, is_nan
from support.cases import all_pairs


def of_bits(function: str, element_type: ElementType, *operands: int) -> int:
    """What a function gives for single bit patterns."""
    arrays = [array_of(element_type, [bits]) for bits in operands]
    return bits_of(evaluate(function, *arrays, rule="none"))[0]


NUMERIC = [each for each in TYPES if each.is_numeric]
FLOATS = list(FLOAT_LAYOUTS)
INTEGERS = [row for row in NUMERIC if row.is_integer]
SMALL_8 = (ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2)
SMALL_FLOATS = [FLOAT8E4M3FN, FLOAT8E5M2, FLOAT16, BFLOAT16]
COMPARISONS = ["equal", "not_equal", "less", "less_equal", "greater", "greater_equal"]
UNARY = ["negative", "absolute"]
DIVISIONS = ["divide", "floor_divide"]
FORMULAS: list[str] = [
    *("subtract", "squared_difference", "add", "multiply", *DIVISIONS, "maximum", "minimum"),
    *(*UNARY, *COMPARISONS),
]


def witness(formula: str, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """NumPy's and ml_dtypes' own arithmetic, each step in the element type."""
    with np.errstate(all="ignore"):
        if formula == "squared_difference":
            difference = np.subtract(a, b)
            return np.multiply(difference, difference)
        if formula in UNARY:
            return getattr(np, formula)(a).astype(a.dtype)
        if formula in DIVISIONS:
            return quotient(formula, a, b)
        if formula in ("maximum", "minimum"):
            return extremum(formula, a, b)
        return getattr(np, formula)(a, b)


def quotient(formula: str, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Of integers by Python's own division."""
    if a.dtype.kind not in "iuV" or a.dtype in map(np.dtype, (ml_dtypes.bfloat16, *SMALL_8)):
        return np.divide(a, b)
    whole = a.astype(object), b.astype(object)
    floor = whole[0] // whole[1]
    towards_zero = abs(whole[0]) // abs(whole[1]) * np.where((whole[0] < 0) == (whole[1] < 0), 1, -1)
    wanted = towards_zero if formula == "divide" else floor
    return np.array([int(each) % (1 << 64) for each in wanted], np.uint64).astype(np.int64).astype(a.dtype)


def extremum(formula: str, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """By order of magnitude and sign, with the NaN of either."""
    better = a > b if formula == "maximum" else a < b
    if a.dtype.kind in "iu" or a.dtype.name.endswith("int4"):
        return np.where(better, a, b)
    signs = (np.signbit(a.astype(np.float64)), np.signbit(b.astype(np.float64)))
    first_zero = signs[1] & ~signs[0] if formula == "maximum" else signs[0] & ~signs[1]
    chosen = np.where(better | ((a == b) & first_zero), a, b)
    return np.where(np.isnan(a.astype(np.float64)), a, np.where(np.isnan(b.astype(np.float64)), b, chosen))


def assert_agrees(formula: str, a: np.ndarray, b: np.ndarray) -> None:
    if (formula in DIVISIONS and a.dtype.kind in "iu") or a.dtype.name.endswith("int4"):
        a, b = a[b != 0], b[b != 0]
    operands = (a,) if formula in UNARY else (a, b)
    expected = evaluate(formula, *operands, rule="none")
    wrong = differences(witness(formula, a, b), expected)
    shown = [[hex(bits_of(array)[at]) for array in (a, b, expected)] for at in wrong[:5]]
    assert not wrong, f"{len(wrong)} of {a.size} differ; a, b, oracle: {shown}"


def number_of(value: float) -> Number:
    """A Python float as the oracle writes it."""
    if np.isnan(value):
        return Special.NAN
    if value in (np.inf, -np.inf):
        return Special.POSITIVE_INFINITY if value > 0 else Special.NEGATIVE_INFINITY
    return Special.NEGATIVE_ZERO if value == 0 and np.signbit(value) else Fraction(value)


def patterns_to_read(element_type: ElementType) -> np.ndarray:
    if element_type.bits <= 16:
        return array_of(element_type, range(1 << element_type.bits))
    return np.concatenate([hard_values(element_type), random_bits(element_type, 5000, seed=3)])


@pytest.mark.parametrize("element_type", NUMERIC, ids=str)
def test_every_pattern_is_read_as_numpy_reads_it(element_type: ElementType) -> None:
    array = patterns_to_read(element_type)
    if element_type.is_integer:
        expected = [int(value) for value in array]
    else:
        with np.errstate(invalid="ignore"):
            expected = [number_of(value) for value in array.astype(np.float64).tolist()]  # type: ignore[misc]
    assert [decode(element_type, bits) for bits in bits_of(array)] == expected


@pytest.mark.parametrize("element_type", NUMERIC, ids=str)
def test_every_number_is_written_as_the_pattern_it_was_read_from(element_type: ElementType) -> None:
    for bits in bits_of(patterns_to_read(element_type)):
        written = encode(element_type, decode(element_type, bits))
        assert written == bits or (is_nan(element_type, bits) and is_nan(element_type, written))


@pytest.mark.parametrize("element_type", SMALL_FLOATS, ids=str)
def test_rounding_of_midpoints_and_their_neighbours_is_that_of_a_cast_from_float32(element_type: ElementType) -> None:
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
def test_float8_e4m3fn_overflows_to_nan_beyond_464_as_ml_dtypes_does(value: float, bits: int) -> None:
    cast = np.array([value], np.float32).astype(ml_dtypes.float8_e4m3fn)
    written = encode(FLOAT8E4M3FN, Fraction(float(np.float32(value))))
    assert written == bits
    assert same_bits(cast, array_of(FLOAT8E4M3FN, [written]))


@pytest.mark.parametrize(
    ("element_type", "limit", "largest"),
    [(FLOAT16, 65520, 0x7BFF), (BFLOAT16, (2**9 - 1) * 2**119, 0x7F7F), (FLOAT8E5M2, 61440, 0x7B)],
    ids=str,
)
def test_overflow_starts_half_a_step_beyond_the_largest_finite(
    element_type: ElementType, limit: int, largest: int
) -> None:
    assert encode(element_type, Fraction(limit)) == largest + 1
    assert encode(element_type, Fraction(limit) - Fraction(1, 1000)) == largest
    assert encode(element_type, -Fraction(limit)) == FLOAT_LAYOUTS[element_type].sign | (largest + 1)


@given(st.fractions(), st.integers(-1100, 1000))
def test_float64_rounds_as_pythons_own_division(fraction: Fraction, exponent: int) -> None:
    exact = fraction * Fraction(2) ** exponent
    expected = np.array([float(exact)])
    assert encode(FLOAT64, exact) == bits_of(np.abs(expected) if exact == 0 else expected)[0]


@given(st.sampled_from(FLOATS), st.fractions(-100, 100), st.integers(-160, 20))
def test_no_neighbour_is_nearer_than_the_rounded_number(
    element_type: ElementType, fraction: Fraction, exponent: int
) -> None:
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


def test_numbers_that_no_type_holds_are_refused() -> None:
    for element_type, bits in [(INT8, 256), (INT8, -1), (FLOAT16, 1 << 16), (BY_NAME["uint4"], 16)]:
        with pytest.raises(ValueError, match="no pattern"):
            decode(element_type, bits)
    with pytest.raises(ValueError, match="no numeric type"):
        decode(BY_NAME["string"], 0)
    with pytest.raises(ValueError, match="no value of the integer type"):
        encode(INT8, Fraction(1, 2))


@pytest.mark.parametrize("element_type", NUMERIC, ids=str)
def test_hard_and_random_pairs_agree_with_numpy_and_ml_dtypes(element_type: ElementType) -> None:
    for formula in FORMULAS:
        assert_agrees(formula, *all_pairs(hard_values(element_type)))
        assert_agrees(formula, random_bits(element_type, 4000, seed=1), random_bits(element_type, 4000, seed=2))


@pytest.mark.parametrize("element_type", [row for row in NUMERIC if row.bits <= 8], ids=str)
def test_all_pairs_of_the_small_types_agree_with_numpy_and_ml_dtypes(element_type: ElementType) -> None:
    for formula in FORMULAS:
        assert_agrees(formula, *all_pairs(array_of(element_type, range(1 << element_type.bits))))


@pytest.mark.parametrize("element_type", FLOATS, ids=str)
def test_zeros_infinities_and_nan_follow_the_standard(element_type: ElementType) -> None:
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
    assert {pair: of_bits("subtract", element_type, *pair) for pair in table} == table
    # The sum of a and b is the difference of a and -b.
    assert {(a, b): of_bits("add", element_type, a, b ^ layout.sign) for a, b in table} == table
    assert of_bits("squared_difference", element_type, negative_zero, zero) == zero
    assert is_nan(element_type, of_bits("squared_difference", element_type, layout.nan, one))
    overflow = of_bits("squared_difference", element_type, layout.largest_finite, layout.sign | layout.largest_finite)
    assert overflow == layout.largest_finite + 1


@pytest.mark.parametrize("element_type", FLOATS, ids=str)
def test_squared_difference_rounds_after_each_step(element_type: ElementType) -> None:
    step = Fraction(1, 1 << FLOAT_LAYOUTS[element_type].mantissa_bits)
    one, minus_half_step = encode(element_type, Fraction(1)), encode(element_type, -step / 2)
    assert of_bits("squared_difference", element_type, one, minus_half_step) == one
    assert encode(element_type, (1 + step / 2) ** 2) == one + 1
