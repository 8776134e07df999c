"""Arrays of exact numbers: rounding, conversion and patterns against the oracle's fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eltwise.conformance.arithmetic import (
    as_floats,
    as_integers,
    clamped,
    flushed,
    patterns_of,
    rounded,
    stored,
    values_of,
    wrapped,
)
from eltwise.core.dtypes import (
    BFLOAT16,
    FLOAT8E4M3FN,
    FLOAT16,
    FLOAT32,
    FLOAT64,
    INT8,
    INT32,
    TYPES,
    UINT8,
    UINT64,
    ElementType,
)
from eltwise.oracle import bits_of, hard_values
from eltwise.oracle.numbers import FLOAT_LAYOUTS, decode, encode, is_nan

NUMERIC = [each for each in TYPES if each.is_numeric]
NARROW = [row for row in FLOAT_LAYOUTS if row.bits < 64]


@pytest.mark.parametrize("element_type", NUMERIC, ids=str)
def test_values_are_exact_and_stored_again_as_they_were(element_type: ElementType, seed: int) -> None:
    array = np.concatenate([hard_values.hard_values(element_type), hard_values.random_bits(element_type, 500, seed)])
    patterns = stored(values_of(array, element_type), element_type)
    assert (patterns == patterns_of(array, element_type)).all()
    for pattern, bits in zip(patterns.tolist(), bits_of(array), strict=True):
        assert same(element_type, pattern, bits)


@pytest.mark.parametrize("element_type", NARROW, ids=str)
@given(number=st.floats(allow_nan=False, allow_infinity=False, width=32), digits=st.integers(0, (1 << 29) - 1))
def test_rounding_to_the_nearest_is_the_oracle_s(element_type: ElementType, number: float, digits: int) -> None:
    # All digits of float64 are used: the 29 that float32 has not are drawn apart.
    array = (np.array([number]).view(np.int64) | digits).view(np.float64)
    expected = encode(element_type, Fraction(float(array[0])) or decode(FLOAT64, bits_of(array)[0]))
    assert same(element_type, stored(array, element_type)[0], expected)


def same(element_type: ElementType, one: int, other: int) -> bool:
    return one == other or (is_nan(element_type, int(one)) and is_nan(element_type, other))


def test_values_are_rounded_and_limited_in_each_way() -> None:
    ties = np.array([1 + 2**-8, 1 + 3 * 2**-8, -1 - 2**-8])
    one = 2**-7
    assert rounded(ties, BFLOAT16).tolist() == [1, 1 + 2 * one, -1]
    assert rounded(ties, BFLOAT16, "half away").tolist() == [1 + one, 1 + 2 * one, -1 - one]
    almost_next = np.array([1 + 2**-7 * 0.99, 1 + 2**-7 * 1.6, 1 + 2**-7 * 1.4])
    assert rounded(almost_next, BFLOAT16, "odd only").tolist() == [1, 1 + 2 * one, 1 + one]
    assert rounded(almost_next, BFLOAT16, "toward zero").tolist() == [1, 1 + one, 1 + one]
    beyond = np.array([1e30, -1e30, np.inf, np.nan])
    assert np.array_equal(rounded(beyond, FLOAT16), [np.inf, -np.inf, np.inf, np.nan], equal_nan=True)
    assert np.isnan(rounded(beyond, FLOAT8E4M3FN)).all()
    assert clamped(beyond, -2.0, 2.0)[:3].tolist() == [2, -2, 2]
    assert clamped(beyond, -2.0, 2.0, infinities=False)[:3].tolist() == [2, -2, np.inf]


@given(number=st.integers(-(2**63), 2**64 - 1))
def test_integers_become_floats_with_one_rounding(number: int) -> None:
    for element_type in FLOAT_LAYOUTS:
        expected = decode(element_type, encode(element_type, Fraction(number)))
        got = as_floats(np.array([number], object), element_type)[0]
        assert Fraction(got) == expected if isinstance(expected, Fraction) else not np.isfinite(got)


def test_floats_become_integers_in_each_way() -> None:
    numbers = np.array([1.9, -1.9, 300.0, -300.0, np.inf, -np.inf, np.nan])
    assert as_integers(numbers, INT8, "saturate").tolist() == [1, -1, 127, -128, 127, -128, 0]
    assert as_integers(numbers, INT8, "wrap").tolist() == [1, -1, 44, -44, 0, 0, 0]
    assert as_integers(numbers, INT8, "indefinite").tolist() == [1, -1, -128, -128, -128, -128, -128]
    assert as_integers(numbers, UINT8, "indefinite").tolist() == [1, 255, 255, 255, 255, 255, 255]
    assert as_integers(np.array([2.0**63]), UINT64, "saturate").tolist() == [2**63]
    numbers = np.array([2**31, -(2**31) - 1, 5], object)
    assert wrapped(numbers, INT32).tolist() == [-(2**31), 2**31 - 1, 5]
    assert clamped(numbers, *INT32.limits).tolist() == [2**31 - 1, -(2**31), 5]
    tiny = np.array([1e-40, -1e-40, 2**-126, 1.0])
    assert flushed(tiny, FLOAT32).tolist() == [0, 0, 2**-126, 1]
    assert np.signbit(flushed(tiny, FLOAT32)).tolist() == [False, True, False, False]
    assert not np.signbit(flushed(tiny, FLOAT32, keep_sign=False)).any()
