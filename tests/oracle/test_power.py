"""Powers against C's special values as NumPy has them, against Python's integers and fractions, and another library."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eltwise.core.dtypes import BFLOAT16, FLOAT16, FLOAT32, FLOAT64, INT32, INT64, TYPES, ElementType
from eltwise.oracle import OracleRefusal, array_of, bits_of, evaluate, same_bits
from eltwise.oracle.hard_values import hard_values, random_bits
from eltwise.oracle.numbers import FLOAT_LAYOUTS, decode, encode
from support.cases import all_pairs

pytest.importorskip("flint")

INTEGERS = [each for each in TYPES if each.is_numeric and each.is_integer]
SPECIAL = (0.0, 1.0, 2.0, 3.0, 0.5, 2.5, 1e30, 1e-30, 9007199254740991.0, np.inf, np.nan)


def power(base: npt.NDArray[Any], exponent: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return evaluate("power", base, exponent, rule="numpy")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_special_values_are_those_of_c(dtype: Any) -> None:
    base, exponent = all_pairs(np.array([sign * each for each in SPECIAL for sign in (1, -1)], dtype))
    with np.errstate(all="ignore"):
        expected = np.power(base, exponent)
    actual = power(base, exponent)
    is_special = ~np.isfinite(expected) | np.isin(expected, (0, 1, -1))
    assert np.array_equal(actual[is_special], expected[is_special], equal_nan=True)
    assert np.allclose(actual, expected, rtol=2 * np.finfo(dtype).eps, atol=0, equal_nan=True)
    comparable = ~np.isnan(expected)
    assert np.array_equal(np.signbit(actual)[comparable], np.signbit(expected)[comparable])
    assert np.isnan(expected).any()


@pytest.mark.parametrize("element_type", [FLOAT16, BFLOAT16, FLOAT32, FLOAT64], ids=str)
def test_whole_powers_are_those_of_fractions(element_type: ElementType) -> None:
    base = np.concatenate([hard_values(element_type), random_bits(element_type, 100, seed=1)])
    for exponent in (-3, -1, 1, 2, 3, 5):
        result = bits_of(power(base, np.int64(exponent)))  # type: ignore[arg-type]
        for bits, number in zip(result, [decode(element_type, each) for each in bits_of(base)], strict=True):
            if isinstance(number, Fraction) and number != 0:
                sign = FLOAT_LAYOUTS[element_type].sign if number < 0 and exponent % 2 else 0
                assert bits == encode(element_type, abs(number) ** exponent) | sign


def test_powers_are_those_of_another_library() -> None:
    generator = np.random.default_rng(2)
    base, exponent = np.exp(generator.normal(scale=3, size=300)), generator.normal(scale=20, size=300)
    for element_type in (FLOAT16, FLOAT32, FLOAT64):
        with np.errstate(all="ignore"):
            x, y = base.astype(element_type.storage), exponent.astype(element_type.storage)
        is_finite = np.isfinite(x) & (x > 0)
        for a, b, value in zip(*(each[is_finite].tolist() for each in (x, y, power(x, y))), strict=True):
            with mpmath.workprec(300):
                exact = mpmath.power(mpmath.mpf(a), mpmath.mpf(b))
                numerator, shift = exact.man_exp
            assert (
                encode(element_type, int(numerator) * Fraction(2) ** int(shift))
                == bits_of(np.array([value]).astype(element_type.storage))[0]
            )


def test_midpoints_of_two_floats_are_decided_exactly() -> None:
    """27 * 2**-150 is (9 * 2**-100) ** 1.5, and lies between two subnormal numbers; so do others like it."""
    x = np.float32([9 * 2.0**-100, 25 * 2.0**-98, 2.0**-100, 49 * 2.0**-100, 1 + 2.0**-12])
    y = np.float32([1.5, 1.5, 1.5, 1.5, 2])
    exact = [Fraction(27, 2**150), Fraction(125, 2**147), Fraction(1, 2**150), Fraction(343, 2**150)]
    exact.append((1 + Fraction(1, 2**12)) ** 2)
    assert bits_of(power(x, y)) == [encode(FLOAT32, each) for each in exact]
    assert bits_of(power(x.astype(np.float64), y.astype(np.float64))) == [encode(FLOAT64, each) for each in exact]


def test_exponents_beyond_float64_count_exactly() -> None:
    exponent = np.array([2**53 + 1, -(2**53) - 1, 2**62 + 1], np.int64)
    assert power(np.float32([-1] * 3), exponent).tolist() == [-1, -1, -1]
    assert power(np.float16([-1.5] * 3), exponent).tolist() == [-math.inf, -0.0, -math.inf]
    near = power(np.float64([1 + 2.0**-52] * 3), exponent)
    assert near[0] == pytest.approx(math.exp(2), rel=1e-12)
    assert near[2] == math.inf


@given(st.sampled_from(INTEGERS), st.data())
def test_integers_wrap(element_type: ElementType, data: st.DataObject) -> None:
    base = data.draw(st.integers(*element_type.limits))
    exponent = data.draw(st.integers(0, 70))
    result = power(array_of(element_type, [encode(element_type, base)]), np.int64([exponent]))
    assert bits_of(result) == [base**exponent % (1 << element_type.bits)]
    assert same_bits(power(array_of(element_type, [encode(element_type, base)]), np.float64([exponent])), result)


def test_integers_to_negative_fractional_and_special_exponents() -> None:
    base = np.array([1, -1, 2, -7], np.int32)
    assert power(base, np.int32(-3)).tolist() == [1, -1, 0, 0]  # type: ignore[arg-type]
    assert power(base, np.int32(-2)).tolist() == [1, 1, 0, 0]  # type: ignore[arg-type]
    assert power(base, np.float32(0.5)).tolist() == [1, 0, 1, 0]  # type: ignore[arg-type]
    assert power(base, np.float32(np.inf)).tolist() == [1, 1, INT32.limits[1], INT32.limits[1]]  # type: ignore[arg-type]
    assert power(base, np.float32(np.nan)).tolist() == [1, 0, 0, 0]  # type: ignore[arg-type]
    assert power(np.int64([10, 9, 8]), np.float64([18.5, 1.5, -0.5])).tolist() == [3162277660168379331, 27, 0]
    assert power(np.int64([10]), np.float64([18.99])).tolist() == [INT64.limits[1]]
    for exponent in (-1, -0.5, -np.inf):
        with pytest.raises(OracleRefusal, match="0 is raised to a negative power"):
            power(np.int32([0]), np.float32([exponent]))
