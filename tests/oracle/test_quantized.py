"""Casts and quantization against the texts: by Python's fractions, and with the faults that runtimes have."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import product
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eltwise.core.dtypes import (
    BFLOAT16,
    BOOL,
    FLOAT8E4M3FN,
    FLOAT8E5M2,
    FLOAT16,
    FLOAT32,
    INT8,
    TYPES,
    UINT8,
    ElementType,
    by_name,
)
from eltwise.oracle import OracleRefusal, array_of, bits_of, differences, evaluate, same_bits
from eltwise.oracle.hard_values import hard_values, random_bits
from eltwise.oracle.numbers import FLOAT_LAYOUTS, Number, Special, decode, encode

Array = npt.NDArray[Any]

RUNNING = [each for each in TYPES if each.runs]
FLOAT8 = (FLOAT8E4M3FN, FLOAT8E5M2)
TARGETS = [by_name(name) for name in ("int4", "uint4", "int8", "uint8", "int16", "uint16")] + list(FLOAT8)


def values_of(element_type: ElementType) -> Array:
    if element_type is BOOL:
        return np.array([False, True])
    return np.concatenate([hard_values(element_type), random_bits(element_type, 300, seed=3)])


def cast_by_table(number: Number, source: ElementType, to: ElementType, saturates: bool) -> int:
    """The pattern of a cast, by ONNX's table and the decisions for what that leaves open."""
    is_infinite = number in (Special.POSITIVE_INFINITY, Special.NEGATIVE_INFINITY)
    if to is BOOL:
        return int(number not in (0, Special.NEGATIVE_ZERO))
    if to in FLOAT_LAYOUTS:
        layout, bits = FLOAT_LAYOUTS[to], encode(to, number)
        if saturates and to in FLOAT8 and number is not Special.NAN:
            magnitude = min(bits & (layout.sign - 1), layout.largest_finite)
            is_negative = bits & layout.sign if not is_infinite else layout.sign * (number is Special.NEGATIVE_INFINITY)
            return magnitude | is_negative
        return bits
    if source is BOOL or source.is_integer:
        assert isinstance(number, int)
        return number % (1 << to.bits)
    low, high = to.limits
    if isinstance(number, Special):
        special = {Special.POSITIVE_INFINITY: high, Special.NEGATIVE_INFINITY: low}
        return encode(to, special.get(number, 0))
    return encode(to, min(max(math.trunc(number), low), high))


@pytest.mark.parametrize("source", RUNNING, ids=str)
def test_casts_are_those_of_the_table(source: ElementType) -> None:
    for to, saturates in product(RUNNING, (True, False)):
        x = values_of(source)
        result = evaluate("cast", x, rule="none", parameters={"to": to, "saturate": saturates})
        expected = [cast_by_table(decode(source, bits), source, to, saturates) for bits in bits_of(x)]
        assert same_bits(result, array_of(to, expected))


@pytest.mark.parametrize("to", ["int8", "uint16", "int64", "float16", "float32"])
@pytest.mark.parametrize("source", ["float32", "float64", "int32", "uint8"])
def test_casts_of_numbers_within_the_limits_are_those_of_numpy(source: str, to: str) -> None:
    x = values_of(by_name(source))
    with np.errstate(all="ignore"):
        wide = x.astype(np.float64)
        is_inside = np.abs(wide) < 127 if to == "int8" else (wide >= 0) & (wide < 60000)
        expected = x[is_inside].astype(to)
    assert same_bits(evaluate("cast", x[is_inside], rule="none", parameters={"to": by_name(to)}), expected)


# ---- quantization


def level_of(x: float, scale: float, zero_point: int, low: int, high: int) -> int:
    return min(max(round(Fraction(x) / Fraction(scale)) + zero_point, low), high)


FLOATS_32 = st.floats(width=32, allow_nan=False, allow_infinity=False)


@given(FLOATS_32, FLOATS_32.filter(bool), st.sampled_from([each for each in TARGETS if each.is_integer]), st.data())
def test_levels_are_the_real_quotients_rounded_to_even(
    x: float, scale: float, target: ElementType, data: st.DataObject
) -> None:
    low, high = target.limits
    zero_point = data.draw(st.integers(low, high))
    zero = array_of(target, [encode(target, zero_point)])
    operands = np.float32([x]), np.float32([scale]), zero
    expected = level_of(x, scale, zero_point, low, high)
    assert bits_of(evaluate("quantize", *operands, rule="none"))[0] == encode(target, expected)
    plain = evaluate("quantize", *operands[:2], rule="none", parameters={"to": target})
    assert bits_of(plain)[0] == encode(target, level_of(x, scale, 0, low, high))


