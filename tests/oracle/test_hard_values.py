"""The hard values: distinct, and on every way of rounding."""

from __future__ import annotations

import itertools
from fractions import Fraction
from math import isqrt

import numpy as np
import pytest

from eltwise.core.dtypes import TYPES, ElementType
from eltwise.oracle import (
    bits_of,
    same_bits,
)
from eltwise.oracle.hard_values import hard_values, random_bits
from eltwise.oracle.numbers import FLOAT_LAYOUTS, decode, encode

NUMERIC = [each for each in TYPES if each.is_numeric]
FLOATS = list(FLOAT_LAYOUTS)
INTEGERS = [row for row in NUMERIC if row.is_integer]


@pytest.mark.parametrize("element_type", NUMERIC, ids=str)
def test_hard_values_are_distinct(element_type: ElementType) -> None:
    values = hard_values(element_type)
    patterns = bits_of(values)
    assert values.dtype == element_type.storage
    assert len(set(patterns)) == len(patterns)
    assert same_bits(random_bits(element_type, 9, seed=4), random_bits(element_type, 9, seed=4))


@pytest.mark.parametrize("element_type", INTEGERS, ids=str)
def test_hard_integers_hold_the_limits_and_the_widths_of_other_types(element_type: ElementType) -> None:
    low, high = element_type.limits
    wanted = {low, low + 1, high - 1, high, -1, 0, 1, 2}
    wanted |= {sign * 2**width + step for sign in (1, -1) for width in (31, 32, 53) for step in (-1, 0, 1)}
    found = {decode(element_type, bits) for bits in bits_of(hard_values(element_type))}
    assert {value for value in wanted if low <= value <= high} <= found
    assert {int("0x" + digit * (element_type.bits // 4), 16) for digit in "5a"} <= set(
        bits_of(hard_values(element_type))
    )


@pytest.mark.parametrize("element_type", FLOATS, ids=str)
def test_hard_floats_hold_both_neighbours_of_every_limit(element_type: ElementType) -> None:
    """Of either sign: where numbers become subnormal, where they end, at 1, and where squares vanish or overflow."""
    layout = FLOAT_LAYOUTS[element_type]
    largest = decode(element_type, layout.largest_finite)
    assert isinstance(largest, Fraction)
    limits = [1 << layout.mantissa_bits, encode(element_type, Fraction(1)), encode(element_type, isqrt(int(largest)))]
    limits += [encode(element_type, Fraction(2) ** (layout.least_exponent // 2)), layout.largest_finite, 1]
    patterns = set(bits_of(hard_values(element_type)))
    for limit, step, sign in itertools.product(limits, (-1, 0, 1), (0, layout.sign)):
        assert limit + step + sign in patterns, (limit, step, sign)
    unsigned = f"u{element_type.storage.itemsize}"
    with np.errstate(invalid="ignore"):  # Of signalling NaN.
        magnitudes = np.arange(layout.largest_finite, layout.largest_finite + 9).astype(unsigned)
        is_nan = np.isnan(magnitudes[magnitudes < layout.sign].view(element_type.storage).astype(np.float64))
    assert {layout.largest_finite + int(is_nan.argmax()), layout.sign - 1} <= patterns


@pytest.mark.parametrize("element_type", FLOATS, ids=str)
def test_hard_floats_meet_every_way_of_rounding(element_type: ElementType) -> None:
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


@pytest.mark.parametrize("element_type", FLOATS, ids=str)
def test_hard_floats_make_ties_around_one_and_before_the_overflow(element_type: ElementType) -> None:
    """Where a type has the number that is half as large as the distance to the next one."""
    one, patterns = encode(element_type, Fraction(1)), {*bits_of(hard_values(element_type))}
    for bits in (one, one - 1, FLOAT_LAYOUTS[element_type].largest_finite - 1):
        lower, upper = (decode(element_type, each) for each in (bits, bits + 1))
        assert isinstance(lower, Fraction)
        assert isinstance(upper, Fraction)
        half = encode(element_type, (upper - lower) / 2)
        is_exact = decode(element_type, half) == (upper - lower) / 2
        assert not is_exact or {bits, half} <= patterns, lower


def kinds_of_rounding(element_type: ElementType, exact: Fraction) -> set[str]:
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