@pytest.mark.parametrize("target", FLOAT8, ids=str)
def test_float8_quotients_are_rounded_once_and_saturate_as_asked(target: ElementType) -> None:
    x, scale = random_bits(FLOAT32, 3000, seed=5), np.abs(random_bits(FLOAT32, 3000, seed=6))
    is_finite = np.isfinite(x) & np.isfinite(scale) & (scale > 0)
    x, scale = x[is_finite], scale[is_finite]
    exact = [Fraction(a) / Fraction(b) for a, b in zip(x.tolist(), scale.tolist(), strict=True)]
    for saturates in (True, False):
        expected = [cast_by_table(number, FLOAT32, target, saturates) for number in exact]
        result = evaluate("quantize", x, scale, rule="none", parameters={"to": target, "saturate": saturates})
        is_zero = [bits & 127 == 0 for bits in expected]
        assert differences(result[~np.array(is_zero)], array_of(target, expected)[~np.array(is_zero)]) == []


@pytest.mark.parametrize(
    ("x", "scale", "level"),
    [
        (1.0, 0.0, 255),
        (-1.0, 0.0, 0),
        (1.0, -0.0, 0),
        (0.0, 0.0, 7),
        (np.nan, 1.0, 7),
        (1.0, np.nan, 7),
        (np.inf, 2.0, 255),
        (-np.inf, 2.0, 0),
        (np.inf, np.inf, 7),
        (3.0, np.inf, 7),
        (2.5, 1.0, 9),
        (3.5, 1.0, 11),
        (-2.5, -1.0, 9),
        (-100.0, 1.0, 0),
        (250.0, 1.0, 255),
    ],
)
def test_special_quotients_saturate_or_give_the_zero_point(x: float, scale: float, level: int) -> None:
    result = evaluate("quantize", np.float32([x]), np.float32([scale]), np.uint8([7]), rule="none")
    assert result.tolist() == [level]
    as_float8 = evaluate("quantize", np.float32([x]), np.float32([scale]), rule="none", parameters={"to": FLOAT8E5M2})
    with np.errstate(all="ignore"):
        quotient = np.float32([x]) / np.float32([scale])
    assert np.isnan(as_float8.astype(np.float32)).tolist() == np.isnan(quotient).tolist()


def test_the_quotient_is_rounded_to_the_precision_that_is_stated() -> None:
    x, scale = random_bits(FLOAT16, 4000, seed=8), np.full(4000, 1 / 3, np.float16)
    parameters = {"to": INT8, "precision": FLOAT16}
    with np.errstate(all="ignore"):
        rounded = (x.astype(np.float64) / scale.astype(np.float64)).astype(np.float16)
        expected = np.clip(np.nan_to_num(np.rint(rounded).astype(np.float64)), -128, 127).astype(np.int8)
    assert same_bits(evaluate("quantize", x, scale, rule="none", parameters=parameters), expected)
    exact = evaluate("quantize", x, scale, rule="none", parameters={"to": INT8})
    assert differences(exact, expected)


def test_scales_and_operands_may_have_types_of_their_own() -> None:
    x, scale = np.array([[10, -7]], np.int32), np.array([[4], [2]], np.float16)
    result = evaluate("quantize", x, scale, rule="numpy", parameters={"to": INT8})
    assert result.tolist() == [[2, -2], [5, -4]]
    back = evaluate("dequantize", result, scale, rule="numpy", parameters={"to": FLOAT32})
    assert (back.dtype, back.tolist()) == (np.float32, [[8, -8], [10, -8]])
    assert evaluate("quantize", np.float32([3.2]), np.float32([1]), rule="none").dtype == np.uint8


@pytest.mark.parametrize("source", [*TARGETS, by_name("int32")], ids=str)
@pytest.mark.parametrize("to", [None, FLOAT16, BFLOAT16, FLOAT32], ids=str)
def test_dequantized_numbers_are_rounded_once(source: ElementType, to: ElementType | None) -> None:
    x, zero = random_bits(source, 500, seed=9), random_bits(source, 500, seed=10)
    scale = np.random.default_rng(0).normal(size=500).astype(np.float32)
    numbers = [[decode(source, bits) for bits in bits_of(each)] for each in (x, zero)]
    result = evaluate("dequantize", x, scale, zero, rule="none", parameters={"to": to})
    for bits, a, b, factor in zip(bits_of(result), *numbers, scale.tolist(), strict=True):
        if not isinstance(a, Special) and not isinstance(b, Special) and a != b:
            assert bits == encode(to or FLOAT32, Fraction(a - b) * Fraction(factor))


FAULTS: dict[str, Callable[[Array, Array, Array], Array]] = {
    "the reciprocal is multiplied": lambda x, scale, zero: np.rint(x * (np.float32(1) / scale)) + zero,
    "the quotient is rounded to float32 first": lambda x, scale, zero: np.rint(x / scale) + zero,
    "halves are rounded away": lambda x, scale, zero: np.trunc(x / scale + np.copysign(0.5, x)) + zero,
    "it saturates before the zero point": lambda x, scale, zero: np.clip(np.rint(x / scale), -128, 127) + zero,
    "it is truncated": lambda x, scale, zero: np.trunc(x / scale) + zero,
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_of_runtimes_are_rejected(fault: str) -> None:
    generator = np.random.default_rng(4)
    levels = generator.integers(-300, 300, 20_000).astype(np.float32) + np.float32(0.5)
    scale = generator.uniform(0.001, 0.1, levels.size).astype(np.float32)
    x = np.concatenate([(levels * scale).astype(np.float32), levels])
    scale = np.concatenate([scale, np.ones_like(scale)])
    zero = np.concatenate([np.full(levels.size, each, np.uint8) for each in (100, 0)])
    wide = zero.astype(np.float32)
    actual = np.clip(FAULTS[fault](x, scale, wide), 0, 255).astype(np.uint8)
    assert differences(actual, evaluate("quantize", x, scale, zero, rule="none"))


# ---- FakeQuantize


def by_the_formula(limits: tuple[Fraction, ...], levels: int) -> Fraction:
    x, low, high, least, most = limits
    if x <= min(low, high):
        return least
    if x > max(low, high):
        return most
    return Fraction(round((x - low) / (high - low) * (levels - 1))) / (levels - 1) * (most - least) + least


@given(st.lists(st.floats(-8, 8, width=16), min_size=5, max_size=5), st.sampled_from([2, 3, 16, 255, 256, 65536]))
def test_fake_quantization_is_the_formula_of_real_numbers(values: list[float], levels: int) -> None:
    for element_type in (FLOAT16, FLOAT32, BFLOAT16):
        operands = [array_of(element_type, [encode(element_type, Fraction(each))]) for each in values]
        exact = by_the_formula(tuple(Fraction(each.astype(np.float64).item()) for each in operands), levels)
        result = evaluate("fake_quantize", *operands, rule="none", parameters={"levels": levels})
        assert result.astype(np.float64) == array_of(element_type, [encode(element_type, exact)]).astype(np.float64)


def test_fake_quantization_of_special_values() -> None:
    x = np.float32([np.nan, np.inf, -np.inf, 0.5, 0.5000001])
    result = evaluate(
        "fake_quantize", x, *(np.float32(each) for each in (0.5, 0.5, -1, 1)), rule="numpy", parameters={"levels": 2}
    )
    assert same_bits(result, np.float32([np.nan, 1, -1, -1, 1]))
    with pytest.raises(OracleRefusal, match="levels is 1"):
        evaluate("fake_quantize", *[x] * 5, rule="none", parameters={"levels": 1})


def test_float8_infinities_follow_onnx() -> None:
    x = np.float32([np.inf, -np.inf, np.nan, 1e9, -1e9])
    table = {
        (FLOAT8E4M3FN, True): [448, -448, np.nan, 448, -448],
        (FLOAT8E4M3FN, False): [np.nan] * 5,
        (FLOAT8E5M2, True): [57344, -57344, np.nan, 57344, -57344],
        (FLOAT8E5M2, False): [np.inf, -np.inf, np.nan, np.inf, -np.inf],
    }
    for (target, saturates), expected in table.items():
        result = evaluate("cast", x, rule="none", parameters={"to": target, "saturate": saturates})
        assert np.array_equal(result.astype(np.float32), np.float32(expected), equal_nan=True)
    assert evaluate("cast", np.float32([0.1]), rule="none", parameters={"to": UINT8}).tolist() == [0]
    assert bits_of(evaluate("cast", np.array([-8], ml_dtypes.int4), rule="none", parameters={"to": UINT8})) == [248]
